//! The rules of Streamable HTTP, each right, wrong and nearly right.

mod support;

use handfast_twins::{Answers, find, serve_http};
use serde_json::{Value, json};
use support::{Answer, Client, scene, send};

/// Sends a conforming `tools/call` of `whoami`, after something was done to it.
async fn spoilt(spoil: impl Fn(&mut Vec<(String, String)>, &mut Value)) -> Answer {
    let scene = scene("sound").await;
    let (mut headers, mut body) = scene.a.draft("tools/call", json!({"name": "whoami", "arguments": {}}));
    spoil(&mut headers, &mut body);
    send(&scene.a.url, "POST", &headers, body.to_string().as_bytes()).await
}

fn set(headers: &mut Vec<(String, String)>, name: &str, value: Option<&str>) {
    headers.retain(|(given, _)| given != name);
    headers.extend(value.map(|value| (name.to_owned(), value.to_owned())));
}

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

#[tokio::test]
async fn conforming_request_is_answered() {
    let answer = spoilt(|_, _| {}).await;

    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.message()["result"]["structuredContent"]["principal"], "alice");
    assert_eq!(answer.message()["id"], 7);
}

#[tokio::test]
async fn headers_must_be_there_and_agree_with_the_body() {
    // (header, value or absent, status, code)
    let cases: &[(&str, Option<&str>, u16, i64)] = &[
        ("mcp-protocol-version", None, 400, -32020),
        ("mcp-protocol-version", Some("2025-11-25"), 400, -32020),
        ("mcp-protocol-version", Some(" 2026-07-28 "), 200, 0),
        ("mcp-method", None, 400, -32020),
        ("mcp-method", Some("tools/list"), 400, -32020),
        ("mcp-method", Some("Tools/Call"), 400, -32020),
        ("mcp-method", Some("=?base64?dG9vbHMvY2FsbA==?="), 200, 0),
        ("mcp-name", None, 400, -32020),
        ("mcp-name", Some("whoam"), 400, -32020),
        ("mcp-name", Some("whoami "), 200, 0),
        ("mcp-name", Some("=?base64?d2hvYW1p?="), 200, 0),
        ("mcp-name", Some("=?base64?d2hvYW0=?="), 400, -32020),
        ("mcp-name", Some("=?base64?%%%?="), 400, -32020),
        ("mcp-name", Some("=?BASE64?d2hvYW1p?="), 400, -32020),
        ("accept", None, 406, 0),
        ("accept", Some("application/json"), 406, 0),
        ("accept", Some("text/event-stream"), 406, 0),
        ("accept", Some("*/*"), 406, 0),
        ("accept", Some("text/event-stream;q=0.9,APPLICATION/JSON"), 200, 0),
        ("content-type", None, 415, 0),
        ("content-type", Some("text/plain"), 415, 0),
        ("content-type", Some("application/json; charset=utf-8"), 200, 0),
        ("authorization", None, 401, 0),
        ("authorization", Some("Bearer "), 401, 0),
        ("authorization", Some("Basic YWxpY2U6"), 401, 0),
        ("authorization", Some("bearer alice"), 200, 0),
        ("origin", Some("https://evil.example"), 403, 0),
        ("origin", Some("null"), 403, 0),
        ("origin", Some("http://localhost.evil.example"), 403, 0),
        ("origin", Some("http://127.0.0.1.evil.example:80"), 403, 0),
        ("origin", Some("http://localhost:6274"), 200, 0),
        ("origin", Some("http://127.0.0.1"), 200, 0),
        ("origin", Some("http://[::1]:80"), 200, 0),
        ("mcp-session-id", Some("anything"), 200, 0),
    ];
    for (name, value, status, code) in cases {
        let answer = spoilt(|headers, _| set(headers, name, *value)).await;

        assert_eq!(answer.status, *status, "{name}: {value:?}");
        if *code != 0 {
            assert_eq!(answer.code(), *code, "{name}: {value:?}");
            assert_eq!(answer.message()["id"], 7, "{name}: {value:?}");
        }
        assert_eq!(answer.header("mcp-session-id"), None, "{name}: {value:?}");
        let challenge = answer.header("www-authenticate");
        // "MCP servers MUST use the HTTP header WWW-Authenticate ... to indicate the location of the resource server metadata"
        let leads =
            challenge.is_some_and(|challenge| challenge.starts_with("Bearer resource_metadata=\"http://127.0.0.1:"));
        assert_eq!(leads, *status == 401, "{name}: {value:?}: {challenge:?}");
    }
}

#[tokio::test]
async fn header_that_stands_there_twice_is_refused() {
    let answer = spoilt(|headers, _| headers.push(("mcp-name".into(), "whoami".into()))).await;

    assert_eq!((answer.status, answer.code()), (400, -32020));
}

