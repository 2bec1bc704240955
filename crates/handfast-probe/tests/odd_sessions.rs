//! Servers whose sessions are odd, each in front of a twin: what must not be taken for a weakness, and what hides one.

mod support;

use std::{
    collections::{HashMap, HashSet},
    sync::Mutex,
};

use handfast_probe::{identity::Identities, report::Report, runner::Run, verdict::Verdict};
use handfast_twins::Answers;
use serde_json::{Value, json};
use support::{
    check, entry,
    front::{Act, Front, Recorded, json_answer, stream_head},
    probed, served, session_run_on, sessions, verdict,
};

const FOREIGN: &str = "session-foreign-principal";

async fn report_of(twin: &str, act: impl Fn(&Recorded) -> Act + Send + Sync + 'static) -> Report {
    with_identities(twin, support::alice_and_bob(), act).await
}

async fn with_identities(
    twin: &str,
    identities: Identities,
    act: impl Fn(&Recorded) -> Act + Send + Sync + 'static,
) -> Report {
    let served = served(twin, Answers::Json).await;
    let front = Front::of(&served.url(), move |_, request| act(request)).await;
    let run = session_run_on(&front.url());
    let expired = handfast_probe::identity::Who::Expired;
    probed(&Run { identities: identities.with(expired, "expired-alice".into()), ..run }).await
}

/// A result that is no error, with these words.
fn in_a_result(id: &Value, words: &str) -> Vec<u8> {
    let said = json!([{"type": "text", "text": words}]);
    json_answer(200, &json!({"jsonrpc": "2.0", "id": id, "result": {"content": said, "isError": false}}))
}

fn session(request: &Recorded) -> Option<String> {
    request.header("mcp-session-id").map(str::to_owned)
}

/// One event of a stream that goes on.
fn event(message: &Value) -> Vec<u8> {
    [stream_head(), format!("data: {message}\n\n").into_bytes()].concat()
}

#[tokio::test]
async fn a_refusal_in_polite_words_is_one() {
    let polite = |id: &Value| in_a_result(id, "Session not found. Please start again.");
    let act = move |request: &Recorded| match request.tool() {
        "" => Act::Forward,
        _ => Act::Refusing(polite),
    };
    let report = report_of("sessions", act).await;
    // That a client learns nothing from 200 is true; and who is told that a session is gone is not told that a token is.
    assert_eq!(
        sessions(&report),
        "outlives-token skipped needs-identity:expired; unknown-not-404 confirmed unknown-session-status low"
    );

    for twin in ["unbound-sessions", "unbound-writes"] {
        let found = report_of(twin, act).await;
        assert_eq!(verdict(check(&found, FOREIGN)), "confirmed session-not-bound high", "{twin}");
    }
    let found = report_of("revives-unknown", act).await;
    assert_eq!(verdict(check(&found, "session-revived")), "confirmed unknown-session-served medium");
}

/// A no in words that nobody knows is no yes: the answer is like none that an honest caller gets.
#[tokio::test]
async fn an_answer_that_is_like_no_honest_one_confirms_nothing() {
    let foreign = |id: &Value| in_a_result(id, "Diese Sitzung gibt es nicht. Bitte melden Sie sich neu an.");
    let act = move |request: &Recorded| match request.tool() {
        "" => Act::Forward,
        _ => Act::Refusing(foreign),
    };
    let report = report_of("sessions", act).await;
    for id in [FOREIGN, "session-revived", "session-adopted", "session-missing-accepted", "session-outlives-delete"] {
        let found = check(&report, id);
        assert_ne!(found.verdict, Verdict::Confirmed, "{id}: {}", found.detail);
    }
    let report = report_of("unbound-sessions", act).await;
    assert_eq!(check(&report, FOREIGN).verdict, Verdict::Confirmed, "streams and ends tell");
}

/// A session that takes six requests is gone at the seventh, whoever asked to end it.
#[tokio::test]
async fn a_session_that_ends_by_itself_was_ended_by_nobody() {
    let requests: Mutex<HashMap<String, usize>> = Mutex::default();
    let act = move |request: &Recorded| {
        let Some(id) = session(request).filter(|_| request.verb == "POST" && !request.method().starts_with("notif"))
        else {
            return Act::Forward;
        };
        let mut requests = requests.lock().expect("no panic");
        let made = requests.entry(id).or_default();
        *made += 1;
        if *made > 6 { Act::ErrorUnder(404, -32600, "session not found") } else { Act::Forward }
    };
    let report = report_of("sessions", act).await;

    let found = check(&report, FOREIGN);
    let row = &entry(found, "DELETE").row;
    assert_eq!((row.verdict, row.reason.slug()), (Verdict::Errored, "unstable"), "{}", row.detail);
    assert!(row.detail.contains("that nobody ended is gone"), "{}", row.detail);
    assert_ne!(found.verdict, Verdict::Confirmed);
}

