//! The seam for the official SDK, over real HTTP: what a handler sees of states and answers, and what a client gets back.
#![cfg(feature = "rmcp")]

#[path = "support/log.rs"]
mod log;
mod support;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use axum::{
    extract::{Request, State},
    middleware::{self, Next},
    response::Response,
};
use handfast::{
    Audience, Keys,
    clock::ManualClock,
    rmcp::{Sealed, accepted},
    seal::{Sealer, SealerOptions, StateDenial},
    store::MemoryStore,
};
use log::Log;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequest, ElicitRequestParams,
        GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputRequest, InputRequiredResult, InputResponses,
        PromptMessage, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourceContents, Role,
        ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
    transport::{
        StreamableHttpService,
        streamable_http_server::{StreamableHttpServerConfig, session::local::LocalSessionManager},
    },
};
use serde_json::{Value, json};
use support::{caller, clock};

/// Asks for `a` and `b`, and tells what came back. By the name of what is called: `mute` asks without a state, `rounds` asks
/// three times, `forever` for ever.
#[derive(Clone)]
struct Desk;

fn asks(
    name: &str,
    state: Option<&str>,
    responses: Option<&InputResponses>,
) -> Result<String, Box<InputRequiredResult>> {
    let question = || {
        let form = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: "Well?".into(),
            requested_schema: serde_json::from_value(json!({"type": "object", "properties": {}})).expect("a schema"),
        };
        InputRequest::Elicitation(ElicitRequest::new(form))
    };
    let questions = || BTreeMap::from(["a", "b"].map(|key| (key.to_owned(), question())));
    let ask = |state: Option<String>| Box::new(InputRequiredResult::new(Some(questions()), state));
    let given: Vec<&String> = responses.into_iter().flat_map(BTreeMap::keys).collect();
    let told = json!({"state": state, "given": given, "yes": accepted(responses, "a").is_some()}).to_string();
    match (name, state) {
        ("mute", _) if responses.is_none() => Err(ask(None)),
        ("mute", _) => Ok(told),
        ("forever", _) => Err(ask(Some("again".into()))),
        ("rounds", Some("round 3")) => Ok(told),
        ("rounds", Some("round 2")) => Err(ask(Some("round 3".into()))),
        ("rounds", Some(_)) => Err(ask(Some("round 2".into()))),
        (_, None) => Err(ask(Some("round 1".into()))),
        (_, Some(_)) => Ok(told),
    }
}

impl ServerHandler for Desk {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_prompts().enable_resources().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(match asks(&request.name, request.request_state.as_deref(), request.input_responses.as_ref()) {
            Ok(told) => CallToolResult::success(vec![ContentBlock::text(told)]).into(),
            Err(asks) => (*asks).into(),
        })
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        Ok(match asks(&request.name, request.request_state.as_deref(), request.input_responses.as_ref()) {
            Ok(told) => GetPromptResult::new(vec![PromptMessage::new_text(Role::User, told)]).into(),
            Err(asks) => (*asks).into(),
        })
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Ok(match asks("", request.request_state.as_deref(), request.input_responses.as_ref()) {
            Ok(told) => ReadResourceResult::new(vec![ResourceContents::text(told, request.uri)]).into(),
            Err(asks) => (*asks).into(),
        })
    }
}

/// A desk that is served, and its clock.
struct Served {
    url: String,
    clock: Arc<ManualClock>,
    client: reqwest::Client,
}

