//! The tasks extension, as far as one twin needs it: a result that is fetched instead of sent.

use std::{collections::BTreeMap, sync::Mutex};

use handfast_wire::message::Object;
use serde_json::{Value, json};

use crate::{
    answer::{self, Refused},
    caller::Principal,
    workspaces,
};

/// Results that wait to be fetched, each by whoever started it.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    waiting: Mutex<BTreeMap<String, (Principal, Value)>>,
}

impl Tasks {
    /// Puts a result aside and answers with a task.
    pub(crate) fn begin(&self, caller: &Principal, mut result: Value) -> Value {
        if let Some(members) = result.as_object_mut() {
            members.remove("resultType");
            members.remove("_meta");
        }
        let id = format!("task-{}", workspaces::random_hex());
        let begun = answer::result("task", described(&id, "working"));
        self.lock().insert(id, (caller.clone(), result));
        begun
    }

    /// Answers `tasks/get`.
    pub(crate) fn fetch(&self, caller: &Principal, params: &Object) -> Result<Value, Refused> {
        let id = params.get("taskId").and_then(Value::as_str).ok_or_else(|| Refused::params("`taskId` is needed"))?;
        let waiting = self.lock();
        let (_, result) =
            waiting.get(id).filter(|(owner, _)| owner == caller).ok_or_else(|| Refused::params("unknown task"))?;
        let mut body = described(id, "completed");
        body["result"] = result.clone();
        Ok(answer::complete(body))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, (Principal, Value)>> {
        self.waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn described(id: &str, status: &str) -> Value {
    json!({
        "taskId": id,
        "status": status,
        "createdAt": "2026-07-28T00:00:00Z",
        "lastUpdatedAt": "2026-07-28T00:00:00Z",
        "ttlMs": 300_000,
        "pollIntervalMs": 20
    })
}
