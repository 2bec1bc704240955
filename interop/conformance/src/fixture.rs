//! The MCP server. It knows nothing of sealing: it reads and writes plain states.
#![expect(deprecated, reason = "sessions, logging and subscriptions to resources are part of what 2025-11-25 asks for")]

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use axum::http::request::Parts;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
        CompletionInfo, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, Implementation,
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel,
        LoggingMessageNotificationParam, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
        ReadResourceResponse, ServerCapabilities, ServerConfig, SetLevelRequestMethod, SetLevelRequestParams,
        SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
    },
    service::{RequestContext, SubscriptionContext},
};
use serde_json::json;

use crate::{
    asking::{self, Next, Round},
    asking_live,
    changes::Changes,
    prompts, resources,
    tasks::Tasks,
    tools,
};

pub type Context = RequestContext<RoleServer>;

#[derive(Clone, Default)]
pub struct Fixture {
    pub changes: Changes,
    tasks: Tasks,
    /// From which level on a session wants to be told, by the session's id.
    levels: Arc<Mutex<HashMap<String, LoggingLevel>>>,
}

impl Fixture {
    /// Tells the client, if it wants to hear this. Since 2026-07-28 a request says for itself whether it does.
    pub async fn log(&self, context: &Context, level: LoggingLevel, text: &str) {
        let levels = || self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = if is_modern(context) {
            context.meta.log_level()
        } else {
            // A session that never said a level is told everything.
            session(context).and_then(|id| levels().get(&id).copied()).or(Some(LoggingLevel::Debug))
        };
        if wanted.is_some_and(|wanted| level as u8 >= wanted as u8) {
            // Who has hung up does not want to hear it either.
            let _ = context.peer.notify_logging_message(LoggingMessageNotificationParam::new(level, json!(text))).await;
        }
    }
}

pub fn is_modern(context: &Context) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

fn session(context: &Context) -> Option<String> {
    let headers = &context.extensions.get::<Parts>()?.headers;
    headers.get("mcp-session-id")?.to_str().ok().map(str::to_owned)
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let offers = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_completions()
            .enable_logging()
            .enable_tasks()
            .build();
        ServerConfig::new(offers).with_server_info(Implementation::new("handfast-conformance", "1"))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::listed(is_modern(&context))))
    }

    /// The SDK compares `Mcp-Param-*` with what the tool's schema says of them.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        [true, false].into_iter().flat_map(tools::listed).find(|tool| tool.name == name)
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: Context) -> Result<CallToolResponse, ErrorData> {
        let (name, arguments) = (&*request.name, request.arguments.as_ref());
        if let Some(state) = &request.request_state {
            // Who reads this learns which states have come as far as here.
            eprintln!("state: {state}");
        }
        if is_modern(&context) {
            let round = Round::new(request.request_state.as_deref(), request.input_responses.as_ref(), &context);
            match asking::tool(name, &round)? {
                Some(Next::Asked(asks)) => return Ok(asks.into()),
                Some(Next::Told(text)) => return Ok(tools::said(&text).into()),
                None => {}
            }
            if let Some(response) = self.tasks.call(name, arguments, &round, &context).await? {
                return Ok(response);
            }
        } else if let Some(told) = asking_live::tool(name, arguments, &context).await? {
            return Ok(tools::said(&told).into());
        }
        tools::call(self, name, arguments, &context).await.map(CallToolResponse::from)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::listed(is_modern(&context))))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        if is_modern(&context) {
            let round = Round::new(request.request_state.as_deref(), request.input_responses.as_ref(), &context);
            match asking::prompt(&request.name, &round)? {
                Some(Next::Asked(asks)) => return Ok(asks.into()),
                Some(Next::Told(text)) => return Ok(prompts::saying(&text).into()),
                None => {}
            }
        }
        prompts::get(&request.name, request.arguments.as_ref()).map(GetPromptResponse::from)
    }

    async fn complete(&self, request: CompleteRequestParams, _: Context) -> Result<CompleteResult, ErrorData> {
        let values = prompts::completions(&request.argument.value);
        let values = CompletionInfo::new(values).map_err(|problem| ErrorData::internal_error(problem, None))?;
        Ok(CompleteResult::new(values))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::listed()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&request.uri).map(ReadResourceResponse::from)
    }

    async fn set_level(&self, request: SetLevelRequestParams, context: Context) -> Result<(), ErrorData> {
        // The SDK passes it on in every revision, although it is gone since 2026-07-28.
        if is_modern(&context) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        if let Some(session) = session(&context) {
            self.levels.lock().unwrap_or_else(PoisonError::into_inner).insert(session, request.level);
        }
        Ok(())
    }

    /// Nothing here ever changes, so a subscription has nothing to remember.
    async fn subscribe(&self, request: SubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        resources::read(&request.uri).map(|_| ())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn get_task(&self, request: GetTaskParams, _: Context) -> Result<GetTaskResult, ErrorData> {
        self.tasks.get(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(&self, request: UpdateTaskParams, _: Context) -> Result<(), ErrorData> {
        self.tasks.update(&request.task_id, &request.input_responses)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: Context) -> Result<(), ErrorData> {
        self.tasks.cancel(&request.task_id)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.changes.tell(&context).await;
        Ok(())
    }
}
