//! What an honest client does, or what the protocol says of a mistake: as without the gateway, over real HTTP.

mod support;

use handfast_gateway::Rules;
use http::Method;
use serde_json::{Value, json};
use support::{
    behind::{Got, Seen, World, workshop},
    defaults,
};

const MODERN: (&str, &str) = ("mcp-protocol-version", "2026-07-28");

/// The TypeScript SDK says that it has cancelled something with a notification that has no `Mcp-Method`.
#[tokio::test]
async fn a_notification_needs_no_header_that_repeats_its_method() {
    let world = World::new(workshop()).await;
    let alice = world.user("alice");
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "_meta":
        {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}});

    let got = alice.send(Method::POST, &[MODERN], cancelled.to_string()).await;

    assert_eq!((got.status, world.seen().len()), (202, 1), "{got:?}");
    let method = ("mcp-method", "notifications/cancelled");
    assert_eq!(alice.send(Method::POST, &[MODERN, method], cancelled.to_string()).await.status, 202);
    drop(world.seen());
    let other = alice.send(Method::POST, &[MODERN, ("mcp-method", "ping")], cancelled.to_string()).await;
    assert_eq!((other.code(), world.seen().len()), (json!(-32020), 0));
}

/// "Servers MUST validate the `Origin` header on all incoming connections to prevent DNS rebinding attacks."
#[tokio::test]
async fn the_gateways_own_address_on_this_machine_is_an_origin_and_no_other_is() {
    let world = World::new(workshop()).await;
    let alice = world.user("alice");
    let address = world.gateway.url.trim_start_matches("http://").trim_end_matches("/mcp");
    let port = address.rsplit_once(':').expect("a port").1;
    let call = || json!({"name": "use", "arguments": {}});
    let of = |host: &str| (host.to_owned(), format!("http://{host}"));
    for (host, origin) in [of(address), of(&format!("localhost:{port}")), of(&format!("[::1]:{port}"))] {
        let got = alice.modern("tools/call", call(), &[("host", &host), ("origin", &origin)]).await;
        assert_eq!(got.status, 200, "{host} {origin}: {got:?}");
    }
    assert_eq!(world.seen().len(), 3);
    for (host, origin) in [
        of(&format!("evil.example:{port}")),
        of(&format!("localhost.evil.example:{port}")),
        of(&format!("127.0.0.1.evil.example:{port}")),
        of("192.0.2.1"),
        (address.to_owned(), "http://127.0.0.1".to_owned()),
        (address.to_owned(), format!("https://{address}")),
        (address.to_owned(), format!("http://{address}.evil.example")),
        (address.to_owned(), "null".to_owned()),
        (address.to_owned(), "http://".to_owned()),
    ] {
        let got = alice.modern("tools/call", call(), &[("host", &host), ("origin", &origin)]).await;
        assert_eq!(got.status, 403, "{host} {origin}: {got:?}");
    }
    assert!(world.seen().is_empty());
}

#[tokio::test]
async fn what_nobody_has_declared_and_what_is_gone_is_refused_as_the_protocol_says() {
    let world = World::new(workshop()).await;
    let alice = world.user("alice");
    let asked = |declared: Value| {
        json!({"jsonrpc": "2.0", "id": 7, "method": "tasks/get", "params": {"taskId": "t-000001", "_meta":
            {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": declared}}})
    };
    let headers = [MODERN, ("mcp-method", "tasks/get"), ("mcp-name", "t-000001")];

    let undeclared = alice.send(Method::POST, &headers, asked(json!({})).to_string()).await;
    let declared = asked(json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}));
    let declared = alice.send(Method::POST, &headers, declared.to_string()).await;

    assert_eq!((undeclared.status, undeclared.code(), &undeclared.json()["id"]), (400, json!(-32021), &json!(7)));
    let missing = &undeclared.json()["error"]["data"]["requiredCapabilities"];
    assert_eq!(*missing, json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}));
    assert_eq!(declared.code(), -32602, "it is not her task");
    assert!(world.seen().is_empty());
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tasks/result", "params": {"taskId": "t-000001"}});
    let gone = alice.send(Method::POST, &[MODERN, ("mcp-method", "tasks/result")], body.to_string()).await;
    assert_eq!((gone.status, gone.code(), world.seen().len()), (404, json!(-32601), 0));
}

