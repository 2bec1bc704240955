//! What the probe sends, as a server sees it: the headers and `_meta` of 2026-07-28 on every modern request and on no other,
//! sessions of the older revisions, and retries in the form of the specification.

mod support;

use std::collections::BTreeSet;

use handfast_twins::{Answers, Served};
use handfast_wire::{headers, meta};
use serde_json::{Value, json};
use support::{
    front::{Act, Front, Recorded},
    probed, run_on, served, verdicts,
};

/// A run against a twin, with a record of it.
async fn recorded(twin: &str) -> (Vec<Recorded>, Served) {
    let served = served(twin, Answers::Json).await;
    let front = Front::of(&served.url(), |_, _| Act::Forward).await;
    probed(&run_on(&front.url())).await;
    (front.seen(), served)
}

/// A server of one's own: it lists these tools, and this answers the calls.
async fn own(tools: Value, call: impl Fn(&Recorded) -> Act + Send + Sync + 'static) -> Vec<Recorded> {
    let front = Front::start(None, move |_, request| match request.method() {
        "server/discover" => Act::Result(
            json!({"supportedVersions": [meta::MODERN], "capabilities": {"tools": {}}, "resultType": "complete"}),
        ),
        "tools/list" => Act::Result(json!({"tools": tools, "resultType": "complete"})),
        _ => call(request),
    })
    .await;
    probed(&run_on(&front.url())).await;
    front.seen()
}

fn calls(seen: &[Recorded]) -> impl Iterator<Item = &Recorded> {
    seen.iter().filter(|seen| seen.method() == "tools/call")
}

fn complete(text: &str) -> Act {
    Act::Result(json!({"resultType": "complete", "content": [{"type": "text", "text": text}]}))
}

#[tokio::test]
async fn every_modern_request_has_its_headers_and_its_meta() {
    let (seen, _twin) = recorded("prompt-state").await;

    let methods: BTreeSet<&str> = seen.iter().map(Recorded::method).collect();
    for method in ["server/discover", "tools/list", "tools/call", "prompts/get", "resources/read"] {
        assert!(methods.contains(method), "the run sends {method}");
    }
    for request in &seen {
        let (method, params) = (request.method(), &request.body["params"]);
        assert_eq!((request.verb.as_str(), &request.body["jsonrpc"]), ("POST", &json!("2.0")), "{method}");
        assert_eq!(request.header("content-type"), Some("application/json"), "{method}");
        assert_eq!(request.header("accept"), Some("application/json, text/event-stream"), "{method}");
        assert_eq!(request.header("mcp-protocol-version"), Some(meta::MODERN), "{method}");
        assert_eq!(request.header("mcp-method"), Some(method));
        let name = headers::name_of(method, params.as_object().expect("named parameters"));
        assert_eq!(request.header("mcp-name"), name, "{method}");
        assert_eq!(request.header("mcp-session-id"), None, "there are no sessions in this revision");
        assert_eq!(params["_meta"][meta::PROTOCOL_VERSION], meta::MODERN);
        assert_eq!(params["_meta"][meta::CLIENT_CAPABILITIES], meta::every_capability());
        assert_eq!(params["_meta"][meta::CLIENT_INFO]["name"], "handfast");
        assert_eq!(params["_meta"].get(meta::PRINCIPAL), None, "over HTTP the token says who it is");
    }
}

#[tokio::test]
async fn every_request_has_an_id_of_its_own() {
    for twin in ["flawed", "two-rounds", "task"] {
        let (seen, _twin) = recorded(twin).await;

        let ids: BTreeSet<String> = seen.iter().map(|request| request.body["id"].to_string()).collect();
        assert_eq!(ids.len(), seen.len(), "{twin}: retries have fresh ids too");
        assert!(!ids.contains("null"), "{twin}");
    }
}

#[tokio::test]
async fn each_caller_shows_its_own_credential() {
    let (seen, _twin) = recorded("flawed").await;

    let tokens: BTreeSet<Option<&str>> = seen.iter().map(Recorded::token).collect();
    assert_eq!(
        tokens,
        BTreeSet::from([
            None,
            Some("acme-carol"),
            Some("alice"),
            Some("bob"),
            Some("phone-alice"),
            Some("renewed-alice")
        ])
    );
    assert!(seen.iter().filter(|seen| seen.is_listing()).all(|seen| seen.token() == Some("alice")));
}