impl Served {
    async fn with(set_up: impl FnOnce(Sealed<Desk>) -> Sealed<Desk>) -> Self {
        let clock = clock();
        let options = SealerOptions { clock: clock.clone(), ..SealerOptions::default() };
        let sealer = Sealer::with(
            Keys::dangerous_for_this_process_only(),
            Audience::new("https://mcp.example.com/mcp").expect("an audience"),
            options,
        );
        let desk = set_up(Sealed::http(Desk, sealer));
        let mcp = StreamableHttpService::new(
            move || Ok(desk.clone()),
            Arc::new(LocalSessionManager::default()),
            StreamableHttpServerConfig::default(),
        );
        let app = axum::Router::new().route_service("/mcp", mcp).layer(middleware::from_fn_with_state((), who));
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, clock, client: reqwest::Client::new() }
    }

    async fn usual() -> Self {
        Self::with(|desk| desk).await
    }

    /// The answer to this request, of this user.
    async fn ask(&self, user: &str, method: &str, params: &Value) -> Value {
        let mut params = params.clone();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
        });
        let name = params.get("name").or_else(|| params.get("uri")).and_then(Value::as_str).expect("a name");
        let request = self.client.post(&self.url).header("content-type", "application/json");
        let request = request.header("accept", "application/json, text/event-stream").header("user", user);
        let request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
        let request = request.header("mcp-name", name);
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let text = request.body(body).send().await.expect("an answer").text().await.expect("text");
        let json = text.lines().filter_map(|line| line.strip_prefix("data:")).find(|data| !data.trim().is_empty());
        serde_json::from_str(json.unwrap_or(&text)).unwrap_or_else(|_| panic!("no JSON: {text}"))
    }

    async fn tool(&self, user: &str, params: &Value) -> Value {
        self.ask(user, "tools/call", params).await
    }

    /// What the handler has told of a call that it let through.
    async fn told(&self, params: &Value) -> Value {
        let answer = self.tool("alice", params).await;
        let text = answer["result"]["content"][0]["text"].as_str();
        serde_json::from_str(text.unwrap_or_else(|| panic!("refused: {answer}"))).expect("JSON")
    }

    /// The state that comes with the questions.
    async fn state(&self, params: &Value) -> String {
        state(&self.tool("alice", params).await)
    }
}

fn state(answer: &Value) -> String {
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    assert_eq!(answer["result"]["inputRequests"].as_object().expect("questions").len(), 2);
    answer["result"]["requestState"].as_str().expect("a state").to_owned()
}

/// Who is calling stands in a header here. The user `nobody` is one whom no layer has found out.
async fn who(State(()): State<()>, mut request: Request, next: Next) -> Response {
    let user = request.headers().get("user").and_then(|user| user.to_str().ok()).expect("a user").to_owned();
    if user != "nobody" {
        request.extensions_mut().insert(caller(&user, "acme", "desktop"));
    }
    next.run(request).await
}

fn yes() -> Value {
    json!({"action": "accept", "content": {}})
}

fn again(params: &Value, state: &str, responses: Value) -> Value {
    let mut params = params.clone();
    params["requestState"] = state.into();
    params["inputResponses"] = responses;
    params
}

fn assert_frozen(answer: &Value) {
    assert_eq!(answer["error"], json!({"code": -32602, "message": "Invalid or expired requestState"}), "{answer}");
}

#[tokio::test]
async fn a_handler_reads_what_it_wrote_and_a_client_does_not() {
    let served = Served::usual().await;
    let call = json!({"name": "echo", "arguments": {"order": 17}});
    let state = served.state(&call).await;

    assert!(state.starts_with("hf1.") && !state.contains("round"), "{state}");
    let told = served.told(&again(&call, &state, json!({"a": yes(), "b": yes()}))).await;

    assert_eq!(told, json!({"state": "round 1", "given": ["a", "b"], "yes": true}));
    let told = served.told(&again(&call, &state, json!({"a": yes()}))).await;
    assert_eq!(told["given"], json!(["a"]), "the same state may be sent again while it waits");
}

#[tokio::test]
async fn prompts_and_resources_as_well() {
    let served = Served::usual().await;
    for (method, params, text) in [
        ("prompts/get", json!({"name": "digest", "arguments": {"of": "x"}}), "/result/messages/0/content/text"),
        ("resources/read", json!({"uri": "desk://x"}), "/result/contents/0/text"),
    ] {
        let state = state(&served.ask("alice", method, &params).await);
        let answer = served.ask("alice", method, &again(&params, &state, json!({"a": yes()}))).await;
        let told = answer.pointer(text).and_then(Value::as_str).unwrap_or_else(|| panic!("{answer}"));
        assert!(told.contains("round 1"), "{told}");
        assert_frozen(&served.ask("bob", method, &again(&params, &state, json!({"a": yes()}))).await);
        let call = json!({"name": "digest", "arguments": {"of": "x"}});
        assert_frozen(&served.tool("alice", &again(&call, &state, json!({"a": yes()}))).await);
    }
}