/// "All error responses carry the request's id", and say which revisions there are.
#[tokio::test]
async fn a_revision_that_there_is_not_is_refused_with_those_that_there_are() {
    let world = World::new(workshop()).await;
    let alice = world.user("alice");
    let body = json!({"jsonrpc": "2.0", "id": 301, "method": "server/discover", "params": {}}).to_string();

    let got = alice.send(Method::POST, &[("mcp-protocol-version", "v999.0.0")], body).await;
    let begin = json!({"jsonrpc": "2.0", "id": 302, "method": "initialize", "params": {}}).to_string();
    let begin = alice.send(Method::POST, &[MODERN, ("mcp-method", "initialize")], begin).await;

    let told = got.json();
    assert_eq!((got.status, &told["id"], got.code()), (400, &json!(301), json!(-32022)));
    assert_eq!(told["error"]["data"]["requested"], "v999.0.0");
    assert_eq!(told["error"]["data"]["supported"].as_array().map(Vec::len), Some(5), "{told}");
    assert_eq!((begin.status, begin.json()["id"].clone(), begin.code()), (404, json!(302), json!(-32601)));
    assert!(world.seen().is_empty());
}

/// As the SDK for Python writes it: JSON in a text, and what is no object wrapped into one.
#[tokio::test]
async fn a_text_that_repeats_a_structured_result_is_concealed_like_it() {
    let says = |seen: &Seen| {
        match seen.json()["params"]["name"].as_str() {
        Some("add") => seen.result(&json!({
            "structuredContent": {"id": "2", "of": "2"},
            "content": [{"type": "text", "text": "{\n  \"id\": \"2\", \"of\": \"2\"}"}, {"type": "text", "text": "2 of 2"}],
        })),
        Some("number") => seen.result(&json!({
            "structuredContent": {"result": {"id": 3}}, "content": [{"type": "text", "text": "{\"id\": 3, \"of\": 3}"}],
        })),
        Some("bare") => seen.result(&json!({
            "structuredContent": {"result": "4"},
            "content": [{"type": "text", "text": "4"}, {"type": "text", "text": "44"}],
        })),
        _ => workshop()(seen),
    }
    };
    let rules = r#"
        version = 1
        [[handle]]
        mint = "add"
        pointer = "/structuredContent/id"
        [[handle]]
        mint = "number"
        pointer = "/structuredContent/result/id"
        [[handle]]
        mint = "bare"
        pointer = "/structuredContent/result"
    "#;
    let world = World::with(says, |parts, _| parts.rules = ruled(rules)).await;
    let alice = world.user("alice");
    let told = |got: &Got, at: &str| got.json()["result"].pointer(at).and_then(Value::as_str).expect("text").to_owned();

    let (add, number, bare) = (
        alice.call("add", json!({})).await,
        alice.call("number", json!({})).await,
        alice.call("bare", json!({})).await,
    );

    let id = told(&add, "/structuredContent/id");
    assert!(id.starts_with("add_"), "{add:?}");
    assert_eq!(told(&add, "/content/0/text"), format!("{{\n  \"id\": \"{id}\", \"of\": \"2\"}}"));
    assert_eq!(told(&add, "/content/1/text"), "2 of 2", "a sentence is left alone, where a name is in any");
    let id = told(&number, "/structuredContent/result/id");
    assert_eq!(told(&number, "/content/0/text"), format!("{{\"id\": \"{id}\", \"of\": 3}}"));
    let id = told(&bare, "/structuredContent/result");
    assert!(id.starts_with("bare_"), "{bare:?}");
    assert_eq!((told(&bare, "/content/0/text"), told(&bare, "/content/1/text")), (id, "44".to_owned()));
}

