//! Twins that are spoken to, or answer, in another way than the sound one: nested handles, objects without a label, and
//! refusals that are no errors.

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
