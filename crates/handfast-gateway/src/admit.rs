//! What a request must be before anything is done with it: one message, within its bounds, that every reader reads alike,
//! with headers that say what its body says.

use handfast_wire::{
    headers, meta,
    span::{self, Kind, Member, Node, NotRead},
};
use http::{HeaderMap, StatusCode};

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
        // Of two members that differ by case alone one reader takes the one, and another the other.
        let inner = params.into_iter().flat_map(Node::members).map(|member| &member.value);
        if [Some(node), params].into_iter().flatten().chain(inner).any(|node| has_twins(node.members())) {
            return Err(invalid("two members have names that differ by case alone"));
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
            method if method.starts_with("tasks/") => self.param("taskId"),
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
    let Some(method) = message.method else { return Ok(true) };
    if one(headers, headers::METHOD)?.as_deref() != Some(method) {
        return Err(Rejection::mismatch("Mcp-Method is not the method of the body"));
    }
    let named = one(headers, headers::NAME)?;
    let wants = message.name();
    if (wants.is_some() && message.is_request() || named.is_some()) && named.as_deref() != wants {
        return Err(Rejection::mismatch("Mcp-Name is not what the body names"));
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
        let mut values = Vec::new();
        scalars(message.params.and_then(|params| params.get("arguments")), text, &mut values);
        let alike = |known: &String| *known == value || same_number(known, &value);
        if !values.iter().any(alike) {
            return Err(Rejection::mismatch("an Mcp-Param header is not what the arguments say"));
        }
        mirrors.push((name.clone(), value));
    }
    Ok(mirrors)
}

/// Numbers are compared as numbers: 1 and 1.0 are the same.
fn same_number(one: &str, other: &str) -> bool {
    matches!((one.parse::<f64>(), other.parse::<f64>()), (Ok(one), Ok(other)) if one == other)
}

fn scalars(node: Option<&Node<'_>>, text: &str, found: &mut Vec<String>) {
    let Some(node) = node else { return };
    match &node.kind {
        Kind::Object(members) => members.iter().for_each(|member| scalars(Some(&member.value), text, found)),
        Kind::Array(items) => items.iter().for_each(|item| scalars(Some(item), text, found)),
        Kind::Text(value) => found.push(value.to_string()),
        Kind::Number | Kind::Literal => found.push(node.raw(text).to_owned()),
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
    let mut names: Vec<String> = members.iter().map(|member| member.name.to_ascii_lowercase()).collect();
    names.sort_unstable();
    names.windows(2).any(|pair| pair[0] == pair[1])
}

/// A body that is too long.
pub(crate) fn too_long() -> Rejection {
    Rejection::Protocol(StatusCode::PAYLOAD_TOO_LARGE, meta::INVALID_REQUEST, "the message is too long")
}

const PARAM: &str = "mcp-param-";
