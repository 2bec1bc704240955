//! Headers that repeat the body, for whoever reads them in its place.

use base64::{Engine, engine::general_purpose::STANDARD};
use http::Method;
use serde_json::json;

use crate::support::behind::{World, workshop};

#[tokio::test]
async fn a_method_or_a_name_that_the_body_does_not_say_is_refused() {
    let world = World::new(workshop()).await;
    let alice = world.user("alice");
    let call = json!({"name": "use", "arguments": {}});
    let encoded = format!("=?base64?{}?=", STANDARD.encode("use"));
    for more in [
        [("mcp-name", "create")],
        [("mcp-name", "Use")],
        [("mcp-name", "=?base64?Y3JlYXRl?=")],
        [("mcp-name", "=?base64?!?=")],
        [("mcp-method", "tools/list")],
        [("mcp-method", "")],
        [("mcp-protocol-version", "2026-07-29")],
    ] {
        let got = alice.modern("tools/call", call.clone(), &more).await;
        assert_eq!((got.status, got.code()), (400, json!(-32020)), "{more:?}");
    }
    let twice = alice.modern("tools/call", call.clone(), &[("mcp-name", "use"), ("Mcp-Name", "create")]).await;
    assert_eq!(twice.code(), -32020);
    // Without the headers, and as if by an older client, whose server looks at them all the same.
    let modern = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "use", "_meta":
        {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}});
    let version = ("mcp-protocol-version", "2026-07-28");
    for more in [&[version][..], &[version, ("mcp-method", "tools/call")], &[version, ("mcp-name", "use")]] {
        assert_eq!(alice.send(Method::POST, more, modern.to_string()).await.code(), -32020, "{more:?}");
    }
    assert_eq!(alice.send(Method::POST, &[], modern.to_string()).await.status, 400);
    assert!(world.seen().is_empty());
    let session = alice.begin().await;
    let old = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "use"}}).to_string();
    let (session, version) = (("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25"));
    drop(world.seen());
    for more in [("mcp-method", "tools/list"), ("mcp-name", "create")] {
        assert_eq!(alice.send(Method::POST, &[session, version, more], old.clone()).await.code(), -32020, "{more:?}");
    }
    assert!(world.seen().is_empty());
    for more in [[("mcp-name", "use")], [("mcp-name", encoded.as_str())], [("mcp-method", "tools/call")]] {
        assert_eq!(alice.modern("tools/call", call.clone(), &more).await.status, 200, "{more:?}");
        assert_eq!(world.seen()[0].header("mcp-name"), Some("use"));
        assert_eq!(alice.send(Method::POST, &[session, version, more[0]], old.clone()).await.status, 200, "{more:?}");
        drop(world.seen());
    }
}

#[tokio::test]
async fn a_header_that_repeats_an_argument_is_compared_as_what_it_is() {
    let world = World::new(workshop()).await;
    let alice = world.user("alice");
    let call = json!({"name": "use", "arguments":
        {"n": 1, "large": 9_007_199_254_740_993_u64, "text": "1.0", "place": "Zürich", "yes": true, "none": null}});
    for value in [
        "2",
        "1.5",
        "-1",
        "1x",
        "0x1",
        "01",
        "+1",
        "NaN",
        "inf",
        "",
        "9007199254740992",
        "1e400",
        "Zurich",
        "True",
        "1.00 ",
        "=?base64?WsO8cmlj?=",
        "=?base64?WsO8cmljaA?=",
        "=?base64?/w==?=",
        "true,true",
    ] {
        let got = alice.modern("tools/call", call.clone(), &[("mcp-param-x", value)]).await;
        let told = if value == "1.00 " { 200 } else { 400 };
        assert_eq!(got.status, told, "{value}: {got:?}");
    }
    assert_eq!(world.seen().len(), 1, "blanks at the end are not part of a header");
    let twice = [("mcp-param-x", "1"), ("Mcp-Param-X", "true")];
    assert_eq!(alice.modern("tools/call", call.clone(), &twice).await.code(), -32020);
    for value in [
        "1",
        "1.0",
        "10e-1",
        "0.1E1",
        "9007199254740993",
        "9007199254740993.0",
        "true",
        "null",
        "=?base64?WsO8cmljaA==?=",
    ] {
        assert_eq!(alice.modern("tools/call", call.clone(), &[("mcp-param-x", value)]).await.status, 200, "{value}");
        assert_eq!(world.seen()[0].header("mcp-param-x"), Some(value), "it is passed on");
    }
}

#[tokio::test]
async fn a_header_that_names_a_handle_names_the_one_in_the_body() {
    let world = World::new(workshop()).await;
    let alice = world.user("alice");
    let (handle, other) = (alice.create().await, alice.create().await);
    drop(world.seen());

    // The server behind may believe the header, and what it says stands somewhere in the arguments.
    let call = json!({"name": "use", "arguments": {"workspace_id": handle, "note": "ws-100009", "more": other}});
    for name in ["mcp-param-workspace", "mcp-param-workspace-id", "Mcp-Param-WorkspaceId"] {
        let got = alice.modern("tools/call", call.clone(), &[(name, "ws-100009")]).await;
        assert_eq!((got.status, got.code()), (400, json!(-32020)), "{name}");
        assert!(world.seen().is_empty());
        assert_eq!(alice.modern("tools/call", call.clone(), &[(name, &handle)]).await.status, 200);
        assert_eq!(world.seen()[0].header(name), Some("ws-100001"));
    }
}
