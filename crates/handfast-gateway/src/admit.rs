//! What a request must be before anything is done with it: one message, within its bounds, that every reader reads alike,
//! with headers that say what its body says.

use std::net::IpAddr;

use handfast_wire::{
    headers, meta,
    span::{self, Kind, Member, Node, NotRead},
};
use http::{HeaderMap, HeaderValue, StatusCode, uri::Authority};
use serde_json::json;

use crate::respond::Rejection;

/// One JSON-RPC message, with its places in the text.
#[derive(Debug)]
pub(crate) struct Message<'n, 't> {
    /// All of it.
    pub(crate) node: &'n Node<'t>,
    /// Its id, where it has one.
    pub(crate) id: Option<&'n Node<'t>>,
    /// Its method, where it is a request or a notification.
    pub(crate) method: Option<&'n str>,
    /// Its parameters.
    pub(crate) params: Option<&'n Node<'t>>,
}

impl<'n, 't> Message<'n, 't> {
    /// Reads a message that a client has sent.
    pub(crate) fn of(node: &'n Node<'t>, text: &str) -> Result<Self, Rejection> {
        let invalid = |told| Rejection::bad(meta::INVALID_REQUEST, told);
        if !matches!(node.kind, Kind::Object(_)) {
            return Err(invalid("the body must be one JSON-RPC message; batches are not taken"));
        }
        let (id, method, params) = (node.get("id"), node.get("method"), node.get("params"));
        if node.get("jsonrpc").and_then(Node::text) != Some("2.0") {
            return Err(invalid("`jsonrpc` must be \"2.0\""));
        }
        if id.is_some_and(|id| !is_id(id, text)) {
            return Err(invalid("`id` must be a string or an integer"));
        }
        let method = match method {
            None => None,
            Some(method) => Some(method.text().ok_or_else(|| invalid("`method` must be a string"))?),
        };
        if params.is_some_and(|params| !matches!(params.kind, Kind::Object(_))) {
            return Err(invalid("`params` must be an object"));
        }
        let is_answer = node.get("result").is_some() || node.get("error").is_some();
        if method.is_some() == is_answer || (is_answer && id.is_none()) {
            return Err(invalid("neither a request, a notification nor a response"));
        }
        // There are readers to whom case means nothing: what is spelt in another way is to them what we have not looked at.
        let spelt_otherwise = |node: &Node<'_>, names: &[&str]| {
            node.members()
                .iter()
                .any(|member| names.iter().any(|name| *name != member.name && same_word(name, &member.name)))
        };
        if spelt_otherwise(node, &MEMBERS) || params.is_some_and(|params| spelt_otherwise(params, &PARAMS)) {
            return Err(invalid("a member of the protocol is spelt in another way"));
        }
        // Of two members that differ by case alone one reader takes the one, and another the other.
        let inner = params.into_iter().flat_map(Node::members).map(|member| &member.value);
        if [Some(node), params].into_iter().flatten().chain(inner).any(|node| has_twins(node.members())) {
            return Err(invalid("two members have names that differ by case alone"));
        }
        let arguments = params.and_then(|params| params.get("arguments"));
        let can_be = |node: &Node<'_>| matches!(node.kind, Kind::Object(_)) || node.raw(text) == "null";
        if arguments.is_some_and(|arguments| !can_be(arguments)) {
            return Err(invalid("`arguments` must be an object"));
        }
        Ok(Self { node, id, method, params })
    }

    /// The id as it is written; empty where there is none.
    pub(crate) fn id_in<'s>(&self, text: &'s str) -> &'s str {
        self.id.map_or("", |id| id.raw(text))
    }

    /// Whether it expects an answer.
    pub(crate) fn is_request(&self) -> bool {
        self.method.is_some() && self.id.is_some()
    }

    /// A member of the parameters that is a string.
    pub(crate) fn param(&self, name: &str) -> Option<&'n str> {
        self.params?.get(name)?.text()
    }

    /// What the request is about: the tool, the prompt, the resource, the task.
    pub(crate) fn name(&self) -> Option<&'n str> {
        match self.method? {
            "tools/call" | "prompts/get" => self.param("name"),
            "resources/read" => self.param("uri"),
            method if TASKS.contains(&method) => self.param("taskId"),
            _ => None,
        }
    }
}

