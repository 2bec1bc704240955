//! HTTP headers of the Streamable HTTP transport: their names, their values, and the base64 form of unsafe values.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use thiserror::Error;

use crate::{message::Object, pointer};

/// Must equal `_meta["io.modelcontextprotocol/protocolVersion"]`.
pub const PROTOCOL_VERSION: &str = "MCP-Protocol-Version";
/// Must equal the method in the body.
pub const METHOD: &str = "Mcp-Method";
/// Must equal the name, uri or task id in the body.
pub const NAME: &str = "Mcp-Name";
/// Prefix of the headers that a tool's schema asks for by `x-mcp-header`.
pub const PARAM_PREFIX: &str = "Mcp-Param-";
/// The session header of 2025-11-25 and older. On 2026-07-28 it means nothing.
pub const SESSION_ID: &str = "Mcp-Session-Id";

const OPEN: &str = "=?base64?";
const CLOSE: &str = "?=";

/// Why a header value could not be read.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderError {
    /// The part between `=?base64?` and `?=` is no base64.
    #[error("the part between `=?base64?` and `?=` is not base64")]
    Base64,
    /// The decoded bytes are no UTF-8.
    #[error("the decoded header value is not UTF-8")]
    Utf8,
}

/// Writes a value so that it survives HTTP: as it is where every byte is visible ASCII or an inner blank, else as
/// `=?base64?<base64 of the UTF-8>?=`. A value that itself looks encoded is encoded, so that decoding is unambiguous.
pub fn encode(value: &str) -> String {
    let plain = value.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
    let trimmed = value.trim_matches(' ').len() == value.len();
    if plain && trimmed && !value.is_empty() && !value.starts_with(OPEN) {
        value.to_owned()
    } else {
        format!("{OPEN}{}{CLOSE}", STANDARD.encode(value))
    }
}

/// Reads a value back. "Servers MUST decode before comparing."
///
/// # Errors
/// [`HeaderError`] when the value announces base64 and does not hold it.
pub fn decode(value: &str) -> Result<String, HeaderError> {
    match value.strip_prefix(OPEN).and_then(|rest| rest.strip_suffix(CLOSE)) {
        None => Ok(value.to_owned()),
        Some(encoded) => {
            let bytes = STANDARD.decode(encoded).map_err(|_| HeaderError::Base64)?;
            String::from_utf8(bytes).map_err(|_| HeaderError::Utf8)
        }
    }
}

/// What `Mcp-Name` must repeat from the parameters of this method, if anything.
pub fn name_of<'p>(method: &str, params: &'p Object) -> Option<&'p str> {
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        method if method.starts_with("tasks/") => "taskId",
        _ => return None,
    };
    params.get(key).and_then(Value::as_str)
}

/// The three headers that every request of 2026-07-28 repeats from its body, encoded.
pub fn standard(method: &str, params: &Object) -> Vec<(&'static str, String)> {
    let mut headers = vec![(PROTOCOL_VERSION, crate::meta::MODERN.to_owned()), (METHOD, encode(method))];
    if let Some(name) = name_of(method, params) {
        headers.push((NAME, encode(name)));
    }
    headers
}

/// The `Mcp-Param-*` headers that this input schema asks for, with the values of these arguments, encoded.
/// An argument that is absent or null has no header.
pub fn params(schema: &Value, arguments: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    mirrored(schema, arguments, 0, &mut found);
    found
}

fn mirrored(schema: &Value, arguments: &Value, depth: usize, found: &mut Vec<(String, String)>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|_| depth < 16) else {
        return;
    };
    for (name, property) in properties {
        let Some(value) = arguments.get(name) else { continue };
        if let Some(header) = property.get("x-mcp-header").and_then(Value::as_str) {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                Value::Bool(truth) => truth.to_string(),
                _ => continue,
            };
            found.push((format!("{PARAM_PREFIX}{header}"), encode(&text)));
        }
        mirrored(property, value, depth + 1, found);
    }
}

/// Whether an object at a pointer is mirrored in a header, by name; used by those who rewrite arguments.
pub fn mirrors(schema: &Value, argument: &str) -> Option<String> {
    let at = format!("/properties/{}/x-mcp-header", pointer::escape(argument));
    schema.pointer(&at).and_then(Value::as_str).map(|header| format!("{PARAM_PREFIX}{header}"))
}
