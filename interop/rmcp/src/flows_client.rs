//! rmcp's client on the server of `flows.py`: `interop-rmcp-client URL REVISION` does what a client can do, and prints one line
//! for each thing, the same ones whatever stands in between.
#![expect(deprecated, reason = "logging and subscriptions to resources are part of 2025-11-25")]

use std::{fmt::Debug, sync::Arc, time::Duration};

use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ClientRequest,
        ElicitRequestParams, ElicitResult, ElicitationAction, GetPromptRequestParams, Implementation, LoggingLevel,
        LoggingMessageNotificationParam, ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams,
        RequestMetaObject, ResourceUpdatedNotificationParam, SetLevelRequestParams, SubscribeRequestParams,
        SubscriptionFilter,
    },
    service::{NotificationContext, PeerRequestOptions, RequestContext, RunningService, ServiceError},
    transport::StreamableHttpClientTransport,
};
use serde_json::{Value, json};
use tokio::{
    sync::{Notify, mpsc},
    time::timeout,
};

const ITEM: &str = "test://item/1";
const PATIENCE: Duration = Duration::from_secs(30);

type Failed = Box<dyn std::error::Error>;
type Running = RunningService<RoleClient, Client>;

fn told(what: &str, value: impl Debug) {
    println!("{what}: {value:?}");
}

#[derive(Clone)]
struct Client {
    updated: Arc<Notify>,
    heard: mpsc::UnboundedSender<String>,
}

impl ClientHandler for Client {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        if let ElicitRequestParams::FormElicitationParams { message, .. } = request {
            told("asked", message);
        }
        let mut answer = ElicitResult::new(ElicitationAction::Accept);
        answer.content = Some(json!({"colour": "green"}));
        Ok(answer)
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let _ = self.heard.send(format!("progress: {:?}", (params.progress, params.total, params.message)));
    }

    async fn on_logging_message(&self, params: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        let _ = self.heard.send(format!("log: {:?}", (params.level, params.data)));
    }

    async fn on_resource_updated(&self, params: ResourceUpdatedNotificationParam, _: NotificationContext<RoleClient>) {
        if params.uri == ITEM {
            self.updated.notify_one();
        }
    }

    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().build();
        ClientConfig::new(capabilities, Implementation::new("flows-client", "1.0.0"))
    }
}

fn calling(name: &'static str, arguments: Value) -> CallToolRequestParams {
    let call = CallToolRequestParams::new(name);
    match arguments {
        Value::Object(arguments) => call.with_arguments(arguments),
        _ => call,
    }
}

async fn call(client: &Running, name: &'static str, arguments: Value) -> Result<CallToolResult, ServiceError> {
    client.call_tool(calling(name, arguments)).await
}

fn text(result: &CallToolResult) -> String {
    if result.is_error == Some(true) {
        return "error".to_owned();
    }
    result.content.first().and_then(|content| content.as_text()).map(|text| text.text.clone()).unwrap_or_default()
}

/// So many notifications. The SDK handles each in a task of its own, in whatever order.
async fn hear(heard: &mut mpsc::UnboundedReceiver<String>, count: usize) -> Result<(), Failed> {
    let mut lines = Vec::new();
    while lines.len() < count {
        lines.extend(timeout(PATIENCE, heard.recv()).await?);
    }
    lines.sort_unstable();
    lines.iter().for_each(|line| println!("{line}"));
    Ok(())
}

async fn updates(client: &Running, modern: bool) -> Result<(), Failed> {
    if modern {
        let filter = SubscriptionFilter::builder().resource_subscriptions([ITEM]).build();
        let mut subscription = client.listen(filter).await?;
        call(client, "touch", json!({"uri": ITEM})).await?;
        let update = timeout(PATIENCE, subscription.next()).await??;
        told("update", update.is_some());
        subscription.cancel().await?;
        return Ok(());
    }
    client.subscribe(SubscribeRequestParams::new(ITEM)).await?;
    // It comes by a stream of its own, which may not be open yet.
    timeout(PATIENCE, async {
        loop {
            call(client, "touch", json!({"uri": ITEM})).await?;
            if timeout(Duration::from_millis(200), client.service().updated.notified()).await.is_ok() {
                return Ok::<_, ServiceError>(());
            }
        }
    })
    .await??;
    told("update", true);
    Ok(())
}

