//! Twins that are spoken to, or answer, in another way than the sound one: nested handles, objects without a label,
//! refusals that are no errors, answers that show little, and ways to share.

mod support;

use serde_json::{Value, json};
use support::{Client, is_accepted, scene};

/// Opens a workspace, writes a note to it as its owner, and gives its handle.
async fn opened(client: &Client, arguments: Value, into: impl Fn(&Value) -> Value) -> Value {
    let minted = client.tool("open_workspace", arguments).await;
    let handle = minted["result"]["structuredContent"]["workspace_id"].clone();
    let mut note = into(&handle);
    note["text"] = json!("note-of-alice");

    let written = client.tool("append_note", note).await;

    assert!(is_accepted(&written), "{written}");
    handle
}

fn nested(handle: &Value) -> Value {
    json!({"target": {"workspace_id": handle}})
}

fn flat(handle: &Value) -> Value {
    json!({"workspace_id": handle})
}

#[tokio::test]
async fn nested_handles_are_taken_inside_an_object_only() {
    for (name, admits_stranger) in [("nested-handles", false), ("nested-handles-flawed", true)] {
        let scene = scene(name).await;
        let handle = opened(&scene.a, json!({"label": "label-of-alice"}), nested).await;

        let own = scene.a.tool("read_workspace", nested(&handle)).await;
        let beside = scene.a.tool("read_workspace", flat(&handle)).await;
        let foreign = scene.b.tool("read_workspace", nested(&handle)).await;
        let forged = scene.b.tool("read_workspace", nested(&json!("ws-00000000000000000000000000000000"))).await;

        assert!(is_accepted(&own) && own.to_string().contains("label-of-alice"), "{name}: {own}");
        assert_eq!(beside["error"]["code"], -32602, "{name}: {beside}");
        assert_eq!(is_accepted(&foreign), admits_stranger, "{name}: {foreign}");
        assert!(!is_accepted(&forged), "{name}: {forged}");
    }
}

#[tokio::test]
async fn unlabelled_objects_hold_nothing_until_something_is_written() {
    for (name, admits_stranger) in [("unlabelled", false), ("unlabelled-flawed", true)] {
        let scene = scene(name).await;
        let minted = scene.a.tool("open_workspace", json!({})).await;
        let handle = opened(&scene.a, json!({}), flat).await;

        let foreign = scene.b.tool("read_workspace", flat(&handle)).await;

        assert!(is_accepted(&minted) && !minted.to_string().contains("alice"), "{name}: {minted}");
        assert_eq!(is_accepted(&foreign), admits_stranger, "{name}: {foreign}");
        assert_eq!(foreign.to_string().contains("note-of-alice"), admits_stranger, "{name}: {foreign}");
    }
}

#[tokio::test]
async fn polite_twins_say_no_in_results_that_are_no_errors() {
    for (name, admits_stranger) in [("polite", false), ("polite-flawed", true)] {
        let scene = scene(name).await;
        let handle = opened(&scene.a, json!({"label": "label-of-alice"}), flat).await;

        let foreign = scene.b.tool("read_workspace", flat(&handle)).await;
        let forged = scene.b.tool("read_workspace", flat(&json!("ws-00000000000000000000000000000000"))).await;

        assert!(is_accepted(&foreign) && is_accepted(&forged), "{name}: {foreign} {forged}");
        assert_eq!(foreign.to_string().contains("label-of-alice"), admits_stranger, "{name}: {foreign}");
        assert!(!forged.to_string().contains("label-of-alice"), "{name}: {forged}");
    }
}

