//! The wrapper as a handler: three requests pass through the seam, everything else goes straight on.
#![allow(deprecated, reason = "what older revisions have is passed on as well")]

use std::{borrow::Cow, future::Future};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelledNotificationParam, CompleteRequestParams,
        CompleteResult, CustomNotification, CustomRequest, CustomResult, DiscoverResult, GetPromptRequestParams,
        GetPromptResponse, GetSkillRequestParams, GetSkillResult, GetTaskParams, GetTaskResult,
        InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
        ListSkillsResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion,
        ReadResourceDirectoryRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerConfig,
        SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
        UpdateTaskParams,
    },
    service::{MaybeSendFuture, NotificationContext, RequestContext, SubscriptionContext},
};

use super::Sealed;
use crate::seal::Method;

type Requested = RequestContext<RoleServer>;
type Notified = NotificationContext<RoleServer>;

/// Passes these methods on to the handler.
macro_rules! passed_on {
    ($($name:ident($($argument:ident: $type:ty),*) -> $out:ty;)*) => {
        $(
            fn $name(&self, $($argument: $type),*) -> impl Future<Output = $out> + MaybeSendFuture + '_ {
                self.handler.$name($($argument),*)
            }
        )*
    };
}

impl<H: ServerHandler> ServerHandler for Sealed<H> {
    async fn call_tool(
        &self,
        mut request: CallToolRequestParams,
        context: Requested,
    ) -> Result<CallToolResponse, ErrorData> {
        let (state, responses) = (&mut request.request_state, &mut request.input_responses);
        let asked = (Method::ToolsCall, &*request.name, request.arguments.as_ref());
        let round = self.seam.opened(asked, state, responses, &context).await?;
        match (self.handler.call_tool(request, context).await?, round) {
            (CallToolResponse::InputRequired(asks), Some(round)) => round.sealed(asks).map(CallToolResponse::from),
            (response, _) => Ok(response),
        }
    }

    async fn get_prompt(
        &self,
        mut request: GetPromptRequestParams,
        context: Requested,
    ) -> Result<GetPromptResponse, ErrorData> {
        let (state, responses) = (&mut request.request_state, &mut request.input_responses);
        let asked = (Method::PromptsGet, &*request.name, request.arguments.as_ref());
        let round = self.seam.opened(asked, state, responses, &context).await?;
        match (self.handler.get_prompt(request, context).await?, round) {
            (GetPromptResponse::InputRequired(asks), Some(round)) => round.sealed(asks).map(GetPromptResponse::from),
            (response, _) => Ok(response),
        }
    }

    async fn read_resource(
        &self,
        mut request: ReadResourceRequestParams,
        context: Requested,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let (state, responses) = (&mut request.request_state, &mut request.input_responses);
        let asked = (Method::ResourcesRead, &*request.uri, None);
        let round = self.seam.opened(asked, state, responses, &context).await?;
        match (self.handler.read_resource(request, context).await?, round) {
            (ReadResourceResponse::InputRequired(asks), Some(round)) => {
                round.sealed(asks).map(ReadResourceResponse::from)
            }
            (response, _) => Ok(response),
        }
    }

    passed_on! {
        ping(context: Requested) -> Result<(), ErrorData>;
        initialize(request: InitializeRequestParams, context: Requested) -> Result<InitializeResult, ErrorData>;
        discover(context: Requested) -> Result<DiscoverResult, ErrorData>;
        complete(request: CompleteRequestParams, context: Requested) -> Result<CompleteResult, ErrorData>;
        set_level(request: SetLevelRequestParams, context: Requested) -> Result<(), ErrorData>;
        list_prompts(
            request: Option<PaginatedRequestParams>, context: Requested
        ) -> Result<ListPromptsResult, ErrorData>;
        list_resources(
            request: Option<PaginatedRequestParams>, context: Requested
        ) -> Result<ListResourcesResult, ErrorData>;
        list_resource_templates(
            request: Option<PaginatedRequestParams>, context: Requested
        ) -> Result<ListResourceTemplatesResult, ErrorData>;
        listen(context: SubscriptionContext) -> Result<(), ErrorData>;
        subscribe(request: SubscribeRequestParams, context: Requested) -> Result<(), ErrorData>;
        unsubscribe(request: UnsubscribeRequestParams, context: Requested) -> Result<(), ErrorData>;
        list_tools(request: Option<PaginatedRequestParams>, context: Requested) -> Result<ListToolsResult, ErrorData>;
        on_cancelled(notification: CancelledNotificationParam, context: Notified) -> ();
        on_progress(notification: ProgressNotificationParam, context: Notified) -> ();
        on_initialized(context: Notified) -> ();
        on_roots_list_changed(context: Notified) -> ();
        on_custom_notification(notification: CustomNotification, context: Notified) -> ();
        get_task(request: GetTaskParams, context: Requested) -> Result<GetTaskResult, ErrorData>;
        update_task(request: UpdateTaskParams, context: Requested) -> Result<(), ErrorData>;
        cancel_task(request: CancelTaskParams, context: Requested) -> Result<(), ErrorData>;
        list_skills(
            request: Option<PaginatedRequestParams>, context: Requested
        ) -> Result<ListSkillsResult, ErrorData>;
        get_skill(request: GetSkillRequestParams, context: Requested) -> Result<GetSkillResult, ErrorData>;
        read_resource_directory(
            request: ReadResourceDirectoryRequestParams, context: Requested
        ) -> Result<ListResourcesResult, ErrorData>;
    }

    /// What looks like one of the three requests and cannot be read as it is none of a handler's own.
    async fn on_custom_request(&self, request: CustomRequest, context: Requested) -> Result<CustomResult, ErrorData> {
        let sealed = [Method::ToolsCall, Method::PromptsGet, Method::ResourcesRead];
        if !sealed.iter().any(|method| method.name() == request.method) {
            return self.handler.on_custom_request(request, context).await;
        }
        let state = request.params.as_ref().is_some_and(|params| !params["requestState"].is_null());
        Err(if state { super::frozen() } else { ErrorData::invalid_params("Invalid params", None) })
    }

    fn negotiate_initialize(&self, request: &InitializeRequestParams) -> Result<InitializeResult, ErrorData> {
        self.handler.negotiate_initialize(request)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.handler.supported_protocol_versions()
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.handler.accepted_subscription_filter(requested)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.handler.get_tool(name)
    }

    fn get_info(&self) -> ServerConfig {
        self.handler.get_info()
    }
}
