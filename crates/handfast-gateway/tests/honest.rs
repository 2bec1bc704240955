//! What an honest client does, or what the protocol says of a mistake: as without the gateway, over real HTTP.

mod support;

use http::Method;
use serde_json::{Value, json};
use support::behind::{World, workshop};

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
