//! Streamable HTTP, as a function from one HTTP request to one HTTP answer: methods, origin, identity, headers, body.
//! Who moves the bytes is another file's business.

use handfast_wire::{
    headers as wire,
    message::{self, Message, ParseError, Request, Response},
    meta,
    sse::{self, Event},
};

use crate::{
    answer::Refused,
    caller::{Principal, Shown},
    conform,
    gate::{self, Gate},
    legacy::Legacy,
    mirrors,
    server::Server,
    sessions::{self, Sessions},
};

/// How HTTP answers are framed. Errors whose status the specification fixes are always JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    /// One JSON object.
    Json,
    /// A stream of Server-Sent Events: an empty priming event, then the message, neither with an `event:` line.
    Sse,
}

/// The longest body that is read, in bytes.
pub(crate) const BODY_LIMIT: usize = 1024 * 1024;
/// The one path.
pub(crate) const PATH: &str = "/mcp";
/// Where a server tells that it is well.
const HEALTH: &str = "/health";

/// A server of either era.
pub(crate) enum Host {
    Modern(Box<Server>),
    Legacy(Legacy),
    /// Sessions that hold state, and, where it speaks the stateless revision as well, a server of that.
    Sessions(Box<Sessions>, Option<Box<Server>>),
}

impl Host {
    /// The server of the stateless revision, where there is one.
    pub(crate) fn modern(&self) -> Option<&Server> {
        match self {
            Self::Modern(server) => Some(server),
            Self::Legacy(_) => None,
            Self::Sessions(_, server) => server.as_deref(),
        }
    }
}

/// The headers of a request, names in lower case.
#[derive(Debug, Default)]
pub(crate) struct Headers(pub(crate) Vec<(String, String)>);

impl Headers {
    /// The value of a header that stands there exactly once.
    pub(crate) fn one(&self, name: &str) -> Option<&str> {
        let mut values = self.0.iter().filter(|(given, _)| given.eq_ignore_ascii_case(name));
        let value = values.next()?;
        values.next().is_none().then_some(value.1.trim())
    }

