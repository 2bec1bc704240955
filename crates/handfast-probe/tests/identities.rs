//! Control 0: a cross-use says something only where the server tells A and B apart. What shows that, and what does not.
//! A server on standard input and output that reads no principal is among the tests of the command line.

mod support;

use std::{collections::HashSet, sync::Mutex};

use handfast_probe::{
    identity::{Identities, SameIdentity},
    report::Report,
    runner::Run,
};
use handfast_twins::Answers;
use support::{
    HANDLE, check,
    front::{Act, Front, Recorded},
    made_up, probed, reasons, run_on, served, verdict,
};

/// The verdict on handles of a twin behind a front.
async fn behind(twin: &str, act: impl Fn(&Recorded) -> Act + Send + Sync + 'static) -> Report {
    let served = served(twin, Answers::Json).await;
    let front = Front::of(&served.url(), move |_, request| act(request)).await;
    probed(&run_on(&front.url())).await
}

/// Takes out of every answer who owns what; `whoami` becomes an error of the twin's.
fn nameless(body: &str) -> String {
    let mut body = body.to_owned();
    for name in ["alice", "bob"] {
        for quote in ["\"", "\\\""] {
            body = body.replace(&format!(",{quote}owner{quote}:{quote}{name}{quote}"), "");
        }
    }
    body
}

fn knows(request: &Recorded) -> bool {
    matches!(request.token(), Some("alice" | "bob"))
}

/// A server that knows its two users and never says who is who.
fn discreet(request: &Recorded) -> Act {
    match request {
        request if !knows(request) => Act::Status(401, vec![("www-authenticate", "Bearer".to_owned())]),
        request if request.tool() == "whoami" => Act::Error(-32602, "unknown tool"),
        _ => Act::Changed(nameless),
    }
}

#[test]
fn the_same_credential_twice_is_an_error_that_does_not_repeat_it() {
    let same = Identities::new(Some("s3cret".into()), Some("s3cret".into()));

    assert_eq!(same.as_ref().err(), Some(&SameIdentity));
    assert!(!SameIdentity.to_string().contains("s3cret"));
    assert!(Identities::new(Some("s3cret".into()), Some("S3cret".into())).is_ok());
}

#[test]
fn no_identity_shows_its_credential() {
    let identities = Identities::new(Some("s3cret-a".into()), Some("s3cret-b".into())).expect("they differ");

    assert!(!format!("{identities:?}").contains("s3cret"), "{identities:?}");
}

#[tokio::test]
async fn a_server_that_ignores_tokens_is_never_confirmed() {
    for identities in [support::alice_and_bob(), made_up()] {
        let served = served("ignores-identity", Answers::Json).await;
        let mut run = run_on(&served.url());
        run.identities = identities;

        let report = probed(&run).await;

        assert_eq!(verdict(check(&report, HANDLE)), "skipped identities-not-distinguished");
        assert!(check(&report, HANDLE).detail.contains("names both A and B"), "{}", check(&report, HANDLE).detail);
    }
}

#[tokio::test]
async fn a_server_that_takes_any_token_and_names_nobody_is_never_confirmed() {
    for (identities, hint) in [
        (support::alice_and_bob(), "with one that nobody issued, are answered as well"),
        (made_up(), "give two real credentials"),
    ] {
        let served = served("any-token", Answers::Json).await;
        let silent = |_: usize, request: &Recorded| match request.tool() {
            "whoami" => Act::Error(-32602, "unknown tool"),
            _ => Act::Forward,
        };
        let front = Front::of(&served.url(), silent).await;
        let mut run = run_on(&front.url());
        run.identities = identities;

        let report = probed(&run).await;

        let check = check(&report, HANDLE);
        assert_eq!(verdict(check), "skipped identities-not-distinguished");
        assert!(check.detail.contains(hint), "it says what to do: {}", check.detail);
    }
}

#[tokio::test]
async fn one_user_with_two_tokens_is_one_user() {
    // It refuses everybody else, and still: it names both alike, as the owner of what they made or when asked who they are.
    let by_owner = |request: &Recorded| match request.tool() {
        _ if !knows(request) => discreet(request),
        "whoami" => Act::Error(-32602, "unknown tool"),
        _ => Act::As("carol"),
    };
    let when_asked = |request: &Recorded| match request.tool() {
        "whoami" if knows(request) => Act::As("carol"),
        _ => discreet(request),
    };
    for report in [behind("flawed", by_owner).await, behind("flawed", when_asked).await] {
        assert_eq!(verdict(check(&report, HANDLE)), "skipped identities-not-distinguished");
        assert!(check(&report, HANDLE).detail.contains("`carol`"), "{}", check(&report, HANDLE).detail);
    }
}

#[tokio::test]
async fn refusing_everybody_else_tells_two_given_users_apart() {
    for (twin, expected) in [("flawed", "confirmed handle-not-bound high"), ("sound", "refuted handle-bound")] {
        let report = behind(twin, discreet).await;

        assert!(verdict(check(&report, HANDLE)).starts_with(expected), "{twin}: {}", verdict(check(&report, HANDLE)));
    }
}

