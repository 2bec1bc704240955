//! Requests without a session: each is answered to whom it was asked by.

use futures_util::future::join_all;
use handfast::{Caller, ClientId, Tenant};
use handfast_gateway::upstream::{Children, Down, Upstream};
use http::Method;
use serde_json::{Value, json};

use crate::lab::{Events, Lab, bare, call, caller, modern, modern_text, one, text, within};

#[tokio::test]
async fn two_principals_never_share_a_child() {
    let lab = Lab::new(|_| {});

    let (alice, bob) = (lab.call("alice", "echo", json!({})).await, lab.call("bob", "echo", json!({})).await);
    let again = lab.call("alice", "echo", json!({})).await;

    assert_ne!(alice["result"]["pid"], bob["result"]["pid"]);
    assert_eq!(alice["result"]["pid"], again["result"]["pid"], "a continuation reaches the same child");
    assert_eq!((bob["result"]["calls"].as_u64(), again["result"]["calls"].as_u64()), (Some(1), Some(2)));
}

#[tokio::test]
async fn another_tenant_or_client_is_another_caller() {
    let lab = Lab::new(|_| {});
    let alice = || caller("alice");
    let callers: [Caller; 3] = [
        alice(),
        alice().in_tenant(Tenant::new("north").expect("a tenant")),
        alice().by_client(ClientId::new("app").expect("a client")),
    ];

    for caller in &callers {
        let answer = within(lab.upstream.ask(caller, modern(&call(1, "echo", json!({}))))).await.expect("an answer");
        assert_eq!(one(answer).await["result"]["calls"], 1);
    }
    assert_eq!(lab.starts(), 3);
}

#[tokio::test]
async fn first_requests_at_once_start_one_child() {
    let lab = Lab::new(|_| {});

    let answers = join_all((0..20).map(|_| lab.call("alice", "echo", json!({})))).await;

    assert!(answers.iter().all(|answer| answer["result"]["pid"] == answers[0]["result"]["pid"]));
    assert_eq!(lab.starts(), 1);
}

#[tokio::test]
async fn nobody_in_particular_is_not_answered() {
    for children in [Children::PerPrincipal, Children::Shared] {
        let lab = Lab::new(|options| options.children = children);

        let refused = lab.upstream.ask(&Caller::anonymous(), modern(&call(1, "echo", json!({})))).await;

        assert!(matches!(refused, Err(Down::Nobody)));
        assert_eq!(lab.starts(), 0);
    }
}

#[tokio::test]
async fn equal_ids_of_two_users_get_their_own_answers() {
    let lab = Lab::new(|options| options.children = Children::Shared);
    let hold = |user: &'static str| lab.ask(user, modern(&call("same", "hold", json!({"said": user}))));
    let release = async {
        // Both wait by now: what one says the child hears in turn.
        while lab.call("carol", "heard", json!({})).await["result"]["calls"].as_u64() < Some(3) {}
        lab.call("carol", "release", json!({})).await
    };

    let (alice, bob, _) = tokio::join!(hold("alice"), hold("bob"), release);
    let (alice, bob) = (one(alice.expect("an answer")).await, one(bob.expect("an answer")).await);

    assert_eq!((&alice["id"], &alice["result"]["said"]), (&json!("same"), &json!("alice")));
    assert_eq!((&bob["id"], &bob["result"]["said"]), (&json!("same"), &json!("bob")));
    assert_eq!(alice["result"]["pid"], bob["result"]["pid"]);
}

#[tokio::test]
async fn nothing_but_ids_and_tokens_is_written_anew() {
    let lab = Lab::new(|_| {});
    let body = r#"{ "params" : {"name":"echo","arguments":{"n":123456789012345678901234567890,"f":1.0e2},
        "_meta":{"progressToken":"mine","x":{"progressToken":"mine"}}}, "id": "q\u0031", "more":[1 ,2],
        "method":"tools/call","jsonrpc":"2.0"}"#;

    let answer = one(lab.ask("alice", modern_text(body.to_owned())).await.expect("an answer")).await;

    assert_eq!(answer["id"], "q1");
    let expected = body.replace('\n', " ").replace(r#""q\u0031""#, "1").replacen(r#""mine""#, "1", 1);
    assert_eq!(answer["result"]["line"], format!("{expected}\n"));
}

