//! Names that the protocol fixes: revisions, `_meta` keys, error codes, and the `_meta` of a client.

use serde_json::{Value, json};

use crate::message::Object;

/// The stateless revision: every request carries its own version and capabilities, and there are no sessions.
pub const MODERN: &str = "2026-07-28";

/// The revisions that open with `initialize`, newest first.
pub const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// `_meta` key, required on every request of 2026-07-28.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// `_meta` key, required on every request of 2026-07-28.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// `_meta` key, optional.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// `_meta` key by which a caller on stdio may say who it is. A convention of checks such as ours, not of the specification.
pub const PRINCIPAL: &str = "io.modelcontextprotocol/principal";
/// The extension under which a server may answer with a task.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// JSON-RPC: the bytes were no JSON.
pub const PARSE_ERROR: i64 = -32700;
/// JSON-RPC: no request object.
pub const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC: unknown method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC: wrong parameters; in practice also a bad `requestState`.
pub const INVALID_PARAMS: i64 = -32602;
/// JSON-RPC: the receiver failed.
pub const INTERNAL_ERROR: i64 = -32603;
/// MCP: a header is missing or differs from the body.
pub const HEADER_MISMATCH: i64 = -32020;
/// MCP: the client did not declare a capability that is needed.
pub const MISSING_CAPABILITY: i64 = -32021;
/// MCP: the revision is not spoken here.
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// Everything that a client can declare: without it many tools never ask for input.
pub fn every_capability() -> Value {
    json!({
        "elicitation": {"form": {}, "url": {}},
        "sampling": {},
        "roots": {},
        "extensions": {TASKS_EXTENSION: {}},
    })
}

/// The `_meta` of a request of 2026-07-28. "`protocolVersion` and `clientCapabilities` are required."
pub fn modern(capabilities: Value, client_name: &str, client_version: &str) -> Object {
    let mut meta = Object::new();
    meta.insert(PROTOCOL_VERSION.into(), MODERN.into());
    meta.insert(CLIENT_CAPABILITIES.into(), capabilities);
    meta.insert(CLIENT_INFO.into(), json!({"name": client_name, "version": client_version}));
    meta
}
