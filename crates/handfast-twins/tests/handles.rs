//! What each twin does with a handle in a stranger's hands, by every door, and with a handle that nobody minted.

mod support;

use serde_json::{Value, json};
use support::{Client, Scene, is_accepted, plain_twins, scene};

/// What became of a use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Refused.
    No,
    /// Accepted, and nothing of the owner's came back.
    Blank,
    /// Accepted, and the owner's label came back.
    Theirs,
}

use Use::{Blank, No, Theirs};

const DOORS: [&str; 4] = ["read", "append", "prompt", "resource"];
const MARKER: &str = "canary-of-alice";

async fn use_handle(client: &Client, argument: &str, door: &str, handle: &Value) -> Use {
    let text = handle.as_str().map_or_else(|| handle.to_string(), str::to_owned);
    let message = match door {
        "read" => client.tool("read_workspace", json!({argument: handle})).await,
        "append" => client.tool("append_note", json!({argument: handle, "text": "a note"})).await,
        "prompt" => {
            let params = json!({"name": "summarise_workspace", "arguments": {argument: text}});
            let first = client.request("prompts/get", params.clone()).await.message();
            confirmed(client, "prompts/get", params, first).await
        }
        _ => {
            let params = json!({"uri": format!("workspace://{text}/notes")});
            let first = client.request("resources/read", params.clone()).await.message();
            confirmed(client, "resources/read", params, first).await
        }
    };
    match (is_accepted(&message), message.to_string().contains(MARKER)) {
        (false, _) => No,
        (true, false) => Blank,
        (true, true) => Theirs,
    }
}

/// Says yes where a prompt or a resource asks first.
async fn confirmed(client: &Client, method: &str, mut params: Value, first: Value) -> Value {
    if first["result"]["resultType"] != "input_required" {
        return first;
    }
    params["requestState"] = first["result"]["requestState"].clone();
    params["inputResponses"] = json!({"confirm": {"action": "accept", "content": {"confirm": true}}});
    client.request(method, params).await.message()
}

/// A handle of the same shape that nobody minted.
fn forged(handle: &Value) -> Value {
    match handle {
        Value::String(_) => "ws-00000000000000000000000000000000".into(),
        _ => 999_999.into(),
    }
}

/// (the stranger by each door, a forged handle by each door)
fn expected(name: &str) -> ([Use; 4], [Use; 4]) {
    match name {
        "noguard" => ([Blank; 4], [Blank; 4]),
        "get-or-create" => ([Theirs; 4], [Blank; 4]),
        "partitioned" => ([Blank; 4], [Blank; 4]),
        "one-door" => ([No, Theirs, No, No], [No; 4]),
        "silent-writer" => ([No, Blank, No, No], [No; 4]),
        // What is shown there is not the label; `manners.rs` looks closer.
        "private-value-flawed" => ([Blank; 4], [No; 4]),
        "silent-view" => ([No, Blank, No, No], [No; 4]),
        "names-owner" => ([Blank, Blank, No, No], [No; 4]),
        "listed" => ([Theirs, No, No, No], [No; 4]),
        "prompt-door" => ([No, No, Theirs, No], [No; 4]),
        "resource-door" => ([No, No, No, Theirs], [No; 4]),
        "flaky" => ([Theirs, No, Theirs, No], [No; 4]),
        // Read by the stranger, it is spent for everybody.
        "one-shot-flawed" => ([Theirs, No, No, No], [No; 4]),
        "flawed" | "bare-answers" | "task" | "ignores-identity" | "any-token" | "counted-handles" => {
            ([Theirs; 4], [No; 4])
        }
        name if name.ends_with("-handles-flawed") || name == "lists-everything-flawed" => ([Theirs; 4], [No; 4]),
        _ => ([No; 4], [No; 4]),
    }
}

async fn tried(client: &Client, argument: &str, handle: &Value) -> [Use; 4] {
    let mut uses = [No; 4];
    for (found, door) in uses.iter_mut().zip(DOORS) {
        *found = use_handle(client, argument, door, handle).await;
    }
    uses
}

