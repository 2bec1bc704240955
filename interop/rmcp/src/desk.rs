//! The MCP server: tickets that are opened, shown and commented on, and overtime that is asked for in two rounds.
//!
//! Handles are numbers here. The minted field is called `id`, the argument `ticket_id`, and in the prompt, whose
//! arguments can only be strings, the same number has to be sent as text. No output schema is published.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::request::Parts;
use rmcp::handler::server::router::prompt::PromptRouter;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::tool::{InputResponses, RequestState};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::{
    ErrorData, RoleServer, ServerHandler, prompt, prompt_handler, prompt_router, tool, tool_handler, tool_router,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::gate::User;
use crate::options::{Handle, Options, Principal};
use crate::state::{Claims, Writing};

struct Ticket {
    owner: String,
    subject: String,
    urgency: Urgency,
    comments: Vec<String>,
}

#[derive(Clone)]
pub struct Desk {
    tool_router: ToolRouter<Self>,
    prompt_router: PromptRouter<Self>,
    tickets: Arc<Mutex<HashMap<u64, Ticket>>>,
    state: Writing,
    sound: bool,
    handle: Handle,
    principal: Principal,
}

impl Desk {
    pub fn new(options: &Options) -> Result<Self, RequestStateError> {
        Ok(Self {
            tool_router: Self::tool_router(),
            prompt_router: Self::prompt_router(),
            tickets: Arc::default(),
            state: Writing::new(options.sound)?,
            sound: options.sound,
            handle: options.handle,
            principal: options.principal,
        })
    }

    fn caller(&self, context: &RequestContext<RoleServer>) -> Result<String, ErrorData> {
        if let Some(user) = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<User>()) {
            return Ok(user.0.clone());
        }
        match (self.principal, context.meta.0.get(PRINCIPAL_KEY).and_then(|value| value.as_str())) {
            (Principal::None, _) => Ok("local".to_owned()),
            (Principal::Meta, Some(named)) if !named.is_empty() => Ok(named.to_owned()),
            // No name, no service: a default user would turn every nameless caller into an owner.
            (Principal::Meta, _) => Err(ErrorData::invalid_params(format!("_meta names no {PRINCIPAL_KEY}"), None)),
        }
    }

    /// Does something with a ticket. None for an unknown ticket, and for somebody else's.
    fn with_ticket<T>(&self, id: u64, who: &str, act: impl FnOnce(&mut Ticket) -> T) -> Option<T> {
        let mut tickets = self.tickets.lock().unwrap_or_else(PoisonError::into_inner);
        let ticket = tickets.get_mut(&id)?;
        // FLAW, in flawed mode: the owner was recorded, and is never compared with the caller.
        if self.sound && ticket.owner != who {
            return None;
        }
        Some(act(ticket))
    }

    fn described(&self, id: u64, who: &str) -> Option<String> {
        self.with_ticket(id, who, |ticket| {
            let Ticket { owner, subject, urgency, comments } = ticket;
            format!("Ticket \"{subject}\" ({urgency:?}), opened by {owner}. Comments: {}", comments.join("; "))
        })
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Urgency {
    Low,
    Normal,
    High,
}

#[derive(Deserialize, JsonSchema)]
struct Opening {
    /// What it is about
    #[schemars(length(min = 1, max = 120))]
    subject: String,
    urgency: Urgency,
}

#[derive(Deserialize, JsonSchema)]
struct Which {
    ticket_id: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Commenting {
    ticket_id: u64,
    #[schemars(length(min = 1, max = 500))]
    body: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Overtime {
    /// Hours
    #[schemars(range(min = 1, max = 40))]
    amount: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Digesting {
    /// The number of the ticket
    ticket_id: String,
}

#[tool_router]
impl Desk {
    #[tool(description = "Open a ticket. It is kept until this process ends.")]
    fn open_ticket(
        &self,
        Parameters(Opening { subject, urgency }): Parameters<Opening>,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let ticket = Ticket { owner: self.caller(&context)?, subject, urgency, comments: Vec::new() };
        // Random and wide, so that a neighbouring number is nobody's ticket.
        let id = rand::random_range(100_000_000..1_000_000_000_u64);
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner).insert(id, ticket);
        let text = match self.handle {
            Handle::Structured => "Opened a ticket.".to_owned(),
            Handle::Text | Handle::Both => format!("Opened ticket {id}."),
        };
        let mut answer = said(text);
        if !matches!(self.handle, Handle::Text) {
            answer.structured_content = Some(json!({ "id": id, "queue": "front desk" }));
        }
        Ok(answer)
    }

    #[tool(description = "Show a ticket and its comments.", annotations(read_only_hint = true))]
    fn show_ticket(
        &self,
        Parameters(Which { ticket_id }): Parameters<Which>,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let who = self.caller(&context)?;
        Ok(self.described(ticket_id, &who).map_or_else(no_such_ticket, said))
    }

    #[tool(description = "Comment on a ticket.", annotations(destructive_hint = false))]
    fn comment_on_ticket(
        &self,
        Parameters(Commenting { ticket_id, body }): Parameters<Commenting>,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let who = self.caller(&context)?;
        let done = self.with_ticket(ticket_id, &who, |ticket| {
            ticket.comments.push(body);
            format!("Comment {} on \"{}\" of {}.", ticket.comments.len(), ticket.subject, ticket.owner)
        });
        Ok(done.map_or_else(no_such_ticket, said))
    }

    // No annotation: here only the verb says that this must not be called.
    #[tool(description = "Purge a ticket from the records.")]
    fn purge_ticket(&self, Parameters(Which { .. }): Parameters<Which>) -> CallToolResult {
        eprintln!("DESTRUCTIVE TOOL CALLED purge_ticket");
        said("purge_ticket: done, nothing is left.".to_owned())
    }

    #[tool(description = "Book overtime for the caller, after a confirmation.")]
    fn book_overtime(
        &self,
        Parameters(overtime): Parameters<Overtime>,
        RequestState(presented): RequestState,
        InputResponses(responses): InputResponses,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let who = self.caller(&context)?;
        // The derived schema publishes the range, deserializing does not enforce it.
        if !(1..=40).contains(&overtime.amount) {
            return Ok(CallToolResult::error(vec![ContentBlock::text("between 1 and 40 hours")]).into());
        }
        let bound = request_context(&who, "book_overtime", &overtime);
        let answer = responses.as_ref().and_then(|responses| responses.get("confirmation"));
        let (Some(presented), Some(answer)) = (presented, answer) else {
            let claims = Claims::new(&who, "book_overtime", overtime.amount);
            let questions = [("confirmation".to_owned(), question(overtime.amount)?)].into_iter().collect();
            return Ok(InputRequiredResult::new(Some(questions), Some(self.state.write(&claims, &bound))).into());
        };
        // What is booked is what the state says, which is why the state has to be trustworthy.
        let Some(Claims { principal, tool, amount, .. }) = self.state.read(&presented, &bound) else {
            return Err(ErrorData::invalid_params("Invalid or expired requestState", None));
        };
        if answer["action"] != "accept" || answer["content"]["confirm"] != true {
            return Ok(said(format!("{tool}: not confirmed, nothing was booked.")).into());
        }
        Ok(said(format!("{tool}: {amount} hours booked for {principal}.")).into())
    }
}

#[prompt_router]
impl Desk {
    #[prompt(name = "ticket_digest", description = "Sum a ticket up")]
    async fn ticket_digest(
        &self,
        Parameters(Digesting { ticket_id }): Parameters<Digesting>,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResult, ErrorData> {
        let who = self.caller(&context)?;
        let text = ticket_id.parse().ok().and_then(|id| self.described(id, &who));
        let text = text.ok_or_else(|| ErrorData::invalid_params("no such ticket", None))?;
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, format!("Sum this up. {text}"))]))
    }
}

#[tool_handler(router = self.tool_router)]
#[prompt_handler(router = self.prompt_router)]
impl ServerHandler for Desk {
    fn get_info(&self) -> ServerConfig {
        let offers = ServerCapabilities::builder().enable_tools().enable_prompts().enable_resources().build();
        ServerConfig::new(offers).with_server_info(Implementation::new("interop-tickets", "1"))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let ticket = ResourceTemplate::new("ticket://{ticket_id}", "ticket");
        Ok(ListResourceTemplatesResult::with_all_items(vec![ticket]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let who = self.caller(&context)?;
        let id = request.uri.strip_prefix("ticket://").and_then(|id| id.parse().ok());
        let text = id.and_then(|id| self.described(id, &who));
        let text = text.ok_or_else(|| ErrorData::resource_not_found("no such ticket", None))?;
        Ok(ReadResourceResult::new(vec![ResourceContents::text(text, request.uri)]).into())
    }
}

/// Caller, tool and arguments: whatever differs in one of them does not open what was sealed for the others.
fn request_context(who: &str, tool: &str, arguments: &impl Serialize) -> Vec<u8> {
    let digest = Sha256::digest(serde_json::to_vec(arguments).unwrap_or_default());
    [who.as_bytes(), b"\0tools/call\0", tool.as_bytes(), b"\0", &digest].concat()
}

fn question(amount: u64) -> Result<InputRequest, ErrorData> {
    let schema = json!({
        "type": "object",
        "properties": {
            "confirm": { "type": "boolean" },
            "shift": { "type": "integer", "minimum": 1, "maximum": 3 }
        },
        "required": ["confirm", "shift"]
    });
    let requested_schema =
        serde_json::from_value(schema).map_err(|problem| ErrorData::internal_error(problem.to_string(), None))?;
    let form = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: format!("Book {amount} hours?"),
        requested_schema,
    };
    Ok(InputRequest::Elicitation(ElicitRequest::new(form)))
}

fn said(text: String) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn no_such_ticket() -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text("no such ticket")])
}

const PRINCIPAL_KEY: &str = "io.modelcontextprotocol/principal";