#[tokio::test]
async fn a_stream_that_begins_with_an_error_is_a_refusal() {
    let refused = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "not your session"}});
    let act = move |request: &Recorded| match (request.verb.as_str(), request.token()) {
        ("GET", Some("bob")) if request.path == "/mcp" => Act::Raw(vec![event(&refused)]),
        _ => Act::Forward,
    };
    // B's own stream is refused as well, so the verb cannot be tested.
    let row = entry(check(&report_of("unbound-get", act).await, FOREIGN), "GET").row.clone();
    assert_eq!(row.reason.slug(), "verb-not-offered");

    let greeting =
        json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "hi"}});
    let act = move |request: &Recorded| match request.verb.as_str() {
        "GET" if request.path == "/mcp" && session(request).is_some() => Act::Raw(vec![event(&greeting)]),
        _ => Act::Forward,
    };
    let found = report_of("sessions", act).await;
    assert_eq!(entry(check(&found, FOREIGN), "GET").row.reason.slug(), "session-witness-unusable");
}

#[tokio::test]
async fn an_end_that_is_only_promised_is_waited_for() {
    // 202 at once; the session answers once more after that.
    let promised: Mutex<HashMap<String, usize>> = Mutex::default();
    let act = move |request: &Recorded| {
        let mut promised = promised.lock().expect("no panic");
        match (request.verb.as_str(), session(request)) {
            ("DELETE", Some(id)) => {
                promised.insert(id, 0);
                Act::Status(202, Vec::new())
            }
            (_, Some(id)) => match promised.get_mut(&id) {
                Some(used) if *used > 0 => Act::ErrorUnder(404, -32600, "session not found"),
                Some(used) => {
                    *used += 1;
                    Act::Forward
                }
                None => Act::Forward,
            },
            _ => Act::Forward,
        }
    };
    let found = report_of("sessions", act).await;
    assert_eq!(verdict(check(&found, "session-outlives-delete")), "refuted session-guard-held +ended-session-lingers");
}

#[tokio::test]
async fn a_stream_of_an_ended_session_outlives_it() {
    let ended: Mutex<HashSet<String>> = Mutex::default();
    let act = move |request: &Recorded| {
        let mut ended = ended.lock().expect("no panic");
        match (request.verb.as_str(), session(request)) {
            ("DELETE", Some(id)) => {
                ended.insert(id);
                Act::Forward
            }
            ("GET", Some(id)) if ended.contains(&id) => Act::Raw(vec![stream_head(), b": alive\n\n".to_vec()]),
            _ => Act::Forward,
        }
    };
    let found = report_of("sessions", act).await;
    let found = check(&found, "session-outlives-delete");
    assert_eq!(verdict(found), "confirmed ended-session-served medium");
    assert_eq!(entry(found, "DELETE, then GET").row.verdict, Verdict::Confirmed);
    assert_eq!(entry(found, "DELETE, then POST").row.verdict, Verdict::Refuted);
}

#[tokio::test]
async fn a_stream_without_a_session_is_seen() {
    let act = |request: &Recorded| match (request.verb.as_str(), session(request)) {
        ("GET", None) if request.path == "/mcp" => Act::Raw(vec![stream_head(), b": alive\n\n".to_vec()]),
        _ => Act::Forward,
    };
    assert_eq!(sessions(&report_of("sessions", act).await), "missing-accepted confirmed session-not-needed low");
}

