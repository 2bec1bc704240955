//! The layer that makes sessions of a server belong to whoever began them.

use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum_core::body::Body;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode,
    header::{ACCEPT_ENCODING, ALLOW, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, TRANSFER_ENCODING, WWW_AUTHENTICATE},
    request::Parts,
};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tower_layer::Layer;
use tower_service::Service;

use super::{
    Answering, Asking, BoxError, answer,
    peek::{Peeked, peek},
    stream::{self, Watch, Watched},
};
use crate::{
    caller::Caller,
    clock::Timestamp,
    secret::SecretText,
    session::{Admission, Asked, Begun, Session, SessionAuthority, SessionDenial, SessionRefused},
    tally,
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
    S::Error: Send,
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
        Box::pin(async move { layer.answer(request, Behind(inner)).await })
    }
}

/// The server behind.
struct Behind<S>(S);

impl<S, B> Behind<S>
where
    S: Service<Asking, Response = Response<B>>,
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    async fn answer(&mut self, request: Asking) -> Result<Response<Body>, S::Error> {
        self.0.call(request).await.map(|response| response.map(Body::new))
    }

    /// Tells it that nobody will use this session of its own: it would otherwise keep it.
    async fn end(&mut self, head: &Parts, id: &str) -> Result<(), S::Error> {
        let mut request = Request::from_parts(head.clone(), Body::empty());
        *request.method_mut() = Method::DELETE;
        for name in [CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING] {
            request.headers_mut().remove(name);
        }
        show(request.headers_mut(), Some(id));
        poll_fn(|context| self.0.poll_ready(context)).await?;
        self.0.call(request).await.map(drop)
    }
}

/// Who asks, and what.
struct Question {
    caller: Caller,
    /// Of the request, for an error.
    id: Value,
}

