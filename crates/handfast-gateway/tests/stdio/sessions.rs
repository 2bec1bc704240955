//! Sessions: a child for each, and nobody else's.

use http::Method;
use serde_json::json;

use crate::lab::{Events, Lab, bare, call, ended, legacy, modern, one};

#[tokio::test]
async fn each_session_is_a_child_of_its_own() {
    let lab = Lab::new(|_| {});
    let (first, second) = (lab.session("alice").await, lab.session("alice").await);
    assert_ne!(first, second);

    let ask = async |session: &str| {
        one(lab.ask("alice", legacy(Some(session), &call(1, "echo", json!({})))).await.expect("an answer")).await
    };
    let (one, other, single) = (ask(&first).await, ask(&second).await, lab.call("alice", "echo", json!({})).await);

    assert_ne!(one["result"]["pid"], other["result"]["pid"]);
    assert_ne!(one["result"]["pid"], single["result"]["pid"], "a server keeps to the way that its first message spoke");
    assert_eq!(ask(&first).await["result"]["calls"], 2);
}

#[tokio::test]
async fn there_are_no_sessions_but_those_that_were_begun() {
    let lab = Lab::new(|_| {});
    let session = lab.session("alice").await;
    let status = async |user: &str, method: Method, id: Option<&str>| {
        let request = bare(method, id, call(1, "echo", json!({})).to_string());
        lab.ask(user, request).await.expect("an answer").status().as_u16()
    };

    for method in [Method::POST, Method::GET, Method::DELETE] {
        assert_eq!(status("alice", method.clone(), Some("unknown")).await, 404, "{method}");
        assert_eq!(status("bob", method.clone(), Some(&session)).await, 404, "another's looks the same: {method}");
        assert_eq!(status("alice", method.clone(), None).await, 400, "{method}");
    }
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}});
    let again = lab.ask("alice", legacy(Some("unknown"), &hello)).await.expect("an answer");
    assert_eq!(again.status(), 404);
    assert_eq!(lab.starts(), 1);
    assert_eq!(status("alice", Method::POST, Some(&session)).await, 200);
}

#[tokio::test]
async fn a_session_that_was_ended_is_gone_with_its_child() {
    let lab = Lab::new(|_| {});
    let session = lab.session("alice").await;
    let child = lab.born().await;
    let delete = || bare(Method::DELETE, Some(&session), String::new());

    assert_eq!(lab.ask("alice", delete()).await.expect("an answer").status(), 204);

    ended(child).await;
    assert_eq!(lab.ask("alice", delete()).await.expect("an answer").status(), 404);
    let later = lab.ask("alice", legacy(Some(&session), &call(1, "echo", json!({})))).await.expect("an answer");
    assert_eq!(later.status(), 404);
}

#[tokio::test]
async fn what_was_refused_is_no_session() {
    let lab = Lab::new(|_| {});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "bad"}});

    let answer = lab.ask("alice", legacy(None, &hello)).await.expect("an answer");

    assert!(!answer.headers().contains_key("mcp-session-id"));
    assert_eq!(one(answer).await["error"]["code"], -32602);
    ended(lab.born().await).await;
}

#[tokio::test]
async fn a_server_asks_within_the_request_and_is_answered() {
    let lab = Lab::new(|_| {});
    let session = lab.session("alice").await;

    let asked = lab.ask("alice", legacy(Some(&session), &call("mine", "ask", json!({})))).await.expect("a stream");
    let mut asked = Events::of(asked);
    let question = asked.next().await.expect("a question");
    assert_eq!((&question["id"], &question["method"]), (&json!("q"), &json!("elicitation/create")));
    let reply = legacy(Some(&session), &json!({"jsonrpc": "2.0", "id": "q", "result": {"action": "accept"}}));
    assert_eq!(lab.ask("alice", reply).await.expect("an answer").status(), 202);

    let rest = asked.rest().await;
    assert_eq!((rest.len(), &rest[0]["id"]), (1, &json!("mine")));
    assert_eq!(rest[0]["result"]["chosen"], json!({"action": "accept"}));
}

#[tokio::test]
async fn what_is_said_unasked_waits_for_the_one_stream_for_it() {
    let lab = Lab::new(|_| {});
    let session = lab.session("alice").await;
    let get = || bare(Method::GET, Some(&session), String::new());
    let in_session = |id: &str, tool: &str| legacy(Some(&session), &call(id, tool, json!({})));

    let stream = lab.ask("alice", get()).await.expect("a stream");
    assert_eq!(lab.ask("alice", get()).await.expect("an answer").status(), 409);
    // Two requests run: it belongs to neither.
    let others = async {
        let hears = async || one(lab.ask("alice", in_session("h", "heard")).await.expect("an answer")).await;
        while hears().await["result"]["calls"].as_u64() < Some(2) {}
        let unasked = one(lab.ask("alice", in_session("u", "unasked")).await.expect("an answer")).await;
        assert_eq!(unasked["id"], "u");
        lab.ask("alice", in_session("r", "release")).await
    };
    let (held, _) = tokio::join!(lab.ask("alice", in_session("held", "hold")), others);
    assert_eq!(one(held.expect("an answer")).await["id"], "held");
    let mut stream = Events::of(stream);
    assert_eq!(stream.next().await.expect("a message")["method"], "notifications/tools/list_changed");

    drop(stream);
    let stream = lab.ask("alice", get()).await.expect("a stream");
    assert_eq!(stream.status(), 200, "the stream can be opened again");
    lab.ask("alice", bare(Method::DELETE, Some(&session), String::new())).await.expect("an answer");
    assert_eq!(Events::of(stream).next().await, None, "it ends with its session");
}

#[tokio::test]
async fn notifications_of_a_client_reach_its_session() {
    let lab = Lab::new(|_| {});
    let session = lab.session("alice").await;
    let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});

    assert_eq!(lab.ask("alice", legacy(Some(&session), &told)).await.expect("an answer").status(), 202);

    let heard = lab.ask("alice", legacy(Some(&session), &call(1, "heard", json!({})))).await.expect("an answer");
    assert_eq!(one(heard).await["result"]["heard"], json!([told]));
    let not_there = lab.ask("alice", modern(&told)).await.expect("an answer");
    assert_eq!(not_there.status(), 202);
    assert_eq!(lab.starts(), 1, "a notification starts nothing");
}

#[tokio::test]
async fn a_question_that_reaches_nobody_is_refused() {
    let lab = Lab::new(|options| options.longest_message = 4_000);
    let session = lab.session("alice").await;
    let questions = vec![r#"{"jsonrpc":"2.0","id":"more","method":"roots/list"}"#; 200];
    let asks_too_much = call(1, "raw", json!({"line": questions.join("\n")}));

    let stream = lab.ask("alice", legacy(Some(&session), &asks_too_much)).await.expect("a stream");
    let told = Events::of(stream).rest().await;

    assert_eq!(told[0]["id"], "more");
    assert_eq!(told.last().expect("an end")["error"]["code"], -32603);
    // The child may still be asking.
    let heard = lab.ask("alice", legacy(Some(&session), &call(2, "heard", json!({})))).await.expect("an answer");
    let heard = if heard.headers()["content-type"] == "application/json" {
        one(heard).await
    } else {
        Events::of(heard).rest().await.pop().expect("an answer")
    };
    let refused = &heard["result"]["heard"][0];
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("more"), &json!(-32603)));
}
