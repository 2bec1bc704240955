//! Notes that belong to nobody by name: whose they are, and what is meant to be everybody's. And what a whole run costs.

mod support;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use handfast_probe::{checks, report::CheckReport};
use handfast_twins::Answers;
use serde_json::{Value, json};
use support::{
    check,
    front::{Act, Front, Recorded},
    probed, run_on, served, timed, verdict, whole_run_on,
};

const SHARED: &str = "ambient-shared";

/// How a notebook behaves.
#[derive(Clone, Copy)]
struct Notebook {
    writer: (&'static str, &'static str),
    /// Under which name a caller's notes are kept, and under which they are looked for.
    kept: fn(&str) -> String,
    found: fn(&str) -> String,
    names_callers: bool,
}

const NOTEBOOK: Notebook =
    Notebook { writer: ("save_note", "Keeps a note."), kept: str::to_owned, found: str::to_owned, names_callers: true };

fn said(data: Value) -> Act {
    let text = data.to_string();
    Act::Result(
        json!({"resultType": "complete", "content": [{"type": "text", "text": text}], "structuredContent": data}),
    )
}

fn tools(notebook: &Notebook) -> Value {
    let nothing = json!({"type": "object", "properties": {}});
    let text = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let mut tools = vec![
        json!({"name": notebook.writer.0, "description": notebook.writer.1, "inputSchema": text}),
        json!({"name": "list_notes", "description": "Lists the notes.", "inputSchema": nothing}),
    ];
    if notebook.names_callers {
        tools.push(json!({"name": "whoami", "description": "Tells who calls.", "inputSchema": nothing}));
    }
    tools.into()
}

async fn tested(notebook: Notebook) -> CheckReport {
    let notes = Arc::new(Mutex::new(BTreeMap::<String, Vec<String>>::new()));
    let front = Front::start(None, move |_, request: &Recorded| {
        let caller = request.token().unwrap_or_default();
        let mut notes = notes.lock().expect("no test panics while it holds this");
        match (request.method(), request.tool()) {
            ("server/discover", _) => Act::Result(
                json!({"resultType": "complete", "supportedVersions": [handfast_wire::meta::MODERN], "capabilities": {"tools": {}}}),
            ),
            ("tools/list", _) => Act::Result(json!({"resultType": "complete", "tools": tools(&notebook)})),
            (method, "") if method.ends_with("/list") => Act::Error(-32601, "no such method"),
            (_, "whoami") => said(json!({"principal": caller})),
            (_, "list_notes") => said(json!({"notes": notes.get(&(notebook.found)(caller)).cloned().unwrap_or_default()})),
            _ => {
                let text = request.body["params"]["arguments"]["text"].as_str().unwrap_or_default().to_owned();
                notes.entry((notebook.kept)(caller)).or_default().push(text);
                said(json!({"saved": true}))
            }
        }
    })
    .await;
    let mut run = run_on(&front.url());
    run.checks = vec![checks::find(SHARED).expect("a check")];
    probed(&run).await.checks.remove(0)
}

#[tokio::test]
async fn notes_are_their_writers_or_everybodys() {
    assert_eq!(verdict(&tested(NOTEBOOK).await), "refuted ambient-state-apart");
    let one = |_: &str| "one".to_owned();
    assert_eq!(
        verdict(&tested(Notebook { kept: one, found: one, ..NOTEBOOK }).await),
        "confirmed ambient-state-shared high"
    );
}

#[tokio::test]
async fn callers_that_nobody_tells_apart_share_everything() {
    let one = |_: &str| "one".to_owned();
    let anonymous = Notebook { kept: one, found: one, names_callers: false, ..NOTEBOOK };

    assert_eq!(verdict(&tested(anonymous).await), "skipped identities-not-distinguished");
}

#[tokio::test]
async fn what_is_published_is_meant_to_be_seen() {
    let one = |_: &str| "one".to_owned();
    for writer in [("post_note", "Keeps a note."), ("save_note", "Keeps a note for everybody to see.")] {
        let seen = tested(Notebook { writer, kept: one, found: one, ..NOTEBOOK }).await;

        assert_eq!(verdict(&seen), "skipped no-ambient-state", "{writer:?}");
    }
    let left_out =
        tested(Notebook { writer: ("add_feedback", "Keeps a note."), kept: one, found: one, ..NOTEBOOK }).await;
    assert!(left_out.observations.iter().any(|seen| seen.text.contains("add_feedback")), "it is told");
}

#[tokio::test]
async fn what_shows_nothing_of_what_was_kept_proves_nothing() {
    let nowhere = Notebook { found: |_| "nowhere".to_owned(), ..NOTEBOOK };
    assert_eq!(verdict(&tested(nowhere).await), "skipped no-ambient-state");
    // B writes into the void: that it does not see A's notes says nothing.
    let void = |caller: &str| if caller == "bob" { "void".to_owned() } else { caller.to_owned() };
    assert_eq!(verdict(&tested(Notebook { kept: void, ..NOTEBOOK }).await), "skipped second-identity-not-live");
}

#[tokio::test]
async fn a_longer_lifetime_is_waited_for_where_that_is_allowed() {
    let served = served("sound", Answers::Json).await;
    let mut run = run_on(&served.url());
    run.checks = vec![checks::find("handle-outlives-expiry").expect("a check")];

    let report = probed(&run).await;
    let seen = check(&report, "handle-outlives-expiry");
    assert_eq!(verdict(seen), "skipped needs-wait");
    assert!(seen.detail.contains("3600 s") && seen.detail.contains("--max-wait"), "{}", seen.detail);

    // Allowed by itself, and not within the time for the whole run.
    run.max_wait = Duration::from_secs(7200);
    assert_eq!(verdict(check(&probed(&run).await, "handle-outlives-expiry")), "errored timed-out");
}

#[tokio::test]
async fn a_whole_run_is_a_few_hundred_calls() {
    let served = served("sound", Answers::Json).await;

    let (report, took) = timed(probed(&whole_run_on(&served.url()))).await;

    assert!(report.calls < 600, "{} calls in {took:?}", report.calls);
}
