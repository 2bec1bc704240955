//! stdio: child processes that speak one message a line, as one server that speaks Streamable HTTP. Who may ask what was
//! decided in front; here it is only kept apart who asks.

use std::{path::PathBuf, time::Duration};

use async_trait::async_trait;
use axum_core::body::Body;
use bytes::Bytes;
use handfast::Caller;
use handfast_wire::meta;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};

use super::{Down, Upstream};

mod answer;
mod child;
mod ear;
mod lines;
mod log;
mod message;
mod pool;
mod table;

use answer::{Asked, INITIALIZE, empty, refusal};
use ear::{Heard, Loss};
use message::{Kind, Message};
use pool::{Link, Pool};
use table::{No, Owner};

/// How children are started, and within which bounds.
#[derive(Clone)]
pub struct StdioOptions {
    /// The program.
    pub program: String,
    /// What it is started with.
    pub arguments: Vec<String>,
    /// Variables that it gets beside the inherited ones.
    pub environment: Vec<(String, String)>,
    /// Variables that it does not inherit: those that hold secrets of the gateway.
    pub hidden: Vec<String>,
    /// Where it is started; where the gateway was, if nowhere else.
    pub folder: Option<PathBuf>,
    /// Who has a child of his own.
    pub children: Children,
    /// How many children there may be at once.
    pub most_children: usize,
    /// After how long a child ends that nobody waits for.
    pub idle: Duration,
    /// How long a child may say nothing to a request.
    pub patience: Duration,
    /// How long a message of a child may be, in bytes.
    pub longest_message: usize,
}

/// Who has a child of his own. A session has one in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Children {
    /// Each principal, in each tenant, by each client: what the process keeps in its memory reaches nobody else.
    PerPrincipal,
    /// Nobody: for servers that keep no state.
    Shared,
}

/// A server on stdio. All of its processes end when it is dropped.
pub struct StdioUpstream(Pool);

impl StdioUpstream {
    /// A server that is started once somebody asks something.
    #[must_use]
    pub fn new(options: StdioOptions) -> Self {
        Self(Pool::new(options))
    }

    async fn post(&self, owner: &Owner, headers: &HeaderMap, body: &[u8]) -> Result<Response<Body>, Down> {
        let Some(text) = std::str::from_utf8(body).ok().and_then(message::one_line_for_all) else {
            return Ok(refusal(StatusCode::BAD_REQUEST, meta::PARSE_ERROR, "the body is not JSON"));
        };
        let Some(message) = Message::read(&text) else {
            return Ok(refusal(StatusCode::BAD_REQUEST, meta::INVALID_REQUEST, "the body is no single message"));
        };
        if is_modern(headers) || message.is_modern() {
            return match message.kind {
                Kind::Request => self.single(owner, &message).await,
                Kind::Notification => Ok(self.cancel_single(owner, &message).await),
                // There are no questions of a server that it could answer.
                Kind::Response => {
                    Ok(refusal(StatusCode::BAD_REQUEST, meta::INVALID_REQUEST, "nothing is waiting for an answer"))
                }
            };
        }
        match session_of(headers) {
            Some(id) => match self.0.living_session(owner, id) {
                Some(link) => self.in_session(owner, link, &message, &text).await,
                None => Ok(unknown_session()),
            },
            None if message.kind == Kind::Request && message.is(INITIALIZE) => self.initialize(owner, &message).await,
            None => Ok(no_session()),
        }
    }

    /// A request that belongs to no session.
    async fn single(&self, owner: &Owner, request: &Message<'_>) -> Result<Response<Body>, Down> {
        // A child may end for want of work just when there is some again.
        for _ in 0..MOST_TRIES {
            match Asked::begin(self.0.single(owner)?, owner, request) {
                Ok(asked) => return self.answer(asked, request, true).await,
                Err(No::Full) => return Err(Down::Full),
                Err(No::Over) => {}
            }
        }
        Err(Down::Unreachable(Box::new(Loss::Ended)))
    }

    /// Of notifications, only that something is cancelled means anything outside of a session.
    async fn cancel_single(&self, owner: &Owner, notification: &Message<'_>) -> Response<Body> {
        if let Some(link) = self.0.living_single(owner) {
            self.cancel(owner, &link, notification).await;
        }
        empty(StatusCode::ACCEPTED)
    }