#[tokio::test]
async fn polite_twins_meet_a_bad_state_with_the_same_manners() {
    for name in ["polite", "polite-flawed"] {
        let scene = scene(name).await;
        let handle = opened(&scene.a, json!({"label": "x"}), flat).await;
        let retry = |state: Value| json!({"requestState": state, "inputResponses": {"confirm": {"action": "accept", "content": {"confirm": true}}}});
        let asked = scene.a.tool("archive_workspace", flat(&handle)).await;

        let honest =
            scene.a.call("archive_workspace", flat(&handle), retry(asked["result"]["requestState"].clone())).await;
        let random = scene.a.call("archive_workspace", flat(&handle), retry(json!("bm8"))).await;

        assert!(is_accepted(&honest) && honest.to_string().contains("archived"), "{name}: {honest}");
        assert!(is_accepted(&random) && !random.to_string().contains("archived"), "{name}: {random}");
    }
}

const FORGED: &str = "ws-00000000000000000000000000000000";

#[tokio::test]
async fn private_value_shows_a_number_and_nothing_that_was_written() {
    for (name, admits_stranger) in [("private-value", false), ("private-value-flawed", true)] {
        let scene = scene(name).await;
        let minted = scene.a.tool("open_workspace", json!({"label": "label-of-alice"})).await;
        let handle = opened(&scene.a, json!({"label": "label-of-alice"}), flat).await;
        let other = scene.b.open("label-of-bob").await;
        let read = async |client: &Client, handle: &Value| {
            client.tool("read_workspace", flat(handle)).await["result"]["structuredContent"].clone()
        };

        let (own, again) = (read(&scene.a, &handle).await, read(&scene.a, &handle).await);
        let (foreign, bobs) = (read(&scene.b, &handle).await, read(&scene.b, &other).await);

        let code = own["code"].as_str().expect("a code");
        assert!(code.len() == 12 && code.bytes().all(|byte| byte.is_ascii_digit()), "{name}: {code}");
        assert_eq!(own, json!({"workspace_id": handle, "code": code}), "{name}");
        assert_eq!((&own, foreign == own), (&again, admits_stranger), "{name}: {foreign}");
        assert_ne!(bobs["code"], own["code"], "{name}");
        let data = &minted["result"]["structuredContent"];
        assert_eq!(*data, json!({"workspace_id": data["workspace_id"]}), "{name}");
        for (method, params) in [
            ("prompts/get", json!({"name": "summarise_workspace", "arguments": flat(&handle)})),
            ("resources/read", json!({"uri": format!("workspace://{}/notes", handle.as_str().expect("text"))})),
        ] {
            let message = scene.a.request(method, params).await.message().to_string();
            assert!(message.contains(code) && !message.contains("alice"), "{name}: {message}");
        }
        assert!(!is_accepted(&scene.b.tool("read_workspace", flat(&json!(FORGED))).await), "{name}");
    }
}

#[tokio::test]
async fn silent_view_counts_what_a_stranger_appended() {
    let scene = scene("silent-view").await;
    let handle = opened(&scene.a, json!({"label": "label-of-alice"}), flat).await;
    let note = |handle: &Value| json!({"workspace_id": handle, "text": "bob was here"});
    let view = async || scene.a.tool("read_workspace", flat(&handle)).await["result"]["structuredContent"].clone();

    let before = view().await;
    let forged = scene.b.tool("append_note", note(&json!(FORGED))).await;
    let after_forged = view().await;
    let foreign = scene.b.tool("append_note", note(&handle)).await;
    let after = view().await;

    assert_eq!(before, json!({"workspace_id": handle, "count": 1}));
    assert_eq!((&before, is_accepted(&forged)), (&after_forged, false));
    assert_eq!(foreign["result"]["content"], json!([{"type": "text", "text": "ok"}]));
    assert_eq!(after, json!({"workspace_id": handle, "count": 2}));
    assert!(!is_accepted(&scene.b.tool("read_workspace", flat(&handle)).await));
}