impl SessionLayer {
    async fn answer<S, B>(&self, mut request: Asking, mut behind: Behind<S>) -> Result<Response<Body>, S::Error>
    where
        S: Service<Asking, Response = Response<B>> + Send + 'static,
        S::Future: Send,
        S::Error: Send,
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let caller = request.extensions().get::<Caller>().cloned();
        if caller.is_none() {
            tracing::warn!(
                target: "handfast",
                "a request comes with no Caller in its extensions: BearerLayer must be outside of SessionLayer, in axum added after it"
            );
        }
        let Some(caller) = caller.filter(|caller| self.authority.vouched(Some(caller))) else {
            let refused = self.authority.admit(None, Asked::Use, None).await.err();
            let denial = refused.map_or(SessionDenial::Unauthorized, |refused| refused.denial());
            return Ok(refusal(denial, Value::Null));
        };
        // Whatever was shown is taken away here; what the server behind gets to see is put in below.
        let shown = take(request.headers_mut());
        let Some(has_sessions) =
            has_sessions(request.headers()).filter(|has_sessions| *has_sessions || self.also_without)
        else {
            return Ok(self.no_such_version(&mut request).await);
        };
        let (asked, id) = match *request.method() {
            Method::POST => match self.read(&mut request).await {
                Ok(Peeked::Initialize(id)) => (Asked::Begin, id),
                Ok(Peeked::Other(id)) => (Asked::Use, id),
                Err(response) => return Ok(response),
            },
            Method::GET if has_sessions => (Asked::Use, Value::Null),
            Method::DELETE if has_sessions => (Asked::End, Value::Null),
            _ => return Ok(not_allowed(has_sessions)),
        };
        if !has_sessions {
            if asked == Asked::Begin {
                // There are servers that begin a session all the same, whatever the revision.
                return Ok(answer::json(404, &error(id, -32601, "there is no `initialize` in this revision")));
            }
            let mut response = behind.answer(request).await?;
            take(response.headers_mut());
            return Ok(response);
        }
        let question = Question { caller, id };
        match self.authority.admit(Some(&question.caller), asked, shown.as_deref()).await {
            Err(refused) => Ok(refusal(refused.denial(), question.id)),
            Ok(Admission::Begin) => self.begin_whoever_waits(question, request, behind).await,
            Ok(Admission::Ended(session)) => {
                let (head, _) = request.into_parts();
                if let Some(id) = session.inner() {
                    // It has ended, whatever the server behind says to that.
                    behind.end(&head, id.expose()).await?;
                }
                Ok(answer::bare(204))
            }
            Ok(Admission::Proceed(session)) => self.proceed(question, session, request, behind).await,
        }
    }

    /// "It MUST respond with an `UnsupportedProtocolVersionError` listing the versions it does support."
    async fn no_such_version(&self, request: &mut Asking) -> Response<Body> {
        let requested = request.headers().get(VERSION).and_then(|version| version.to_str().ok()).map(str::to_owned);
        let id = match self.read(request).await {
            Ok(Peeked::Initialize(id) | Peeked::Other(id)) => id,
            Err(_) => Value::Null,
        };
        let supported: Vec<&str> =
            self.also_without.then_some(WITHOUT_SESSIONS).into_iter().chain(WITH_SESSIONS).collect();
        let mut told = error(id, -32022, "Unsupported protocol version");
        told["error"]["data"] = json!({"supported": supported, "requested": requested});
        answer::json(400, &told)
    }

    /// Reads the message of a request, and puts it back.
    async fn read(&self, request: &mut Asking) -> Result<Peeked, Response<Body>> {
        let body = std::mem::replace(request.body_mut(), Body::empty());
        let Some(whole) = stream::whole(body, self.most).await else {
            return Err(answer::json(413, &error(Value::Null, -32600, "the message is too long")));
        };
        let peeked = peek(&whole).ok_or_else(|| answer::json(400, &error(Value::Null, -32700, "not a message")))?;
        *request.body_mut() = Body::from(whole);
        Ok(peeked)
    }

    /// Hands on a request in a session.
    async fn proceed<S, B>(
        &self,
        question: Question,
        session: Session,
        mut request: Asking,
        mut behind: Behind<S>,
    ) -> Result<Response<Body>, S::Error>
    where
        S: Service<Asking, Response = Response<B>>,
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let Question { caller, id } = question;
        let before = session.inner().map(SecretText::expose);
        show(request.headers_mut(), before);
        let token_ends = token_ends(&request);
        let (head, body) = request.into_parts();
        let attaches = head.method == Method::GET;
        let mut response = behind.answer(Request::from_parts(head.clone(), body)).await?;
        let now = take(response.headers_mut());
        let gone = match (response.status(), now.as_deref()) {
            (_, Some(now)) if Some(now) != before => {
                for orphan in [Some(now), before].into_iter().flatten() {
                    behind.end(&head, orphan).await?;
                }
                Some(SessionDenial::Forked)
            }
            // A server that has no streams may say so by 404: that is said of the place, not of the session.
            (StatusCode::NOT_FOUND, None) if attaches => return Ok(not_allowed(true)),
            (StatusCode::NOT_FOUND, _) => Some(SessionDenial::Lost),
            _ => None,
        };
        if let Some(gone) = gone {
            let ended = self.authority.gone(&caller, &session, gone).await;
            return Ok(refusal(ended.err().map_or(gone, |refused| refused.denial()), id));
        }
        // What was asked for while the token was good may be answered after that; a stream of what else there is to say
        // ends with it.
        let watch = self.watch(caller, session, token_ends.filter(|_| attaches));
        Ok(watched(response, watch, attaches))
    }

    /// Begins a session, also where whoever asked has gone meanwhile: then it ends at once, here and behind.
    async fn begin_whoever_waits<S, B>(
        &self,
        question: Question,
        request: Asking,
        mut behind: Behind<S>,
    ) -> Result<Response<Body>, S::Error>
    where
        S: Service<Asking, Response = Response<B>> + Send + 'static,
        S::Future: Send,
        S::Error: Send,
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (tell, told) = oneshot::channel();
        let (layer, id) = (self.clone(), question.id.clone());
        tokio::spawn(async move {
            let begun = layer.begin(&question, request, &mut behind).await;
            let Err(unheard) = tell.send(begun) else { return };
            if let Ok((_, Some((head, session)))) = unheard {
                let _ = layer.authority.gone(&question.caller, &session, SessionDenial::Lost).await;
                if let Some(id) = session.inner() {
                    let _ = behind.end(&head, id.expose()).await;
                }
            }
        });
        match told.await {
            Ok(begun) => begun.map(|(response, _)| response),
            Err(_) => Ok(refusal(SessionDenial::Unavailable, id)),
        }
    }

    /// The answer to `initialize`, with a session id of ours if it has succeeded, and that session.
    async fn begin<S, B>(
        &self,
        question: &Question,
        mut request: Asking,
        behind: &mut Behind<S>,
    ) -> Result<(Response<Body>, Option<(Parts, Session)>), S::Error>
    where
        S: Service<Asking, Response = Response<B>>,
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let Question { caller, id } = question;
        // Whether it has succeeded stands in the answer, which has to be read.
        request.headers_mut().remove(ACCEPT_ENCODING);
        let (asked, body) = request.into_parts();
        let response = behind.answer(Request::from_parts(asked.clone(), body)).await?;
        let (mut head, body) = response.into_parts();
        let theirs = take(&mut head.headers);
        let outcome = self.begun(caller, &mut head, body, theirs.as_deref()).await;
        if let (Some(orphan), Err(_) | Ok((_, None))) = (&theirs, &outcome) {
            behind.end(&asked, orphan).await?;
        }
        match outcome {
            Ok((body, Some(session))) => {
                let watch = self.watch(caller.clone(), session.clone(), None);
                Ok((watched(Response::from_parts(head, body), watch, false), Some((asked, session))))
            }
            Ok((body, None)) => Ok((Response::from_parts(head, body), None)),
            Err(refused) => Ok((refusal(refused.denial(), id.clone()), None)),
        }
    }

    async fn begun(
        &self,
        caller: &Caller,
        head: &mut http::response::Parts,
        body: Body,
        theirs: Option<&str>,
    ) -> Result<(Body, Option<Session>), SessionRefused> {
        if head.status != StatusCode::OK {
            return Ok((body, None));
        }
        let Some((succeeded, body)) = stream::begun(body, is_stream(&head.headers)).await else {
            return Err(SessionDenial::Unusable.into());
        };
        if !succeeded {
            return Ok((body, None));
        }
        let Begun { id, session } = self.authority.begin(caller, theirs).await?;
        let mut id = HeaderValue::from_str(id.expose()).map_err(|_| SessionDenial::Unavailable)?;
        id.set_sensitive(true);
        head.headers.insert(SESSION, id);
        Ok((body, Some(session)))
    }

    fn watch(&self, caller: Caller, session: Session, token_ends: Option<Timestamp>) -> Watch {
        Watch { authority: self.authority.clone(), caller, session, token_ends, every: self.every }
    }
}