#[tokio::test]
async fn what_is_refused_to_a_as_well_tells_nobody_apart() {
    // It takes any token and names nobody. What it does not like about a call has nothing to do with who makes it.
    let disliked = Mutex::new(HashSet::new());
    let act = move |request: &Recorded| {
        let call = request.body["params"]["arguments"].to_string();
        let mut disliked = disliked.lock().expect("a lock");
        match request.tool() {
            "" => Act::Forward,
            "whoami" => Act::Error(-32602, "unknown tool"),
            _ if !knows(request) => {
                disliked.insert(call);
                Act::Error(-32602, "not like this")
            }
            _ if disliked.contains(&call) => Act::Error(-32602, "not like this"),
            _ => Act::Changed(nameless),
        }
    };
    let served = served("any-token", Answers::Json).await;
    let front = Front::of(&served.url(), move |_, request| act(request)).await;

    let report = probed(&run_on(&front.url())).await;

    assert_eq!(verdict(check(&report, HANDLE)), "skipped identities-not-distinguished");
}

#[tokio::test]
async fn the_anonymous_and_the_impostor_are_both_asked() {
    let served = served("sound", Answers::Json).await;
    let front = Front::of(&served.url(), |_, request| discreet(request)).await;

    probed(&run_on(&front.url())).await;

    let strangers: Vec<Option<String>> = front
        .seen()
        .iter()
        .filter(|seen| seen.method() == "tools/call" && !knows(seen))
        .map(|seen| seen.token().map(str::to_owned))
        .collect();
    // After them come those whom the grid of callers asks.
    assert!(strangers.len() >= 2, "{strangers:?}");
    assert_eq!(strangers[0], None, "without a credential");
    let forged = strangers[1].as_deref().expect("with one that nobody issued");
    assert_eq!(forged.len(), "alice".len(), "shaped like A's: {forged}");
    assert_ne!(forged, "alice");
}

#[tokio::test]
async fn where_one_of_the_two_is_answered_nobody_is_told_apart() {
    // The anonymous are refused and the impostor is not; then the other way round.
    let impostor_welcome = |request: &Recorded| match request.token() {
        None => discreet(request),
        Some("alice" | "bob") => discreet(request),
        Some(_) => Act::As("somebody"),
    };
    let anonymous_welcome = |request: &Recorded| match request.token() {
        None => Act::As("nobody"),
        Some(_) => discreet(request),
    };
    for report in [behind("flawed", impostor_welcome).await, behind("flawed", anonymous_welcome).await] {
        assert_eq!(verdict(check(&report, HANDLE)), "skipped identities-not-distinguished");
    }
}

#[tokio::test]
async fn an_outage_for_strangers_is_no_refusal() {
    let report = behind("flawed", |request| match discreet(request) {
        Act::Status(..) => Act::Status(503, Vec::new()),
        other => other,
    })
    .await;

    assert_eq!(verdict(check(&report, HANDLE)), "skipped identities-not-distinguished");
}

#[tokio::test]
async fn made_up_users_are_not_told_apart_by_refusals() {
    // Whoever knows neither made-up user would have to refuse them as well.
    let served = served("flawed", Answers::Json).await;
    let front = Front::of(&served.url(), |_, request| match request.tool() {
        "whoami" => Act::Error(-32602, "unknown tool"),
        _ => Act::Changed(|body| {
            let Some((before, after)) = body.split_once(",\\\"owner\\\":\\\"") else { return body.to_owned() };
            let after = after.split_once("\\\"").map_or("", |(_, after)| after);
            let body = format!("{before}{after}");
            let Some((before, after)) = body.split_once(",\"owner\":\"") else { return body };
            let after = after.split_once('"').map_or("", |(_, after)| after);
            format!("{before}{after}")
        }),
    })
    .await;
    let mut run: Run = run_on(&front.url());
    run.identities = made_up();

    let report = probed(&run).await;

    assert_eq!(verdict(check(&report, HANDLE)), "skipped identities-not-distinguished");
}

#[tokio::test]
async fn a_tool_that_tells_its_caller_who_it_is_is_enough() {
    let report = behind("flawed", |_| Act::Changed(nameless)).await;

    assert!(verdict(check(&report, HANDLE)).starts_with("confirmed handle-not-bound"));
    assert!(check(&report, HANDLE).evidence.exchanges.iter().any(|step| step.step == "who-am-i"));
}

#[tokio::test]
async fn a_second_user_who_is_locked_out_is_not_live() {
    let report = behind("flawed", |request| match (request.token(), request.method()) {
        (Some("bob"), "tools/call") => Act::Status(403, Vec::new()),
        _ => Act::Forward,
    })
    .await;

    assert_eq!(verdict(check(&report, HANDLE)), "skipped second-identity-not-live");
}

#[tokio::test]
async fn a_first_user_who_is_locked_out_needs_another_credential() {
    let report = behind("flawed", |_| Act::Status(401, Vec::new())).await;

    assert_eq!(reasons(&report), ["needs-identity:a"; 2]);
}

#[tokio::test]
async fn a_credential_travels_in_the_header_that_the_operator_names_and_in_no_other() {
    let served = served("flawed", Answers::Json).await;
    let front = Front::of(&served.url(), |_, request| match request.header("x-api-key") {
        Some("alice") => Act::As("alice"),
        Some("bob") => Act::As("bob"),
        _ => Act::Status(401, Vec::new()),
    })
    .await;
    let mut run = run_on(&front.url());
    run.options.http.identity_header = Some("X-Api-Key".to_owned());

    let report = probed(&run).await;

    assert!(verdict(check(&report, HANDLE)).starts_with("confirmed handle-not-bound"));
    assert!(front.seen().iter().all(|seen| seen.header("authorization").is_none()), "no bearer token beside it");
}
