//! The server under test: one place that sends a call as somebody and returns what came back, whatever came back.
//!
//! What lives here: transports, the handshake, bounds on time and size. What never does: judgement. A [`Reply`] says
//! what happened; [`crate::disposition`] says what it means.

mod handshake;
mod http;
pub mod session;
mod stdio;
mod tree;

use std::time::Duration;

use handfast_wire::{
    headers,
    message::{Message, Notification, Object, Request, RequestId, RpcError},
    meta,
};
use secrecy::SecretString;
use serde_json::Value;

use crate::identity::{Identities, Identity, Who};

pub use handshake::{Handshake, NoTarget, connect};
pub use http::{HttpOptions, candidate_urls};
pub use stdio::StdioOptions;

/// Where the server is.
#[derive(Debug, Clone)]
pub enum Address {
    /// A URL.
    Http(reqwest::Url),
    /// A program to start, with its arguments.
    Stdio {
        /// Path or name of the program.
        program: String,
        /// Its arguments.
        arguments: Vec<String>,
    },
}

impl Address {
    /// The address as reports show it: a URL without user, password and query; a command line without arguments that may be secret.
    pub fn shown(&self) -> String {
        match self {
            Self::Http(url) => http::shown(url),
            Self::Stdio { program, arguments } if arguments.is_empty() => program.clone(),
            Self::Stdio { program, arguments } => format!("{program} ({} arguments)", arguments.len()),
        }
    }
}

/// Bounds and transport options of a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Time for one answer.
    pub timeout: Duration,
    /// Time for a child process to answer its first message.
    pub start_timeout: Duration,
    /// Bytes that one answer may have.
    pub max_body: usize,
    /// The `_meta` key that carries the principal over stdio.
    pub principal_key: String,
    /// HTTP only.
    pub http: HttpOptions,
    /// stdio only.
    pub stdio: StdioOptions,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            start_timeout: Duration::from_secs(60),
            max_body: 4 * 1024 * 1024,
            principal_key: meta::PRINCIPAL.to_owned(),
            http: HttpOptions::default(),
            stdio: StdioOptions::default(),
        }
    }
}

/// A header that the operator adds to every request.
#[derive(Debug, Clone)]
pub struct ExtraHeader {
    /// Its name.
    pub name: String,
    /// Its value, which may be a secret.
    pub value: SecretString,
}

/// The protocol that the server speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Era {
    /// 2026-07-28: stateless.
    Modern,
    /// `initialize` first; the version that was agreed on.
    Legacy(String),
}

impl Era {
    /// As the reports name it.
    pub fn shown(&self) -> String {
        match self {
            Self::Modern => format!("stateless({})", meta::MODERN),
            Self::Legacy(_) => "legacy(initialize)".to_owned(),
        }
    }
}

/// A call that somebody makes.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The JSON-RPC method.
    pub method: String,
    /// The parameters, without `_meta`.
    pub params: Object,
    /// `Mcp-Param-*` headers that the tool's schema asks for.
    pub param_headers: Vec<(String, String)>,
    /// What the client declares that it can do (2026-07-28 only); everything where nothing is said.
    pub capabilities: Option<Value>,
}

impl Call {
    /// A call without header mirrors.
    pub fn new(method: &str, params: Object) -> Self {
        Self { method: method.to_owned(), params, param_headers: Vec::new(), capabilities: None }
    }

    /// The same call by a client that can do this and nothing else.
    #[must_use]
    pub fn declaring(mut self, capabilities: Value) -> Self {
        self.capabilities = Some(capabilities);
        self
    }

    /// `tools/call` and its like by name: `tools/call read_basket`.
    pub fn title(&self) -> String {
        match headers::name_of(&self.method, &self.params) {
            Some(name) => format!("{} {name}", self.method),
            None => self.method.clone(),
        }
    }
}

/// What came back.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The HTTP status, where there is one.
    pub status: Option<u16>,
    /// The answer, or why there is none.
    pub body: Body,
    /// What the server told before it answered: the parameters of notifications, and of requests of its own.
    pub heard: Vec<Value>,
}

impl Reply {
    /// An answer before which nothing was told.
    pub fn new(status: Option<u16>, body: Body) -> Self {
        Self { status, body, heard: Vec::new() }
    }
}

