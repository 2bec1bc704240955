//! The sound guards ask the library: at every door, about this caller and this moment. A guard that was left out asks
//! nothing.

mod support;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use support::{Client, Scene, is_accepted, scene};

const READ: &str = "workspace:read";
const WRITE: &str = "workspace:write";

/// (by which tool or method, what the library is asked for)
const DOORS: [(&str, &str); 7] = [
    ("read_workspace", READ),
    ("append_note", WRITE),
    ("archive_workspace", WRITE),
    ("purge_workspace", WRITE),
    ("create_share_link", WRITE),
    ("prompts/get", READ),
    ("resources/read", READ),
];

async fn enter(client: &Client, door: &str, handle: &Value) -> Value {
    let arguments = json!({"workspace_id": handle, "text": "a note"});
    let (method, params) = match door {
        "prompts/get" => (door, json!({"name": "summarise_workspace", "arguments": arguments})),
        "resources/read" => (door, json!({"uri": format!("workspace://{}/notes", handle.as_str().expect("text"))})),
        tool => ("tools/call", json!({"name": tool, "arguments": arguments})),
    };
    client.request(method, params).await.message()
}

/// What was decided from then to now.
fn since(before: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let count = |decision: &String, now: &u64| now - before.get(decision).copied().unwrap_or(0);
    now.iter().map(|(decision, now)| (decision.clone(), count(decision, now))).filter(|(_, count)| *count > 0).collect()
}

#[tokio::test]
async fn every_door_of_a_sound_twin_asks_the_library_whose_the_handle_is() {
    let Scene { served, a, b, .. } = scene("share-link").await;
    let handle = a.open("one").await;
    assert_eq!(served.decisions(), BTreeMap::from([("mint allowed".to_owned(), 1)]));

    for (door, scope) in DOORS {
        let before = served.decisions();
        enter(&b, door, &handle).await;
        let decided = since(&before, &served.decisions());

        let foreign = format!("resolve {scope} foreign-principal");
        assert_eq!(decided.get(&foreign), Some(&1), "{door}: {decided:?}");

        let before = served.decisions();
        enter(&a, door, &handle).await;
        let decided = since(&before, &served.decisions());

        assert!(decided.contains_key(&format!("resolve {scope} allowed")), "{door}: {decided:?}");
        assert!(!decided.contains_key(&foreign), "{door}: {decided:?}");
    }
}

#[tokio::test]
async fn every_door_of_a_sound_twin_asks_the_library_whether_time_is_over() {
    let Scene { served, a, .. } = scene("share-link").await;
    let handle = a.open("one").await;
    let link = a.tool("create_share_link", json!({"workspace_id": handle})).await;
    let token = &link["result"]["structuredContent"]["share_token"];
    served.advance(3600);

    for (door, _) in DOORS {
        let before = served.decisions();
        enter(&a, door, &handle).await;
        let decided = since(&before, &served.decisions());

        assert!(decided.contains_key(&format!("resolve {READ} expired")), "{door}: {decided:?}");
    }
    let before = served.decisions();
    a.tool("open_share_link", json!({"share_token": token})).await;
    assert!(since(&before, &served.decisions()).contains_key(&format!("resolve {READ} expired")));
}

#[tokio::test]
async fn a_guard_that_was_left_out_asks_nothing() {
    for (name, minted) in [("flawed", 1), ("numeric-handles-flawed", 1), ("noguard", 0)] {
        let Scene { served, a, b, .. } = scene(name).await;
        let handle = a.open("one").await;

        for client in [&a, &b] {
            assert!(is_accepted(&enter(client, "read_workspace", &handle).await), "{name}");
        }

        let decided: u64 = served.decisions().values().sum();
        assert_eq!(decided, minted, "{name}: {:?}", served.decisions());
    }

    let Scene { served, a, b, .. } = scene("one-door").await;
    let handle = a.open("one").await;
    enter(&b, "append_note", &handle).await;
    assert!(!served.decisions().keys().any(|decision| decision.contains("foreign")), "{:?}", served.decisions());
    enter(&b, "read_workspace", &handle).await;
    assert!(served.decisions().contains_key("resolve workspace:read foreign-principal"), "{:?}", served.decisions());
}

#[tokio::test]
async fn any_name_is_somebody_and_nobody_else() {
    let long = "x".repeat(5000);
    let names =
        ["tab\tin it", "tab\tin  it", "\u{e9}\u{85}\u{e9}", &long, &long[1..], "a b", "\"", "urn:handfast:twin"];
    let Scene { served, .. } = scene("sound").await;
    let clients = names.map(|name| Client::new(served.url(), name));

    for (owner, name) in clients.iter().zip(names) {
        let handle = owner.open("one").await;
        for (other, of) in clients.iter().zip(names) {
            let read = enter(other, "read_workspace", &handle).await;
            assert_eq!(is_accepted(&read), name == of, "{of:?} uses what is {name:?}'s: {read}");
        }
    }
}
