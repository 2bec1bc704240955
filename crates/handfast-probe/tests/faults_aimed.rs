//! Faults that hit exactly where a verdict is made: only the stranger's use of the owner's handle, only retries, only what was
//! altered. A crash, a limit or an outage there is no guard.

mod support;

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use handfast_probe::{report::Report, verdict::Verdict};
use handfast_twins::Answers;
use serde_json::json;
use support::{
    HANDLE, STATE, check, entry,
    front::{Act, Front, Recorded},
    narrow_run_on, probed, served, verdict,
};

const READ: &str = "tools/call read_workspace#workspace_id";

/// A flawed twin that answers in this way whenever somebody uses a handle that the owner used before.
async fn at_foreign_handles(act: Act) -> Report {
    let served = served("flawed", Answers::Json).await;
    let of_alice = Arc::new(Mutex::new(HashSet::new()));
    let front = Front::of(&served.url(), move |_, request| {
        let Some(handle) = request.body["params"]["arguments"]["workspace_id"].as_str() else { return Act::Forward };
        let mut of_alice = of_alice.lock().expect("nobody panics");
        match request.token() {
            Some("alice") => {
                of_alice.insert(handle.to_owned());
                Act::Forward
            }
            _ if of_alice.contains(handle) => act.clone(),
            _ => Act::Forward,
        }
    })
    .await;
    let mut run = narrow_run_on(&front.url());
    run.options.timeout = std::time::Duration::from_millis(200);
    probed(&run).await
}

fn said(text: &str) -> Act {
    Act::Result(json!({"resultType": "complete", "isError": true, "content": [{"type": "text", "text": text}]}))
}

#[tokio::test]
async fn falling_over_at_a_foreign_handle_is_no_guard() {
    for (name, act) in [
        ("500", Act::Status(500, Vec::new())),
        ("503", Act::Status(503, Vec::new())),
        ("429", Act::Status(429, Vec::new())),
        ("409", Act::Status(409, Vec::new())),
        ("500 with an error", Act::ErrorUnder(500, -32602, "unknown workspace handle")),
        ("closes", Act::Close),
        ("hangs", Act::Hang),
        ("garbage", Act::Raw(vec![b"HTTP/1.1 200 so\r\ncontent-length: 1\r\nconnection: close\r\n\r\n{".to_vec()])),
        ("internal error", Act::Error(-32603, "Internal error")),
        ("a trace", said("Traceback (most recent call last): KeyError: 'bob'")),
        ("a limit", said("rate limit exceeded, try again later")),
    ] {
        let report = at_foreign_handles(act).await;

        let check = check(&report, HANDLE);
        assert_eq!(check.verdict, Verdict::Errored, "{name}: {}: {}", verdict(check), check.detail);
    }
}

#[tokio::test]
async fn refusing_a_foreign_handle_in_words_of_the_protocol_is_one() {
    for (name, act) in [
        ("isError", said("unknown workspace handle")),
        ("an error", Act::Error(-32602, "unknown workspace handle")),
        ("403", Act::Status(403, Vec::new())),
        ("404", Act::Status(404, Vec::new())),
        ("404 with an error", Act::ErrorUnder(404, -32602, "unknown workspace handle")),
    ] {
        let report = at_foreign_handles(act).await;

        let check = check(&report, HANDLE);
        assert_eq!(entry(check, READ).row.reason.slug(), "handle-bound", "{name}: {}", check.detail);
        assert_eq!(check.verdict, Verdict::Refuted, "{name}: {}", verdict(check));
    }
}

fn is_retry(request: &Recorded) -> bool {
    request.body["params"]["requestState"].is_string()
}

/// A flawed twin whose retries are answered in this way after so many of them.
async fn at_retries_after(honest: usize, act: Act) -> Report {
    let served = served("flawed", Answers::Json).await;
    let count = Mutex::new(0);
    let front = Front::of(&served.url(), move |_, request| {
        let mut count = count.lock().expect("nobody panics");
        *count += usize::from(is_retry(request));
        if is_retry(request) && *count > honest { act.clone() } else { Act::Forward }
    })
    .await;
    let mut run = narrow_run_on(&front.url());
    run.checks.retain(|check| check.id == STATE);
    probed(&run).await
}

#[tokio::test]
async fn a_flow_that_stops_working_on_the_way_is_no_integrity() {
    for (name, act) in [
        ("refuses", Act::Error(-32602, "invalid requestState")),
        ("fails", Act::Status(503, Vec::new())),
        ("limits", said("too many requests")),
    ] {
        for honest in 0..10 {
            let report = at_retries_after(honest, act.clone()).await;

            let check = check(&report, STATE);
            assert_ne!(check.verdict, Verdict::Refuted, "{name} after {honest}: {}", check.detail);
        }
    }
}

#[tokio::test]
async fn a_flow_that_begins_to_accept_everything_is_no_finding() {
    // Honest answers only as far as the controls; then whatever comes is accepted as the honest retry was.
    for honest in 1..10 {
        let served = served("sound", Answers::Json).await;
        let count = Mutex::new(0);
        let front = Front::of(&served.url(), move |_, request| {
            let mut count = count.lock().expect("nobody panics");
            *count += usize::from(is_retry(request));
            if is_retry(request) && *count > honest { Act::Replay } else { Act::Forward }
        })
        .await;
        let mut run = narrow_run_on(&front.url());
        run.checks.retain(|check| check.id == STATE);

        let report = probed(&run).await;

        let check = check(&report, STATE);
        assert_ne!(check.verdict, Verdict::Confirmed, "after {honest} retries: {}", check.detail);
    }
}

#[tokio::test]
async fn a_cache_that_hands_the_owners_answer_to_every_handle_shows_nothing_about_handles() {
    // The twin is sound; what stands before it hands the owner's answer to whoever shows the same handle.
    let served = served("sound", Answers::Json).await;
    let front = Front::of(&served.url(), |_, request| match (request.token(), request.tool()) {
        (Some("bob"), "read_workspace") => Act::Replay,
        _ => Act::Forward,
    })
    .await;

    let report = probed(&narrow_run_on(&front.url())).await;

    // To every handle, also to forged ones: A's mark stands in answers that have nothing to do with A's handle.
    let check = check(&report, HANDLE);
    assert_ne!(check.verdict, Verdict::Confirmed, "{}", check.detail);
}

#[tokio::test]
async fn an_entry_point_that_the_owner_or_the_stranger_cannot_use_is_not_judged() {
    for (locked_out, reason) in [("alice", "control-failed"), ("bob", "second-identity-not-live")] {
        for twin in ["flawed", "sound"] {
            let served = served(twin, Answers::Json).await;
            let front = Front::of(&served.url(), move |_, request| match (request.token(), request.tool()) {
                (Some(token), "read_workspace") if token == locked_out => said("this feature is not in your plan"),
                _ => Act::Forward,
            })
            .await;

            let report = probed(&narrow_run_on(&front.url())).await;

            let row = &entry(check(&report, HANDLE), READ).row;
            assert_eq!(row.reason.slug(), reason, "{twin} without {locked_out}: {}", row.detail);
            assert!(matches!(row.verdict, Verdict::Skipped | Verdict::Errored), "{twin}: {}", row.verdict.word());
        }
    }
}