#[tokio::test]
async fn listed_workspaces_are_read_by_everybody_and_written_by_their_owner() {
    let scene = scene("listed").await;
    let handle = opened(&scene.a, json!({"label": "label-of-alice"}), flat).await;

    let listed = scene.b.tool("list_workspaces", json!({})).await["result"]["structuredContent"].clone();
    let read = scene.b.tool("read_workspace", flat(&handle)).await;
    let written = scene.b.tool("append_note", json!({"workspace_id": handle, "text": "x"})).await;

    assert_eq!(listed["workspaces"], json!([{"workspace_id": handle, "label": "label-of-alice", "owner": "alice"}]));
    assert!(is_accepted(&read) && read.to_string().contains("note-of-alice"), "{read}");
    assert!(!is_accepted(&written), "{written}");
    assert!(!is_accepted(&scene.b.tool("read_workspace", flat(&json!(FORGED))).await));
}

#[tokio::test]
async fn stranger_is_told_whom_to_ask_and_nothing_else() {
    let scene = scene("names-owner").await;
    let handle = opened(&scene.a, json!({"label": "label-of-alice"}), flat).await;
    let use_of = |handle: &Value| json!({"workspace_id": handle, "text": "x"});

    for tool in ["read_workspace", "append_note", "archive_workspace", "purge_workspace"] {
        let foreign = scene.b.tool(tool, use_of(&handle)).await;
        let forged = scene.b.tool(tool, use_of(&json!(FORGED))).await;

        let told = json!([{"type": "text", "text": "this workspace belongs to alice; ask them"}]);
        assert_eq!((&foreign["result"]["content"], is_accepted(&foreign)), (&told, true), "{tool}: {foreign}");
        assert_eq!(foreign["result"].get("structuredContent"), None, "{tool}");
        assert_eq!(forged["result"]["isError"], true, "{tool}: {forged}");
    }

    let own = scene.a.tool("read_workspace", flat(&handle)).await["result"]["structuredContent"].clone();
    assert_eq!(own["notes"], json!(["note-of-alice"]));
    scene.served.advance(3601);
    let expired = scene.a.tool("read_workspace", flat(&handle)).await;
    assert_eq!(expired["result"]["isError"], true, "{expired}");
}

#[tokio::test]
async fn share_link_is_made_by_the_owner_and_opened_by_anybody() {
    let scene = scene("share-link").await;
    let handle = opened(&scene.a, json!({"label": "label-of-alice"}), flat).await;
    let open = |token: &Value| json!({"share_token": token});

    let foreign = scene.b.tool("create_share_link", flat(&handle)).await;
    let made = scene.a.tool("create_share_link", flat(&handle)).await["result"]["structuredContent"].clone();
    let token = &made["share_token"];

    assert!(!is_accepted(&foreign), "{foreign}");
    assert!(token.is_string(), "{made}");
    let shared = scene.b.tool("open_share_link", open(token)).await;
    assert!(is_accepted(&shared) && shared.to_string().contains("label-of-alice"), "{shared}");
    for wrong in [handle.clone(), json!(FORGED), json!("")] {
        let message = scene.a.tool("open_share_link", open(&wrong)).await;
        assert_eq!(message["result"]["isError"], true, "{wrong}");
    }
    assert!(!is_accepted(&scene.b.tool("read_workspace", flat(&handle)).await));
    assert!(!is_accepted(&scene.b.tool("read_workspace", flat(token)).await));
    scene.served.advance(3601);
    assert!(!is_accepted(&scene.b.tool("open_share_link", open(token)).await));
}

#[tokio::test]
async fn further_tools_are_where_they_are_listed_and_nowhere_else() {
    for (name, tool, there) in [
        ("listed", "list_workspaces", true),
        ("listed", "create_share_link", false),
        ("share-link", "open_share_link", true),
        ("share-link", "list_workspaces", false),
        ("sound", "list_workspaces", false),
        ("sound", "open_share_link", false),
    ] {
        let scene = scene(name).await;
        let listed = scene.a.request("tools/list", json!({})).await.text();
        let called = scene.a.tool(tool, json!({"share_token": "none"})).await;

        assert_eq!(listed.contains(tool), there, "{name}: {tool}");
        assert_eq!(called["error"].is_null(), there, "{name}: {tool}: {called}");
    }
}
