//! What a result is: complete, asking for input, or a task. Read from raw JSON, nothing dropped.

use serde_json::Value;

use crate::message::Object;

/// The kind of a result, from `resultType`.
#[derive(Debug, Clone, PartialEq)]
pub enum ResultKind {
    /// "the client MUST treat the absent field as `complete`".
    Complete,
    /// The server wants answers before it goes on.
    InputRequired(InputRequired),
    /// The server goes on in the background.
    Task(Task),
    /// A result type that nobody announced.
    Unknown(String),
}

/// The members of an `InputRequiredResult`. "At least one of `inputRequests` or `requestState` MUST be present."
#[derive(Debug, Clone, PartialEq)]
pub struct InputRequired {
    /// The questions, by the server's own keys.
    pub requests: Object,
    /// The blob to echo, byte for byte.
    pub state: Option<String>,
}

/// The members of a `CreateTaskResult` that a client needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Names the task in `tasks/get`.
    pub id: String,
    /// `working`, `input_required`, `completed`, `failed` or `cancelled`.
    pub status: String,
    /// How long the server asks a client to wait between two looks, in milliseconds.
    pub poll_interval_ms: Option<u64>,
}

/// Reads what kind of result this is.
pub fn kind(result: &Value) -> ResultKind {
    let given = match result.get("resultType") {
        None => return ResultKind::Complete,
        Some(Value::String(given)) => given,
        Some(other) => return ResultKind::Unknown(other.to_string()),
    };
    match given.as_str() {
        "complete" => ResultKind::Complete,
        "input_required" => ResultKind::InputRequired(InputRequired {
            requests: result.get("inputRequests").and_then(Value::as_object).cloned().unwrap_or_default(),
            state: result.get("requestState").and_then(Value::as_str).map(str::to_owned),
        }),
        "task" => match task(result) {
            Some(task) => ResultKind::Task(task),
            None => ResultKind::Unknown("task".into()),
        },
        other => ResultKind::Unknown(other.to_owned()),
    }
}

/// Reads the task in a `CreateTaskResult` or a `tasks/get` result: its members stand at the top or under `task`.
pub fn task(result: &Value) -> Option<Task> {
    let node = result.get("task").filter(|task| task.is_object()).unwrap_or(result);
    Some(Task {
        id: node.get("taskId")?.as_str()?.to_owned(),
        status: node.get("status").and_then(Value::as_str).unwrap_or("working").to_owned(),
        poll_interval_ms: node.get("pollIntervalMs").and_then(Value::as_u64),
    })
}
