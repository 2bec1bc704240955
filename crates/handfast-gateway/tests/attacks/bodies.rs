//! Bodies that two readers take for two messages, or that nobody should have to read.

use http::Method;
use serde_json::json;

use crate::support::behind::{World, workshop};

const HEAD: [(&str, &str); 3] =
    [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "use")];

fn call(members: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"use",{members}}}}}"#)
}

#[tokio::test]
async fn what_two_readers_take_for_two_messages_is_refused() {
    let world = World::new(workshop()).await;
    let alice = world.user("alice");
    for body in [
        // Members that stand twice: some take the first, some the last.
        call(r#""arguments":{"a":1,"a":2}"#),
        call(r#""arguments":{"a":[{"b":1,"\u0062":2}]}"#),
        call(r#""arguments":{},"name":"create""#),
        call(r#""arguments":{}},"params":{"name":"create""#),
        call(r#""arguments":{}},"method":"tools/list","x":{"y":1"#),
        // Members that differ by case, or in what some take for it.
        call(r#""arguments":{},"Name":"create""#),
        call(r#""Arguments":{}"#),
        call(r#""argumentſ":{}"#),
        call(r#""arguments":{},"RequestState":"x""#),
        call(r#""InputResponses":{}"#),
        call(r#""arguments":{"a":1,"A":2}"#),
        call(r#""arguments":{}},"Params":{"name":"create""#),
        call(r#""arguments":{}},"METHOD":"tools/list","x":{"y":1"#),
        // Several at once.
        format!("[{}]", call(r#""arguments":{}"#)),
        format!("{0}\n{0}", call(r#""arguments":{}"#)),
        // What is no request.
        call(r#""arguments":{}"#).replace("2.0", "1.0"),
        call(r#""arguments":{}"#).replace(r#""id":1"#, r#""id":null"#),
        call(r#""arguments":{}"#).replace(r#""id":1"#, r#""id":1.5"#),
        call(r#""arguments":{}"#).replace(r#""id":1"#, r#""id":{}"#),
        call(r#""arguments":[1]"#),
        call(r#""arguments":"x""#),
        call(r#""arguments":{}"#).replace(r#""params":{"#, r#""params":[{"#).replace("}}}", "}}]}"),
        String::new(),
        "null".to_owned(),
        "{".to_owned(),
    ] {
        let got = alice.send(Method::POST, &HEAD, body.clone()).await;
        assert_eq!(got.status, 400, "{body}: {got:?}");
    }
    assert!(world.seen().is_empty());
    for body in [call(r#""arguments":{"a":{"b":1,"B":2}},"more":1"#), call(r#""arguments":null"#)] {
        assert_eq!(alice.send(Method::POST, &HEAD, body).await.status, 200);
    }
    assert_eq!(world.seen().len(), 2);
}

#[tokio::test]
async fn what_is_no_text_is_refused() {
    let world = World::new(workshop()).await;
    let alice = world.user("alice");
    for inside in
        [&b"\xff"[..], b"\xc0\xaf", b"\xed\xa0\x80", b"\0", b"\x1f", br"\ud800", br"\udc00\ud800", br"\u12", b"\\"]
    {
        let body = call(r#""arguments":{"a":"HERE"}"#).into_bytes();
        let at = body.windows(4).position(|run| run == b"HERE").expect("the place");
        let body = [&body[..at], inside, &body[at + 4..]].concat();
        assert_eq!(alice.send(Method::POST, &HEAD, body).await.status, 400, "{inside:?}");
    }
    assert!(world.seen().is_empty());
    let got = alice.send(Method::POST, &HEAD, call(r#""arguments":{"a":"\u0000 \ud83d\ude00 é"}"#)).await;
    assert_eq!(got.json()["result"]["structuredContent"]["heard"]["arguments"]["a"], "\0 \u{1F600} é");
}

#[tokio::test]
async fn what_is_too_deep_or_too_long_is_refused() {
    let world = World::with(workshop(), |parts, _| parts.options.longest_request = 10_000).await;
    let alice = world.user("alice");
    let nested = |deep: usize| call(&format!(r#""arguments":{{"a":{}1{}}}"#, "[".repeat(deep), "]".repeat(deep)));
    let long = |length: usize| {
        let empty = call(r#""arguments":{"a":""}"#).len();
        call(&format!(r#""arguments":{{"a":"{}"}}"#, "x".repeat(length - empty)))
    };
    // The server behind repeats it in its answer, and that is deeper still.
    assert_eq!(alice.send(Method::POST, &HEAD, nested(120)).await.status, 200);
    assert_eq!(alice.send(Method::POST, &HEAD, nested(125)).await.status, 502);
    assert_eq!(alice.send(Method::POST, &HEAD, nested(126)).await.status, 400);
    assert_eq!(alice.send(Method::POST, &HEAD, nested(4_000)).await.status, 400);
    assert_eq!(alice.send(Method::POST, &HEAD, long(10_000)).await.status, 200);
    assert_eq!(world.seen().len(), 3);
    let got = alice.send(Method::POST, &HEAD, long(10_001)).await;
    assert_eq!((got.status, got.code()), (413, json!(-32600)));
    assert_eq!(alice.send(Method::POST, &HEAD, long(5 << 20)).await.status, 413);
    assert!(world.seen().is_empty());
}