    pub(crate) fn bearer(&self) -> Option<&str> {
        let (scheme, token) = self.one("authorization")?.split_once(' ')?;
        let token = token.trim();
        (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
    }
}

/// An HTTP answer.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn bare(status: u16) -> Self {
        Self { status, ..Self::default() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// A stream in which nothing happens, and which ends.
    fn quiet() -> Self {
        let body = sse::encode(&Event::default()).into_bytes();
        Self { status: 200, headers: vec![("content-type", "text/event-stream".into())], body }
            .with("cache-control", "no-cache")
    }

    /// One message as a JSON object.
    pub(crate) fn json(status: u16, response: &Response) -> Self {
        let body = response.to_value().to_string().into_bytes();
        Self { status, headers: vec![("content-type", "application/json".into())], body }
    }

    fn stream(response: &Response) -> Self {
        let priming = sse::encode(&Event::default());
        let message = sse::encode(&Event { data: response.to_value().to_string(), ..Event::default() });
        let body = (priming + &message).into_bytes();
        Self { status: 200, headers: vec![("content-type", "text/event-stream".into())], body }
            .with("cache-control", "no-cache")
            .with("x-accel-buffering", "no")
    }
}

/// Answers what can be answered before the body is read.
pub(crate) fn at_the_door(
    host: &Host,
    method: &str,
    (path, query): (&str, Option<&str>),
    headers: &Headers,
) -> Result<Principal, Reply> {
    let gate = match host {
        Host::Modern(server) => server.gate.as_deref(),
        _ => None,
    };
    let says_where = gate.is_none_or(Gate::says_where);
    if gate.is_some() && path == gate::ISSUER && method == "GET" {
        return Err(gate::issuer(headers));
    }
    if says_where && path == gate::METADATA && method == "GET" {
        return Err(gate::metadata(headers));
    }
    if let (Host::Sessions(sessions, _), HEALTH, "GET") = (host, path, method) {
        return Err(sessions.health());
    }
    if path != PATH {
        return Err(Reply::bare(404));
    }
    // "Servers MUST validate the Origin header on all incoming connections to prevent DNS rebinding attacks."
    if headers.0.iter().any(|(name, origin)| name == "origin" && !is_loopback(origin)) {
        return Err(Reply::bare(403));
    }
    let methods = match host {
        Host::Modern(_) => "POST",
        Host::Legacy(_) => "POST, DELETE",
        Host::Sessions(..) => "POST, GET, DELETE",
    };
    if !methods.split(", ").any(|allowed| allowed == method) {
        return Err(Reply::bare(405).with("allow", methods));
    }
    let shown = Shown::Bearer(headers.bearer());
    let caller = match host {
        Host::Modern(server) => match gate {
            Some(gate) => gate::admitted(gate, headers, query),
            None => server.identify(shown),
        },
        Host::Legacy(legacy) => legacy.identify(shown),
        Host::Sessions(sessions, _) => sessions.identify(headers),
    };
    caller.ok_or_else(|| match says_where {
        true => gate::unauthorized(headers),
        false => Reply::bare(401).with("www-authenticate", "Bearer"),
    })
}

/// Answers one HTTP request of an identified caller.
pub(crate) fn respond(
    host: &Host,
    answers: Answers,
    caller: &Principal,
    method: &str,
    headers: &Headers,
    body: &[u8],
) -> Reply {
    let server = match host {
        Host::Modern(server) => server,
        Host::Legacy(legacy) => return legacy.respond(answers, caller, method, headers, body),
        Host::Sessions(_, Some(server)) if sessions::is_modern(headers) => server,
        Host::Sessions(sessions, _) => return sessions.respond(answers, caller, method, headers, body),
    };
    let caller = &caller.under(headers.one(wire::SESSION_ID));
    let request = match read(headers, body) {
        Ok(Message::Request(request)) => request,
        Ok(Message::Notification(_)) => return Reply::bare(202),
        Ok(Message::Response(_)) => return refuse_shape("responses are not sent to servers"),
        Err(reply) => return reply,
    };
    let outcome = conform::method(&request.method, server.manner())
        .and_then(|()| agree(headers, &request))
        .and_then(|()| mirrors::agree(server, caller, headers, &request))
        .and_then(|()| server.answer(&request, caller));
    frame(answers, &request, outcome)
}

/// The stream that GET attaches.
pub(crate) fn quiet_stream() -> Reply {
    Reply::quiet()
}

/// Frames what came out of a request.
pub(crate) fn frame(answers: Answers, request: &Request, outcome: Result<serde_json::Value, Refused>) -> Reply {
    let id = Some(request.id.clone());
    let (status, early, response) = match outcome {
        Ok(result) => (200, false, Response { id, outcome: Ok(result) }),
        Err(refused) => (refused.status, refused.before_stream, Response { id, outcome: Err(refused.error) }),
    };
    match answers {
        Answers::Sse if !early => Reply::stream(&response),
        _ => Reply::json(status, &response),
    }
}

/// Reads the one message of a POST.
pub(crate) fn read(headers: &Headers, body: &[u8]) -> Result<Message, Reply> {
    let accept = headers.one("accept").unwrap_or_default().to_ascii_lowercase();
    let accepts =
        |kind: &str| accept.split(',').any(|part| part.split(';').next().is_some_and(|part| part.trim() == kind));
    if !accepts("application/json") || !accepts("text/event-stream") {
        return Err(Reply::bare(406));
    }
    let kind = headers.one("content-type").unwrap_or_default().to_ascii_lowercase();
    if kind.split(';').next().unwrap_or_default().trim() != "application/json" {
        return Err(Reply::bare(415));
    }
    message::parse(body).map_err(|error| match error {
        ParseError::Shape(why) => refuse_shape(why),
        _ => nameless(Refused::protocol(meta::PARSE_ERROR, 400, "not JSON")),
    })
}

/// "Servers that process the request body MUST reject requests where the values specified in the headers do not match
/// the corresponding values in the request body."
fn agree(headers: &Headers, request: &Request) -> Result<(), Refused> {
    let needed = |name: &str| headers.one(name).ok_or_else(|| mismatch(format!("{name} is missing, or there twice")));
    let decoded = |name: &str, value| wire::decode(value).map_err(|error| mismatch(format!("{name}: {error}")));
    let version = needed(wire::PROTOCOL_VERSION)?;
    if conform::version_of(&request.params).is_some_and(|claimed| claimed != version) {
        return Err(mismatch(format!("{} differs from the body", wire::PROTOCOL_VERSION)));
    }
    if decoded(wire::METHOD, needed(wire::METHOD)?)? != request.method {
        return Err(mismatch(format!("{} differs from the body", wire::METHOD)));
    }
    if let Some(name) = wire::name_of(&request.method, &request.params)
        && decoded(wire::NAME, needed(wire::NAME)?)? != name
    {
        return Err(mismatch(format!("{} differs from the body", wire::NAME)));
    }
    Ok(())
}

pub(crate) fn mismatch(message: String) -> Refused {
    Refused::protocol(meta::HEADER_MISMATCH, 400, format!("header mismatch: {message}"))
}

/// Refuses what is JSON and no message that we take.
pub(crate) fn refuse_shape(why: &str) -> Reply {
    nameless(Refused::protocol(meta::INVALID_REQUEST, 400, why))
}

/// An error about a request whose id could not be read.
pub(crate) fn nameless(refused: Refused) -> Reply {
    Reply::json(refused.status, &Response { id: None, outcome: Err(refused.error) })
}

fn is_loopback(origin: &str) -> bool {
    let Some((_, authority)) = origin.split_once("://") else { return false };
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}