#[tokio::test]
async fn one_message_never_becomes_two_lines() {
    let lab = Lab::new(|_| {});
    let said = "a\u{2028}{\"jsonrpc\":\"2.0\"}\u{85}b";
    let body = call(1, "echo", json!({"said": said})).to_string().replace(',', ",\r\n");

    let answer = one(lab.ask("alice", modern_text(body)).await.expect("an answer")).await;

    assert_eq!(answer["result"]["said"], said);
    let line = answer["result"]["line"].as_str().expect("a line");
    assert_eq!(line.find(['\n', '\r', '\u{85}', '\u{2028}']), Some(line.len() - 1), "{line:?}");
}

#[tokio::test]
async fn an_answer_stays_as_it_was_said() {
    let lab = Lab::new(|_| {});
    let line = r#"{ "result": {"n":1.0e2, "big":123456789012345678901234567890,"b":1,"a":"\u00e9" }, "id":ID,  "jsonrpc":"2.0","x":null}"#;

    let answer = lab.ask("alice", modern(&call("mine", "raw", json!({"line": line})))).await.expect("an answer");

    assert_eq!(text(answer).await, line.replace("ID", r#""mine""#));
}

#[tokio::test]
async fn progress_goes_to_the_request_that_asked() {
    let lab = Lab::new(|options| options.children = Children::Shared);
    let with_token = |id: &str, tool: &str| {
        let mut request = call(id, tool, json!({}));
        request["params"]["_meta"] = json!({"progressToken": "same"});
        modern(&request)
    };
    let bob = async {
        while lab.call("carol", "heard", json!({})).await["result"]["calls"].as_u64() < Some(2) {}
        lab.ask("bob", with_token("b", "progress")).await
    };

    let (alice, bob) = tokio::join!(lab.ask("alice", with_token("a", "hold")), bob);
    let (mut alice, bob) = (Events::of(alice.expect("a stream")), Events::of(bob.expect("a stream")));

    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
        "params": {"progressToken": "same", "progress": 1.5}});
    let bob = bob.rest().await;
    assert_eq!(bob.len(), 2, "{bob:?}");
    assert_eq!((&bob[0], &bob[1]["id"]), (&progress, &json!("b")));
    assert_eq!(alice.next().await, Some(progress));
    lab.call("carol", "release", json!({})).await;
    let alice = alice.rest().await;
    assert_eq!((alice.len(), &alice[0]["id"]), (1, &json!("a")));
}

#[tokio::test]
async fn what_belongs_to_no_request_goes_to_the_only_one_and_never_to_another_user() {
    let lab = Lab::new(|_| {});
    let answer = lab.ask("alice", modern(&call(1, "log", json!({"said": "x"})))).await.expect("an answer");
    let told = Events::of(answer).rest().await;
    assert_eq!((told.len(), &told[0]["params"]["data"]), (2, &json!("x")));

    let lab = Lab::new(|options| options.children = Children::Shared);
    let answer = one(lab.ask("alice", modern(&call(1, "log", json!({"said": "x"})))).await.expect("an answer")).await;
    assert_eq!(answer["id"], 1, "an answer, and not a stream");
}

