//! One request on its way: admitted, revealed, asked, concealed. Each step takes what the one before has made, and what
//! fails is refused; nothing is forwarded that was not revealed, and nothing leaves that was not concealed.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum_core::body::Body;
use bytes::{Bytes, BytesMut};
use handfast::{
    Audience, AuditSink, Caller, Keys,
    clock::{Clock, SystemClock},
    names::{Names, NamesError, NamesSetup},
    seal::{Sealer, SealerOptions},
    store::Store,
};
use handfast_wire::headers;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use tower_service::Service;

use crate::{
    admin,
    admit::{self, Message},
    conceal::Conceal,
    events,
    ids::Ids,
    respond::Rejection,
    reveal::{Reveal, Shape},
    rules::Rules,
    spelled::Finder,
    states::{Round, States},
    tally,
    upstream::{Down, Upstream},
};

/// What a gateway is made of.
pub struct Setup {
    /// What is known of the handles of the server behind.
    pub rules: Rules,
    /// The server behind.
    pub upstream: Arc<dyn Upstream>,
    /// Where handles are kept.
    pub store: Arc<dyn Store>,
    /// The operator's keys.
    pub keys: Keys,
    /// The canonical URI of the server, as tokens name it.
    pub audience: Audience,
    /// Where events go.
    pub audit: Arc<dyn AuditSink>,
    /// What is heeded besides.
    pub options: Options,
}

/// What is heeded besides the rules.
#[derive(Debug, Clone)]
pub struct Options {
    /// Tools that no rule knows are refused.
    pub strict: bool,
    /// A state may come back once.
    pub single_use: bool,
    /// How long a state lives.
    pub state_lifetime: Duration,
    /// The longest request, in bytes.
    pub longest_request: usize,
    /// The longest message of the server behind, in bytes.
    pub longest_answer: usize,
    /// How long the server behind may take to begin its answer, and to finish one that is no stream.
    pub patience: Duration,
    /// The origins that browsers may come from.
    pub origins: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            strict: false,
            single_use: false,
            state_lifetime: Duration::from_secs(10 * 60),
            longest_request: 4 << 20,
            longest_answer: 16 << 20,
            patience: Duration::from_secs(60),
            origins: Vec::new(),
        }
    }
}

/// The service in front of the server behind. Who calls stands in the extensions of a request, put there by a layer.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) rules: Rules,
    pub(crate) names: Names,
    shape: Shape,
    pub(crate) states: States,
    upstream: Arc<dyn Upstream>,
    store: Arc<dyn Store>,
    pub(crate) options: Options,
}

impl Gateway {
    /// Makes one.
    ///
    /// # Errors
    /// The rules name kinds of handles that cannot be told apart.
    pub fn new(setup: Setup) -> Result<Self, NamesError> {
        let Setup { rules, upstream, store, keys, audience, audit, options } = setup;
        let names = Names::new(NamesSetup {
            store: store.clone(),
            policy: rules.policy().clone(),
            keys: keys.clone(),
            audience: audience.clone(),
            audit: audit.clone(),
        })?;
        let times = SealerOptions { lifetime: options.state_lifetime, ..SealerOptions::default() };
        let states = States {
            sealer: Sealer::with(keys.clone(), audience, times),
            keys,
            once: options.single_use.then(|| store.clone()),
            audit,
        };
        let shape = Shape::of(&names);
        Ok(Self(Arc::new(Inner { rules, names, shape, states, upstream, store, options })))
    }
}

impl Service<Request<Body>> for Gateway {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let inner = self.0.clone();
        Box::pin(async move { Ok(inner.answer(request).await) })
    }
}

impl Inner {
    async fn answer(self: Arc<Self>, request: Request<Body>) -> Response<Body> {
        let Some(caller) = request.extensions().get::<Caller>().cloned() else {
            tracing::error!(target: "handfast", "a request without a caller has reached the gateway");
            return bare(StatusCode::UNAUTHORIZED);
        };
        let (head, body) = request.into_parts();
        let host = head.headers.get(header::HOST);
        let is_known = |origin: &HeaderValue| {
            self.options.origins.iter().any(|known| origin.as_bytes() == known.as_bytes())
                || admit::is_own(origin, host)
        };
        if !head.headers.get_all(header::ORIGIN).iter().all(is_known) {
            return bare(StatusCode::FORBIDDEN);
        }
        match head.method {
            Method::POST => {
                let (mut id, mut method) = (String::new(), String::new());
                let answer = self.clone().post(&caller, &head.headers, body, &mut id, &mut method).await;
                tally::request(&answer);
                answer.unwrap_or_else(|rejection| rejection.response(&id, &method))
            }
            // Without a session there is no stream to listen to, and no session to end.
            Method::GET | Method::DELETE if head.headers.contains_key(headers::SESSION_ID) => {
                let answer = self.clone().verb(&caller, &head.method, &head.headers).await;
                tally::request(&answer);
                answer.unwrap_or_else(|rejection| rejection.response("", ""))
            }
            _ => {
                let mut response = bare(StatusCode::METHOD_NOT_ALLOWED);
                response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
                response
            }
        }
    }