#[tokio::test]
async fn a_name_that_no_header_can_carry_is_encoded() {
    let name = "größe öffnen";
    let tool = json!({"name": name, "inputSchema": {"type": "object", "properties": {}}});
    let seen = own(json!([tool]), |_| complete("done")).await;

    let shown: Vec<&str> = calls(&seen).filter_map(|request| request.header("mcp-name")).collect();
    assert!(!shown.is_empty());
    for header in shown {
        assert!(header.starts_with("=?base64?") && header.ends_with("?="), "{header}");
        assert_eq!(headers::decode(header).as_deref(), Ok(name));
    }
}

#[tokio::test]
async fn arguments_are_mirrored_in_the_headers_that_a_schema_asks_for() {
    let mirrored = |header: &str, kind: &str| json!({"type": kind, "x-mcp-header": header});
    let properties = json!({
        "label": mirrored("Label", "string"), "count": mirrored("Count", "integer"), "sure": mirrored("Sure", "boolean"),
        "city": {"type": "string", "const": "Zürich", "x-mcp-header": "City"}, "plain": {"type": "string"}
    });
    let tool = json!({"name": "create_basket", "inputSchema": {
        "type": "object", "properties": properties, "required": ["label", "count", "sure", "city", "plain"]
    }});
    let seen = own(json!([tool]), |_| complete("done")).await;

    assert!(calls(&seen).count() > 0);
    for request in calls(&seen) {
        let arguments = &request.body["params"]["arguments"];
        assert_eq!(request.header("mcp-param-label"), arguments["label"].as_str());
        assert_eq!(request.header("mcp-param-count"), Some(arguments["count"].to_string().as_str()));
        assert_eq!(request.header("mcp-param-sure"), Some("true"));
        assert_eq!(request.header("mcp-param-city").map(headers::decode), Some(Ok("Zürich".to_owned())));
        assert_eq!(request.header("mcp-param-plain"), None);
    }
}

#[tokio::test]
async fn an_older_server_sees_nothing_of_the_new_revision() {
    let (seen, _twin) = recorded("legacy").await;

    let opened = seen.iter().position(|request| request.method() == "initialize").expect("it is opened");
    let (modern, legacy) = seen.split_at(opened);
    assert!(modern.iter().all(|request| request.header("mcp-method").is_some()), "the new revision is tried first");
    for request in legacy {
        let told = format!("{} {}", request.verb, request.method());
        for name in ["mcp-method", "mcp-name"] {
            assert_eq!(request.header(name), None, "{told}");
        }
        assert_eq!(request.body["params"].get("_meta"), None, "{told}");
        let version = request.header("mcp-protocol-version");
        if request.method() == "initialize" {
            assert_eq!((version, request.header("mcp-session-id")), (None, None), "nothing is agreed on yet");
            assert_eq!(request.body["params"]["protocolVersion"], meta::LEGACY[0]);
            assert_eq!(request.body["params"]["capabilities"], json!({}), "nobody would answer a question");
        } else {
            assert_eq!(version, Some(meta::LEGACY[0]), "{told}");
        }
    }
}

#[tokio::test]
async fn an_older_session_is_opened_used_and_ended_by_its_owner() {
    let (seen, twin) = recorded("legacy").await;

    for token in ["alice", "bob"] {
        let of = |request: &&Recorded| request.token() == Some(token) && request.header("mcp-session-id").is_some();
        let own: Vec<&Recorded> = seen.iter().filter(of).collect();
        let sessions: BTreeSet<&str> = own.iter().filter_map(|request| request.header("mcp-session-id")).collect();
        assert_eq!(sessions.len(), 1, "{token} has one session");
        assert_eq!(own[0].method(), "notifications/initialized", "{token}");
        assert_eq!(own.last().map(|request| request.verb.as_str()), Some("DELETE"), "{token}");
        assert_eq!(own.iter().filter(|request| request.verb == "DELETE").count(), 1, "{token}");
    }
    let shared = |token: &str| {
        seen.iter().filter(|seen| seen.token() == Some(token)).find_map(|seen| seen.header("mcp-session-id"))
    };
    assert_ne!(shared("alice"), shared("bob"), "each has a session of its own");
    drop(twin);
}

