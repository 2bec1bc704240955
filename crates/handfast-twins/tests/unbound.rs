//! Signed states that are good for too much, and answers to what was not asked: each flaw is seen, and only that one.

mod support;

use serde_json::{Value, json};
use support::{Client, Scene, scene};

fn yes() -> Value {
    json!({"confirm": {"action": "accept", "content": {"confirm": true}}})
}

async fn state(client: &Client, handle: &Value) -> String {
    let asked = client.call("archive_workspace", json!({"workspace_id": handle}), json!({})).await;
    asked["result"]["requestState"].as_str().unwrap_or_else(|| panic!("{asked}")).to_owned()
}

/// Whether it was done with this state.
async fn does(client: &Client, handle: &Value, state: &str) -> bool {
    let more = json!({"requestState": state, "inputResponses": yes()});
    let answer = client.call("archive_workspace", json!({"workspace_id": handle}), more).await;
    answer["result"]["structuredContent"]["archived"].is_number()
}

/// Of one's own, of somebody else, for another object, after its time; and done without being asked at all.
async fn accepts(name: &str) -> [bool; 5] {
    let Scene { a, b, served, .. } = scene(name).await;
    let (mine, other, bobs) = (a.open("mine").await, a.open("other").await, b.open("bobs").await);
    let own = does(&a, &mine, &state(&a, &mine).await).await;
    let foreign = does(&b, &bobs, &state(&a, &mine).await).await;
    let elsewhere = does(&a, &other, &state(&a, &mine).await).await;
    let old = state(&a, &mine).await;
    let unasked = a.call("archive_workspace", json!({"workspace_id": mine}), json!({"inputResponses": yes()})).await;
    served.advance(301);
    let late = does(&a, &mine, &old).await;
    [own, foreign, elsewhere, late, unasked["result"]["structuredContent"]["archived"].is_number()]
}

#[tokio::test]
async fn each_is_good_for_too_much_in_its_own_way() {
    for (name, expected) in [
        ("sound", [true, false, false, false, false]),
        ("no-binding", [true, true, true, false, false]),
        ("no-expiry", [true, false, false, true, false]),
        // Another user's object is another request: what it forgets is seen beside it, in the tests of its own.
        ("mac-only-client-id", [true, false, false, false, false]),
        ("answers-first", [true, false, false, false, true]),
    ] {
        assert_eq!(accepts(name).await, expected, "{name}");
    }
}