    async fn post(
        self: Arc<Self>,
        caller: &Caller,
        given: &HeaderMap,
        body: Body,
        id: &mut String,
        method: &mut String,
    ) -> Result<Response<Body>, Rejection> {
        let text = whole(body, self.options.longest_request).await.ok_or_else(admit::too_long)?;
        let text = String::from_utf8(text).map_err(|_| Rejection::bad(-32700, "the body is not UTF-8"))?;
        let node = admit::read(&text)?;
        let message = Message::of(&node, &text)?;
        id.push_str(message.id_in(&text));
        method.push_str(message.method.unwrap_or_default());
        let modern = admit::is_modern(given, &message)?;
        let mirrors = admit::mirrors(given, &message, &text)?;
        let traced = message.params.and_then(|params| params.get("_meta")?.get("traceparent")?.text());
        let caller = caller.clone().traced(traced);

        let tool = message.name().filter(|_| method == "tools/call").unwrap_or_default();
        if self.options.strict && method == "tools/call" && !self.rules.knows(tool) {
            return Err(Rejection::NoRule);
        }
        let (names, shape) = (&self.names, &self.shape);
        let mut reveal =
            Reveal { rules: &self.rules, names, shape, caller: &caller, known: crate::reveal::Known::default() };
        let revealed = reveal.request(&message, &text).await;
        let mut changes = revealed.map_err(|rejection| admit::blame(rejection, modern, &message))?;
        let mut round = Round::of(&message, &text)?;
        if let (Some(round), Some(params)) = (&mut round, message.params) {
            changes.extend(self.states.take_back(&caller, round, params, &text).await?);
        }
        let mut ids = if modern { Ids::default() } else { Ids::of_session(&caller, given.get(headers::SESSION_ID)) };
        changes.extend(ids.exchange(&message, &text));
        let mut asked = passed(given);
        for (name, value) in mirrors {
            reveal.agrees(&message, name.as_str(), &value)?;
            let value = reveal.repeated(&value).await?.unwrap_or(value);
            put(&mut asked, name, &value);
        }
        if let Some(named) = message.name().filter(|_| modern) {
            let named = reveal.repeated(named).await?.unwrap_or_else(|| named.to_owned());
            put(&mut asked, HeaderName::from_static("mcp-name"), &named);
        }
        let known = std::mem::take(&mut reveal.known);
        // What the answer hands out could not be kept: so it is not asked for. Whoever has shown a handle or a session has been
        // looked up already.
        if known.is_empty() && !given.contains_key(headers::SESSION_ID) && !admin::answers(&*self.store).await {
            return Err(Rejection::Store);
        }
        let (tool, is_request) = (tool.to_owned(), message.is_request());
        let sent = handfast_wire::span::spliced(&text, changes);

        let mut request = Request::new(Bytes::from(sent));
        (*request.method_mut(), *request.headers_mut()) = (Method::POST, asked);
        let answer = self.ask(&caller, request).await?;
        let gateway = self.clone();
        let answering =
            Answering { gateway, caller, method: method.clone(), tool, round, known, ids, is_request, modern };
        answering.answer(answer).await
    }

    async fn verb(
        self: Arc<Self>,
        caller: &Caller,
        verb: &Method,
        given: &HeaderMap,
    ) -> Result<Response<Body>, Rejection> {
        let mut request = Request::new(Bytes::new());
        (*request.method_mut(), *request.headers_mut()) = (verb.clone(), passed(given));
        let answer = self.ask(caller, request).await?;
        let answering = Answering {
            gateway: self.clone(),
            caller: caller.clone(),
            method: String::new(),
            tool: String::new(),
            round: None,
            known: crate::reveal::Known::default(),
            ids: Ids::of_session(caller, given.get(headers::SESSION_ID)),
            is_request: false,
            modern: false,
        };
        answering.answer(answer).await
    }

    async fn ask(&self, caller: &Caller, request: Request<Bytes>) -> Result<Response<Body>, Rejection> {
        let began = SystemClock.now();
        let asking = self.upstream.ask(caller, request);
        match tokio::time::timeout(self.options.patience, asking).await {
            Ok(Ok(response)) => {
                tally::upstream(SystemClock.now().duration_since(began).as_secs_f64());
                Ok(response)
            }
            Ok(Err(down)) => {
                tracing::warn!(target: "handfast", error = %down, "the server behind does not answer");
                Err(match down {
                    Down::Full => Rejection::Full,
                    Down::Late => Rejection::Upstream("the server behind said nothing in time"),
                    _ => Rejection::Upstream("the server behind cannot be reached"),
                })
            }
            Err(_) => Err(Rejection::Upstream("the server behind said nothing in time")),
        }
    }
}

/// A request that was sent, and how its answer is to be made ours.
pub(crate) struct Answering {
    gateway: Arc<Inner>,
    caller: Caller,
    method: String,
    tool: String,
    round: Option<Round>,
    known: crate::reveal::Known,
    ids: Ids,
    is_request: bool,
    modern: bool,
}

