//! Sessions of 2025-11-25 and older, and ids of requests.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use http::Method;
use serde_json::{Value, json};

use crate::support::behind::{World, initialize, read, said, status, workshop};

fn ping(id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "ping"})
}

#[tokio::test]
async fn a_session_is_good_for_whoever_began_it_whatever_the_verb() {
    let world = World::new(workshop()).await;
    let (alice, bob) = (world.user("alice"), world.user("bob"));
    let session = alice.begin().await;
    assert!(!session.contains("behind"), "{session}");
    drop(world.seen());

    let nearly = &session[..session.len() - 1];
    let injected = format!("{session}&owner=bob");
    for verb in [Method::POST, Method::GET, Method::DELETE] {
        let body = if verb == Method::POST { ping(&json!(1)).to_string() } else { String::new() };
        let shown = |id| [("mcp-session-id", id), ("mcp-protocol-version", "2025-11-25")];
        let foreign = bob.send(verb.clone(), &shown(&session), body.clone()).await;
        let unknown = bob.send(verb.clone(), &shown("00000000-0000-4000-8000-000000000000"), body.clone()).await;
        assert_eq!(
            (foreign.status, &foreign),
            (404, &unknown),
            "{verb}: neither status nor words tell that it is there"
        );
        for id in [nearly, &injected, "behind-1", "../behind-1"] {
            assert_eq!(alice.send(verb.clone(), &shown(id), body.clone()).await.status, 404, "{verb} {id}");
        }
        let twice = [("mcp-session-id", session.as_str()), ("Mcp-Session-Id", "x")];
        assert_eq!(alice.send(verb.clone(), &twice, body.clone()).await.status, 404, "{verb}");
        let without = alice.send(verb.clone(), &shown("")[1..], body.clone()).await;
        assert_eq!(without.status, 400, "{verb}");
    }
    assert!(world.seen().is_empty(), "none of that has got behind, and nothing was begun anew");
    assert_eq!(alice.legacy(&session, &ping(&json!(1))).await.status, 200);
    assert_eq!(alice.open(Method::GET, &[("mcp-session-id", &session)], "").await.status(), 200);
    assert_eq!(alice.send(Method::DELETE, &[("mcp-session-id", &session)], "").await.status, 204);
    let seen = world.seen();
    let verbs: Vec<&str> = seen.iter().map(|seen| seen.verb.as_str()).collect();
    assert_eq!(verbs, ["POST", "GET", "DELETE"]);
    assert!(seen.iter().all(|seen| seen.header("mcp-session-id") == Some("behind-1")));
    assert_eq!(alice.legacy(&session, &ping(&json!(2))).await.status, 404, "what has ended stays so");
}

#[tokio::test]
async fn nobody_chooses_the_id_of_a_session() {
    let world = World::new(workshop()).await;
    let alice = world.user("alice");
    for shown in ["chosen", "behind-1"] {
        let got = alice.legacy(shown, &initialize()).await;
        let given = got.headers.get("mcp-session-id").map(|id| id.to_str().expect("ASCII"));
        assert_ne!(given, Some(shown), "{got:?}");
        assert_eq!(alice.legacy(shown, &ping(&json!(1))).await.status, 404, "{shown}");
    }
    assert!(world.seen().iter().all(|seen| seen.header("mcp-session-id").is_none()));
}

#[tokio::test]
async fn a_session_that_the_server_behind_has_lost_is_over() {
    let (lost, inner) = (Arc::new(AtomicBool::new(false)), workshop());
    let world = World::new({
        let lost = lost.clone();
        move |seen| match seen.headers.contains_key("mcp-session-id") && lost.load(Ordering::SeqCst) {
            true => status(404),
            false => inner(seen),
        }
    })
    .await;
    let alice = world.user("alice");
    let (session, other) = (alice.begin().await, alice.begin().await);
    drop(world.seen());

    lost.store(true, Ordering::SeqCst);
    let got = alice.legacy(&session, &ping(&json!(1))).await;
    assert_eq!((got.status, got.code()), (404, json!(-32001)));
    lost.store(false, Ordering::SeqCst);
    assert_eq!(alice.legacy(&session, &ping(&json!(2))).await.status, 404, "also when it is there again");
    let seen = world.seen();
    assert!(seen.iter().all(|seen| seen.json()["method"] != "initialize"), "no other was begun in its place");
    assert_eq!(alice.legacy(&other, &ping(&json!(3))).await.status, 200);
}