#[tokio::test]
async fn stranger_gets_what_the_flaw_gives_and_no_more() {
    for twin in plain_twins() {
        let Scene { a, b, argument, served: _served } = scene(twin.name).await;
        let handle = a.open(MARKER).await;

        let foreign = tried(&b, argument, &handle).await;
        let unminted = tried(&b, argument, &forged(&handle)).await;

        assert_eq!((foreign, unminted), expected(twin.name), "{}", twin.name);
    }
}

#[tokio::test]
async fn owner_gets_what_is_kept() {
    for twin in plain_twins() {
        let Scene { a, argument, served: _served, .. } = scene(twin.name).await;
        let expected = match twin.name {
            "noguard" | "private-value" | "private-value-flawed" | "silent-view" => [Blank; 4],
            "silent-writer" => [Theirs, Blank, Theirs, Theirs],
            "one-shot" | "one-shot-flawed" => [Theirs, No, No, No],
            _ => [Theirs; 4],
        };
        let handle = a.open(MARKER).await;

        assert_eq!(tried(&a, argument, &handle).await, expected, "{}", twin.name);
    }
}

#[tokio::test]
async fn unknown_foreign_and_expired_look_the_same() {
    let scene = scene("sound").await;
    let handle = scene.a.open(MARKER).await;
    let handle = handle.as_str().expect("a textual handle");
    let ways = |handle: &str| {
        [
            ("tools/call", json!({"name": "read_workspace", "arguments": {"workspace_id": handle}})),
            ("tools/call", json!({"name": "append_note", "arguments": {"workspace_id": handle, "text": "x"}})),
            ("tools/call", json!({"name": "archive_workspace", "arguments": {"workspace_id": handle}})),
            ("tools/call", json!({"name": "purge_workspace", "arguments": {"workspace_id": handle}})),
            ("prompts/get", json!({"name": "summarise_workspace", "arguments": {"workspace_id": handle}})),
            ("resources/read", json!({"uri": format!("workspace://{handle}/notes")})),
        ]
    };
    for ((method, foreign), (_, unknown)) in ways(handle).into_iter().zip(ways("ws-00000000000000000000000000000000")) {
        let theirs = scene.b.request(method, foreign.clone()).await;
        let nobodys = scene.b.request(method, unknown).await;

        assert_eq!((theirs.status, theirs.text()), (nobodys.status, nobodys.text()), "{foreign}");
        assert!(theirs.text().contains("unknown workspace handle"), "{foreign}");
    }

    scene.served.advance(3601);
    let expired = scene.a.tool("read_workspace", json!({"workspace_id": handle})).await;
    let unknown = scene.a.tool("read_workspace", json!({"workspace_id": "ws-0"})).await;
    assert_eq!(expired, unknown);
    assert_eq!(expired["result"]["isError"], true);
}

#[tokio::test]
async fn handles_expire_where_they_should() {
    for (name, seconds, lives) in
        [("sound", 3598, true), ("sound", 3600, false), ("opaque", 3600, false), ("flawed", 1_000_000, true)]
    {
        let scene = scene(name).await;
        let handle = scene.a.open(MARKER).await;

        scene.served.advance(seconds);

        let read = scene.a.tool("read_workspace", json!({"workspace_id": handle})).await;
        assert_eq!(is_accepted(&read), lives, "{name} after {seconds} s");
    }
}

#[tokio::test]
async fn minted_handle_is_in_the_data_and_in_the_text() {
    let scene = scene("sound").await;
    let result = scene.a.tool("open_workspace", json!({"label": "one"})).await["result"].clone();

    let data = &result["structuredContent"];
    let handle = data["workspace_id"].as_str().expect("a textual handle");
    assert_eq!((&data["label"], &data["owner"]), (&json!("one"), &json!("alice")));
    assert!(result["content"][0]["text"].as_str().expect("text").contains(handle));
    let digits = handle.strip_prefix("ws-").expect("the prefix");
    assert!(digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()), "{handle}");
    assert_ne!(scene.a.open("one").await, handle);
}

