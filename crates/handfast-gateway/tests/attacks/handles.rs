//! Handles: the server behind believes whoever names a workspace, so that nobody else's name may get there.

use serde_json::{Value, json};

use crate::support::behind::{World, workshop};

#[tokio::test]
async fn a_handle_is_good_for_its_owner_and_nothing_like_it_is() {
    let world = World::new(workshop()).await;
    let (alice, bob) = (world.user("alice"), world.user("bob"));
    let (handle, other) = (alice.create().await, bob.create().await);
    drop(world.seen());

    assert!(!alice.call("use", json!({"workspace_id": handle})).await.is_error());
    assert_eq!(world.seen()[0].arguments(), json!({"workspace_id": "ws-100001"}));

    let foreign = bob.call("use", json!({"workspace_id": handle})).await;
    let mut unknown = handle.clone();
    unknown.replace_range(handle.len() - 5.., "AAAAA");
    let unknown = bob.call("use", json!({"workspace_id": unknown})).await;
    assert_eq!(foreign, unknown, "it is not told that there is one");
    // The raw name, of a kind that can be guessed; of another kind; in another spelling; inside of a longer word.
    let upper = handle.to_uppercase();
    for shown in
        ["ws-100001", &upper, &handle[..handle.len() - 1], &format!("{handle}A"), &format!(" {handle}"), "", &other]
    {
        assert!(alice.call("use", json!({"workspace_id": shown})).await.is_error(), "{shown}");
    }
    for shown in [json!(["ws-100001"]), json!([handle, "ws-100002"]), json!({"a": 1}), json!(100_001), json!(true)] {
        assert!(alice.call("use", json!({"workspace_id": shown})).await.is_error(), "{shown}");
    }
    assert!(foreign.is_error() && world.seen().is_empty());
}

#[tokio::test]
async fn a_handle_of_another_kind_is_refused() {
    let world = World::new(workshop()).await;
    let alice = world.user("alice");
    let workspace = alice.create().await;
    let order = alice.call("order", json!({})).await.json()["result"]["structuredContent"]["order_id"].clone();
    drop(world.seen());

    assert!(alice.call("use", json!({"workspace_id": order})).await.is_error());
    assert!(alice.call("use", json!({"order_id": workspace})).await.is_error());
    assert!(world.seen().is_empty());
    assert!(!alice.call("use", json!({"order_id": order, "workspace_id": workspace})).await.is_error());
    assert_eq!(world.seen()[0].arguments(), json!({"order_id": 101_002, "workspace_id": "ws-100001"}));
}

#[tokio::test]
async fn a_raw_name_does_not_pass_under_a_name_that_other_readers_take_for_it() {
    let world = World::new(workshop()).await;
    let alice = world.user("alice");
    let handle = alice.create().await;
    drop(world.seen());

    for name in ["Workspace_Id", "WORKSPACE_ID", "wor\u{212a}space_id", "work\u{17f}pace_id"] {
        assert!(alice.call("use", json!({name: "ws-100002"})).await.is_error(), "{name}");
        let both = alice.call("use", json!({"workspace_id": handle, name: handle})).await;
        assert_eq!((both.status, both.code()), (400, json!(-32600)), "{name}");
    }
    for name in ["lines", "LINES", "line\u{17f}"] {
        let lines = |shown: &str| json!({name: [{"workspace_id": handle}, {"WORKSPACE_ID": shown}]});
        assert!(alice.call("use", lines("ws-100002")).await.is_error(), "{name}");
        assert!(!alice.call("use", lines(&handle)).await.is_error(), "{name}");
    }
    assert!(world.seen().iter().all(|seen| !seen.body.contains("ws-100002")));
    // A tool that no rule knows, and a prompt, which take it by its name.
    assert!(alice.call("export", json!({"workspace_id": "ws-100002"})).await.is_error());
    let prompt = |shown: &str| json!({"name": "about", "arguments": {"workspace_id": shown}});
    assert_eq!(alice.modern("prompts/get", prompt("ws-100002"), &[]).await.code(), -32602);
    assert!(world.seen().is_empty());
    assert!(!alice.call("export", json!({"workspace_id": handle, "workspace": "ws-100002"})).await.is_error());
    alice.modern("prompts/get", prompt(&handle), &[]).await;
    assert!(world.seen().iter().all(|seen| seen.arguments()["workspace_id"] == "ws-100001"));
}