#[tokio::test]
async fn a_second_stream_of_somebody_else_takes_nothing_from_the_first() {
    let world = World::new(workshop()).await;
    let (alice, bob) = (world.user("alice"), world.user("bob"));
    let session = alice.begin().await;
    let shown = [("mcp-session-id", session.as_str())];
    let mut first = alice.open(Method::GET, &shown, "").await;

    assert_eq!(bob.send(Method::GET, &shown, "").await.status, 404);
    let mut told = String::new();
    while let Some(chunk) = first.chunk().await.expect("a chunk") {
        told.push_str(std::str::from_utf8(&chunk).expect("UTF-8"));
    }
    assert!(told.contains("hello"), "{told}");
    assert!(!told.contains("behind"), "what it is called behind stands in a comment there: {told}");
    assert_eq!(world.seen().iter().filter(|seen| seen.verb == Method::GET).count(), 1);
}

#[tokio::test]
async fn two_clients_with_the_same_id_of_a_request_get_their_own_answers() {
    // Behind there is one table for all: an id leads to whoever came last with it.
    let table: Mutex<std::collections::BTreeMap<String, Value>> = Mutex::default();
    let inner = workshop();
    let world = World::new(move |seen| {
        let body = seen.json();
        if body["method"] != "tools/call" {
            return inner(seen);
        }
        let mut table = table.lock().expect("a lock");
        let first = table.entry(body["id"].to_string()).or_insert(body["params"]["name"].clone());
        seen.result(&json!({"content": first}))
    })
    .await;
    let (alice, bob) = (world.user("alice"), world.user("bob"));
    let mine = |tool: &str| json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool}});
    for (client, tool) in [(&alice, "of-alice"), (&bob, "of-bob")] {
        let got = client.call(tool, json!({})).await.json();
        assert_eq!((&got["id"], &got["result"]["content"]), (&json!(1), &json!(tool)));
        let session = client.begin().await;
        let got = client.legacy(&session, &mine(tool)).await.json();
        assert_eq!((&got["id"], &got["result"]["content"]), (&json!(1), &json!(tool)));
    }
    let ids: Vec<Value> = world.seen().iter().map(|seen| seen.json()["id"].clone()).collect();
    let different: std::collections::BTreeSet<String> = ids.iter().map(Value::to_string).collect();
    assert_eq!(different.len(), ids.len(), "{ids:?}");
}

#[tokio::test]
async fn what_is_cancelled_is_called_as_it_was_asked() {
    let world = World::new(workshop()).await;
    let alice = world.user("alice");
    let session = alice.begin().await;
    for id in [json!(7), json!("seven")] {
        drop(world.seen());
        assert_eq!(alice.legacy(&session, &ping(&id)).await.json()["id"], id);
        let params = json!({"requestId": id, "reason": "enough"});
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        assert_eq!(alice.legacy(&session, &cancelled).await.status, 202);
        let seen = world.seen();
        assert_ne!(seen[0].json()["id"], id);
        assert_eq!(seen[0].json()["id"], seen[1].json()["params"]["requestId"]);
    }
}

#[tokio::test]
async fn the_answer_to_something_else_is_not_passed_on() {
    for answer in [
        r#"{"jsonrpc":"2.0","id":1,"result":{"secret":1}}"#,
        r#"{"jsonrpc":"2.0","id":"1","result":{"secret":1}}"#,
        r#"{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":"secret"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"result":{"secret":1}}"#,
        r#"{"jsonrpc":"2.0","result":{"secret":1}}"#,
        r#"{"jsonrpc":"2.0","id":"AAAAAAAAAAAAAAAAAAAA.1","result":{"secret":1}}"#,
    ] {
        for kind in ["application/json", "text/event-stream"] {
            let inner = workshop();
            let world = World::new(move |seen| match (seen.json()["method"] == "initialize", kind) {
                (true, _) => inner(seen),
                (_, "application/json") => said(kind, answer),
                _ => said(kind, format!("data: {answer}\n\n")),
            })
            .await;
            let alice = world.user("alice");
            let session = alice.begin().await;
            for got in [alice.call("use", json!({})).await, alice.legacy(&session, &ping(&json!(1))).await] {
                assert!(!got.text.contains("secret") && got.text.contains(r#""error""#), "{answer}: {got:?}");
                assert!(got.text.contains(r#""id":1,"#), "it is told to whoever waits: {got:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_request_without_sessions_gets_none() {
    let world = World::new(|seen| {
        let mut response = seen.result(&json!({"tools": []}));
        response.headers_mut().insert("mcp-session-id", "behind-1".parse().expect("a header"));
        response
    })
    .await;
    let got = read(
        world
            .user("alice")
            .open(
                Method::POST,
                &[("mcp-session-id", "behind-1"), ("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")],
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#,
            )
            .await,
    )
    .await;

    assert_eq!((got.status, got.headers.get("mcp-session-id")), (200, None));
    assert_eq!(world.seen()[0].header("mcp-session-id"), None);
}
