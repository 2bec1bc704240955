//! A second identity that the server refuses: what it is refused shows nothing about whose a thing is. No check may call
//! that good news.

mod support;

use handfast_probe::{
    identity::{Identities, SameIdentity, Who},
    report::Report,
    verdict::{Reason, Verdict},
};
use handfast_twins::Answers;
use support::{
    check,
    front::{Act, Front, Recorded},
    probed, served, verdict, whole_run_on,
};

/// Every check, with a B whose token the server knows to be none.
async fn with_dead_b(twin: &str) -> Report {
    let served = served(twin, Answers::Json).await;
    let refuses = |_: usize, request: &Recorded| match request.token() {
        Some("nobody-knows") => Act::Status(401, vec![("www-authenticate", "Bearer".to_owned())]),
        _ => Act::Forward,
    };
    let front = Front::of(&served.url(), refuses).await;
    let mut run = whole_run_on(&front.url());
    run.identities = Identities::new(Some("alice".into()), Some("nobody-knows".into())).expect("they differ");
    probed(&run).await
}

#[tokio::test]
async fn what_a_dead_b_is_refused_is_no_good_news() {
    for twin in ["sound", "names-owner", "tasks", "pages", "memory"] {
        let report = with_dead_b(twin).await;

        for id in [
            "handle-foreign-principal",
            "handle-oracle",
            "state-foreign-principal",
            "task-foreign-principal",
            "cursor-foreign-principal",
            "ambient-shared",
            "response-misrouted",
        ] {
            let found = check(&report, id);
            assert_ne!(found.verdict, Verdict::Refuted, "{twin}: {id}: {} ({})", verdict(found), found.detail);
            assert_ne!(found.verdict, Verdict::Confirmed, "{twin}: {id}: {} ({})", verdict(found), found.detail);
        }
        for id in ["handle-foreign-principal", "handle-oracle", "state-foreign-principal"] {
            assert_eq!(
                check(&report, id).reason,
                Reason::SecondIdentityNotLive,
                "{twin}: {id}: {}",
                check(&report, id).detail
            );
        }
        let met = report.access.iter().flat_map(|access| &access.callers);
        let of_b: Vec<&str> = met.filter(|met| met.who == "B").map(|met| met.outcome).collect();
        assert!(of_b.iter().all(|outcome| *outcome == "not live"), "{twin}: {of_b:?}");
    }
}

/// A JSON Web Token of these claims, signed by nobody.
fn token(claims: &str) -> String {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!("{}.{}.{}", part(r#"{"alg":"ES256"}"#), part(claims), part("signature"))
}

#[test]
fn two_tokens_of_one_subject_are_no_two_users() {
    let both = |one: &str, other: &str| Identities::new(Some(token(one).into()), Some(token(other).into())).err();
    let alice = r#"{"iss":"https://id.example","sub":"alice","jti":"1"}"#;

    assert_eq!(both(alice, r#"{"iss":"https://id.example","sub":"alice","jti":"2"}"#), Some(SameIdentity));
    assert_eq!(both(alice, r#"{"iss":"https://id.example","sub":"bob","jti":"2"}"#), None);
    assert_eq!(both(alice, r#"{"iss":"https://other.example","sub":"alice","jti":"2"}"#), None);
    assert_eq!(both(r#"{"jti":"1"}"#, r#"{"jti":"2"}"#), None, "who says no subject may be anybody");
    let identities =
        Identities::new(Some(token(alice).into()), Some("opaque".into())).expect("nothing is known of the other");
    assert!(identities.has(Who::B));
}
