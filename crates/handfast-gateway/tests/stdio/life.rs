//! When children start and end, and what bounds they have.

use std::{collections::HashSet, time::Duration};

use handfast_gateway::upstream::Down;
use http::Method;
use serde_json::json;

use crate::lab::{Events, Lab, bare, call, ended, legacy, modern, one, within};

#[tokio::test]
async fn a_child_that_dies_loses_what_runs_and_is_followed_by_another() {
    let lab = Lab::new(|_| {});
    let before = lab.call("alice", "echo", json!({})).await;
    let mut held = call(1, "hold", json!({}));
    held["params"]["_meta"] = json!({"progressToken": "t"});
    let progress = async {
        while lab.call("alice", "heard", json!({})).await["result"]["calls"].as_u64() < Some(3) {}
        lab.call("alice", "progress", json!({})).await
    };
    let (stream, _) = tokio::join!(lab.ask("alice", modern(&held)), progress);
    let stream = Events::of(stream.expect("a stream"));

    let died = lab.ask("alice", modern(&call(2, "die", json!({})))).await;

    assert!(matches!(died, Err(Down::Unreachable(_))), "{died:?}");
    let rest = stream.rest().await;
    assert_eq!((rest[1]["id"].as_u64(), rest[1]["error"]["code"].as_i64()), (Some(1), Some(-32603)));
    let after = lab.call("alice", "echo", json!({})).await;
    assert_ne!(before["result"]["pid"], after["result"]["pid"]);
    assert_eq!(after["result"]["calls"], 1);
}

#[tokio::test]
async fn a_session_ends_with_its_child() {
    let lab = Lab::new(|_| {});
    let session = lab.session("alice").await;
    let ask = |tool: &str| lab.ask("alice", legacy(Some(&session), &call(1, tool, json!({}))));

    assert!(matches!(ask("die").await, Err(Down::Unreachable(_))));

    assert_eq!(ask("echo").await.expect("an answer").status(), 404, "it is not begun again unasked");
    assert_eq!(lab.starts(), 1);
}

#[tokio::test]
async fn what_a_child_has_started_ends_with_it() {
    let lab = Lab::new(|_| {});

    let died = lab.ask("alice", modern(&call(1, "fork", json!({"die": true})))).await;

    assert!(matches!(died, Err(Down::Unreachable(_))), "though its output is still held open");
    ended(lab.born().await).await;
}

#[tokio::test]
async fn all_children_end_with_the_upstream() {
    let lab = Lab::new(|_| {});
    lab.call("alice", "fork", json!({})).await;
    let session = lab.session("bob").await;
    let stream = lab.ask("bob", bare(Method::GET, Some(&session), String::new())).await.expect("a stream");
    let (alice, bob) = (lab.born().await, lab.born().await);

    drop(lab.upstream);

    ended(alice).await;
    ended(bob).await;
    assert_eq!(Events::of(stream).next().await, None);
}

#[tokio::test]
async fn a_child_that_nobody_needs_ends() {
    let lab = Lab::new(|options| options.idle = Duration::from_millis(1));

    lab.call("alice", "echo", json!({})).await;

    ended(lab.born().await).await;
    assert_eq!(lab.call("alice", "echo", json!({})).await["result"]["calls"], 1);
}

#[tokio::test]
async fn a_child_that_somebody_waits_for_is_not_idle() {
    let lab = Lab::new(|options| {
        options.idle = Duration::from_millis(1);
        options.patience = Duration::from_secs(1);
    });

    let late = lab.ask("alice", modern(&call(1, "hold", json!({})))).await;

    assert!(matches!(late, Err(Down::Late)), "{late:?}");
}

#[tokio::test]
async fn a_child_has_only_so_much_time_to_answer_and_is_told() {
    let lab = Lab::new(|options| options.patience = Duration::from_secs(5));
    lab.call("alice", "echo", json!({})).await;

    let late = lab.ask("alice", modern(&call("mine", "hold", json!({})))).await;

    assert!(matches!(late, Err(Down::Late)), "{late:?}");
    let heard = lab.call("alice", "heard", json!({})).await["result"].clone();
    let told = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": heard["held"][0], "reason": "nobody waits any more"}});
    assert!(heard["heard"].as_array().expect("a list").contains(&told), "{heard}");
}

#[tokio::test]
async fn a_stream_may_not_fall_silent_but_for_a_question() {
    let lab = Lab::new(|options| options.patience = Duration::from_secs(5));
    let session = lab.session("alice").await;
    let ask = |tool: &str, arguments| lab.ask("alice", legacy(Some(&session), &call(tool, tool, arguments)));
    let line = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;

    let silent = Events::of(ask("raw", json!({"line": line})).await.expect("a stream"));
    let silent = silent.rest().await;
    assert_eq!((silent.len(), &silent[1]["id"], &silent[1]["error"]["code"]), (2, &json!("raw"), &json!(-32603)));

    let mut asked = Events::of(ask("ask", json!({})).await.expect("a stream"));
    assert_eq!(asked.next().await.expect("a question")["id"], "q");
    let longer_than_patience = tokio::time::timeout(Duration::from_secs(6), asked.next()).await;
    assert!(longer_than_patience.is_err(), "a person may take his time: {longer_than_patience:?}");
}

