//! States and the answers that go with them: the server behind carries out whatever comes with `inputResponses`.

use axum_core::body::Body;
use http::Response;
use serde_json::{Value, json};

use crate::support::behind::{Client, Got, Seen, World};

/// Asks until it is answered, with this state, and then does it.
fn asking(state: Option<&'static str>) -> impl Fn(&Seen) -> Response<Body> + Send + Sync + 'static {
    move |seen| match seen.json()["params"]["inputResponses"].get("sure") {
        Some(_) => seen.result(&json!({"resultType": "complete", "content": [{"type": "text", "text": "done"}]})),
        None => {
            let mut result = json!({"resultType": "input_required", "inputRequests": {"sure": {}}});
            if let Some(state) = state {
                result["requestState"] = state.into();
            }
            seen.result(&result)
        }
    }
}

async fn retry(client: &Client<'_>, tool: &str, arguments: Value, state: Option<&str>) -> Got {
    let mut params = json!({"name": tool, "arguments": arguments, "inputResponses": {"sure": {"action": "accept"}}});
    if let Some(state) = state {
        params["requestState"] = state.into();
    }
    client.modern("tools/call", params, &[]).await
}

async fn asked(client: &Client<'_>) -> String {
    let got = client.call("pay", json!({"amount": 5})).await;
    got.json()["result"]["requestState"].as_str().expect("a state").to_owned()
}

fn is_done(got: &Got) -> bool {
    got.json()["result"]["resultType"] == "complete"
}

#[tokio::test]
async fn an_answer_that_was_not_asked_for_does_not_arrive() {
    for state in [None, Some("step-2-of-the-server")] {
        let world = World::new(asking(state)).await;
        let alice = world.user("alice");

        let got = retry(&alice, "pay", json!({"amount": 5}), None).await;
        assert_eq!(got.json()["result"]["resultType"], "input_required", "it asks");
        assert_eq!(world.seen()[0].json()["params"].get("inputResponses"), None);
        // Also not beside one that was.
        let sealed = asked(&alice).await;
        let answers = json!({"sure": {"action": "accept"}, "other": {"action": "accept"}});
        let params =
            json!({"name": "pay", "arguments": {"amount": 5}, "inputResponses": answers, "requestState": sealed});
        drop(world.seen());
        assert!(is_done(&alice.modern("tools/call", params, &[]).await));
        let seen = world.seen()[0].json()["params"].clone();
        assert_eq!(seen["inputResponses"], json!({"sure": {"action": "accept"}}));
        assert_eq!(seen.get("requestState").and_then(Value::as_str), state, "its own, or none where it had none");
    }
}

#[tokio::test]
async fn a_state_is_good_for_the_request_that_it_was_given_to() {
    let world = World::new(asking(Some("step-2-of-the-server"))).await;
    let (alice, bob) = (world.user("alice"), world.user("bob"));
    let phone = world.wish(|wish| wish.client = "phone".to_owned());
    let tenant = world.wish(|wish| drop(wish.claims.insert("tenant".to_owned(), "other".into())));
    let sealed = asked(&alice).await;
    drop(world.seen());

    let same = json!({"amount": 5});
    let cut = &sealed[..sealed.len() - 1];
    for (client, tool, arguments, state) in [
        (&bob, "pay", same.clone(), sealed.as_str()),
        (&phone, "pay", same.clone(), &sealed),
        (&tenant, "pay", same.clone(), &sealed),
        (&alice, "refund", same.clone(), &sealed),
        (&alice, "pay", json!({"amount": 500}), &sealed),
        (&alice, "pay", json!({"amount": 5, "to": "bob"}), &sealed),
        (&alice, "pay", json!({}), &sealed),
        (&alice, "pay", Value::Null, &sealed),
        (&alice, "pay", same.clone(), "step-2-of-the-server"),
        (&alice, "pay", same.clone(), cut),
        (&alice, "pay", same.clone(), ""),
    ] {
        let got = retry(client, tool, arguments.clone(), Some(state)).await;
        assert_eq!(got.code(), -32602, "{tool} {arguments}");
        assert_eq!(got.json()["error"]["message"], "Invalid or expired requestState", "whatever is wrong with it");
    }
    // Of another method, and of one that never asks.
    let read = json!({"uri": "pay", "requestState": sealed});
    assert_eq!(alice.modern("resources/read", read, &[]).await.code(), -32602);
    for method in ["tools/list", "completion/complete", "server/discover", "tasks/get"] {
        assert_eq!(alice.modern(method, json!({"requestState": sealed}), &[]).await.code(), -32602, "{method}");
    }
    assert!(world.seen().is_empty());
    assert!(is_done(&retry(&alice, "pay", json!({"amount": 5.0}), Some(&sealed)).await), "5 and 5.0 are one number");
}

#[tokio::test]
async fn a_state_that_may_be_used_once_is_used_once() {
    for single_use in [true, false] {
        let world =
            World::with(asking(Some("step-2-of-the-server")), |parts, _| parts.options.single_use = single_use).await;
        let alice = world.user("alice");
        let sealed = asked(&alice).await;
        // Half an answer does not use it up.
        let params = json!({"name": "pay", "arguments": {"amount": 5}, "requestState": sealed});
        assert!(!is_done(&alice.modern("tools/call", params, &[]).await));

        assert!(is_done(&retry(&alice, "pay", json!({"amount": 5}), Some(&sealed)).await));
        drop(world.seen());
        let again = retry(&alice, "pay", json!({"amount": 5}), Some(&sealed)).await;
        assert_eq!(world.seen().len(), usize::from(!single_use));
        assert_eq!(again.json().get("error").is_some(), single_use);
    }
}

#[tokio::test]
async fn a_state_that_nothing_takes_back_is_told_to_nobody() {
    let world = World::new(|seen| seen.result(&json!({"tools": [], "requestState": "step-2-of-the-server"}))).await;
    let got = world.user("alice").modern("tools/list", json!({}), &[]).await;

    assert_eq!(got.json()["result"], json!({"tools": []}));
}