#[tokio::test]
async fn a_list_that_is_json_in_a_text_shows_the_handle_that_was_minted() {
    let says = |seen: &Seen| match seen.json()["params"]["name"].as_str() {
        Some("start") => seen
            .result(&json!({"content": [{"type": "text", "text": "{\"sessionId\": \"0001\", \"name\": \"0001\"}"}]})),
        Some("list") => seen.result(&json!({"content":
            [{"type": "text", "text": "{\"sessions\": [{\"id\": \"0001\", \"name\": \"0001\"}], \"count\": 1}"}]})),
        _ => workshop()(seen),
    };
    let rules = r#"
        version = 1
        [[handle]]
        mint = "start"
        pointer = "/content/0/text"
        json = "/sessionId"
        shown = ["list#/content/0/text#/sessions/*/id"]
    "#;
    let world = World::with(says, |parts, _| parts.rules = ruled(rules)).await;
    let alice = world.user("alice");
    let inside = |got: Got| -> Value {
        let result = got.json();
        serde_json::from_str(result["result"]["content"][0]["text"].as_str().expect("text")).expect("JSON")
    };

    let started = inside(alice.call("start", json!({})).await);
    let listed = inside(alice.call("list", json!({})).await);

    assert!(started["sessionId"].as_str().is_some_and(|id| id.starts_with("session_")), "{started}");
    assert_eq!(listed, json!({"sessions": [{"id": started["sessionId"], "name": "0001"}], "count": 1}));
    for shown in ["list", "#/a", "list#a", "list#/a#b", "list#/a#/b#/c"] {
        let rules = rules.replace("list#/content/0/text#/sessions/*/id", shown);
        assert!(Rules::from_toml(&rules, &defaults()).is_err(), "{shown}");
    }
}

/// "Arguments" of a prompt are strings.
#[tokio::test]
async fn a_number_is_a_number_for_a_tool_and_a_string_for_a_prompt() {
    let world = World::new(workshop()).await;
    let alice = world.user("alice");
    let order = alice.call("order", json!({})).await.json()["result"]["structuredContent"]["order_id"].clone();
    drop(world.seen());

    alice.call("use", json!({"order_id": order})).await;
    alice.modern("prompts/get", json!({"name": "sum", "arguments": {"order_id": order}}), &[]).await;
    let half = json!({"ref": {"type": "ref/prompt", "name": "sum"}, "argument": {"name": "order_id", "value": order}});
    alice.modern("completion/complete", half, &[]).await;

    let seen = world.seen();
    let number = seen[0].arguments()["order_id"].as_u64().expect("a number");
    assert_eq!(seen[1].arguments()["order_id"], number.to_string());
    assert_eq!(seen[2].json()["params"]["argument"]["value"], number.to_string());
}

/// What `handfast discover` calls a kind of handle may be longer than what can stand before one.
#[tokio::test]
async fn kinds_with_long_names_that_begin_alike_are_told_apart() {
    let tools = ["list_presentations_of_today", "list_presentations_of_old", "list_presentations", "ta_sk"];
    let rule = |tool: &&str| format!("[[handle]]\nmint = \"{tool}\"\npointer = \"/structuredContent/id\"\n");
    let rules = format!("version = 1\n{}", tools.iter().map(rule).collect::<String>());
    let says = |seen: &Seen| seen.result(&json!({"structuredContent": {"id": "x-000001"}}));
    let world = World::with(says, |parts, _| parts.rules = ruled(&rules)).await;
    let alice = world.user("alice");

    let mut prefixes = Vec::new();
    for tool in tools {
        let id = alice.call(tool, json!({})).await.json()["result"]["structuredContent"]["id"].clone();
        prefixes.push(id.as_str().and_then(|id| id.split_once('_')).expect("a handle").0.to_owned());
    }

    assert_eq!(prefixes, ["listpresentation", "listpresentat2", "listpresentat3", "task2"]);
}

fn ruled(text: &str) -> Rules {
    Rules::from_toml(text, &defaults()).expect("rules")
}

/// What is the same for everybody may be kept for everybody; what holds a handle may not.
#[tokio::test]
async fn a_result_without_a_handle_may_still_be_shared() {
    for (content, scope) in [(json!({}), "public"), (json!({"workspace_id": "ws-100001"}), "private")] {
        let world = World::new(move |seen| seen.result(&json!({"structuredContent": content, "cacheScope": "public"})));
        let got = world.await.user("alice").call("create", json!({})).await;
        assert_eq!(got.json()["result"]["cacheScope"], scope, "{got:?}");
    }
}