/// Reads a body.
pub(crate) fn read(text: &str) -> Result<Node<'_>, Rejection> {
    span::parse(text).map_err(|not| match not {
        NotRead::Twice(_) => Rejection::bad(meta::INVALID_REQUEST, "two members have one name"),
        NotRead::Deep(_) => Rejection::bad(meta::INVALID_REQUEST, "the message is nested too deep"),
        _ => Rejection::bad(meta::PARSE_ERROR, "the body is not JSON"),
    })
}

/// Whether a request speaks the revision without sessions, and its headers say what its body says.
///
/// "Servers MUST reject requests whose headers do not match the body."
pub(crate) fn is_modern(headers: &HeaderMap, message: &Message<'_, '_>) -> Result<bool, Rejection> {
    let version = one(headers, headers::PROTOCOL_VERSION)?;
    let meta = message.params.and_then(|params| params.get("_meta"));
    let told = meta.and_then(|meta| meta.get(meta::PROTOCOL_VERSION)).and_then(Node::text);
    let modern = version.as_deref().is_some_and(|version| version >= meta::MODERN);
    // A server behind may look at the headers whatever the revision.
    let (method, named) = (one(headers, headers::METHOD)?, one(headers, headers::NAME)?);
    let wants = message.name();
    if method.is_some() && message.method.is_some() && method.as_deref() != message.method {
        return Err(Rejection::mismatch("Mcp-Method is not the method of the body"));
    }
    if named.is_some() && message.method.is_some() && named.as_deref() != wants {
        return Err(Rejection::mismatch("Mcp-Name is not what the body names"));
    }
    if !modern {
        return match told {
            // The body says more than the headers do.
            Some(told) if told >= meta::MODERN => Err(Rejection::mismatch("MCP-Protocol-Version is missing")),
            _ => Ok(false),
        };
    }
    if told.is_some() && told != version.as_deref() {
        return Err(Rejection::mismatch("MCP-Protocol-Version is not what the body says"));
    }
    if message.method.is_some_and(|method| method.starts_with("tasks/") && !TASKS.contains(&method)) {
        // Ids of tasks are ours, and what the server behind would make of them in such a request is unknown.
        return Err(Rejection::Protocol(StatusCode::NOT_FOUND, meta::METHOD_NOT_FOUND, "Method not found"));
    }
    // There are clients that leave it out of notifications.
    if message.is_request() && method.is_none() {
        return Err(Rejection::mismatch("Mcp-Method is missing"));
    }
    if wants.is_some() && message.is_request() && named.is_none() {
        return Err(Rejection::mismatch("Mcp-Name is missing"));
    }
    Ok(true)
}

/// The `Mcp-Param-*` headers, decoded; each must repeat something that stands in the arguments.
pub(crate) fn mirrors(
    headers: &HeaderMap,
    message: &Message<'_, '_>,
    text: &str,
) -> Result<Vec<(http::HeaderName, String)>, Rejection> {
    let mut mirrors = Vec::new();
    for name in headers.keys().filter(|name| name.as_str().starts_with(PARAM)) {
        let Some(value) = one(headers, name.as_str())? else { continue };
        let arguments = message.params.and_then(|params| params.get("arguments"));
        if !arguments.is_some_and(|arguments| repeats(arguments, text, &value)) {
            return Err(Rejection::mismatch("an Mcp-Param header is not what the arguments say"));
        }
        mirrors.push((name.clone(), value));
    }
    Ok(mirrors)
}

/// Whether a value stands anywhere below a node.
fn repeats(node: &Node<'_>, text: &str, value: &str) -> bool {
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        let is_it = match &node.kind {
            Kind::Object(members) => {
                open.extend(members.iter().map(|member| &member.value));
                false
            }
            Kind::Array(items) => {
                open.extend(items);
                false
            }
            Kind::Text(known) => known == value,
            Kind::Number => same_number(node.raw(text), value),
            Kind::Literal => node.raw(text) == value,
        };
        if is_it {
            return true;
        }
    }
    false
}

/// Numbers are compared as numbers, and exactly: 1 and 1.0 are the same, and of two large ones that a float cannot tell
/// apart one is not the other.
fn same_number(one: &str, other: &str) -> bool {
    one == other || matches!((digits(one), digits(other)), (Some(one), Some(other)) if one == other)
}