/// A stream of events ends with its session; whatever else this is, it is left as it is.
fn watched(response: Response<Body>, watch: Watch, attaches: bool) -> Response<Body> {
    if response.status() != StatusCode::OK || !is_stream(response.headers()) {
        return response;
    }
    let open = attaches.then(|| tally::Open::one(tally::STREAMS));
    response.map(|messages| Watched::body(messages, watch, open))
}

fn is_stream(headers: &HeaderMap) -> bool {
    let of_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    of_type.to_ascii_lowercase().starts_with("text/event-stream")
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
fn show(headers: &mut HeaderMap, id: Option<&str>) {
    if let Some(mut id) = id.and_then(|id| HeaderValue::from_str(id).ok()) {
        id.set_sensitive(true);
        headers.insert(SESSION, id);
    }
}

/// Whether the revision that a request speaks has sessions; `None` where it names none that there is, or more than one.
fn has_sessions(headers: &HeaderMap) -> Option<bool> {
    let mut named = headers.get_all(VERSION).iter();
    let Some(version) = named.next() else { return Some(true) };
    let version = version.to_str().ok().filter(|_| named.next().is_none())?;
    if WITH_SESSIONS.contains(&version) {
        return Some(true);
    }
    let shape = version.bytes().map(|byte| if byte.is_ascii_digit() { b'0' } else { byte });
    (shape.eq(*b"0000-00-00") && version >= WITHOUT_SESSIONS).then_some(false)
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

fn not_allowed(has_sessions: bool) -> Response<Body> {
    let mut response = answer::bare(405);
    let allowed = if has_sessions { "GET, POST, DELETE" } else { "POST" };
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

fn error(id: Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}