impl Answering {
    /// The answer of the server behind as the client is to read it.
    async fn answer(mut self, answer: Response<Body>) -> Result<Response<Body>, Rejection> {
        let (theirs, body) = answer.into_parts();
        let status = theirs.status;
        // Its own credential is the gateway's affair, and so is where it lives.
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) || status.is_redirection() {
            tracing::warn!(target: "handfast", status = status.as_u16(), "the server behind refuses the gateway");
            return Err(Rejection::Upstream("the server behind refuses the gateway"));
        }
        let mut response = Response::new(Body::empty());
        *response.status_mut() = status;
        for name in RETURNED {
            if let Some(value) = theirs.headers.get(&name) {
                response.headers_mut().insert(name, value.clone());
            }
        }
        let kind = theirs.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if kind == "text/event-stream" && status == StatusCode::OK {
            response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
            *response.body_mut() = events::body(body, self);
            return Ok(response);
        }
        let options = &self.gateway.options;
        let late = || Rejection::Upstream("the server behind did not finish its answer in time");
        let read = tokio::time::timeout(options.patience, whole(body, options.longest_answer));
        let long = Rejection::Upstream("the server's answer is too long, or broke off");
        let bytes = read.await.map_err(|_| late())?.ok_or(long)?;
        if bytes.is_empty() && !(self.is_request && status.is_success()) {
            return Ok(response);
        }
        let unreadable = || Rejection::Upstream("the server's answer cannot be read");
        if kind != "application/json" && !status.is_success() {
            // A server that says no in another language: that it does is all that is passed on.
            return Ok(response);
        }
        let text = String::from_utf8(bytes).map_err(|_| unreadable())?;
        let told = self.message(&text).await?;
        if self.is_request && !is_answer(&told) {
            return Err(unreadable());
        }
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        *response.body_mut() = Body::from(told);
        Ok(response)
    }

    /// One message as the client is to read it.
    pub(crate) async fn message(&mut self, text: &str) -> Result<String, Rejection> {
        let gateway = &self.gateway;
        let mut conceal = Conceal {
            rules: &gateway.rules,
            names: &gateway.names,
            states: &gateway.states,
            caller: &self.caller,
            method: &self.method,
            tool: &self.tool,
            round: self.round.as_ref(),
            known: &mut self.known,
            ids: &self.ids,
        };
        conceal.message(text).await
    }

    /// Whether a line that is no part of a message tells what the client is not to know.
    pub(crate) fn leaks(&self, line: &str) -> bool {
        let states: Vec<&str> = self.round.as_ref().and_then(Round::state).into_iter().collect();
        Finder::of(&self.known, &states).is_some_and(|finder| finder.is_in(line))
    }

    /// What the client is told in the place of a message that cannot be passed on.
    pub(crate) fn instead(&self, rejection: &Rejection) -> String {
        rejection.body(self.ids.own(), &self.method)
    }

    /// Whether a stream must not end without an answer, because nobody can come back for it. A subscription lasts for as long
    /// as it lasts, and in a session a stream can be taken up again.
    pub(crate) fn is_owed(&self) -> bool {
        self.is_request && self.modern && self.method != "subscriptions/listen"
    }

    /// The longest message, in bytes.
    pub(crate) fn longest(&self) -> usize {
        self.gateway.options.longest_answer
    }
}

/// Whether a message answers a request.
pub(crate) fn is_answer(message: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Peeked {
        result: Option<serde::de::IgnoredAny>,
        error: Option<serde::de::IgnoredAny>,
    }
    serde_json::from_str(message).is_ok_and(|Peeked { result, error }| result.is_some() != error.is_some())
}

/// A whole body; `None` where it is longer, or breaks off.
async fn whole(mut body: Body, most: usize) -> Option<Vec<u8>> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.ok()?.into_data() else { continue };
        if bytes.len() + data.len() > most {
            return None;
        }
        bytes.extend_from_slice(&data);
    }
    Some(bytes.into())
}

/// Of a request's headers those that the server behind gets to see.
fn passed(given: &HeaderMap) -> HeaderMap {
    let values = |name: HeaderName| given.get_all(&name).iter().map(move |value| (name.clone(), value.clone()));
    PASSED.into_iter().flat_map(values).collect()
}

fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    // Whatever it holds, its encoded form is visible ASCII.
    if let Ok(value) = HeaderValue::from_str(&headers::encode(value)) {
        headers.insert(name, value);
    }
}

fn bare(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// What of a request's headers the server behind gets to see. Whatever else a client sends stays here: its token, cookies,
/// and names that it gives itself.
const PASSED: [HeaderName; 9] = [
    header::ACCEPT,
    header::CONTENT_TYPE,
    header::ACCEPT_LANGUAGE,
    HeaderName::from_static("mcp-protocol-version"),
    HeaderName::from_static("mcp-method"),
    HeaderName::from_static("mcp-session-id"),
    HeaderName::from_static("last-event-id"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
];

/// What of an answer's headers the client gets to see.
const RETURNED: [HeaderName; 3] = [header::ALLOW, header::RETRY_AFTER, HeaderName::from_static("mcp-session-id")];