async fn cancel(client: &Running) -> Result<(), Failed> {
    let linger = ClientRequest::CallToolRequest(CallToolRequest::new(calling("linger", Value::Null)));
    let lingering = client.send_cancellable_request(linger, PeerRequestOptions::no_options()).await?;
    call(client, "lingers", Value::Null).await?;
    lingering.cancel(Some("enough".to_owned())).await?;
    told("cancelled", text(&call(client, "was_cancelled", Value::Null).await?));
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let mut words = std::env::args().skip(1);
    let (Some(url), Some(revision)) = (words.next(), words.next()) else {
        return Err("usage: interop-rmcp-client URL REVISION".into());
    };
    let modern = revision.as_str() >= "2026-07-28";
    let lifecycle = match modern {
        true => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] },
        false => ClientLifecycleMode::Initialize,
    };
    let transport = StreamableHttpClientTransport::from_uri(url);
    let (sender, mut heard) = mpsc::unbounded_channel();
    let client = Client { updated: Arc::default(), heard: sender };
    let client = client.serve_with_lifecycle(transport, lifecycle).await?;
    told("server", client.peer_info().map(|info| (info.protocol_version.to_string(), info.instructions.clone())));
    told("tools", client.list_all_tools().await?.into_iter().map(|tool| tool.name).collect::<Vec<_>>());
    let opened = call(&client, "open_case", json!({"title": "a leak"})).await?;
    let case = opened.structured_content.as_ref().and_then(|case| case["case_id"].as_str()).unwrap_or_default();
    told("case", (text(&opened).matches(case).count(), case.len() > 20));
    let shown = text(&call(&client, "show_case", json!({"case_id": case})).await?);
    told("shown", shown.replace(case, "CASE"));
    told("unknown", call(&client, "no_such_tool", Value::Null).await.map(|result| text(&result)));
    told("count", text(&call(&client, "count", json!({"to": 3})).await?));
    hear(&mut heard, 3).await?;
    let mut tell = calling("tell", Value::Null);
    if modern {
        let mut meta = RequestMetaObject::default();
        meta.set_log_level(LoggingLevel::Info);
        tell.meta = Some(meta);
    } else {
        client.set_level(SetLevelRequestParams::new(LoggingLevel::Info)).await?;
    }
    told("tell", text(&client.call_tool(tell).await?));
    hear(&mut heard, 2).await?;
    told("paint", text(&call(&client, "paint", Value::Null).await?));
    told("much", text(&call(&client, "write_much", json!({"letters": 3_000_000})).await?).len());
    told("long", text(&call(&client, "read_much", json!({"text": "x".repeat(1_500_000)})).await?));
    told(
        "resources",
        client.list_all_resources().await?.into_iter().map(|found| found.uri.clone()).collect::<Vec<_>>(),
    );
    let templates = client.list_all_resource_templates().await?;
    told("templates", templates.into_iter().map(|found| found.uri_template.clone()).collect::<Vec<_>>());
    let read = client.read_resource(ReadResourceRequestParams::new(ITEM)).await?;
    told("read", serde_json::to_value(read)?["contents"][0]["text"].clone());
    let nothing = client.read_resource(ReadResourceRequestParams::new("test://nothing")).await;
    told("nothing", nothing.map(drop).map_err(|error| error.to_string()));
    told("prompts", client.list_all_prompts().await?.into_iter().map(|prompt| prompt.name).collect::<Vec<_>>());
    let Value::Object(ada) = json!({"name": "Ada"}) else { return Err("an object".into()) };
    let prompt = client.get_prompt(GetPromptRequestParams::new("greet").with_arguments(ada)).await?;
    told("prompt", serde_json::to_value(prompt)?["messages"][0]["content"]["text"].clone());
    told("completion", client.complete_prompt_argument("greet", "name", "A", None).await?.values);
    told("completion", client.complete_resource_argument("test://item/{name}", "name", "A", None).await?.values);
    updates(&client, modern).await?;
    cancel(&client).await?;
    client.cancel().await?;
    told("over", ());
    Ok(())
}