/// What is kept under an id is kept for each caller apart: whoever knows A's id finds nothing there, and changes nothing.
#[tokio::test]
async fn a_part_for_each_caller_is_no_foreign_session() {
    // Sessions are known by whoever used them first, since an honest caller is always the first.
    let first: Mutex<HashMap<String, String>> = Mutex::default();
    let text = |text: &str| Act::Result(json!({"content": [{"type": "text", "text": text}], "isError": false}));
    let act = move |request: &Recorded| {
        let (Some(id), Some(token)) = (session(request), request.token()) else { return Act::Forward };
        let mut first = first.lock().expect("no panic");
        if request.method() == "notifications/initialized" {
            first.entry(id).or_insert_with(|| token.to_owned());
            return Act::Forward;
        }
        let is_foreign = token == "bob" && first.get(&id).is_some_and(|owner| owner == "alice");
        match (request.verb.as_str(), request.tool()) {
            _ if !is_foreign => Act::Forward,
            ("GET", _) => Act::Raw(vec![stream_head(), b": alive\n\n".to_vec()]),
            ("DELETE", _) => Act::Status(204, Vec::new()),
            (_, "recall") => text("nothing is kept"),
            (_, "remember") => text("1 notes are kept"),
            (_, "whoami") => text("bob"),
            _ => Act::Result(json!({"tools": []})),
        }
    };
    let found = report_of("sessions", act).await;
    assert_eq!(sessions(&found), "foreign-principal refuted session-bound +foreign-session-served");
}

