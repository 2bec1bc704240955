//! Answers of a server behind that cannot be made safe: nothing of them leaves, and whoever waits is told so.

use serde_json::json;

use crate::support::behind::{World, said, status, workshop};

/// What a client is told when the server behind sends this stream after a first event; the workspace's handle.
async fn streamed(rest: &'static [u8]) -> (String, String) {
    let inner = workshop();
    let world = World::with(
        move |seen| match seen.json()["params"]["name"] == "create" {
            true => inner(seen),
            false => said(
                "text/event-stream; charset=utf-8",
                [&b"data: {\"jsonrpc\":\"2.0\",\"method\":\"first\"}\n\n"[..], rest].concat(),
            ),
        },
        |parts, _| parts.options.longest_answer = 2_000,
    )
    .await;
    let alice = world.user("alice");
    let handle = alice.create().await;
    let got = alice.call("use", json!({"workspace_id": handle})).await;
    assert_eq!(got.status, 200);
    let first = "data: {\"jsonrpc\":\"2.0\",\"method\":\"first\"}\n\n";
    (got.text.strip_prefix(first).expect("the first event").to_owned(), handle)
}

const LONG: [u8; 2_100] = [b'x'; 2_100];

#[tokio::test]
async fn a_stream_ends_where_it_cannot_be_read() {
    for rest in [
        &b"data: secret\n\n"[..],
        b"data: {\"secret\":1}}\n\n",
        b"data: {\"secret\":1,\"secret\":2}\n\n",
        b"data: [{\"secret\":1}]\n\n",
        b"data: \"secret\"\n\n",
        b"data: {\"secret\":\"\xff\"}\n\n",
        b"data: {\"secret\":\"\\ud800\"}\n\n",
        b"id: \xff\ndata: {\"secret\":1}\n\n",
        // Names where no reader looks for an object, and after the mark that stands before a text.
        b"id: ws-100001\ndata: {\"secret\":1}\n\n",
        b"event: %77s-100001\ndata:\n\n",
    ] {
        let (told, _) = streamed(rest).await;
        let error = told.strip_prefix("data: ").and_then(|told| told.strip_suffix("\n\n")).expect("one event");
        let error: serde_json::Value = serde_json::from_str(error).expect("JSON");
        assert_eq!((&error["id"], &error["error"]["code"]), (&json!(1), &json!(-32603)), "{told}");
        assert!(!told.contains("secret") && !told.contains("ws-"), "{told}");
    }
    let (told, _) = streamed(&LONG).await;
    assert!(told.contains("too long") && !told.contains("xx"), "{told}");
}

#[tokio::test]
async fn of_a_stream_no_more_is_told_than_a_reader_reads() {
    for (rest, expected) in [
        (": about ws-100001\n\n", ":\n\n"),
        ("other: ws-100001\ndata: {\"a\":1}\n\n", "data: {\"a\":1}\n\n"),
        ("\u{feff}data: {\"a\":\"ws-100001\"}\n\n", "data: {\"a\":\"HANDLE\"}\n\n"),
        ("id: 7\r\ndata:{\"a\":\r\ndata:1}\r\n\r\n", "id: 7\r\ndata:{\"a\":\r\ndata:1}\r\n\r\n"),
        ("data: {\"a\":\"ws-100001\"}\r\r", "data: {\"a\":\"HANDLE\"}\n\n"),
        ("data: {\"a\":\ndata: \"ws-100001\"}\n\n", "data: {\"a\":\ndata: \"HANDLE\"}\n\n"),
        ("id: 7\ndata:\n\n", "id: 7\ndata:\n\n"),
        // What was not a whole event is none.
        ("data: {\"a\":\"ws-100001\"}\n", ""),
    ] {
        let (told, handle) = streamed(rest.as_bytes()).await;
        // None of them is the answer: at the end the client is told that there was none.
        let (told, end) = told.rsplit_once("data: ").expect("an end");
        assert!(end.contains("broke off before it had answered"), "{end}");
        assert_eq!(told, expected.replace("HANDLE", &handle), "{rest:?}");
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_not_passed_on() {
    for (kind, body) in [
        ("application/json", &b"secret"[..]),
        ("application/json", b"{\"secret\":1"),
        ("application/json", b"{\"jsonrpc\":\"2.0\",\"secret\":1,\"secret\":1}"),
        ("application/json", b"[{\"secret\":1}]"),
        ("application/json", b"{\"secret\":\"\xff\"}"),
        ("application/json", b""),
        ("text/html", b"<p>secret"),
        ("text/plain", b"secret"),
    ] {
        let world = World::new(move |_| said(kind, body)).await;
        let got = world.user("alice").call("use", json!({})).await;
        assert_eq!(
            (got.status, got.code(), got.json()["id"].clone()),
            (502, json!(-32603), json!(1)),
            "{kind} {body:?}"
        );
        assert!(!got.text.contains("secret"));
    }
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
    let world = World::new(move |_| said("application/json", deep.clone())).await;
    assert_eq!(world.user("alice").call("use", json!({})).await.status, 502);
    let world =
        World::with(|_| said("application/json", vec![b' '; 3_000]), |parts, _| parts.options.longest_answer = 2_000);
    assert_eq!(world.await.user("alice").call("use", json!({})).await.status, 502);
}

#[tokio::test]
async fn a_server_that_says_no_in_another_language_says_no_more_than_that() {
    for code in [404, 405, 409, 500, 503] {
        let world = World::new(move |_| {
            let mut response = said("text/plain; of=ws-100001", "secret");
            *response.status_mut() = status(code).status();
            response.headers_mut().insert("x-inside", "ws-100001".parse().expect("a header"));
            response
        })
        .await;
        let got = world.user("alice").call("use", json!({})).await;
        assert_eq!((got.status, got.text.as_str()), (code, ""));
        assert!(!format!("{:?}", got.headers).contains("ws-100001"), "{got:?}");
    }
}

#[tokio::test]
async fn a_client_that_heeds_the_schemas_is_let_use_handles() {
    let world = World::new(|seen| {
        seen.result(&json!({"tools": [
            {"name": "use", "inputSchema": {"properties": {
                "order_id": {"type": "array", "items": {"type": "integer"}},
                "workspace_id": {"enum": ["ws-100001"], "title": "which"},
                "other": {"type": "integer"},
            }}},
            {"name": "list", "outputSchema": {"properties": {
                "all": {"type": "array", "items": {"properties": {"order_id": {"type": "integer"}, "count": {"type": "integer"}}}},
            }}},
        ]}))
    })
    .await;
    let got = world.user("alice").modern("tools/list", json!({}), &[]).await.json();
    assert_eq!(
        got["result"]["tools"],
        json!([
            {"name": "use", "inputSchema": {"properties": {
                "order_id": {"type": "array", "items": {"type": "string"}},
                "workspace_id": {"type": "string", "title": "which"},
                "other": {"type": "integer"},
            }}},
            {"name": "list", "outputSchema": {"properties": {
                "all": {"type": "array", "items": {"properties": {"order_id": {"type": "string"}, "count": {"type": "integer"}}}},
            }}},
        ])
    );
}