#[tokio::test]
async fn metadata_must_be_there_and_of_our_version() {
    type Spoil = fn(&mut Vec<(String, String)>, &mut Value);
    let cases: &[(&str, Spoil, u16, i64)] = &[
        ("no _meta", |_, body| drop(params(body).remove("_meta")), 400, -32602),
        ("no version", |_, body| drop(metadata(body).remove(VERSION)), 400, -32602),
        ("version is a number", |_, body| drop(metadata(body).insert(VERSION.into(), 2026.into())), 400, -32602),
        ("no capabilities", |_, body| drop(metadata(body).remove(CAPABILITIES)), 400, -32602),
        ("capabilities are a list", |_, body| drop(metadata(body).insert(CAPABILITIES.into(), json!([]))), 400, -32602),
        ("no client info", |_, body| drop(metadata(body).remove("io.modelcontextprotocol/clientInfo")), 200, 0),
        ("no capability", |_, body| drop(metadata(body).insert(CAPABILITIES.into(), json!({}))), 200, 0),
        (
            "body alone is older",
            |_, body| drop(metadata(body).insert(VERSION.into(), "2025-11-25".into())),
            400,
            -32020,
        ),
    ];
    for (what, spoil, status, code) in cases {
        let answer = spoilt(spoil).await;

        assert_eq!((answer.status, answer.code()), (*status, *code), "{what}");
    }
}

fn params(body: &mut Value) -> &mut serde_json::Map<String, Value> {
    body["params"].as_object_mut().expect("params")
}

fn metadata(body: &mut Value) -> &mut serde_json::Map<String, Value> {
    body["params"]["_meta"].as_object_mut().expect("_meta")
}

#[tokio::test]
async fn other_version_is_refused_by_name() {
    let answer = spoilt(|headers, body| {
        set(headers, "mcp-protocol-version", Some("2099-01-01"));
        body["params"]["_meta"][VERSION] = "2099-01-01".into();
    })
    .await;

    assert_eq!((answer.status, answer.code()), (400, -32022));
    let data = json!({"supported": ["2026-07-28"], "requested": "2099-01-01"});
    assert_eq!(answer.message()["error"]["data"], data);
}

#[tokio::test]
async fn unknown_methods_do_not_exist_and_initialize_is_one() {
    for method in ["initialize", "ping", "tools/Call", "tasks/get", "resources/subscribe", "subscriptions/listen", ""] {
        let scene = scene("sound").await;
        let answer = scene.a.request(method, json!({})).await;

        assert_eq!((answer.status, answer.code()), (404, -32601), "{method}");
    }
}

#[tokio::test]
async fn initialize_as_an_old_client_sends_it_is_unknown_too() {
    let answer = spoilt(|headers, body| {
        for name in ["mcp-protocol-version", "mcp-method", "mcp-name"] {
            set(headers, name, None);
        }
        body["method"] = "initialize".into();
        body["params"] = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    })
    .await;

    assert_eq!((answer.status, answer.code()), (404, -32601));
}