#[tokio::test]
async fn callers_who_share_an_account_are_two() {
    let act = |request: &Recorded| match request.tool() {
        "whoami" => Act::Changed(|body| {
            let told = |name: &str| format!(r#"{{\"account\":\"acme\",\"user\":\"{name}\"}}"#);
            body.replace("\"alice\"", &format!("\"{}\"", told("alice")))
                .replace("\"bob\"", &format!("\"{}\"", told("bob")))
        }),
        _ => Act::Forward,
    };
    let found = report_of("unbound-sessions", act).await;
    assert_eq!(verdict(check(&found, FOREIGN)), "confirmed session-not-bound high");
    assert_eq!(sessions(&report_of("sessions", act).await), "refuted");
}

/// `test` stands in `test-2`, and is somebody else.
#[tokio::test]
async fn a_name_that_stands_in_the_other_is_told_from_it() {
    let act = |request: &Recorded| match request.method() {
        "tools/list" => Act::Changed(|body| body.replace("remember", "ponder").replace("recall", "muse")),
        _ => Act::Forward,
    };
    let (test, test_two) = ("test", "test-2");
    for (a, b) in [(test, test_two), (test_two, test)] {
        let named = || Identities::new(Some(a.into()), Some(b.into())).expect("they differ");
        let found = with_identities("unbound-sessions", named(), act).await;
        assert_eq!(verdict(check(&found, FOREIGN)), "confirmed session-not-bound high", "{a} {b}");
        let found = with_identities("sessions", named(), act).await;
        assert_eq!(verdict(check(&found, FOREIGN)), "refuted session-bound", "{a} {b}");
    }
}

#[tokio::test]
async fn a_session_that_is_gone_may_be_said_to_be_gone() {
    let gone = |_: &Value| json_answer(410, &json!("gone"));
    let report = report_of("sessions", move |_| Act::Refusing(gone)).await;

    assert_eq!(sessions(&report), "unknown-not-404 confirmed unknown-session-status low");
}

#[tokio::test]
async fn pages_that_do_not_work_and_pages_that_do_not_end() {
    let down = |request: &Recorded| match request.path.as_str() {
        "/status" => Act::Status(503, Vec::new()),
        _ => Act::Forward,
    };
    assert_eq!(verdict(check(&report_of("sessions", down).await, "session-disclosed")), "errored unclear");

    let endless = |request: &Recorded| match request.path.as_str() {
        "/debug" => Act::Framed { write: |_| vec![stream_head(), b": alive\n\n".to_vec()], held: true },
        _ => Act::Forward,
    };
    let (found, took) = support::timed(report_of("sessions", endless)).await;
    assert_eq!(verdict(check(&found, "session-disclosed")), "refuted session-guard-held");
    assert!(took.as_secs() < 15, "{took:?}");
}

/// B, who opens a session under A's id, is in it, or has put A out of it.
#[tokio::test]
async fn an_initialize_under_anothers_id_takes_nothing_over() {
    let takeover = "initialize under A's id";
    let found = report_of("adopts-client-id", |_| Act::Forward).await;
    let row = &entry(check(&found, FOREIGN), takeover).row;
    assert_eq!(row.verdict, Verdict::Confirmed);
    assert!(row.detail.contains("put A out"), "{}", row.detail);

    let found = report_of("unbound-sessions", |_| Act::Forward).await;
    assert!(entry(check(&found, FOREIGN), takeover).row.detail.contains("B got A's canary"));
    let found = report_of("sessions", |_| Act::Forward).await;
    assert_eq!(entry(check(&found, FOREIGN), takeover).row.verdict, Verdict::Refuted);
}

/// B's stream is refused because B has one: that says nothing of A's session.
#[tokio::test]
async fn one_stream_for_each_caller_refutes_nothing() {
    let has_one: Mutex<HashSet<String>> = Mutex::default();
    let act = move |request: &Recorded| match (request.verb.as_str(), request.token()) {
        ("GET", Some(token))
            if request.path == "/mcp" && !has_one.lock().expect("no panic").insert(token.to_owned()) =>
        {
            Act::ErrorUnder(400, -32600, "you have a stream already")
        }
        _ => Act::Forward,
    };
    let row = entry(check(&report_of("unbound-get", act).await, FOREIGN), "GET").row.clone();
    assert_ne!(row.verdict, Verdict::Refuted, "{}", row.detail);
}

/// Whoever answers in a session of B's own, and says so, has not let B into A's.
#[tokio::test]
async fn a_new_session_in_the_answer_is_not_as() {
    let first: Mutex<HashMap<String, String>> = Mutex::default();
    let act = move |request: &Recorded| {
        let (Some(id), Some(token)) = (session(request), request.token()) else { return Act::Forward };
        let mut first = first.lock().expect("no panic");
        if request.method() == "notifications/initialized" {
            first.entry(id).or_insert_with(|| token.to_owned());
            return Act::Forward;
        }
        let is_foreign = token == "bob" && first.get(&id).is_some_and(|owner| owner == "alice");
        if !is_foreign || request.method() != "tools/call" {
            return Act::Forward;
        }
        let said = if request.tool() == "whoami" { "bob" } else { "nothing is kept" };
        let result = json!({"content": [{"type": "text", "text": said}], "isError": false});
        let answer = json!({"jsonrpc": "2.0", "id": request.body["id"], "result": result}).to_string();
        let head = format!(
            "HTTP/1.1 200 so\r\ncontent-type: application/json\r\nmcp-session-id: {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            "f".repeat(32),
            answer.len()
        );
        Act::Raw(vec![head.into_bytes(), answer.into_bytes()])
    };
    let found = report_of("sessions", act).await;
    let found = check(&found, FOREIGN);
    assert_eq!(entry(found, "POST").row.verdict, Verdict::Refuted, "{}", entry(found, "POST").row.detail);
    assert!(found.observations.iter().any(|observation| observation.id == "foreign-session-renewed"));
}

/// Without B nothing shows whether B would be refused, whoever else is.
#[tokio::test]
async fn a_stranger_who_is_refused_everything_refutes_nothing() {
    let act = |request: &Recorded| match request.token() {
        Some("alice") => Act::Forward,
        _ if request.path == "/mcp" => Act::Status(401, Vec::new()),
        _ => Act::Forward,
    };
    for twin in ["sessions", "unbound-sessions"] {
        let found = report_of(twin, act).await;
        assert_eq!(verdict(check(&found, FOREIGN)), "skipped second-identity-not-live", "{twin}");
    }
    // What the others show is not lost.
    let mut found = report_of("no-token-in-session", |request| match request.token() {
        Some("alice") | None => Act::Forward,
        _ => Act::Status(401, Vec::new()),
    })
    .await;
    assert_eq!(verdict(check(&found, FOREIGN)), "confirmed session-not-bound high");
    found.checks.retain(|check| check.id == FOREIGN);
    let text = handfast_probe::format::text::write(&found, false);
    assert!(text.contains("not tested: POST [second-identity-not-live]"), "{text}");
}

/// Where the profile names a user of another tenant, and tenants are not told apart, that user is in A's session.
#[tokio::test]
async fn another_tenant_is_a_stranger_as_well() {
    let of_tenant = || support::alice_and_bob().with(handfast_probe::identity::Who::OtherTenant, "alice@other".into());
    let mixed_up = |request: &Recorded| match request.token() {
        Some("alice@other") => Act::As("alice"),
        _ => Act::Forward,
    };
    let found = with_identities("sessions", of_tenant(), mixed_up).await;
    let row = &entry(check(&found, FOREIGN), "POST by another tenant").row;
    assert_eq!(verdict(check(&found, FOREIGN)), "confirmed session-not-bound high");
    assert!(row.detail.contains("tenants are not told apart"), "{}", row.detail);

    let found = with_identities("sessions", of_tenant(), |_| Act::Forward).await;
    assert_eq!(entry(check(&found, FOREIGN), "POST by another tenant").row.verdict, Verdict::Refuted);
    let unknown = |request: &Recorded| match request.token() {
        Some("alice@other") => Act::Status(401, Vec::new()),
        _ => Act::Forward,
    };
    let found = with_identities("sessions", of_tenant(), unknown).await;
    let row = &entry(check(&found, FOREIGN), "POST by another tenant").row;
    assert_eq!((row.verdict, row.reason.slug()), (Verdict::Skipped, "second-identity-not-live"));
}

/// Ids that nobody has to foretell: so few that they can be tried out, one for each caller, or a series for each.
#[tokio::test]
async fn ids_that_are_found_without_being_foretold() {
    let of = |id: fn(&str, usize) -> String| async move {
        let made: Mutex<HashMap<String, usize>> = Mutex::default();
        let act = move |request: &Recorded| {
            let ("initialize", Some(token @ ("alice" | "bob"))) = (request.method(), request.token()) else {
                return Act::Forward;
            };
            let mut made = made.lock().expect("no panic");
            let count = made.entry(token.to_owned()).or_default();
            *count += 1;
            Act::Under(Box::leak(id(token, *count).into_boxed_str()))
        };
        let report = report_of("adopts-client-id", act).await;
        let found = check(&report, "session-guessable");
        (verdict(found), found.detail.clone())
    };
    // Four digits, in no order that shows.
    let (said, detail) = of(|token, count| format!("{:04}", (count * 7919 + token.len() * 3331) % 10_000)).await;
    assert!(said.starts_with("confirmed few-ids-possible low"), "{said}: {detail}");
    let (said, detail) = of(|token, _| format!("the-only-session-of-{token}")).await;
    assert!(said.starts_with("confirmed session-foretold low") && detail.contains("the same id"), "{said}: {detail}");
    let (said, detail) = of(|token, count| format!("{token}-{:08}", 4711 + count)).await;
    assert!(
        said.starts_with("confirmed session-foretold low") && detail.contains("series of their own"),
        "{said}: {detail}"
    );
}

/// Whoever is given the session that there is already has an id that nobody could foretell.
#[tokio::test]
async fn a_session_that_is_given_again_is_not_foretold() {
    let made: Mutex<(usize, HashMap<String, String>)> = Mutex::default();
    let act = move |request: &Recorded| {
        let Some(token @ ("alice" | "bob")) = request.token() else { return Act::Forward };
        let mut made = made.lock().expect("no panic");
        if request.verb == "DELETE" {
            made.1.remove(token);
            return Act::Forward;
        }
        if request.method() != "initialize" {
            return Act::Forward;
        }
        made.0 += 1;
        let number = made.0;
        let id = made.1.entry(token.to_owned()).or_insert_with(|| format!("{:032x}", (number as u128) << 77 | 0x5eed));
        Act::Under(Box::leak(id.clone().into_boxed_str()))
    };
    let report = report_of("adopts-client-id", act).await;
    assert_ne!(check(&report, "session-guessable").verdict, Verdict::Confirmed);
    let row = &entry(check(&report, "session-guessable"), "the next id").row;
    assert_eq!((row.verdict, row.reason.slug()), (Verdict::Skipped, "session-witness-unusable"), "{}", row.detail);
}

/// A refusal that tells which sessions there are has told A's.
#[tokio::test]
async fn a_refusal_that_lists_sessions_tells_them() {
    let open: Mutex<Vec<String>> = Mutex::default();
    let act = move |request: &Recorded| {
        let mut open = open.lock().expect("no panic");
        match (request.method(), session(request)) {
            ("notifications/initialized", Some(id)) => {
                open.push(id);
                Act::Forward
            }
            ("initialize", None) if request.token().is_none() => {
                Act::Refusal(format!("no token; open: 5tranger5-5e55ion {:?}", open.last()))
            }
            _ => Act::Forward,
        }
    };
    let report = report_of("sessions", act).await;
    let found = check(&report, "session-disclosed");
    assert_eq!(verdict(found), "confirmed session-id-disclosed high");
    assert_eq!(entry(found, "refusals").row.verdict, Verdict::Confirmed);
    let written = serde_json::to_string(found).expect("a check serialises");
    assert!(!written.contains("5tranger5") && written.contains("not quoted"), "a stranger's id is not passed on");
}
