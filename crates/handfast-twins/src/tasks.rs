//! The tasks extension, as far as twins need it: a result that is fetched instead of sent. A task works until it is looked at;
//! until then it can be cancelled.

use std::{collections::BTreeMap, sync::Mutex};

use handfast_wire::message::Object;
use serde_json::{Value, json};

use crate::{
    answer::{self, Refused},
    caller::Principal,
    guards::Guards,
};

/// What is done to a task. Each is guarded on its own, so each can be forgotten on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    Get,
    Update,
    Cancel,
    List,
}

/// Results that wait to be fetched, each by whoever started it.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    begun: Mutex<BTreeMap<String, Task>>,
}

#[derive(Debug)]
struct Task {
    owner: Principal,
    result: Value,
    status: &'static str,
}

impl Tasks {
    /// Puts a result aside and answers with a task.
    pub(crate) fn begin(&self, guards: &dyn Guards, caller: &Principal, mut result: Value) -> Value {
        if let Some(members) = result.as_object_mut() {
            members.remove("resultType");
            members.remove("_meta");
        }
        let mut begun = self.lock();
        let id = guards.task_id(begun.len() as u64 + 1);
        let answer = answer::result("task", described(&id, "working"));
        begun.insert(id, Task { owner: caller.clone(), result, status: "working" });
        answer
    }

    /// Answers the methods of the extension.
    pub(crate) fn answer(
        &self,
        guards: &dyn Guards,
        method: &str,
        caller: &Principal,
        params: &Object,
    ) -> Result<Value, Refused> {
        let deed = match method {
            "tasks/list" => return Ok(self.list(guards, caller)),
            "tasks/update" => Deed::Update,
            "tasks/cancel" => Deed::Cancel,
            _ => Deed::Get,
        };
        let id = params.get("taskId").and_then(Value::as_str).ok_or_else(|| Refused::params("`taskId` is needed"))?;
        let mut begun = self.lock();
        let task = begun.get_mut(id).filter(|task| guards.admits_to_task(deed, caller, &task.owner));
        let task = task.ok_or_else(|| Refused::params("unknown task"))?;
        match (deed, task.status) {
            (Deed::Get, "working") => task.status = "completed",
            (Deed::Cancel, "working") => task.status = "cancelled",
            _ => {}
        }
        if deed != Deed::Get {
            // "On success, the server MUST acknowledge the request with an empty result."
            return Ok(answer::complete(json!({})));
        }
        let mut body = described(id, task.status);
        if task.status == "completed" {
            body["result"] = task.result.clone();
        }
        Ok(answer::complete(body))
    }

    fn list(&self, guards: &dyn Guards, caller: &Principal) -> Value {
        let begun = self.lock();
        let theirs = begun.iter().filter(|(_, task)| guards.admits_to_task(Deed::List, caller, &task.owner));
        let listed: Vec<Value> = theirs.map(|(id, task)| described(id, task.status)).collect();
        answer::complete(json!({"tasks": listed}))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Task>> {
        self.begun.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
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
