//! What a client can be asked. "Servers MUST NOT send an `inputRequests` that the client has not declared support for in its
//! capabilities."

use rmcp::{
    ErrorData,
    model::{ClientCapabilities, ErrorCode, InputRequiredResult},
};
use serde_json::{Value, json};

use crate::seal::undeclared;

/// Refuses what this client has not said that it can answer, with the capabilities that it would take.
///
/// # Errors
/// -32021 of the specification, with `requiredCapabilities`.
pub(super) fn answerable(asks: &InputRequiredResult, declared: Option<&ClientCapabilities>) -> Result<(), ErrorData> {
    let declared = serde_json::to_value(declared).unwrap_or_default();
    let requests = asks.input_requests.iter().flatten().filter_map(|(_, request)| serde_json::to_value(request).ok());
    let requests: Vec<Value> = requests.collect();
    let Some(required) = undeclared(&requests, &declared) else { return Ok(()) };
    let data = json!({"requiredCapabilities": required});
    Err(ErrorData::new(ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY, "a client capability is needed", Some(data)))
}
