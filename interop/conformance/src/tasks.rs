//! Calls that take their time, as the tasks extension has it: the client gets a task and asks how it stands. What a task
//! waits for lies here and does not travel, so the seam passes all of it on as it is. One tool asks in a round first and
//! becomes a task then: its state must be sealed, and none may be left on the task.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use handfast::ObjectRef;
use jiff::Timestamp;
use rmcp::{
    ErrorData,
    model::{
        CallToolResponse, ClientCapabilities, CreateTaskResult, DetailedTask, InputRequests, InputResponses,
        JsonObject, Task, TaskPayload, TaskStatus,
    },
};
use serde_json::{Value, json};

use crate::{
    asking::{Next, Round, form},
    fixture::Context,
    tools, wire,
};

#[derive(Clone, Default)]
pub struct Tasks(Arc<Mutex<HashMap<String, Job>>>);

/// Nothing runs anywhere: how a job stands follows from the time, and from what it was told.
struct Job {
    created: Timestamp,
    updated: Timestamp,
    takes: Duration,
    cancelled: bool,
    open: InputRequests,
    ends: Value,
}

const KEPT: Duration = Duration::from_secs(600);
const ASK_AGAIN: Duration = Duration::from_millis(100);
const A_SECOND: Duration = Duration::from_secs(1);

impl Tasks {
    /// Answers for the tools of this file; `None` for any other.
    pub async fn call(
        &self,
        name: &str,
        arguments: Option<&JsonObject>,
        round: &Round<'_>,
        context: &Context,
    ) -> Result<Option<CallToolResponse>, ErrorData> {
        let argument = |name: &str| arguments.and_then(|arguments| arguments.get(name)).cloned().unwrap_or_default();
        let patient = context.client_capabilities().is_some_and(|client| client.supports_tasks());
        let (takes, questions, ends) = match name {
            "slow_compute" => {
                let takes = Duration::from_secs(argument("seconds").as_u64().unwrap_or(0).min(60));
                let told = format!("Computed {} for {} s.", argument("label"), takes.as_secs());
                if !patient {
                    tokio::time::sleep(takes).await;
                    return Ok(Some(tools::said(&told).into()));
                }
                (takes, vec![], completed(&told, false))
            }
            "failing_job" => (A_SECOND, vec![], completed("This job always fails.", true)),
            "protocol_error_job" => {
                let error = json!({ "code": -32603, "message": "This job always breaks." });
                (Duration::ZERO, vec![], json!({ "status": "failed", "error": error }))
            }
            "confirm_delete" => {
                let question = form("confirm", &format!("Delete {}?", argument("filename")), "confirm", "boolean");
                (Duration::ZERO, vec![question], completed("You were asked, and have answered.", false))
            }
            "multi_input" => {
                let questions = ["first", "second"].map(|key| form(key, "What is your name?", "name", "string"));
                (Duration::ZERO, questions.into(), completed("You were asked twice, and have answered.", false))
            }
            "test_tool_with_task" => match round.greeting()? {
                Next::Asked(asks) => return Ok(Some(asks.into())),
                Next::Told(greeting) => (Duration::ZERO, vec![], completed(&greeting, false)),
            },
            _ => return Ok(None),
        };
        if !patient {
            return Err(ErrorData::missing_required_client_capability(
                ClientCapabilities::builder().enable_tasks().build(),
            ));
        }
        let now = Timestamp::now();
        let open = questions.into_iter().collect();
        let job = Job { created: now, updated: now, takes, cancelled: false, open, ends };
        let id = ObjectRef::random().to_string();
        let task = job.task(&id);
        let mut jobs = self.jobs();
        jobs.retain(|_, job| job.age() < KEPT);
        jobs.insert(id, job);
        Ok(Some(CreateTaskResult::new(task).into()))
    }

    pub fn get(&self, id: &str) -> Result<DetailedTask, ErrorData> {
        self.with(id, |job| DetailedTask::new(job.task(id), job.payload()))
    }

    /// Takes answers to what is open; the others answer nothing.
    pub fn update(&self, id: &str, responses: &InputResponses) -> Result<(), ErrorData> {
        self.with(id, |job| {
            job.open.retain(|key, _| !responses.contains_key(key));
            job.updated = Timestamp::now();
        })
    }

    /// What has ended stays as it ended.
    pub fn cancel(&self, id: &str) -> Result<(), ErrorData> {
        self.with(id, |job| {
            if !job.payload().status().is_terminal() {
                (job.cancelled, job.updated) = (true, Timestamp::now());
            }
        })
    }

    fn with<T>(&self, id: &str, work: impl FnOnce(&mut Job) -> T) -> Result<T, ErrorData> {
        let mut jobs = self.jobs();
        jobs.get_mut(id).map(work).ok_or_else(|| ErrorData::invalid_params("there is no such task", None))
    }

    fn jobs(&self) -> MutexGuard<'_, HashMap<String, Job>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    fn age(&self) -> Duration {
        Timestamp::now().duration_since(self.created).try_into().unwrap_or_default()
    }

    fn payload(&self) -> TaskPayload {
        if self.cancelled {
            return TaskPayload::Cancelled;
        }
        if !self.open.is_empty() {
            return TaskPayload::InputRequired { input_requests: self.open.clone() };
        }
        if self.age() < self.takes {
            return TaskPayload::Working;
        }
        match self.ends["status"].as_str() {
            Some("failed") => TaskPayload::Failed { error: wire(self.ends["error"].clone()) },
            _ => TaskPayload::Completed { result: wire(self.ends["result"].clone()) },
        }
    }

    fn task(&self, id: &str) -> Task {
        let (created, updated) = (self.created.to_string(), self.updated.to_string());
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Task::new(id, TaskStatus::Working, created, updated)
            .with_ttl_ms(millis(KEPT))
            .with_poll_interval_ms(millis(ASK_AGAIN))
    }
}

fn completed(told: &str, failed: bool) -> Value {
    let content = json!([{ "type": "text", "text": told }]);
    json!({ "status": "completed", "result": { "resultType": "complete", "content": content, "isError": failed } })
}
