//! The checks of sessions beyond the table: what stands in the evidence, what is left behind on the server, and servers
//! that are odd in ways that must not be taken for a weakness.

mod support;

use std::collections::BTreeSet;

use handfast_probe::{report::Report, verdict::Verdict};
use handfast_twins::{Answers, Served};
use serde_json::{Value, json};
use support::{
    as_json, check, entry,
    front::{Act, Front, Recorded, stream_head},
    made_up, probed, served, session_run_on, sessions, verdict,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const FOREIGN: &str = "session-foreign-principal";

/// A twin behind a front.
async fn behind(twin: &str, act: impl Fn(usize, &Recorded) -> Act + Send + Sync + 'static) -> (Served, Front) {
    let served = served(twin, Answers::Json).await;
    let front = Front::of(&served.url(), act).await;
    (served, front)
}

async fn report_of(twin: &str, act: impl Fn(usize, &Recorded) -> Act + Send + Sync + 'static) -> Report {
    let (_served, front) = behind(twin, act).await;
    probed(&session_run_on(&front.url())).await
}

#[tokio::test]
async fn each_verb_is_an_entry_point_of_its_own() {
    for (twin, verb, severity) in [("unbound-get", "GET", "medium"), ("unbound-delete", "DELETE", "medium")] {
        let report = report_of(twin, |_, _| Act::Forward).await;

        let found = check(&report, FOREIGN);
        assert_eq!(verdict(found), format!("confirmed session-not-bound {severity}"));
        for other in ["POST", "GET", "DELETE"].into_iter().filter(|other| *other != verb) {
            assert_eq!(entry(found, other).row.verdict, Verdict::Refuted, "{twin}: {other}");
        }
    }
    let report = report_of("unbound-sessions", |_, _| Act::Forward).await;
    for verb in ["POST", "GET", "DELETE"] {
        assert_eq!(entry(check(&report, FOREIGN), verb).row.verdict, Verdict::Confirmed, "{verb}");
    }
    let canary = entry(check(&report, FOREIGN), "POST").facts["marker"].as_str().expect("a marker").to_owned();
    assert!(canary.contains("A's canary `hf-a"), "{canary}");
}

#[tokio::test]
async fn no_session_id_and_no_token_is_in_a_report() {
    for twin in
        ["sessions", "unbound-sessions", "counter-ids", "pointer-ids", "mints-on-refusal", "health-lists-sessions"]
    {
        let (_served, front) = behind(twin, |_, _| Act::Forward).await;

        let written = as_json(&probed(&session_run_on(&front.url())).await).to_string();

        let presented: BTreeSet<String> =
            front.seen().iter().filter_map(|seen| seen.header("mcp-session-id").map(str::to_owned)).collect();
        assert!(presented.len() > 20, "{twin}: {}", presented.len());
        for id in presented {
            assert!(!written.contains(&id), "{twin}: {id}");
        }
        assert!(written.contains("[session 1]"), "{twin}: ids have names");
        assert!(!written.contains("expired-alice"), "{twin}");
    }
}

#[tokio::test]
async fn every_session_that_works_is_ended() {
    for twin in ["sessions", "mints-on-refusal", "adopts-unknown", "adopts-client-id", "dual-era"] {
        let (served, front) = behind(twin, |_, _| Act::Forward).await;
        let report = probed(&session_run_on(&front.url())).await;
        assert!(report.calls > 50, "{twin}");

        // Whatever was presented or issued is unknown by now.
        let ids: BTreeSet<(String, String)> = front
            .seen()
            .iter()
            .filter_map(|seen| Some((seen.token()?.to_owned(), seen.header("mcp-session-id")?.to_owned())))
            .collect();
        let open = open_among(&served, &ids).await;
        // Asking an adopting server makes a session of it.
        assert!(open.is_empty() || twin == "adopts-unknown", "{twin}: {open:?}");
    }
}

async fn open_among(served: &Served, ids: &BTreeSet<(String, String)>) -> Vec<(String, String)> {
    let asker = Asker(served.url());
    let mut open = Vec::new();
    for (token, id) in ids {
        if asker.recalls(token, id).await {
            open.push((token.clone(), id.clone()));
        }
    }
    open
}

/// Asks a server without the probe.
struct Asker(String);

impl Asker {
    /// Whether a session still answers.
    async fn recalls(&self, token: &str, id: &str) -> bool {
        let authority = self.0.trim_start_matches("http://").split('/').next().expect("an authority").to_owned();
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\nauthorization: Bearer {token}\r\nmcp-session-id: {id}\r\n\
             accept: application/json, text/event-stream\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut socket = tokio::net::TcpStream::connect(authority).await.expect("the twin listens");
        socket.write_all(head.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.expect("read");
        answer.starts_with("HTTP/1.1 200")
    }
}

#[tokio::test]
async fn a_stream_that_never_ends_holds_nobody_up() {
    let endless = |_: usize, request: &Recorded| match request.verb.as_str() {
        // The head of a stream, and then nothing for ever.
        "GET" if request.path == "/mcp" => {
            Act::Framed { write: |_| vec![stream_head(), b": alive\n\n".to_vec()], held: true }
        }
        _ => Act::Forward,
    };
    let (report, took) = support::timed(report_of("sessions", endless)).await;

    // Whatever the id, a stream is attached: that binds nothing, and tells nothing either.
    let row = &entry(check(&report, FOREIGN), "GET").row;
    assert_eq!((row.verdict, row.reason.slug()), (Verdict::Skipped, "session-witness-unusable"));
    assert!(took.as_secs() < 15, "{took:?}");
}

#[tokio::test]
async fn a_server_that_blocks_more_than_it_must_is_not_accused() {
    // Neither streams nor ends, and everything that is refused is refused with 404.
    let strict = |_: usize, request: &Recorded| match (request.verb.as_str(), request.path.as_str()) {
        ("GET" | "DELETE", "/mcp") => Act::Status(405, Vec::new()),
        (_, "/mcp") => Act::Forward,
        _ => Act::Status(404, Vec::new()),
    };
    let report = report_of("sessions", strict).await;

    assert_eq!(sessions(&report), "outlives-delete skipped verb-not-offered");
    assert_eq!(entry(check(&report, FOREIGN), "GET").row.reason.slug(), "verb-not-offered");

    // An `initialize` that comes with an id of its own is refused.
    let stale = |_: usize, request: &Recorded| {
        let renewed = request.method() == "initialize" && request.header("mcp-session-id").is_some();
        if renewed { Act::ErrorUnder(404, -32600, "Session not found") } else { Act::Forward }
    };
    assert_eq!(sessions(&report_of("sessions", stale).await), "refuted");
}

#[tokio::test]
async fn without_anything_to_remember_the_id_alone_is_what_is_shown() {
    // Neither notes nor names: a listing is all that there is.
    let bare = |_: usize, request: &Recorded| match request.method() {
        "tools/list" => {
            Act::Changed(|body| body.replace("remember", "ponder").replace("recall", "muse").replace("whoami", "hum"))
        }
        _ => Act::Forward,
    };
    // Nobody and impostors are refused, so that two credentials that the operator gave are two users.
    let bare = move |number: usize, request: &Recorded| match request.token() {
        Some("alice" | "bob" | "expired-alice") => bare(number, request),
        _ => Act::Status(401, Vec::new()),
    };
    let report = report_of("unbound-sessions", bare).await;
    let row = &entry(check(&report, FOREIGN), "POST").row;
    assert_eq!(verdict(check(&report, FOREIGN)), "confirmed session-not-bound medium");
    assert!(row.detail.contains("the id alone decides"), "{}", row.detail);

    assert_eq!(sessions(&report_of("sessions", bare).await), "refuted");
    // That something is kept under an id that was made up cannot be seen then.
    let adopted = report_of("adopts-unknown", bare).await;
    assert_eq!(verdict(check(&adopted, "session-revived")), "confirmed unknown-session-served medium");
    assert!(!verdict(check(&adopted, "session-adopted")).starts_with("confirmed"));
}

#[tokio::test]
async fn made_up_callers_are_two_only_where_the_server_names_them() {
    let nameless = |_: usize, request: &Recorded| match request.method() {
        "tools/list" => Act::Changed(|body| body.replace("whoami", "hum")),
        _ => Act::Forward,
    };
    for twin in ["sessions", "unbound-sessions"] {
        let (_served, front) = behind(twin, nameless).await;
        let mut run = session_run_on(&front.url());
        run.identities = made_up();

        assert_eq!(verdict(check(&probed(&run).await, FOREIGN)), "skipped identities-not-distinguished", "{twin}");
    }
    let (_served, front) = behind("unbound-sessions", |_, _| Act::Forward).await;
    let mut run = session_run_on(&front.url());
    run.identities = made_up();
    assert_eq!(verdict(check(&probed(&run).await, FOREIGN)), "confirmed session-not-bound high");
}

#[tokio::test]
async fn a_server_that_looks_at_no_id_is_not_said_to_mix_up_sessions() {
    // Whatever the id, every request is one of a session of the caller's own.
    let (served, first) = behind("missing-accepted", |_, _| Act::Forward).await;
    drop(first);
    let front = Front::start(Some(served.url()), |_, request| {
        if request.method() == "initialize" { Act::Forward } else { Act::WithoutSession }
    })
    .await;

    let report = probed(&session_run_on(&front.url())).await;

    assert!(!verdict(check(&report, FOREIGN)).starts_with("confirmed"), "{}", verdict(check(&report, FOREIGN)));
    assert_eq!(verdict(check(&report, "session-revived")), "confirmed unknown-session-served low +session-id-ignored");
    assert_eq!(verdict(check(&report, "session-missing-accepted")), "confirmed session-not-needed low");
    assert!(!verdict(check(&report, "session-outlives-delete")).starts_with("confirmed"));
}

#[tokio::test]
async fn what_is_answered_by_turns_is_unstable_and_never_confirmed() {
    for twin in ["two-replicas", "sessions"] {
        let by_turns = move |number: usize, request: &Recorded| {
            let refused = twin == "sessions" && number % 5 == 4 && request.header("mcp-session-id").is_some();
            if refused { Act::ErrorUnder(404, -32600, "Session not found") } else { Act::Forward }
        };
        let report = report_of(twin, by_turns).await;

        assert!(report.checks.iter().all(|check| check.verdict != Verdict::Confirmed), "{twin}: {}", sessions(&report));
        assert!(report.checks.iter().any(|check| check.reason.slug() == "unstable"), "{twin}: {}", sessions(&report));
    }
}

#[tokio::test]
async fn outages_are_unclear_and_neither_good_nor_bad_news() {
    for status in [429, 500, 503] {
        let failing = move |_: usize, request: &Recorded| match request.token() {
            Some("bob") if request.method() == "tools/call" => Act::Status(status, Vec::new()),
            _ => Act::Forward,
        };
        for twin in ["sessions", "unbound-sessions"] {
            let report = report_of(twin, failing).await;

            assert_eq!(check(&report, FOREIGN).verdict, Verdict::Errored, "{twin}: {status}");
            assert_eq!(
                check(&report, "session-revived").verdict,
                Verdict::Refuted,
                "{twin}: A alone is enough for this"
            );
        }
    }
}

#[tokio::test]
async fn an_expired_token_of_somebody_else_tells_nothing() {
    let (_served, front) = behind("checks-token-once", |_, _| Act::Forward).await;
    let mut run = session_run_on(&front.url());
    run.identities = support::alice_and_bob().with(handfast_probe::identity::Who::Expired, "expired-carol".into());

    assert_eq!(verdict(check(&probed(&run).await, "session-outlives-token")), "skipped needs-identity:expired");

    run.identities = support::alice_and_bob().with(handfast_probe::identity::Who::Expired, "carol".into());
    let report = probed(&run).await;
    let found = check(&report, "session-outlives-token");
    assert_eq!(verdict(found), "skipped needs-identity:expired");
    assert!(found.detail.contains("not expired"), "{}", found.detail);
}

#[tokio::test]
async fn a_check_alone_and_all_in_any_order_say_the_same() {
    for twin in ["sessions", "single-session-fallback", "legacy"] {
        let served = served(twin, Answers::Json).await;
        let mut run = session_run_on(&served.url());
        let whole = probed(&run).await;
        run.checks.reverse();
        let reversed = probed(&run).await;
        for found in &whole.checks {
            assert_eq!(verdict(check(&reversed, found.id)), verdict(found), "{twin}: {}", found.id);
            run.checks.clear();
            run.checks.extend(handfast_probe::checks::find(found.id));
            assert_eq!(verdict(check(&probed(&run).await, found.id)), verdict(found), "{twin}: {} alone", found.id);
        }
    }
}

#[tokio::test]
async fn ordinary_calls_find_their_sessions_again() {
    let (_served, front) = behind("legacy", |_, _| Act::Forward).await;
    let mut run = support::whole_run_on(&front.url());
    run.checks.reverse();

    let report = probed(&run).await;

    // The checks of sessions came first and ended everything; those of states came last, and called tools.
    assert_eq!(verdict(check(&report, support::STATE)), "skipped nothing-returned-input-required");
    let tools = |value: &Value| value["params"]["name"].is_string();
    assert!(front.seen().iter().rev().take(40).any(|seen| tools(&seen.body)));
}

#[tokio::test]
async fn one_id_for_everybody_is_one_session_and_says_nothing_of_owners() {
    // Ids are all one and the same: what B does under it, B does in its own session.
    let one = |_: usize, request: &Recorded| match (request.verb.as_str(), request.method()) {
        ("DELETE", _) => Act::Status(405, Vec::new()),
        (_, "initialize") => Act::Under("the-one-and-only-session"),
        _ => Act::Forward,
    };
    let report = report_of("adopts-client-id", one).await;

    assert!(!verdict(check(&report, FOREIGN)).starts_with("confirmed"), "{}", verdict(check(&report, FOREIGN)));
}

#[tokio::test]
async fn silence_at_initialize_is_not_the_absence_of_sessions() {
    for (act, reason) in [(Act::Hang, "timed-out"), (Act::Status(503, Vec::new()), "unclear"), (Act::Close, "unclear")]
    {
        let opens = move |_: usize, request: &Recorded| {
            if request.method() == "initialize" { act.clone() } else { Act::Forward }
        };
        let (_served, front) = behind("sound", opens).await;
        let mut run = session_run_on(&front.url());
        run.options.timeout = std::time::Duration::from_millis(300);

        let (report, took) = support::timed(probed(&run)).await;

        for check in &report.checks {
            assert_eq!((check.verdict, check.reason.slug()), (Verdict::Errored, reason), "{}", check.detail);
        }
        assert!(took.as_secs() < 5, "it is asked once: {took:?}");
    }
}

#[tokio::test]
async fn a_stream_that_does_not_begin_is_not_there_to_be_tested() {
    let dumb = |_: usize, request: &Recorded| match (request.verb.as_str(), request.path.as_str()) {
        ("GET", "/mcp") => Act::Hang,
        _ => Act::Forward,
    };
    let (_served, front) = behind("unbound-sessions", dumb).await;
    let mut run = session_run_on(&front.url());
    run.options.timeout = std::time::Duration::from_millis(500);

    let report = probed(&run).await;

    assert_eq!(sessions(&report), "foreign-principal confirmed session-not-bound high");
    assert_eq!(entry(check(&report, FOREIGN), "GET").row.reason.slug(), "verb-not-offered");
}