    async fn cancel(&self, owner: &Owner, link: &Link, notification: &Message<'_>) {
        let number = notification.cancelled().and_then(|id| link.table.cancelled(owner, id));
        if let Some(number) = number {
            self.tell(link, notification.cancelling(number)).await;
        }
    }

    async fn initialize(&self, owner: &Owner, request: &Message<'_>) -> Result<Response<Body>, Down> {
        let (link, id) = self.0.session(owner)?;
        let Ok(mut asked) = Asked::begin(link, owner, request) else {
            return Err(Down::Unreachable(Box::new(Loss::Ended)));
        };
        let patience = self.0.options().patience;
        let heard = asked.first(patience).await;
        if !matches!(heard, Ok(Heard::Message { .. } | Heard::Answer { error: None, .. })) {
            // There is no session, or nobody will ever know its id.
            self.0.end_session(&id);
        }
        let heard = heard?;
        let begins = !matches!(heard, Heard::Answer { error: Some(_), .. });
        let mut response = asked.answer(heard, Some(patience), false);
        if let (true, Ok(id)) = (begins, HeaderValue::from_str(&id)) {
            response.headers_mut().insert(SESSION, id);
        }
        Ok(response)
    }

    async fn in_session(
        &self,
        owner: &Owner,
        link: Link,
        message: &Message<'_>,
        text: &str,
    ) -> Result<Response<Body>, Down> {
        match message.kind {
            Kind::Request => match Asked::begin(link, owner, message) {
                Ok(asked) => self.answer(asked, message, false).await,
                Err(No::Full) => Err(Down::Full),
                Err(No::Over) => Ok(unknown_session()),
            },
            // The child's own questions have no other asker, and keep their ids.
            Kind::Notification | Kind::Response => {
                match message.is(message::CANCELLED) {
                    true => self.cancel(owner, &link, message).await,
                    false => self.tell(&link, text.to_owned()).await,
                }
                Ok(empty(StatusCode::ACCEPTED))
            }
        }
    }

    async fn answer(&self, mut asked: Asked, request: &Message<'_>, is_modern: bool) -> Result<Response<Body>, Down> {
        let patience = self.0.options().patience;
        let first = asked.first(patience).await?;
        // It "stays open and delivers notifications until the client cancels it".
        let patience = (!request.is(table::LISTEN)).then_some(patience);
        Ok(asked.answer(first, patience, is_modern))
    }

    /// Says something that is not answered.
    async fn tell(&self, link: &Link, line: String) {
        link.table.stirred.notify_one();
        // To whom it matters that it was not heard will see that the child is gone, or is late.
        let _ = tokio::time::timeout(self.0.options().patience, link.input.send(line)).await;
    }
}

#[async_trait]
impl Upstream for StdioUpstream {
    async fn ask(&self, caller: &Caller, request: Request<Bytes>) -> Result<Response<Body>, Down> {
        let owner = Owner::of(caller).ok_or(Down::Nobody)?;
        let (head, body) = request.into_parts();
        if head.method == Method::POST {
            return self.post(&owner, &head.headers, &body).await;
        }
        let is_known = head.method == Method::GET || head.method == Method::DELETE;
        if !is_known || is_modern(&head.headers) {
            return Ok(empty(StatusCode::METHOD_NOT_ALLOWED));
        }
        let Some(id) = session_of(&head.headers) else { return Ok(no_session()) };
        let Some(link) = self.0.living_session(&owner, id) else { return Ok(unknown_session()) };
        if head.method == Method::DELETE {
            self.0.end_session(id);
            return Ok(empty(StatusCode::NO_CONTENT));
        }
        let taken = || refusal(StatusCode::CONFLICT, meta::INVALID_REQUEST, "there is such a stream already");
        Ok(answer::unasked(&link).unwrap_or_else(taken))
    }
}

fn is_modern(headers: &HeaderMap) -> bool {
    headers.get("mcp-protocol-version").is_some_and(|version| version == meta::MODERN)
}

/// The session that is named; one that is no text is named, but there is none of that name.
fn session_of(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION).map(|id| id.to_str().unwrap_or_default())
}

fn unknown_session() -> Response<Body> {
    refusal(StatusCode::NOT_FOUND, NO_SESSION, "Session not found")
}

fn no_session() -> Response<Body> {
    refusal(StatusCode::BAD_REQUEST, meta::INVALID_REQUEST, "a session is needed")
}

const SESSION: &str = "mcp-session-id";
/// As the official SDKs have it.
const NO_SESSION: i64 = -32001;
const MOST_TRIES: usize = 3;