/// What was told before an answer; a server that talks on and on is not listened to for ever.
#[derive(Debug, Default)]
struct Heard(Vec<Value>);

impl Heard {
    fn note(&mut self, message: &Message) {
        let (Message::Notification(Notification { params, .. }) | Message::Request(Request { params, .. })) = message
        else {
            return;
        };
        if self.0.len() < MOST_HEARD && !params.is_empty() {
            self.0.push(Value::Object(params.clone()));
        }
    }
}

/// The answer, or why there is none.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// A JSON-RPC result.
    Result(Value),
    /// A JSON-RPC error.
    Error(RpcError),
    /// No JSON-RPC answer; the HTTP status is all there is. Holds the start of the body.
    Bare(String),
    /// No usable answer at all.
    Fault(Fault),
}

/// Why there is no usable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Nothing listens, or the connection could not be made or was refused.
    #[error("could not connect: {0}")]
    Unreachable(String),
    /// The connection or the process ended before the answer was whole.
    #[error("the connection ended before the answer: {0}")]
    Closed(String),
    /// Nothing came in time.
    #[error("no answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The answer is longer than the bound.
    #[error("the answer is longer than {0} bytes")]
    TooLarge(usize),
    /// The bytes are no JSON-RPC answer to this request.
    #[error("not a JSON-RPC answer: {0}")]
    NotMcp(String),
}

/// Whether these options can work at all: header names and values, certificates.
///
/// # Errors
/// Says what the operator has to change.
pub fn usable(address: &Address, options: &Options) -> Result<(), String> {
    match address {
        Address::Http(url) => http::Http::new(url.clone(), options).map(drop),
        Address::Stdio { .. } => Ok(()),
    }
}

/// A server with which a protocol was agreed on.
#[derive(Debug)]
pub struct Target {
    era: Era,
    wire: Wire,
    options: Options,
    identities: Identities,
    next_id: u64,
    /// Sessions opened one by one, to be ended.
    open: Vec<(Who, String)>,
    /// Whether the server issues session ids, once it was asked.
    issues: Option<session::Issues>,
    /// The revision that its sessions speak.
    older: Option<String>,
    /// The sessions of the handshake were ended, and are opened again for the next ordinary call.
    aside: bool,
}

#[derive(Debug)]
enum Wire {
    Http(Box<http::Http>),
    Stdio(Box<stdio::Stdio>),
}

impl Target {
    /// Sends one call as somebody and waits for its answer.
    pub async fn send(&mut self, who: Who, call: &Call) -> Reply {
        if self.aside {
            self.aside = false;
            handshake::open_again(self).await;
        }
        self.send_within(who, call, self.options.timeout).await
    }

    async fn send_within(&mut self, who: Who, call: &Call, timeout: Duration) -> Reply {
        let identity = self.identities.of(who).clone();
        let request = self.request(&identity, call);
        match &mut self.wire {
            Wire::Http(http) => http.send(&self.era, &identity, &request, &call.param_headers, timeout).await,
            Wire::Stdio(stdio) => stdio.send(&request, timeout).await,
        }
    }

    /// Sends two calls at once, each as somebody: two callers under one and the same JSON-RPC id, because every client counts
    /// its requests by itself, and one caller under two. Over stdio there is one connection, where an id must not be used twice.
    pub async fn send_together(&mut self, calls: [(Who, &Call); 2]) -> [Reply; 2] {
        if self.aside {
            self.aside = false;
            handshake::open_again(self).await;
        }
        let [(a, one), (b, other)] = calls;
        let identities = [a, b].map(|who| self.identities.of(who).clone());
        let first = self.request(&identities[0], one);
        let second = self.request(&identities[1], other);
        let second = if a == b { second } else { Request { id: first.id.clone(), ..second } };
        let Wire::Http(http) = &mut self.wire else {
            let body = Body::Fault(Fault::NotMcp("one connection carries no id twice".to_owned()));
            return [(); 2].map(|()| Reply::new(None, body.clone()));
        };
        let postings =
            [(&identities[0], &first, &one.param_headers[..]), (&identities[1], &second, &other.param_headers[..])];
        http.send_together(&self.era, postings, self.options.timeout).await
    }

