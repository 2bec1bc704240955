//! What a server can answer: a result with what every result carries, or a refusal with its HTTP status.

use handfast_wire::{
    message::{Object, RpcError},
    meta,
};
use serde_json::{Value, json};

/// A JSON-RPC error and the HTTP status that goes with it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refused {
    pub(crate) error: RpcError,
    pub(crate) status: u16,
    /// The specification fixes the status, so that the error comes before any stream is opened.
    pub(crate) before_stream: bool,
}

impl Refused {
    /// Refused by the protocol layer; the specification names the status.
    pub(crate) fn protocol(code: i64, status: u16, message: impl Into<String>) -> Self {
        Self { error: RpcError { code, message: message.into(), data: None }, status, before_stream: true }
    }

    /// Refused by a handler: bad parameters, an unknown prompt, a bad `requestState`. The specification fixes no
    /// status; we say 400.
    pub(crate) fn params(message: impl Into<String>) -> Self {
        let error = RpcError { code: meta::INVALID_PARAMS, message: message.into(), data: None };
        Self { error, status: 400, before_stream: false }
    }

    /// Not the caller's fault.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        let error = RpcError { code: meta::INTERNAL_ERROR, message: message.into(), data: None };
        Self { error, status: 500, before_stream: false }
    }

    pub(crate) fn with_data(mut self, data: Value) -> Self {
        self.error.data = Some(data);
        self
    }
}

/// A complete result.
pub(crate) fn complete(body: Value) -> Value {
    result("complete", body)
}

/// A complete result that may be cached. "`ttlMs` and `cacheScope` are required."
pub(crate) fn cacheable(body: Value, ttl_ms: u64, scope: &str) -> Value {
    let mut object = members(body);
    object.insert("ttlMs".into(), ttl_ms.into());
    object.insert("cacheScope".into(), scope.into());
    result("complete", Value::Object(object))
}

/// A result of any type. "Servers implementing this protocol version MUST include `resultType`."
pub(crate) fn result(kind: &str, body: Value) -> Value {
    let mut object = Object::new();
    object.insert("resultType".into(), kind.into());
    object.extend(members(body));
    object.insert("_meta".into(), json!({"io.modelcontextprotocol/serverInfo": server_info()}));
    Value::Object(object)
}

/// A tool's answer: the text, and the same as data where there is any.
pub(crate) fn tool(text: String, data: Option<Value>) -> Value {
    let mut object = Object::new();
    object.insert("content".into(), json!([{"type": "text", "text": text}]));
    if let Some(data) = data {
        object.insert("structuredContent".into(), data);
    }
    complete(Value::Object(object))
}

/// A tool's own error: the call was understood, and it failed.
pub(crate) fn tool_error(text: impl Into<String>) -> Value {
    complete(json!({"content": [{"type": "text", "text": text.into()}], "isError": true}))
}

/// The same for all twins: nothing on the wire tells them apart.
pub(crate) fn server_info() -> Value {
    json!({"name": "workspaces", "version": env!("CARGO_PKG_VERSION")})
}

fn members(body: Value) -> Object {
    match body {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}
