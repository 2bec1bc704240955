//! The layer that makes sessions of a server belong to whoever began them.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum_core::body::Body;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode,
    header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
};
use serde_json::{Value, json};
use tower_layer::Layer;
use tower_service::Service;

use super::{
    Answering, Asking, BoxError, answer,
    peek::{Peeked, peek},
    stream::{self, Watched},
};
use crate::{
    caller::Caller,
    clock::Timestamp,
    session::{Admission, Asked, Session, SessionAuthority, SessionDenial, SessionRefused},
};

/// `Mcp-Session-Id`
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// `MCP-Protocol-Version`
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The first revision without sessions. Revisions are dates, which order as texts do.
const WITHOUT_SESSIONS: &str = "2026-07-28";
/// Those before it.
const WITH_SESSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Stands in front of a server over Streamable HTTP that has sessions of its own.
///
/// Who calls must be known: a [`Caller`] with the audience of the [`SessionAuthority`] is in the extensions of every
/// request, put there by [`BearerLayer`](super::BearerLayer) or by a layer of your own. The client gets a session id of
/// ours; the server's own never leaves. `GET`, `POST` and `DELETE` obey the same rule.
#[derive(Clone)]
pub struct SessionLayer {
    authority: Arc<SessionAuthority>,
    most: usize,
    every: Duration,
    also_without: bool,
}

impl SessionLayer {
    /// By the decisions of this authority.
    #[must_use]
    pub fn new(authority: Arc<SessionAuthority>) -> Self {
        Self { authority, most: 4 * 1024 * 1024, every: Duration::from_secs(15), also_without: false }
    }

    /// How long a request may be, in bytes: 4 MiB.
    #[must_use]
    pub fn most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// How often it is asked whether an open stream may go on: every 15 seconds.
    #[must_use]
    pub fn asking_every(self, every: Duration) -> Self {
        Self { every, ..self }
    }

    /// Also requests of revision 2026-07-28, for a server that speaks both. They have no session, whatever they show, and
    /// the server gets none to see.
    #[must_use]
    pub fn also_without_sessions(self) -> Self {
        Self { also_without: true, ..self }
    }
}

impl<S> Layer<S> for SessionLayer {
    type Service = Sessions<S>;

    fn layer(&self, inner: S) -> Sessions<S> {
        Sessions { inner, layer: self.clone() }
    }
}

/// A service behind a [`SessionLayer`].
#[derive(Clone)]
pub struct Sessions<S> {
    inner: S,
    layer: SessionLayer,
}

impl<S, B> Service<Asking> for Sessions<S>
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

    fn call(&mut self, request: Asking) -> Self::Future {
        // The service that is ready answers; its copy is for the next request.
        let next = self.inner.clone();
        let (inner, layer) = (std::mem::replace(&mut self.inner, next), self.layer.clone());
        Box::pin(async move { layer.answer(request, inner).await })
    }
}

