//! Offers that are asked about first, and a report that is a task: rmcp's own codec and its own task manager, with nothing
//! asked of them that they do not do by themselves.
//!
//! The pages are docs.rs/rmcp, `model::RequestStateCodec` and `model::SealOptions` ("defaults to no associated data and no
//! expiry, which is equivalent to the bare seal / open"), and `task_manager::TaskManager`, which is told ids and never
//! users. In flawed mode that is all. The sound mode binds the state to caller, tool and arguments and lets it expire,
//! spends each once, and remembers whose task it is.

mod gate;
mod http_options;

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::request::Parts;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::tool::{InputResponses, RequestState};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::task_manager::{TaskManager, TaskOptions};
use rmcp::transport::StreamableHttpService;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::{ErrorData, RoleServer, ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use gate::User;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (sound, port) = match http_options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("{problem}");
            std::process::exit(2);
        }
    };
    let key: [u8; 32] = rand::random();
    let offers = Offers {
        tool_router: Offers::tool_router(),
        codec: RequestStateCodec::try_new(key)?,
        tasks: TaskManager::new(),
        kept: Arc::default(),
        sound,
    };
    let mcp = StreamableHttpService::new(
        move || Ok(offers.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default().with_allowed_origins(["http://127.0.0.1:*", "http://localhost:*"]),
    );
    gate::serve(axum::Router::new().route_service("/mcp", mcp), port).await
}

#[derive(Clone)]
struct Offers {
    tool_router: ToolRouter<Self>,
    codec: RequestStateCodec,
    tasks: TaskManager,
    kept: Arc<Mutex<Kept>>,
    sound: bool,
}

/// What the sound mode adds to the SDK, and how many offers were made.
#[derive(Default)]
struct Kept {
    made: u32,
    spent: HashSet<String>,
    owners: HashMap<String, User>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Offer {
    #[schemars(length(min = 1, max = 120))]
    customer: String,
    /// Per cent
    #[schemars(range(min = 1, max = 40))]
    amount: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Reporting {
    #[schemars(length(min = 1, max = 120))]
    title: String,
}

#[tool_router]
impl Offers {
    #[tool(description = "Offer a discount to a customer, after a confirmation.")]
    fn offer_discount(
        &self,
        Parameters(offer): Parameters<Offer>,
        RequestState(presented): RequestState,
        InputResponses(responses): InputResponses,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.two_rounds("offer_discount", offer, presented, responses, &context)
    }

    #[tool(description = "Offer credit to a customer, after a confirmation.")]
    fn offer_credit(
        &self,
        Parameters(offer): Parameters<Offer>,
        RequestState(presented): RequestState,
        InputResponses(responses): InputResponses,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.two_rounds("offer_credit", offer, presented, responses, &context)
    }

    #[tool(description = "Write a report; a task for clients that know tasks.")]
    fn write_report(
        &self,
        Parameters(Reporting { title }): Parameters<Reporting>,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let user = caller(&context)?;
        let report = said(format!("Report \"{title}\", written for {}.", user.0));
        if !context.client_capabilities().is_some_and(|client| client.supports_tasks()) {
            return Ok(report.into());
        }
        let task = self.tasks.spawn(TaskOptions::new().with_poll_interval_ms(10), |_| Box::pin(async { Ok(report) }));
        self.kept().owners.insert(task.task_id.clone(), user);
        Ok(CallToolResponse::Task(CreateTaskResult::new(task)))
    }
}

impl Offers {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks, and does on the retry what the state says.
    fn two_rounds(
        &self,
        tool: &str,
        offer: Offer,
        presented: Option<String>,
        responses: Option<rmcp::model::InputResponses>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let user = caller(context)?;
        let bound = format!("{}\0{tool}\0{}\0{}", user.0, offer.customer, offer.amount);
        let answer = responses.as_ref().and_then(|responses| responses.get("confirm"));
        let (Some(presented), Some(answer)) = (presented, answer) else {
            let state = match self.sound {
                // FLAW: sealed for nobody, for no tool, and for ever.
                false => self.codec.seal_json(&offer),
                true => {
                    let options = SealOptions::new().associated_data(bound.as_bytes()).ttl(Duration::from_secs(300));
                    self.codec.seal_json_with(&offer, &options)
                }
            };
            let state = state.map_err(|problem| ErrorData::internal_error(problem.to_string(), None))?;
            let questions = [("confirm".to_owned(), question(&offer)?)].into_iter().collect();
            return Ok(InputRequiredResult::new(Some(questions), Some(state)).into());
        };
        let opened: Result<Offer, _> = match self.sound {
            false => self.codec.open_json(&presented),
            true => self.codec.open_json_with(&presented, bound.as_bytes()),
        };
        let refused = || ErrorData::invalid_params("Invalid or expired requestState", None);
        let Offer { customer, amount } = opened.map_err(|_| refused())?;
        let confirmed = answer["action"] == "accept" && answer["content"]["confirm"] == true;
        let mut kept = self.kept();
        if self.sound && !kept.spent.insert(presented) {
            return Err(refused());
        }
        if !confirmed {
            return Ok(said(format!("{tool}: not confirmed, nothing was offered.")).into());
        }
        kept.made += 1;
        Ok(said(format!("{tool}: {amount} per cent for {customer}, offer {} of the day.", kept.made)).into())
    }

    /// In flawed mode everybody's; in sound mode a task that is somebody else's is answered like one that there is not.
    fn may(&self, task_id: &str, context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
        let user = caller(context)?;
        // FLAW, in flawed mode: the owner was recorded, and is never compared with the caller.
        if self.sound && self.kept().owners.get(task_id) != Some(&user) {
            return Err(ErrorData::invalid_params(format!("unknown task: {task_id}"), None));
        }
        Ok(())
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Offers {
    fn get_info(&self) -> ServerConfig {
        let offers = ServerCapabilities::builder().enable_tools().enable_tasks().build();
        ServerConfig::new(offers).with_server_info(Implementation::new("interop-offers", "1"))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.may(&request.task_id, &context)?;
        Ok(GetTaskResult::new(self.tasks.get_task(&request.task_id)?))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.may(&request.task_id, &context)?;
        self.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.may(&request.task_id, &context)?;
        self.tasks.cancel_task(&request.task_id)
    }
}

fn caller(context: &RequestContext<RoleServer>) -> Result<User, ErrorData> {
    let user = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<User>());
    user.cloned().ok_or_else(|| ErrorData::internal_error("nobody came through the gate", None))
}

fn question(offer: &Offer) -> Result<InputRequest, ErrorData> {
    let schema =
        json!({ "type": "object", "properties": { "confirm": { "type": "boolean" } }, "required": ["confirm"] });
    let requested_schema =
        serde_json::from_value(schema).map_err(|problem| ErrorData::internal_error(problem.to_string(), None))?;
    let form = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: format!("{} per cent for {}?", offer.amount, offer.customer),
        requested_schema,
    };
    Ok(InputRequest::Elicitation(ElicitRequest::new(form)))
}

fn said(text: String) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}
