//! A handle that is used up, on servers that say "no" without `isError`: what A's own use has ended is no refusal to B.

mod support;

use std::{collections::HashMap, sync::Mutex};

use handfast_probe::report::Report;
use handfast_wire::meta;
use serde_json::{Value, json};
use support::{
    HANDLE, check,
    front::{Act, Front, Recorded},
    probed, run_on, verdict,
};

fn said(value: &Value) -> Act {
    let content = json!([{"type": "text", "text": value.to_string()}]);
    Act::Result(json!({"resultType": "complete", "content": content, "structuredContent": {"result": value}}))
}

fn tools() -> Value {
    let text = json!({"type": "string"});
    json!([
        {"name": "pin_note", "inputSchema": {"type": "object", "properties": {"label": text}, "required": ["label"]}},
        {"name": "take_note", "inputSchema": {"type": "object", "properties": {"note_id": text}, "required": ["note_id"]}}
    ])
}

/// A board of notes. Who takes one down has it, if they `may`; otherwise, and where there is none, the answer is `false`.
async fn board(may: fn(owner: &str, who: &str) -> bool) -> Report {
    let notes: Mutex<HashMap<String, String>> = Mutex::default();
    let act = move |number: usize, request: &Recorded| {
        let Some(who @ ("alice" | "bob")) = request.token() else { return Act::Status(401, Vec::new()) };
        let mut notes = notes.lock().expect("a lock");
        match (request.method(), request.tool()) {
            ("server/discover", _) => Act::Result(json!({
                "resultType": "complete", "supportedVersions": [meta::MODERN], "capabilities": {"tools": {}},
                "serverInfo": {"name": "board", "version": "1"}
            })),
            ("tools/list", _) => Act::Result(json!({"resultType": "complete", "tools": tools()})),
            (_, "pin_note") => {
                let note = format!("note-{:08x}", number * 7_919_357 + 0x1a2b_3c4d);
                notes.insert(note.clone(), who.to_owned());
                let content = json!([{"type": "text", "text": format!("Pinned {note}.")}]);
                Act::Result(
                    json!({"resultType": "complete", "content": content, "structuredContent": {"note_id": note}}),
                )
            }
            (_, "take_note") => {
                let note = request.body["params"]["arguments"]["note_id"].as_str().unwrap_or_default().to_owned();
                let theirs = notes.get(&note).is_some_and(|owner| may(owner, who));
                if theirs {
                    notes.remove(&note);
                }
                said(&theirs.into())
            }
            _ => Act::Error(-32601, "no such method"),
        }
    };
    let front = Front::start(None, act).await;
    probed(&run_on(&front.url())).await
}

#[tokio::test]
async fn a_note_that_a_stranger_takes_down_is_a_finding() {
    let report = board(|_, _| true).await;

    let found = check(&report, HANDLE);
    assert_eq!(verdict(found), "confirmed handle-not-bound high", "{found:#?}");
    assert!(found.detail.contains("A's own first use of the handle is refused after B's"), "{}", found.detail);
}

#[tokio::test]
async fn a_note_that_only_its_owner_takes_down_is_none() {
    let report = board(|owner, who| owner == who).await;

    let found = check(&report, HANDLE);
    assert_eq!(verdict(found), "refuted handle-bound +refusal-is-no-error", "{found:#?}");
}