/// A tool that asks before it acts.
async fn asked(asking: Value) -> Vec<(Value, Value)> {
    let tool = json!({"name": "confirm_order", "inputSchema": {"type": "object", "properties": {}}});
    let question = asking.clone();
    let seen = own(json!([tool]), move |request| {
        let params = &request.body["params"];
        let answered = params.get("inputResponses").is_some() || params.get("requestState").is_some();
        if answered { complete("done") } else { Act::Result(question.clone()) }
    })
    .await;
    let retries: Vec<(Value, Value)> = calls(&seen)
        .map(|request| &request.body["params"])
        .map(|params| (params["inputResponses"].clone(), params.get("requestState").cloned().unwrap_or_default()))
        .filter(|(responses, state)| !responses.is_null() || !state.is_null())
        .collect();
    assert!(!retries.is_empty(), "it was retried");
    retries
}

fn form(schema: Value) -> Value {
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": "sure?", "requestedSchema": schema}})
}

#[tokio::test]
async fn a_retry_carries_no_state_where_none_was_given() {
    let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]});
    let retries = asked(json!({"resultType": "input_required", "inputRequests": {"q": form(schema)}})).await;

    for (responses, state) in retries {
        assert_eq!(responses, json!({"q": {"action": "accept", "content": {"ok": true}}}));
        assert_eq!(state, Value::Null);
    }
}

#[tokio::test]
async fn a_retry_carries_no_answers_where_nothing_was_asked() {
    let retries = asked(json!({"resultType": "input_required", "requestState": "opaque-state-0123456789"})).await;

    assert_eq!(retries[0], (Value::Null, json!("opaque-state-0123456789")), "the first is the honest one");
    assert!(retries.iter().all(|(responses, _)| responses.is_null()));
}

#[tokio::test]
async fn the_honest_retry_returns_the_state_byte_for_byte() {
    for state in ["  {\"a\" : 1.50 }\n", "eyJhIjoxfQ==", "naïve\u{1f511}", "x"] {
        let retries = asked(json!({"resultType": "input_required", "requestState": state})).await;

        assert_eq!(retries[0].1, json!(state));
    }
}

#[tokio::test]
async fn every_kind_of_question_is_answered_in_the_form_of_the_specification() {
    let content = json!({"type": "object", "properties": {
        "sure": {"type": "boolean"}, "seats": {"type": "integer", "minimum": 2}, "mail": {"type": "string", "format": "email"},
        "plan": {"type": "string", "enum": ["no", "yes"]}, "later": {"type": "string"}
    }, "required": ["sure", "seats", "mail", "plan"]});
    let requests = json!({
        "form": form(content),
        "visit": {"method": "elicitation/create", "params": {"mode": "url", "message": "go", "url": "https://example.com/", "elicitationId": "e"}},
        "completion": {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 10}},
        "roots": {"method": "roots/list"}
    });
    let retries =
        asked(json!({"resultType": "input_required", "inputRequests": requests, "requestState": "s-0123456789"})).await;

    let (responses, _) = &retries[0];
    let keys: Vec<&String> = responses.as_object().expect("an object").keys().collect();
    assert_eq!(keys, ["form", "visit", "completion", "roots"]);
    assert_eq!(responses["form"]["action"], "accept");
    let form = &responses["form"]["content"];
    assert_eq!((&form["sure"], &form["seats"], &form["plan"]), (&json!(true), &json!(2), &json!("yes")));
    assert!(form["mail"].as_str().is_some_and(|mail| mail.contains('@')) && form.get("later").is_none(), "{form}");
    assert_eq!(responses["visit"], json!({"action": "accept"}));
    assert_eq!(
        (&responses["completion"]["role"], &responses["completion"]["content"]["type"]),
        (&json!("assistant"), &json!("text"))
    );
    assert!(responses["completion"]["model"].is_string());
    assert!(responses["roots"]["roots"][0]["uri"].as_str().is_some_and(|uri| uri.starts_with("file://")));
}

#[tokio::test]
async fn the_operators_headers_are_on_every_request() {
    let served = served("legacy", Answers::Json).await;
    let front = Front::of(&served.url(), |_, _| Act::Forward).await;
    let mut run = run_on(&front.url());
    let header =
        |name: &str, value: &str| handfast_probe::target::ExtraHeader { name: name.to_owned(), value: value.into() };
    run.options.http.headers = vec![header("X-Tenant", "t-17"), header("X-Trace", "1")];

    let report = probed(&run).await;

    assert!(front.seen().len() > 5, "{}", verdicts(&report));
    for request in front.seen() {
        assert_eq!(
            (request.header("x-tenant"), request.header("x-trace")),
            (Some("t-17"), Some("1")),
            "{}",
            request.verb
        );
    }
}