#[tokio::test]
async fn what_is_not_what_was_sealed_is_refused_and_the_handler_hears_nothing_of_it() {
    let served = Served::usual().await;
    let call = json!({"name": "echo", "arguments": {"order": 17}});
    let good = served.state(&call).await;
    let responses = json!({"a": yes(), "b": yes()});
    let flipped =
        if good.ends_with('A') { good[..good.len() - 1].to_owned() + "B" } else { good.replacen('A', "B", 1) };
    for bad in ["", "round 1", "hf1.", &flipped, &good[..good.len() - 4], &format!("{good}AAAA")] {
        assert_frozen(&served.tool("alice", &again(&call, bad, responses.clone())).await);
    }
    assert_frozen(&served.tool("bob", &again(&call, &good, responses.clone())).await);
    assert_frozen(&served.tool("nobody", &again(&call, &good, responses.clone())).await);
    for other in [
        json!({"name": "echo", "arguments": {"order": 18}}),
        json!({"name": "echo"}),
        json!({"name": "mute", "arguments": {"order": 17}}),
    ] {
        assert_frozen(&served.tool("alice", &again(&other, &good, responses.clone())).await);
    }
    served.told(&again(&call, &good, responses.clone())).await;
    served.clock.advance(Duration::from_secs(600));
    assert_frozen(&served.tool("alice", &again(&call, &good, responses)).await);
}

#[tokio::test]
async fn answers_that_nobody_asked_for_never_reach_a_handler() {
    let served = Served::usual().await;
    for name in ["echo", "mute"] {
        let call = json!({"name": name, "arguments": {}});
        // Answered before it was asked: it asks.
        let mut first = call.clone();
        first["inputResponses"] = json!({"a": yes(), "b": yes()});
        let state = served.state(&first).await;

        let told = served.told(&again(&call, &state, json!({"a": yes(), "c": yes(), "approve": yes()}))).await;
        assert_eq!(told["given"], json!(["a"]), "{name}: what was not asked is dropped");
        assert_eq!(told["state"], if name == "mute" { Value::Null } else { "round 1".into() });
    }
}

/// The SDK hands a request that it cannot read to the handler as one of the handler's own.
#[tokio::test]
async fn what_cannot_be_read_does_not_go_around_the_seam() {
    let served = Served::usual().await;
    for state in [json!(7), json!({}), json!(["hf1."])] {
        assert_frozen(&served.tool("alice", &json!({"name": "echo", "arguments": {}, "requestState": state})).await);
    }
    let odd = json!({"name": "echo", "arguments": [1], "requestState": "plain", "inputResponses": {"a": yes()}});
    assert_frozen(&served.tool("alice", &odd).await);
    let odd = json!({"name": "echo", "arguments": [1], "inputResponses": {"a": yes()}});
    assert_eq!(served.tool("alice", &odd).await["error"]["code"], -32602);
}

#[tokio::test]
async fn a_decline_is_no_accept() {
    let served = Served::usual().await;
    let call = json!({"name": "echo", "arguments": {}});
    let state = served.state(&call).await;
    for action in ["decline", "cancel", "Accept", ""] {
        let told = served.told(&again(&call, &state, json!({"a": {"action": action, "content": {}}}))).await;
        assert_eq!(told["yes"], false, "{action}");
    }
    let told = served.told(&again(&call, &state, json!({"a": {"content": {}}}))).await;
    assert_eq!(told["yes"], false, "no action at all");
}

#[tokio::test]
async fn rounds_go_on_and_all_of_them_end() {
    let served = Served::usual().await;
    let call = json!({"name": "rounds", "arguments": {}});
    let both = || json!({"a": yes(), "b": yes()});
    let mut state = served.state(&call).await;
    for minutes in [9, 9] {
        served.clock.advance(Duration::from_secs(minutes * 60));
        state = served.state(&again(&call, &state, both())).await;
    }
    let told = served.told(&again(&call, &state, both())).await;
    assert_eq!(told["state"], "round 3");
}

#[tokio::test]
async fn who_is_asked_for_ever_is_not_waited_for_for_ever() {
    let served = Served::usual().await;
    let call = json!({"name": "forever", "arguments": {}});
    let mut state = served.state(&call).await;
    let mut wait = async |time: Duration| {
        served.clock.advance(time);
        state = served.state(&again(&call, &state, json!({"a": yes(), "b": yes()}))).await;
        state.clone()
    };
    for _ in 0..6 {
        wait(Duration::from_secs(9 * 60)).await;
    }
    let last = wait(Duration::from_secs(6 * 60) - Duration::from_micros(1)).await;

    served.clock.advance(Duration::from_micros(1));
    assert_frozen(&served.tool("alice", &again(&call, &last, json!({"a": yes(), "b": yes()}))).await);
}