#[tokio::test]
async fn a_message_that_is_too_long_fails_its_own_request_alone() {
    let lab = Lab::new(|options| options.longest_message = 10_000);
    let held = lab.ask("alice", modern(&call("held", "hold", json!({"said": "x"}))));
    let others = async {
        while lab.call("alice", "heard", json!({})).await["result"]["calls"].as_u64() < Some(2) {}
        let huge = lab.ask("alice", modern(&call(2, "huge", json!({"length": 3_000_000})))).await;
        assert!(matches!(huge, Err(Down::Unreachable(_))), "{huge:?}");
        let within = lab.call("alice", "huge", json!({"length": 9_900})).await;
        assert_eq!(within["result"]["text"].as_str().map(str::len), Some(9_900));
        lab.call("alice", "release", json!({})).await
    };

    let (held, _) = tokio::join!(held, others);

    assert_eq!(one(held.expect("an answer")).await["result"]["said"], "x");
}

#[tokio::test]
async fn a_stream_that_nobody_reads_is_given_up() {
    let lab = Lab::new(|options| options.longest_message = 1_000);
    let said = vec![r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"aaaaaaaa"}}"#; 1_000];
    let line = said.join("\n") + "\n" + r#"{"jsonrpc":"2.0","id":ID,"result":{}}"#;

    let slow = lab.ask("alice", modern(&call("slow", "raw", json!({"line": line})))).await.expect("a stream");
    // It is read only when the child has said all of it.
    lab.call("alice", "echo", json!({})).await;

    let told = Events::of(slow).rest().await;
    assert!(told.len() < 100, "{}", told.len());
    assert_eq!(told.last().expect("an end")["error"]["code"], -32603);
}

#[tokio::test]
async fn there_are_only_so_many_children() {
    let lab = Lab::new(|options| options.most_children = 2);
    lab.call("alice", "echo", json!({})).await;
    let alice = lab.born().await;
    lab.call("bob", "echo", json!({})).await;

    // Alice's was idle for longest.
    lab.call("carol", "echo", json!({})).await;
    ended(alice).await;
    assert_eq!(lab.call("bob", "echo", json!({})).await["result"]["calls"], 2);

    let (bobs, carols) = (
        lab.ask("bob", modern(&call("b", "hold", json!({})))),
        lab.ask("carol", modern(&call("c", "hold", json!({})))),
    );
    let others = async {
        for user in ["bob", "carol"] {
            while lab.call(user, "heard", json!({})).await["result"]["calls"].as_u64() < Some(3) {}
        }
        let refused = lab.ask("alice", modern(&call(1, "echo", json!({})))).await;
        lab.call("bob", "release", json!({})).await;
        lab.call("carol", "release", json!({})).await;
        refused
    };
    let (bobs, carols, refused) = tokio::join!(bobs, carols, others);
    assert!(matches!(refused, Err(Down::Full)), "{refused:?}");
    assert!(bobs.is_ok() && carols.is_ok());
}

#[tokio::test]
async fn a_child_that_ends_at_once_is_not_started_again_and_again() {
    let lab = Lab::new(|_| {});
    std::fs::write(lab.path("broken"), "").expect("a file");

    for _ in 0..200 {
        let down = lab.ask("alice", modern(&call(1, "echo", json!({})))).await;
        assert!(matches!(down, Err(Down::Unreachable(_))), "{down:?}");
    }

    assert!(lab.starts() < 10, "{} starts", lab.starts());
    std::fs::remove_file(lab.path("broken")).expect("a file");
    // It rests for a while, and recovers.
    within(async {
        while lab.ask("alice", modern(&call(1, "echo", json!({})))).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn one_that_cannot_be_started_is_unreachable() {
    let lab = Lab::new(|options| options.program = "/no/such/program".to_owned());

    let down = lab.ask("alice", modern(&call(1, "echo", json!({})))).await;

    assert!(matches!(down, Err(Down::Unreachable(_))), "{down:?}");
}

#[tokio::test]
async fn a_child_inherits_what_is_not_hidden() {
    let lab = Lab::new(|options| {
        options.hidden.push("CARGO_PKG_NAME".to_owned());
        options.environment.push(("GIVEN".to_owned(), "value".to_owned()));
    });

    let answer = lab.call("alice", "variables", json!({})).await;

    let variables = answer["result"]["variables"].as_object().expect("variables");
    let names: HashSet<&str> = variables.keys().map(String::as_str).collect();
    assert!(std::env::var_os("CARGO_PKG_NAME").is_some(), "the test has it");
    assert!(!names.contains("CARGO_PKG_NAME"));
    assert!(names.contains("PATH"));
    assert_eq!(variables["GIVEN"], "value");
    let folder = lab.path("").canonicalize().expect("a folder");
    assert_eq!(answer["result"]["folder"], folder.to_string_lossy().trim_end_matches('/'));
}