#[tokio::test]
async fn odd_handles_stand_where_they_should() {
    for suffix in ["", "-flawed"] {
        let numeric = scene(&format!("numeric-handles{suffix}")).await;
        let text_only = scene(&format!("text-only-handles{suffix}")).await;
        let renamed = scene(&format!("renamed-handles{suffix}")).await;

        assert!(numeric.a.open("one").await.is_u64());
        let result = text_only.a.tool("open_workspace", json!({"label": "one"})).await["result"].clone();
        assert_eq!(result.get("structuredContent"), None);
        let result = renamed.a.tool("open_workspace", json!({"label": "one"})).await["result"].clone();
        assert!(result["structuredContent"]["id"].is_string());
        let read = renamed.a.tool("read_workspace", json!({"workspace_id": "ws-0"})).await;
        assert_eq!(read["error"]["code"], -32602);
    }
}

#[tokio::test]
async fn silent_writers_note_reaches_the_owner() {
    let scene = scene("silent-writer").await;
    let handle = scene.a.open(MARKER).await;

    scene.b.tool("append_note", json!({"workspace_id": handle, "text": "bob was here"})).await;

    let read = scene.a.tool("read_workspace", json!({"workspace_id": handle})).await;
    assert_eq!(read["result"]["structuredContent"]["notes"], json!(["bob was here"]));
}

#[tokio::test]
async fn everything_is_listed_to_everybody_even_in_a_refusal() {
    for name in ["lists-everything", "lists-everything-flawed"] {
        let scene = scene(name).await;
        scene.a.open(MARKER).await;
        let own = scene.b.open("bobs").await;

        for handle in [own, "ws-0".into()] {
            let read = scene.b.tool("read_workspace", json!({"workspace_id": handle})).await;
            assert!(read.to_string().contains(MARKER), "{name}");
            assert!(read.to_string().contains("alice"), "{name}");
        }
    }
}

#[tokio::test]
async fn identities_are_told_apart_where_they_are() {
    // (twin, token, who that is)
    let cases = [
        ("sound", "alice", Some("alice")),
        ("sound", "", None),
        ("any-token", "alice", Some("user")),
        ("any-token", "", None),
        ("ignores-identity", "alice", Some("local")),
        ("ignores-identity", "", Some("local")),
    ];
    for (name, token, who) in cases {
        let scene = scene(name).await;
        let answer = Client::new(scene.a.url, token).request("tools/call", json!({"name": "whoami"})).await;

        match who {
            Some(who) => assert_eq!(answer.message()["result"]["structuredContent"]["principal"], who, "{name}"),
            None => assert_eq!(answer.status, 401, "{name}"),
        }
    }
}

#[tokio::test]
async fn any_token_shows_no_owner() {
    let scene = scene("any-token").await;
    let handle = scene.a.open(MARKER).await;

    let read = scene.b.tool("read_workspace", json!({"workspace_id": handle})).await;

    assert_eq!(read["result"]["structuredContent"].get("owner"), None);
}

#[tokio::test]
async fn partitioned_names_open_something_else_for_each() {
    let scene = scene("partitioned").await;
    scene.a.tool("append_note", json!({"workspace_id": "shared", "text": MARKER})).await;

    let theirs = scene.b.tool("read_workspace", json!({"workspace_id": "shared"})).await;
    let own = scene.a.tool("read_workspace", json!({"workspace_id": "shared"})).await;

    assert_eq!(theirs["result"]["structuredContent"]["notes"], json!([]));
    assert_eq!(own["result"]["structuredContent"]["notes"], json!([MARKER]));
}

#[tokio::test]
async fn tasks_are_given_only_to_clients_that_know_them_and_only_to_their_owner() {
    let mut scene = scene("task").await;
    let params = json!({"name": "whoami"});

    let task = scene.a.request("tools/call", params.clone()).await.message()["result"].clone();
    let id = json!({"taskId": task["taskId"]});
    let own = scene.a.request("tasks/get", id.clone()).await.message();
    let foreign = scene.b.request("tasks/get", id).await;
    scene.a.capabilities = json!({});
    let plain = scene.a.request("tools/call", params).await.message();

    assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")));
    assert_eq!(own["result"]["status"], "completed");
    assert_eq!(own["result"]["result"]["content"][0]["text"], "alice");
    assert_eq!(foreign.code(), -32602);
    assert_eq!(plain["result"]["structuredContent"]["principal"], "alice");
}
