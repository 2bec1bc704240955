//! Who calls. It is settled here and nowhere else: by a token, by a proxy that the operator vouches for, or, said by name, by
//! nobody.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum_core::body::Body;
use handfast::{
    Audience, Caller, Issuer, Principal,
    http::{BearerLayer, SessionLayer, Sessions},
    token::{ProtectedResource, TokenVerifier},
};
use handfast_wire::headers;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode, header};
use tower_layer::Layer;
use tower_service::Service;

use crate::gateway::Gateway;

/// How it is known who calls.
#[derive(Clone)]
pub enum Who {
    /// By an access token, issued for this server.
    Tokens(Arc<dyn TokenVerifier>, ProtectedResource),
    /// By a header that a proxy on the same machine sets, and takes away where a client sends it.
    TrustedHeader {
        /// The header.
        name: HeaderName,
        /// Who has issued the names in it.
        issuer: Issuer,
        /// The server.
        audience: Audience,
    },
    /// Not at all: whoever holds a handle can use it.
    DangerousAnybody {
        /// The server.
        audience: Audience,
    },
}

impl Who {
    /// Who a request is from, where that is not settled by a token.
    fn trusted(&self, request: &Request<Body>) -> Option<Caller> {
        match self {
            Self::Tokens(..) => None,
            Self::TrustedHeader { name, issuer, audience } => {
                let mut values = request.headers().get_all(name).iter();
                // Two of them: one is the client's own.
                let (Some(value), None) = (values.next(), values.next()) else { return None };
                let principal = Principal::new(issuer.clone(), value.to_str().ok()?).ok()?;
                Some(Caller::trusted(principal).for_audience(audience.clone()))
            }
            Self::DangerousAnybody { audience } => {
                let principal = Principal::new(Issuer::new(NOBODY).ok()?, NOBODY).ok()?;
                Some(Caller::trusted(principal).for_audience(audience.clone()))
            }
        }
    }
}

/// All of the gateway: who calls, whose session it is, and what becomes of the request.
#[derive(Clone)]
pub struct App {
    who: Who,
    inner: Behind,
}

#[derive(Clone)]
enum Behind {
    /// Sessions of 2025-11-25 and older belong to whoever began them.
    Sessions(Sessions<Gateway>),
    /// There are no sessions.
    Stateless(Gateway),
}

impl App {
    /// The gateway with its layers; without `sessions` no request and no answer has a session id.
    #[must_use]
    pub fn new(who: Who, sessions: Option<SessionLayer>, gateway: Gateway) -> Self {
        let inner = match sessions {
            Some(layer) => Behind::Sessions(layer.also_without_sessions().layer(gateway)),
            None => Behind::Stateless(gateway),
        };
        Self { who, inner }
    }

    /// Answers a request.
    pub async fn answer(&self, mut request: Request<Body>) -> Response<Body> {
        let mut inner = self.inner.clone();
        let answered = match &self.who {
            Who::Tokens(verifier, server) => {
                BearerLayer::new(verifier.clone(), server.clone()).layer(inner).call(request).await
            }
            other => match other.trusted(&request) {
                Some(caller) => {
                    request.extensions_mut().insert(caller);
                    inner.call(request).await
                }
                None => {
                    let mut response = Response::new(Body::empty());
                    *response.status_mut() = StatusCode::UNAUTHORIZED;
                    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                    Ok(response)
                }
            },
        };
        answered.unwrap_or_else(|never| match never {})
    }
}

impl Service<Request<Body>> for Behind {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        match self {
            Self::Sessions(sessions) => sessions.call(request),
            Self::Stateless(gateway) => {
                request.headers_mut().remove(headers::SESSION_ID);
                let answer = gateway.call(request);
                Box::pin(async move {
                    let mut response = answer.await?;
                    response.headers_mut().remove(headers::SESSION_ID);
                    Ok(response)
                })
            }
        }
    }
}

/// Who everybody is where nobody is known.
const NOBODY: &str = "handfast:anybody";