    /// Puts a header on every request from now on, or takes it away again. Only over HTTP.
    pub fn add_header(&mut self, name: &str, value: Option<&str>) {
        if let Wire::Http(http) = &mut self.wire {
            http.add_header(name, value);
        }
    }

    /// The session id that came with the last answer over HTTP to an ordinary call.
    pub fn issued(&self) -> Option<&str> {
        match &self.wire {
            Wire::Http(http) => http.issued(),
            Wire::Stdio(_) => None,
        }
    }

    fn request(&mut self, identity: &Identity, call: &Call) -> Request {
        self.request_of(identity, call, self.era == Era::Modern)
    }

    fn request_of(&mut self, identity: &Identity, call: &Call, modern: bool) -> Request {
        self.next_id += 1;
        let mut params = call.params.clone();
        let mut own = match modern {
            true => {
                let capabilities = call.capabilities.clone().unwrap_or_else(meta::every_capability);
                meta::modern(capabilities, CLIENT_NAME, env!("CARGO_PKG_VERSION"))
            }
            false => Object::new(),
        };
        if let (Wire::Stdio(_), Some(principal)) = (&self.wire, identity.credential()) {
            own.insert(self.options.principal_key.clone(), principal.into());
        }
        if !own.is_empty() {
            params.insert("_meta".into(), Value::Object(own));
        }
        Request { id: RequestId::from(self.next_id), method: call.method.clone(), params }
    }

    /// The protocol that was agreed on.
    pub fn era(&self) -> &Era {
        &self.era
    }

    /// `http` or `stdio`.
    pub fn transport(&self) -> &'static str {
        match self.wire {
            Wire::Http(_) => "http",
            Wire::Stdio(_) => "stdio",
        }
    }

    /// The endpoint as reports show it.
    pub fn endpoint(&self) -> String {
        match &self.wire {
            Wire::Http(http) => http.shown(),
            Wire::Stdio(stdio) => stdio.shown(),
        }
    }

    /// Whether a client of this server could follow an address that it gives: an absolute one, and none of the client's own
    /// machine unless the server is there.
    pub fn can_lead_to(&self, place: &str) -> bool {
        matches!(&self.wire, Wire::Http(http) if http.can_lead_to(place))
    }

    /// The path of the endpoint.
    pub fn path(&self) -> String {
        match &self.wire {
            Wire::Http(http) => http.path().to_owned(),
            Wire::Stdio(_) => String::new(),
        }
    }

    /// How long the last answer over HTTP asks to wait before the same call is made again.
    pub fn asked_to_wait(&self) -> Option<Duration> {
        match &self.wire {
            Wire::Http(http) => http.asked_to_wait(),
            Wire::Stdio(_) => None,
        }
    }

    /// What the last answer over HTTP wants of whoever shows no good token (`WWW-Authenticate`).
    pub fn challenge(&self) -> Option<&str> {
        match &self.wire {
            Wire::Http(http) => http.challenge(),
            Wire::Stdio(_) => None,
        }
    }

    /// How many seconds the server's clock is ahead of ours, at least; `None` where nothing tells. A child process has ours.
    pub fn clock_ahead(&self) -> Option<f64> {
        match &self.wire {
            Wire::Http(http) => http.clock_ahead(),
            Wire::Stdio(_) => Some(0.0),
        }
    }

    /// Who the callers are.
    pub fn identities(&self) -> &Identities {
        &self.identities
    }

    /// The first line that a stdio server printed among its messages, and how many such lines there were.
    pub fn noise(&self) -> Option<(String, usize)> {
        match &self.wire {
            Wire::Http(_) => None,
            Wire::Stdio(stdio) => stdio.noise(),
        }
    }

    /// Ends what was started: legacy sessions, or the child with every process that it started.
    pub async fn close(mut self) {
        self.end_visits().await;
        match self.wire {
            Wire::Http(mut http) => http.end_sessions(&self.era, &self.identities).await,
            Wire::Stdio(stdio) => stdio.close().await,
        }
    }
}

const MOST_HEARD: usize = 64;
const CLIENT_NAME: &str = "handfast";