/// A number of JSON as its sign, its digits without the zeros around them, and the place of the last one.
fn digits(number: &str) -> Option<(bool, String, i64)> {
    let node = span::parse(number).ok().filter(|node| node.kind == Kind::Number && node.at == (0..number.len()))?;
    let number = node.raw(number).to_ascii_lowercase();
    let (mantissa, exponent) = number.split_once('e').unwrap_or((&number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let written = format!("{}{fraction}", whole.trim_start_matches('-'));
    let kept = written.trim_end_matches('0');
    let dropped = written.len() - kept.len();
    let place = exponent.parse::<i64>().ok()?.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    let place = place.checked_add(i64::try_from(dropped).ok()?)?;
    match kept.trim_start_matches('0') {
        "" => Some((false, String::new(), 0)),
        kept => Some((whole.starts_with('-'), kept.to_owned(), place)),
    }
}

/// The value of a header, decoded; more than one is none that anybody could agree on.
fn one(headers: &HeaderMap, name: &str) -> Result<Option<String>, Rejection> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let wrong = || Rejection::mismatch("a header of the protocol cannot be read, or is there twice");
    if values.next().is_some() {
        return Err(wrong());
    }
    let value = value.to_str().map_err(|_| wrong())?;
    headers::decode(value).map(Some).map_err(|_| wrong())
}

fn is_id(node: &Node<'_>, text: &str) -> bool {
    match node.kind {
        Kind::Text(_) => true,
        Kind::Number => node.raw(text).bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'),
        _ => false,
    }
}

fn has_twins(members: &[Member<'_>]) -> bool {
    let mut names: Vec<String> = members.iter().map(|member| folded(&member.name)).collect();
    names.sort_unstable();
    names.windows(2).any(|pair| pair[0] == pair[1])
}

/// Whether two words are one to readers to whom case means nothing.
pub(crate) fn same_word(one: &str, other: &str) -> bool {
    one == other || folded(one) == folded(other)
}

/// Such readers take the long s for an s, and the sign of Kelvin for a k.
fn folded(word: &str) -> String {
    word.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

/// Whether a page comes from the gateway's own address on this machine. Where somebody's DNS has turned a name to this
/// machine, that name is what the browser says.
pub(crate) fn is_own(origin: &HeaderValue, host: Option<&HeaderValue>) -> bool {
    let text = |value: &HeaderValue| value.to_str().ok().map(str::to_owned);
    let (Some(origin), Some(host)) = (text(origin), host.and_then(text)) else { return false };
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host().trim_matches(['[', ']']);
    let is_here = name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    is_here && origin.strip_prefix("http://") == Some(&*host)
}

/// Why a request was refused, as a server without handles would have said it.
///
/// "-32021 (Missing Required Client Capability) for clients that have not declared the extension".
pub(crate) fn blame(rejection: Rejection, modern: bool, message: &Message<'_, '_>) -> Rejection {
    let is_task = modern && message.method.is_some_and(|method| TASKS.contains(&method));
    let declared = message.params.and_then(|params| params.get("_meta")?.get(meta::CLIENT_CAPABILITIES));
    match rejection {
        Rejection::Handle(_)
            if is_task && declared.and_then(|all| all.get("extensions")?.get(meta::TASKS_EXTENSION)).is_none() =>
        {
            Rejection::Undeclared(json!({"extensions": {meta::TASKS_EXTENSION: {}}}))
        }
        other => other,
    }
}

/// A body that is too long.
pub(crate) fn too_long() -> Rejection {
    Rejection::Protocol(StatusCode::PAYLOAD_TOO_LARGE, meta::INVALID_REQUEST, "the message is too long")
}

/// The members of a message.
const MEMBERS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// The members of parameters by which something is decided here.
const PARAMS: [&str; 9] =
    ["_meta", "name", "arguments", "uri", "taskId", "requestState", "inputResponses", "requestId", "ref"];

/// How headers begin that repeat an argument.
pub(crate) const PARAM: &str = "mcp-param-";

/// What of a task there is to ask, since 2026-07-28.
const TASKS: [&str; 3] = ["tasks/get", "tasks/update", "tasks/cancel"];