#[tokio::test]
async fn a_question_of_a_server_without_sessions_reaches_nobody() {
    let lab = Lab::new(|_| {});
    let line = r#"{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}"#.to_owned()
        + "\n"
        + r#"{"jsonrpc":"2.0","id":ID,"result":{}}"#;

    let answer = lab.ask("alice", modern(&call(1, "raw", json!({"line": line})))).await.expect("an answer");

    assert_eq!(one(answer).await, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
}

#[tokio::test]
async fn a_child_is_told_when_nobody_waits_any_more() {
    let lab = Lab::new(|_| {});
    let mut hold = call("mine", "hold", json!({}));
    hold["params"]["_meta"] = json!({"progressToken": 5});
    {
        // Somebody who goes away before anything was said, and after.
        let waiting = lab.ask("alice", modern(&call("mine", "hold", json!({}))));
        tokio::pin!(waiting);
        let asked = async { while lab.call("alice", "heard", json!({})).await["result"]["calls"] != 2 {} };
        tokio::select! {
            biased;
            _ = &mut waiting => panic!("nobody answers"),
            () = asked => {}
        }
    }
    let progress = async {
        while lab.call("alice", "heard", json!({})).await["result"]["calls"].as_u64() < Some(5) {}
        lab.call("alice", "progress", json!({})).await
    };
    let (stream, _) = tokio::join!(lab.ask("alice", modern(&hold)), progress);
    let mut stream = Events::of(stream.expect("a stream"));
    assert_eq!(stream.next().await.expect("progress")["params"]["progressToken"], 5);
    drop(stream);

    let heard = lab.call("alice", "heard", json!({})).await;

    let heard = heard["result"]["heard"].as_array().expect("a list").clone();
    let cancelled: Vec<&Value> = heard.iter().filter(|told| told["method"] == "notifications/cancelled").collect();
    assert_eq!(cancelled.len(), 2, "{heard:?}");
    assert_eq!(cancelled[0]["params"]["requestId"], 1, "the id that the child knows");
}

#[tokio::test]
async fn one_user_cannot_cancel_what_another_asked() {
    let lab = Lab::new(|options| options.children = Children::Shared);
    let cancel = || {
        modern(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "same", "x": 1}}))
    };
    let waiting = lab.ask("alice", modern(&call("same", "hold", json!({}))));
    let others = async {
        while lab.call("carol", "heard", json!({})).await["result"]["calls"].as_u64() < Some(2) {}
        assert_eq!(lab.ask("bob", cancel()).await.expect("an answer").status(), 202);
        assert_eq!(lab.call("carol", "heard", json!({})).await["result"]["heard"], json!([]));
        assert_eq!(lab.ask("alice", cancel()).await.expect("an answer").status(), 202);
        lab.call("carol", "heard", json!({})).await["result"]["heard"].clone()
    };

    let (answer, heard) = tokio::join!(waiting, others);

    // The child still holds it: whoever cancels does not wait for that.
    let answer = one(answer.expect("an answer")).await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("same"), &json!(-32800)));
    let told = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "x": 1}});
    assert_eq!(heard, json!([told]));
}

#[tokio::test]
async fn a_subscription_hears_its_own_notifications_under_its_own_id() {
    let lab = Lab::new(|options| options.children = Children::Shared);
    let listen =
        |id: &str| modern(&json!({"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": {}}));
    let subscription = |message: Option<Value>| {
        message.expect("a message")["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].clone()
    };

    let mut alice = Events::of(lab.ask("alice", listen("same")).await.expect("a stream"));
    let mut bob = Events::of(lab.ask("bob", listen("bobs")).await.expect("a stream"));
    assert_eq!(subscription(alice.next().await), "same");
    assert_eq!(subscription(bob.next().await), "bobs");
    lab.call("carol", "touch", json!({})).await;
    assert_eq!(subscription(alice.next().await), "same");
    assert_eq!(subscription(bob.next().await), "bobs");

    drop(bob);
    let heard = lab.call("carol", "heard", json!({})).await;
    assert_eq!(heard["result"]["heard"][0]["params"]["requestId"], 2);
}

#[tokio::test]
async fn noise_is_no_answer_and_does_no_harm() {
    let lab = Lab::new(|_| {});

    assert_eq!(lab.call("alice", "noise", json!({})).await["result"]["calls"], 1);
    assert_eq!(lab.call("alice", "echo", json!({})).await["result"]["calls"], 2);
}

#[tokio::test]
async fn errors_have_the_status_that_the_protocol_gives_them() {
    let lab = Lab::new(|_| {});
    let status = async |request| lab.ask("alice", request).await.expect("an answer").status().as_u16();
    let unknown = json!({"jsonrpc": "2.0", "id": 1, "method": "no/such"});

    assert_eq!(status(modern(&unknown)).await, 404);
    assert_eq!(status(modern(&json!({"jsonrpc": "2.0", "id": 1, "result": {}}))).await, 400);
    assert_eq!(status(modern_text("{".to_owned())).await, 400);
    assert_eq!(status(modern_text("[]".to_owned())).await, 400);
    let mut of_another_era = bare(Method::DELETE, None, String::new());
    of_another_era.headers_mut().insert("mcp-protocol-version", http::HeaderValue::from_static("2026-07-28"));
    assert_eq!(status(of_another_era).await, 405);
    // The body alone says which revision it is.
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let mut told_within = call(1, "echo", json!({}));
    told_within["params"]["_meta"] = meta;
    assert_eq!(status(bare(Method::POST, None, told_within.to_string())).await, 200);
}
