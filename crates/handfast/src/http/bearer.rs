//! The layer that lets in whoever shows a good token.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use axum_core::body::Body;
use http::{
    HeaderMap, HeaderValue, Method, Response,
    header::{AUTHORIZATION, RETRY_AFTER, WWW_AUTHENTICATE},
};
use serde_json::json;
use tower_layer::Layer;
use tower_service::Service;

use super::{Answering, Asking, BoxError, answer};
use crate::{
    tally,
    token::{Challenge, ProtectedResource, TokenDenial, TokenVerifier, Verified},
};

/// Lets in whoever shows a good token, and puts the [`Caller`](crate::Caller) and the [`Verified`] into the extensions of
/// the request. Also answers with the server's metadata (RFC 9728), at their path, to anybody.
///
/// A token is taken from the header `Authorization` only. "MCP clients MUST NOT include access tokens in the URI query
/// string", and what is there is refused.
#[derive(Clone)]
pub struct BearerLayer {
    verifier: Arc<dyn TokenVerifier>,
    server: Arc<ProtectedResource>,
}

impl BearerLayer {
    /// With this verifier, for this server.
    #[must_use]
    pub fn new(verifier: Arc<dyn TokenVerifier>, server: ProtectedResource) -> Self {
        Self { verifier, server: Arc::new(server) }
    }
}

impl<S> Layer<S> for BearerLayer {
    type Service = Bearer<S>;

    fn layer(&self, inner: S) -> Bearer<S> {
        Bearer { inner, layer: self.clone() }
    }
}

/// A service behind a [`BearerLayer`].
#[derive(Clone)]
pub struct Bearer<S> {
    inner: S,
    layer: BearerLayer,
}

impl<S, B> Service<Asking> for Bearer<S>
where
    S: Service<Asking, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Answering<S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Asking) -> Self::Future {
        // The service that is ready answers; its copy is for the next request.
        let next = self.inner.clone();
        let (mut inner, layer) = (std::mem::replace(&mut self.inner, next), self.layer.clone());
        Box::pin(async move {
            if *request.method() == Method::GET && request.uri().path() == layer.server.path() {
                return Ok(answer::json(200, &layer.server.json()));
            }
            match layer.verified(request.headers(), request.uri().query()).await {
                Ok(verified) => {
                    let extensions = request.extensions_mut();
                    extensions.insert(verified.caller.clone());
                    extensions.insert(verified);
                    inner.call(request).await.map(|response| response.map(Body::new))
                }
                Err(refusal) => Ok(refusal),
            }
        })
    }
}

impl BearerLayer {
    async fn verified(&self, headers: &HeaderMap, query: Option<&str>) -> Result<Verified, Response<Body>> {
        let named = |pair: &str| pair.split('=').next() == Some("access_token");
        if query.is_some_and(|query| query.split('&').any(named)) {
            tally::count_why(tally::AUTH_REFUSED, tally::IN_QUERY);
            let told = json!({"error": "invalid_request", "error_description": "tokens are not taken from the query"});
            return Err(answer::json(400, &told));
        }
        let mut shown = headers.get_all(AUTHORIZATION).iter();
        let (Some(shown), None) = (shown.next(), shown.next()) else {
            tally::count_why(tally::AUTH_REFUSED, tally::NO_TOKEN);
            return Err(self.refused(401, Challenge::None));
        };
        let token = shown.to_str().ok().and_then(|shown| shown.split_once(' '));
        let token = token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim());
        let verified = match token {
            Some(token) => self.verifier.verify(token).await,
            None => Err(TokenDenial::Malformed),
        };
        let verified = verified.map_err(|denial| {
            tracing::debug!(target: "handfast", reason = denial.slug(), "a token is refused");
            tally::count_why(tally::AUTH_REFUSED, denial.slug());
            match denial {
                TokenDenial::Unavailable => unavailable(),
                _ => self.refused(401, Challenge::InvalidToken),
            }
        })?;
        tally::count(tally::AUTH_VALID);
        let has = |scope| verified.caller.scopes().is_some_and(|scopes| scopes.contains(scope));
        if self.server.scopes().is_some_and(|needed| !needed.iter().all(has)) {
            return Err(self.refused(403, Challenge::InsufficientScope));
        }
        Ok(verified)
    }

    fn refused(&self, status: u16, challenge: Challenge) -> Response<Body> {
        let error = match challenge {
            Challenge::None => "unauthorized",
            Challenge::InvalidToken => "invalid_token",
            Challenge::InsufficientScope => "insufficient_scope",
        };
        let mut response = answer::json(status, &json!({"error": error}));
        if let Ok(challenge) = HeaderValue::from_str(&self.server.challenge(challenge)) {
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

fn unavailable() -> Response<Body> {
    let mut response = answer::json(503, &json!({"error": "temporarily_unavailable"}));
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("10"));
    response
}
