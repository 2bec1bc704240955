//! What a session is good for: it remembers, and it acts as whoever opened it.

use handfast_wire::{message::Request, meta};
use serde_json::{Value, json};

use super::Open;
use crate::answer::Refused;

/// Answers one request within a session.
pub(super) fn answer(request: &Request, session: &mut Open) -> Result<Value, Refused> {
    match request.method.as_str() {
        "ping" => Ok(json!({})),
        "tools/list" => Ok(listed()),
        "tools/call" => call(request, session),
        other => Err(Refused::protocol(meta::METHOD_NOT_FOUND, 200, format!("method not found: {other}"))),
    }
}

fn call(request: &Request, session: &mut Open) -> Result<Value, Refused> {
    let text = match request.params.get("name").and_then(Value::as_str) {
        Some("remember") => {
            let note = request.params.get("arguments").and_then(|arguments| arguments["text"].as_str());
            session.notes.push(note.ok_or_else(|| Refused::params("`text` must be a string"))?.to_owned());
            format!("{} notes are kept", session.notes.len())
        }
        Some("recall") if session.notes.is_empty() => "nothing is kept".to_owned(),
        Some("recall") => session.notes.join("\n"),
        // Fixed when the session was opened.
        Some("whoami") => session.owner.as_str().to_owned(),
        _ => return Err(Refused::params("unknown tool")),
    };
    Ok(json!({"content": [{"type": "text", "text": text}], "isError": false}))
}

/// Byte for byte the same for every twin with sessions.
fn listed() -> Value {
    let nothing = json!({"type": "object", "properties": {}});
    let remember = json!({
        "name": "remember",
        "description": "Keeps a note for as long as the session lasts.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string", "maxLength": 2000}}, "required": ["text"]}
    });
    let recall = json!({
        "name": "recall",
        "description": "Returns the notes of this session.",
        "inputSchema": nothing,
        "annotations": {"readOnlyHint": true}
    });
    let whoami = json!({
        "name": "whoami",
        "description": "Returns the principal that the server takes the caller for.",
        "inputSchema": nothing,
        "annotations": {"readOnlyHint": true}
    });
    json!({"tools": [remember, recall, whoami]})
}