#[tokio::test]
async fn what_may_happen_once_happens_once() {
    let store = Arc::new(MemoryStore::new(clock()));
    let other = store.clone();
    // Named one after the other, both are.
    let served = Served::with(|desk| desk.once(store, &["echo"]).once(other, &["rounds"])).await;
    let call = json!({"name": "echo", "arguments": {}});
    let state = served.state(&call).await;

    for _ in 0..2 {
        let told = served.told(&again(&call, &state, json!({"a": yes()}))).await;
        assert_eq!((&told["given"], &told["yes"]), (&json!([]), &json!(false)), "half an answer does nothing");
    }
    let told = served.told(&again(&call, &state, json!({"a": yes(), "b": yes()}))).await;
    assert_eq!(told["given"], json!(["a", "b"]), "and uses nothing up");
    assert_frozen(&served.tool("alice", &again(&call, &state, json!({"a": yes(), "b": yes()}))).await);

    let other = json!({"name": "mute", "arguments": {}});
    let state = served.state(&other).await;
    for _ in 0..2 {
        served.told(&again(&other, &state, json!({"a": yes(), "b": yes()}))).await;
    }
}

/// One event for every state that came back, with the exact reason, and nothing in it that anybody could use.
#[tokio::test]
async fn the_audit_says_exactly_why() {
    let log = Arc::new(support::Log::default());
    let audit = log.clone();
    let served = Served::with(|desk| desk.audited(audit)).await;
    let call = json!({"name": "echo", "arguments": {"order": 17}});
    let state = served.state(&call).await;
    assert_eq!(log.count(), 0, "nothing has come back yet");

    served.told(&again(&call, &state, json!({"a": yes()}))).await;
    assert_frozen(&served.tool("bob", &again(&call, &state, json!({"a": yes()}))).await);
    assert_frozen(&served.tool("nobody", &again(&call, &state, json!({"a": yes()}))).await);
    let other = json!({"name": "echo", "arguments": {"order": 18}});
    assert_frozen(&served.tool("alice", &again(&other, &state, json!({"a": yes()}))).await);
    assert_frozen(&served.tool("alice", &again(&call, "nonsense", json!({"a": yes()}))).await);

    let events = log.events.lock().expect("not poisoned").clone();
    let told: Vec<_> = events.iter().map(|event| event.state.map(StateDenial::slug)).collect();
    let foreign = Some("foreign-principal");
    assert_eq!(told, [None, foreign, foreign, Some("other-arguments"), Some("malformed")]);
    assert_ne!(events[0].subject, events[1].subject);
    for event in &events {
        let text = event.json().to_string();
        assert!(text.contains("\"action\":\"open\"") && text.contains("tools/call echo"), "{text}");
        assert!(!text.contains("hf1.") && !text.contains("alice") && !text.contains("order"), "{text}");
    }
    *log.broken.lock().expect("not poisoned") = true;
    assert_frozen(&served.tool("alice", &again(&call, &state, json!({"a": yes()}))).await);
}

#[tokio::test]
async fn arguments_that_are_left_out_may_change() {
    let served = Served::with(|desk| desk.leaving_out("echo", &["note"])).await;
    let call = |note: &str, order: u8| json!({"name": "echo", "arguments": {"note": note, "order": order}});
    let state = served.state(&call("a", 1)).await;

    served.told(&again(&call("b", 1), &state, json!({"a": yes()}))).await;
    assert_frozen(&served.tool("alice", &again(&call("a", 2), &state, json!({"a": yes()}))).await);
}

#[test]
fn a_key_that_dies_with_the_process_is_warned_of_on_http_alone() {
    let log = Log::default();
    let warnings = || log.at(tracing::Level::WARN).len();
    let sealer = |keys| Sealer::new(keys, "urn:server".parse::<Audience>().expect("an audience"));
    let stays = || Keys::parse(Keys::generate().expose()).expect("a key");
    tracing::subscriber::with_default(log.clone(), || {
        drop(Sealed::stdio(Desk, sealer(Keys::dangerous_for_this_process_only())));
        drop(Sealed::http(Desk, sealer(stays())));
        assert_eq!(warnings(), 0);
        drop(Sealed::http(Desk, sealer(Keys::dangerous_for_this_process_only())));
    });

    assert_eq!(warnings(), 1);
}

#[tokio::test]
async fn where_nobody_knows_who_calls_nothing_is_sealed() {
    let served = Served::usual().await;
    let answer = served.tool("nobody", &json!({"name": "echo", "arguments": {}})).await;

    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    assert!(answer["result"].is_null());
}