#[tokio::test]
async fn a_handle_in_a_longer_word_is_not_one() {
    let world = World::new(workshop()).await;
    let alice = world.user("alice");
    let handle = alice.create().await;
    drop(world.seen());

    let note = format!("x{handle} {handle}y <{handle}>");
    alice.call("use", json!({"workspace_id": handle, "note": note})).await;
    assert_eq!(world.seen()[0].arguments()["note"], format!("x{handle} {handle}y <ws-100001>"));
}

#[tokio::test]
async fn a_number_in_the_place_of_a_name_stays_json() {
    let world = World::new(workshop()).await;
    let alice = world.user("alice");
    let order = alice.call("order", json!({})).await.json()["result"]["structuredContent"]["order_id"].clone();
    drop(world.seen());

    let order = order.as_str().expect("a handle");
    alice.call("use", json!({"amounts": {order: 2}})).await;
    assert_eq!(world.seen()[0].arguments(), json!({"amounts": {"101001": 2}}));
}

#[tokio::test]
async fn a_resource_is_read_by_its_owner_only() {
    let world = World::new(workshop()).await;
    let (alice, bob) = (world.user("alice"), world.user("bob"));
    let handle = alice.create().await;
    drop(world.seen());

    let read = |handle: &str| json!({"uri": format!("ws://{handle}")});
    alice.modern("resources/read", read(&handle), &[]).await;
    let seen = world.seen();
    assert_eq!(seen[0].json()["params"]["uri"], "ws://ws-100001");
    assert_eq!(seen[0].header("mcp-name"), Some("ws://ws-100001"), "the header says what the body says");
    for (client, shown) in
        [(&bob, handle.as_str()), (&alice, "ws-100001"), (&alice, "ws%2D100001"), (&alice, &handle[1..])]
    {
        assert_eq!(client.modern("resources/read", read(shown), &[]).await.code(), -32602, "{shown}");
        assert_eq!(client.modern("resources/subscribe", read(shown), &[]).await.code(), -32602, "{shown}");
    }
    assert!(world.seen().is_empty());
}

#[tokio::test]
async fn a_task_is_read_and_cancelled_by_its_owner_only() {
    let world = World::new(workshop()).await;
    let (alice, bob) = (world.user("alice"), world.user("bob"));
    let task = alice.call("task", json!({})).await.json()["result"]["taskId"].as_str().expect("a handle").to_owned();
    drop(world.seen());

    for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
        for (client, shown) in [(&bob, task.as_str()), (&alice, "t-000001"), (&alice, &task[..task.len() - 1])] {
            assert_eq!(client.modern(method, json!({"taskId": shown}), &[]).await.code(), -32602, "{method} {shown}");
        }
        assert!(world.seen().is_empty(), "{method}");
        alice.modern(method, json!({"taskId": task}), &[]).await;
        assert_eq!(world.seen()[0].json()["params"]["taskId"], "t-000001");
    }
    let listened = |shown: &str| json!({"notifications": {"taskIds": [shown]}});
    assert_eq!(alice.modern("subscriptions/listen", listened("t-000001"), &[]).await.code(), -32602);
    assert_eq!(bob.modern("subscriptions/listen", listened(&task), &[]).await.code(), -32602);
    assert!(world.seen().is_empty());
    alice.modern("subscriptions/listen", listened(&task), &[]).await;
    assert_eq!(world.seen()[0].json()["params"]["notifications"]["taskIds"], json!(["t-000001"]));
}

#[tokio::test]
async fn what_somebody_else_was_given_first_opens_for_nobody_else() {
    let world = World::new(|seen| seen.result(&json!({"structuredContent": {"workspace_id": "ws-100001"}}))).await;
    let (alice, bob) = (world.user("alice"), world.user("bob"));
    let (first, second) = (alice.create().await, bob.create().await);
    drop(world.seen());

    assert_ne!(first, second);
    assert!(bob.call("use", json!({"workspace_id": second})).await.is_error());
    assert!(alice.call("use", json!({"workspace_id": second})).await.is_error());
    assert!(world.seen().is_empty());
    assert_ne!(alice.call("use", json!({"workspace_id": first})).await.json()["result"], Value::Null);
    assert_eq!(world.seen().len(), 1);
}
