//! A server of the years before: 2025-11-25 and older. It wants `initialize` first, and over HTTP a session id on
//! every later request. No handles, no states. Its sessions are sound: bound to who opened them, ended for good.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use handfast_wire::{
    headers,
    message::{Message, Request, RpcError},
    meta,
};
use serde_json::{Value, json};

use crate::{
    answer::{self, Refused},
    caller::{Principal, Shown},
    http::{self, Answers, Headers, Reply},
    workspaces,
};

/// The server, with the sessions that are open over HTTP.
#[derive(Debug, Default)]
pub(crate) struct Legacy {
    sessions: Mutex<BTreeMap<String, Principal>>,
}

impl Legacy {
    pub(crate) fn identify(&self, shown: Shown<'_>) -> Option<Principal> {
        match shown {
            Shown::Bearer(token) => token.map(Principal::new),
            Shown::Claimed(_) => Some(Principal::local()),
        }
    }

    pub(crate) fn respond(
        &self,
        answers: Answers,
        caller: &Principal,
        method: &str,
        headers: &Headers,
        body: &[u8],
    ) -> Reply {
        // "If the server receives a request with an invalid or unsupported MCP-Protocol-Version, it MUST respond with
        // 400 Bad Request."
        if headers.one(headers::PROTOCOL_VERSION).is_some_and(|version| !meta::LEGACY.contains(&version)) {
            let message = format!("Bad Request: Unsupported protocol version (supported: {})", meta::LEGACY.join(", "));
            return http::nameless(Refused::protocol(IMPLEMENTATION_DEFINED, 400, message));
        }
        let session = headers.one(headers::SESSION_ID);
        if method == "DELETE" {
            return self.end(caller, session);
        }
        let message = match http::read(headers, body) {
            Ok(message) => message,
            Err(reply) => return reply,
        };
        if let Message::Request(request) = &message
            && request.method == "initialize"
        {
            let id = workspaces::random_hex();
            self.sessions().insert(id.clone(), caller.clone());
            return http::frame(answers, request, Ok(initialized(request))).with(SESSION_HEADER, &id);
        }
        match session {
            None => return http::refuse_shape("no session: open one by `initialize`"),
            Some(id) if !self.is_open(caller, id) => {
                return http::nameless(Refused::protocol(meta::INVALID_REQUEST, 404, "session not found"));
            }
            Some(_) => {}
        }
        match message {
            Message::Request(request) => http::frame(answers, &request, result(&request, caller)),
            _ => Reply::bare(202),
        }
    }

    fn end(&self, caller: &Principal, session: Option<&str>) -> Reply {
        match session {
            None => Reply::bare(400),
            Some(id) if self.is_open(caller, id) => {
                self.sessions().remove(id);
                Reply::bare(204)
            }
            Some(_) => Reply::bare(404),
        }
    }

    /// An unknown session and somebody else's are one and the same.
    fn is_open(&self, caller: &Principal, id: &str) -> bool {
        self.sessions().get(id).is_some_and(|owner| owner == caller)
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeMap<String, Principal>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// On stdio the process is the session.
#[derive(Debug, Default)]
pub(crate) struct Session {
    open: bool,
}

impl Session {
    pub(crate) fn answer(
        &mut self,
        request: &Request,
        known: impl FnOnce(&Request) -> Result<Value, Refused>,
    ) -> Result<Value, RpcError> {
        if request.method == "initialize" {
            self.open = true;
            return Ok(initialized(request));
        }
        let known = known(request).map_err(|refused| refused.error)?;
        if self.open || request.method == "ping" {
            Ok(known)
        } else {
            Err(Refused::protocol(meta::INVALID_REQUEST, 400, "not initialized").error)
        }
    }
}

/// The answer on stdio, where the caller is whoever runs the process.
pub(crate) fn answer(request: &Request) -> Result<Value, Refused> {
    result(request, &Principal::local())
}

pub(crate) fn initialized(request: &Request) -> Value {
    let wanted = request.params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
    let version = meta::LEGACY.into_iter().find(|version| *version == wanted).unwrap_or(meta::LEGACY[0]);
    json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": answer::server_info()})
}

fn result(request: &Request, caller: &Principal) -> Result<Value, Refused> {
    match request.method.as_str() {
        "ping" => Ok(json!({})),
        "tools/list" => Ok(tools()),
        "tools/call" => call(request, caller),
        other => Err(Refused::protocol(meta::METHOD_NOT_FOUND, 200, format!("method not found: {other}"))),
    }
}

fn call(request: &Request, caller: &Principal) -> Result<Value, Refused> {
    let text = match request.params.get("name").and_then(Value::as_str) {
        Some("echo") => request.params.get("arguments").and_then(|arguments| arguments["text"].as_str()),
        Some("whoami") => Some(caller.as_str()),
        _ => return Err(Refused::params("unknown tool")),
    };
    let text = text.ok_or_else(|| Refused::params("`text` must be a string"))?;
    Ok(json!({"content": [{"type": "text", "text": text}], "isError": false}))
}

fn tools() -> Value {
    let echo = json!({
        "name": "echo",
        "description": "Says it back.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    });
    let whoami = json!({
        "name": "whoami",
        "description": "Returns the principal that the server takes the caller for.",
        "inputSchema": {"type": "object", "properties": {}}
    });
    json!({"tools": [echo, whoami]})
}

/// "-32000 to -32019 carry no meaning"; the official SDKs of those years used this one.
const IMPLEMENTATION_DEFINED: i64 = -32000;
const SESSION_HEADER: &str = "mcp-session-id";