impl SessionLayer {
    async fn answer<S, B>(&self, mut request: Asking, mut inner: S) -> Result<Response<Body>, S::Error>
    where
        S: Service<Asking, Response = Response<B>>,
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let caller = request.extensions().get::<Caller>().cloned();
        let Some(caller) = caller.filter(|caller| self.authority.vouched(Some(caller))) else {
            let refused = self.authority.admit(None, Asked::Use, None).await;
            return Ok(refusal(
                refused.err().map_or(SessionDenial::Unauthorized, |refused| refused.denial()),
                Value::Null,
            ));
        };
        // Whatever was shown is taken away here; what the server behind gets to see is put in below.
        let shown = take(request.headers_mut());
        if speaks_without(request.headers()) {
            if !self.also_without {
                return Ok(no_such_version());
            }
            let mut response = inner.call(request).await?.map(Body::new);
            take(response.headers_mut());
            return Ok(response);
        }
        let (asked, id) = match *request.method() {
            Method::POST => match self.read(&mut request).await {
                Ok(Peeked::Initialize(id)) => (Asked::Begin, id),
                Ok(Peeked::Other(id)) => (Asked::Use, id),
                Err(response) => return Ok(response),
            },
            Method::GET => (Asked::Use, Value::Null),
            Method::DELETE => (Asked::End, Value::Null),
            _ => return Ok(not_allowed()),
        };
        let streams = *request.method() == Method::GET;
        let token_ends = token_ends(&request);
        match self.authority.admit(Some(&caller), asked, shown.as_deref()).await {
            Err(refused) => Ok(refusal(refused.denial(), id)),
            Ok(Admission::Begin) => {
                let response = inner.call(request).await?;
                Ok(self.begun(&caller, response).await.unwrap_or_else(|refused| refusal(refused.denial(), id)))
            }
            Ok(Admission::Ended(session)) => {
                show(request.headers_mut(), &session);
                // It has ended, whatever the server behind says to that.
                drop(inner.call(request).await?);
                Ok(answer::bare(204))
            }
            Ok(Admission::Proceed(session)) => {
                show(request.headers_mut(), &session);
                let mut response = inner.call(request).await?.map(Body::new);
                let now = take(response.headers_mut());
                if let Some(gone) = gone(&session, response.status(), now.as_deref()) {
                    let ended = self.authority.gone(&caller, &session, gone).await;
                    return Ok(refusal(ended.err().map_or(gone, |refused| refused.denial()), id));
                }
                if streams && response.status() == StatusCode::OK {
                    let authority = self.authority.clone();
                    let watched = |body| Watched::body(body, authority, (caller, session), token_ends, self.every);
                    return Ok(response.map(watched));
                }
                Ok(response)
            }
        }
    }

    /// Reads the message of a request, and puts it back.
    async fn read(&self, request: &mut Asking) -> Result<Peeked, Response<Body>> {
        let body = std::mem::replace(request.body_mut(), Body::empty());
        let Some(whole) = stream::whole(body, self.most).await else {
            return Err(answer::json(413, &error(-32600, "the message is too long")));
        };
        let peeked = peek(&whole).ok_or_else(|| answer::json(400, &error(-32700, "not a message")))?;
        *request.body_mut() = Body::from(whole);
        Ok(peeked)
    }

    /// The answer to `initialize`: with a session id of ours, if it has succeeded.
    async fn begun<B>(&self, caller: &Caller, response: Response<B>) -> Result<Response<Body>, SessionRefused>
    where
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (mut head, body) = response.into_parts();
        let theirs = take(&mut head.headers);
        if head.status != StatusCode::OK {
            return Ok(Response::from_parts(head, Body::new(body)));
        }
        let of_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let is_stream = of_type.to_ascii_lowercase().starts_with("text/event-stream");
        let (succeeded, body) = stream::begun(body, is_stream).await;
        if succeeded {
            let id = self.authority.begin(caller, theirs.as_deref()).await?;
            let mut id = HeaderValue::from_str(id.expose()).map_err(|_| SessionDenial::Unavailable)?;
            id.set_sensitive(true);
            head.headers.insert(SESSION, id);
        } else {
            // What was cut short has another length.
            head.headers.remove(CONTENT_LENGTH);
        }
        Ok(Response::from_parts(head, body))
    }
}

/// Takes the session id out of these headers. More than one is none that anybody has.
fn take(headers: &mut HeaderMap) -> Option<String> {
    let mut shown = headers.get_all(SESSION).iter().map(|id| id.to_str().unwrap_or_default().to_owned());
    let first = shown.next();
    let shown = if shown.next().is_some() { Some(String::new()) } else { first };
    headers.remove(SESSION);
    shown
}

/// Shows the server behind its own id.
fn show(headers: &mut HeaderMap, session: &Session) {
    if let Some(mut id) = session.inner().and_then(|id| HeaderValue::from_str(id.expose()).ok()) {
        id.set_sensitive(true);
        headers.insert(SESSION, id);
    }
}

/// Whether the server behind has lost the session, or has made another one without being asked to.
fn gone(session: &Session, status: StatusCode, now: Option<&str>) -> Option<SessionDenial> {
    let before = session.inner().map(|id| id.expose());
    match (status, now) {
        (_, Some(_)) if now != before => Some(SessionDenial::Forked),
        (StatusCode::NOT_FOUND, _) => Some(SessionDenial::Lost),
        _ => None,
    }
}

fn speaks_without(headers: &HeaderMap) -> bool {
    headers.get_all(VERSION).iter().any(|version| version.as_bytes() >= WITHOUT_SESSIONS.as_bytes())
}

fn token_ends(request: &Asking) -> Option<Timestamp> {
    #[cfg(feature = "tokens")]
    return request.extensions().get::<crate::token::Verified>().map(|verified| verified.expires);
    #[cfg(not(feature = "tokens"))]
    {
        let _ = request;
        None
    }
}

fn refusal(denial: SessionDenial, id: Value) -> Response<Body> {
    let mut response = answer::json(denial.status(), &denial.json(id));
    let headers = response.headers_mut();
    match denial.status() {
        401 => drop(headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
        429 | 503 => drop(headers.insert(RETRY_AFTER, HeaderValue::from_static("10"))),
        _ => {}
    }
    response
}

fn no_such_version() -> Response<Body> {
    let mut told = error(-32022, "Unsupported protocol version");
    told["error"]["data"] = json!({"supported": WITH_SESSIONS});
    answer::json(400, &told)
}

fn not_allowed() -> Response<Body> {
    let mut response = answer::bare(405);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, POST, DELETE"));
    response
}

fn error(code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}})
}