#[tokio::test]
async fn only_post_is_taken_and_only_at_one_path() {
    let scene = scene("sound").await;
    let (headers, body) = scene.a.draft("tools/list", json!({}));
    let body = body.to_string();

    for method in ["GET", "DELETE", "PUT", "OPTIONS"] {
        let answer = send(&scene.a.url, method, &headers, body.as_bytes()).await;

        assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")), "{method}");
    }
    for path in ["", "/", "/mcp2"] {
        let url = scene.a.url.replace("/mcp", if path.is_empty() { "/" } else { path });
        assert_eq!(send(&url, "POST", &headers, body.as_bytes()).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn body_is_bounded() {
    let scene = scene("sound").await;
    let (headers, _) = scene.a.draft("tools/list", json!({}));

    for (length, status) in [(1024 * 1024, 400), (1024 * 1024 + 1, 413)] {
        let answer = send(&scene.a.url, "POST", &headers, &vec![b' '; length]).await;

        assert_eq!(answer.status, status, "{length}");
    }
}

#[tokio::test]
async fn bodies_that_are_no_request_are_refused() {
    let cases: &[(&str, u16, i64)] = &[
        ("", 400, -32700),
        ("{", 400, -32700),
        ("[]", 400, -32600),
        ("{}", 400, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"tools/list"}"#, 400, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#, 400, -32600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}"#, 400, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, 400, -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]"#, 400, -32600),
        (r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#, 202, 0),
    ];
    let scene = scene("sound").await;
    let (headers, _) = scene.a.draft("tools/list", json!({}));
    for (body, status, code) in cases {
        let answer = send(&scene.a.url, "POST", &headers, body.as_bytes()).await;

        assert_eq!(answer.status, *status, "{body}");
        if *code == 0 {
            assert!(answer.body.is_empty(), "{body}");
        } else {
            assert_eq!(answer.code(), *code, "{body}");
            assert_eq!(answer.message().get("id"), None, "{body}");
        }
    }
}

#[tokio::test]
async fn every_result_says_its_type_and_its_server_and_lists_say_how_long_they_last() {
    let scene = scene("sound").await;
    let handle = scene.a.open("one").await;
    let handle = handle.as_str().expect("a textual handle");
    let cases = [
        ("server/discover", json!({}), true),
        ("tools/list", json!({}), true),
        ("prompts/list", json!({}), true),
        ("resources/list", json!({}), true),
        ("resources/templates/list", json!({}), true),
        ("resources/read", json!({"uri": format!("workspace://{handle}/notes")}), true),
        ("prompts/get", json!({"name": "summarise_workspace", "arguments": {"workspace_id": handle}}), false),
        ("tools/call", json!({"name": "read_workspace", "arguments": {"workspace_id": handle}}), false),
        ("tools/call", json!({"name": "read_workspace", "arguments": {"workspace_id": "ws-0"}}), false),
    ];
    for (method, params, cacheable) in cases {
        let answer = scene.a.request(method, params).await;

        let result = &answer.message()["result"];
        assert_eq!(answer.status, 200, "{method}");
        assert_eq!(result["resultType"], "complete", "{method}");
        assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "workspaces", "{method}");
        assert_eq!(result["ttlMs"].is_u64(), cacheable, "{method}");
        assert_eq!(result["cacheScope"].is_string(), cacheable, "{method}");
    }
}

#[tokio::test]
async fn bad_parameters_are_refused() {
    let cases = [
        ("tools/list", json!({"cursor": "1"})),
        ("tools/call", json!({})),
        ("tools/call", json!({"name": 1})),
        ("tools/call", json!({"name": "nothing"})),
        ("tools/call", json!({"name": "open_workspace"})),
        ("tools/call", json!({"name": "open_workspace", "arguments": {"label": 1}})),
        ("tools/call", json!({"name": "open_workspace", "arguments": []})),
        ("tools/call", json!({"name": "read_workspace", "arguments": {"workspace_id": 7}})),
        ("prompts/get", json!({"name": "nothing"})),
        ("prompts/get", json!({"name": "summarise_workspace"})),
        ("resources/read", json!({"uri": "file:///etc/passwd"})),
        ("resources/read", json!({"uri": "workspace://ws-0/notes"})),
    ];
    let scene = scene("sound").await;
    for (method, params) in cases {
        let answer = scene.a.request(method, params.clone()).await;

        assert_eq!((answer.status, answer.code()), (400, -32602), "{method} {params}");
    }
}

#[tokio::test]
async fn stream_has_a_priming_event_and_no_event_lines() {
    let served = serve_http(find("sound").expect("sound"), 0, Answers::Sse).await.expect("a free port");
    let client = Client::new(served.url(), "alice");

    let answer = client.request("tools/call", json!({"name": "whoami"})).await;

    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/event-stream")));
    let text = answer.text();
    assert!(text.starts_with("data: \n\ndata: {"), "{text}");
    assert!(!text.contains("event:"), "{text}");
    assert_eq!(answer.message()["result"]["structuredContent"]["principal"], "alice");
}

#[tokio::test]
async fn stream_carries_handlers_errors_and_fixed_statuses_stay_json() {
    let served = serve_http(find("sound").expect("sound"), 0, Answers::Sse).await.expect("a free port");
    let client = Client::new(served.url(), "alice");

    let unknown_tool = client.request("tools/call", json!({"name": "nothing"})).await;
    let unknown_method = client.request("nothing", json!({})).await;

    assert_eq!((unknown_tool.status, unknown_tool.code()), (200, -32602));
    assert_eq!(unknown_tool.header("content-type"), Some("text/event-stream"));
    assert_eq!((unknown_method.status, unknown_method.code()), (404, -32601));
    assert_eq!(unknown_method.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn port_is_free_again_after_stop_and_after_drop() {
    for by_drop in [false, true] {
        let served = serve_http(find("sound").expect("sound"), 0, Answers::Json).await.expect("a free port");
        let authority = served.url().replace("http://", "").replace("/mcp", "");
        let idle = tokio::net::TcpStream::connect(&authority).await.expect("it listens");

        if by_drop {
            drop(served);
            while tokio::net::TcpStream::connect(&authority).await.is_ok() {
                tokio::task::yield_now().await;
            }
        } else {
            served.stop().await;
        }

        drop(idle);
        assert!(tokio::net::TcpStream::connect(&authority).await.is_err());
    }
}
