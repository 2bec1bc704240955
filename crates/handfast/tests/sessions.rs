//! The decision about sessions: the whole table against an independent statement of it, and an authority against a model
//! under any sequence of requests.

use std::{collections::BTreeMap, sync::Arc};

use handfast::{
    Audience, Caller, ClientId, DangerousNoAudit, Issuer, Keys, Principal, Selector, Tenant,
    clock::{Clock, ManualClock, SystemClock},
    session::{Admission, Asked, Decision, SessionAuthority, SessionOptions, SessionSetup, Shown, decide},
    store::{MemoryStore, Store},
};
use proptest::prelude::*;

#[path = "support/bent.rs"]
mod bent;

/// The table, row by row as it is written down: the first row that fits decides.
type Row = (Option<bool>, Option<Asked>, Option<Shown>, Decision);

const TABLE: [Row; 8] = [
    (Some(false), None, None, Decision::Unauthorized),
    (Some(true), Some(Asked::Begin), None, Decision::Begin),
    (Some(true), None, Some(Shown::None), Decision::Missing),
    (Some(true), None, Some(Shown::Unknown), Decision::NotFound),
    (Some(true), None, Some(Shown::Foreign), Decision::NotFound),
    (Some(true), Some(Asked::Use), Some(Shown::Own), Decision::Proceed),
    (Some(true), Some(Asked::End), Some(Shown::Own), Decision::End),
    (None, None, None, Decision::Unauthorized),
];

#[test]
fn the_table() {
    for audience in [false, true] {
        for asked in [Asked::Begin, Asked::Use, Asked::End] {
            for shown in [Shown::None, Shown::Unknown, Shown::Foreign, Shown::Own] {
                let row = TABLE.iter().find(|(of_audience, of_asked, of_shown, _)| {
                    of_audience.is_none_or(|one| one == audience)
                        && of_asked.is_none_or(|one| one == asked)
                        && of_shown.is_none_or(|one| one == shown)
                });
                let (.., decision) = row.expect("the last row fits");
                assert_eq!(decide(audience, asked, shown), *decision, "{audience} {asked:?} {shown:?}");
            }
        }
    }
}

fn caller(subject: u8, client: u8, tenant: u8, audience: bool) -> Caller {
    let issuer = Issuer::new("https://id.example").expect("an issuer");
    let audience = if audience { "https://h.example/mcp" } else { "https://h.example/mcp2" };
    let caller = Caller::trusted(Principal::new(issuer, &format!("user-{subject}")).expect("a subject"))
        .for_audience(audience.parse().expect("an audience"))
        .by_client(ClientId::new(format!("client-{client}")).expect("a client"));
    if tenant == 0 { caller } else { caller.in_tenant(Tenant::new(format!("tenant-{tenant}")).expect("a tenant")) }
}

fn authority() -> SessionAuthority {
    SessionAuthority::new(SessionSetup {
        store: Arc::new(MemoryStore::new(Arc::new(SystemClock))),
        keys: Keys::dangerous_for_this_process_only(),
        audience: Audience::new("https://H.example:443/mcp").expect("an audience"),
        audit: Arc::new(DangerousNoAudit),
        options: SessionOptions::default(),
    })
}

/// One request: who (subject, client, tenant, audience), what, and which of the sessions so far it shows.
type Request = ((u8, u8, u8, bool), u8, Option<usize>);

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let who = (0..2_u8, 0..2_u8, 0..2_u8, prop::bool::weighted(0.9));
    prop::collection::vec((who, 0..4_u8, prop::option::weighted(0.9, 0..6_usize)), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happened before: nobody but who began a session uses it or ends it, and nothing but `begin` makes one.
    #[test]
    fn an_authority_does_what_a_list_of_owners_would(requests in requests()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let authority = authority();
            let mut ids: Vec<String> = vec!["mcps_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".into()];
            let mut owners: BTreeMap<String, ((u8, u8, u8), String)> = BTreeMap::new();
            for ((subject, client, tenant, ours), what, which) in requests {
                let (who, caller) = ((subject, client, tenant), caller(subject, client, tenant, ours));
                let shown = which.map(|which| ids[which % ids.len()].clone());
                let asked = match what {
                    0 => Asked::Begin,
                    1 => Asked::End,
                    _ => Asked::Use,
                };
                let own = shown.as_ref().and_then(|shown| owners.get(shown)).filter(|(owner, _)| *owner == who);
                let expected = match (ours, asked, &shown, own) {
                    (false, ..) => Err(401),
                    (true, Asked::Begin, ..) => Ok(None),
                    (true, _, None, _) => Err(400),
                    (true, _, Some(_), None) => Err(404),
                    (true, _, Some(_), Some((_, inner))) => Ok(Some(inner.clone())),
                };
                let answer = authority.admit(Some(&caller), asked, shown.as_deref()).await;
                let got = match &answer {
                    Err(refused) => Err(refused.denial().status()),
                    Ok(Admission::Begin) => Ok(None),
                    Ok(Admission::Proceed(session) | Admission::Ended(session)) => {
                        Ok(session.inner().map(|inner| inner.expose().to_owned()))
                    }
                };
                assert_eq!(got, expected, "{who:?} {asked:?} {shown:?}");
                match answer {
                    Ok(Admission::Begin) => {
                        let inner = format!("inner-{}", ids.len());
                        let id = authority.begin(&caller, Some(&inner)).await.expect("a session").id;
                        owners.insert(id.expose().to_owned(), (who, inner));
                        ids.push(id.expose().to_owned());
                    }
                    Ok(Admission::Ended(_)) => drop(owners.remove(&shown.expect("it was shown"))),
                    _ => {}
                }
            }
        });
    }
}

#[tokio::test]
async fn nobody_without_a_principal_and_an_audience_has_business_here() {
    let authority = authority();
    let principal = caller(1, 1, 0, true).principal().cloned().expect("one");
    for nobody in [
        None,
        Some(Caller::anonymous()),
        Some(Caller::anonymous().for_audience("https://h.example/mcp".parse().expect("one"))),
        Some(Caller::trusted(principal)),
        Some(caller(1, 1, 0, false)),
    ] {
        for asked in [Asked::Begin, Asked::Use, Asked::End] {
            let refused = authority.admit(nobody.as_ref(), asked, None).await.expect_err("refused");
            assert_eq!(refused.denial().status(), 401);
        }
        if let Some(nobody) = nobody {
            assert_eq!(authority.begin(&nobody, None).await.expect_err("refused").denial().status(), 401);
        }
    }
}

#[tokio::test]
async fn what_the_server_behind_calls_a_session_is_a_session_id_or_nothing() {
    let (authority, alice) = (authority(), caller(1, 1, 0, true));
    let longest = "a".repeat(1024);
    for good in [Some("1"), Some("!~"), Some(longest.as_str()), None] {
        let id = authority.begin(&alice, good).await.expect("a session").id;
        let Ok(Admission::Proceed(session)) = authority.admit(Some(&alice), Asked::Use, Some(id.expose())).await else {
            panic!("it is hers");
        };
        assert_eq!(session.inner().map(|inner| inner.expose()), good);
        assert!(!format!("{session:?}").contains(id.expose()));
    }
    let too_long = "a".repeat(1025);
    for bad in ["", " ", "a b", "a\u{7f}", "é", "a\n", &too_long] {
        assert!(authority.begin(&alice, Some(bad)).await.is_err(), "{bad:?}");
    }
}

/// A key that is gone leads nowhere: the way to the server behind was sealed under it. One that is retired still does, because
/// nobody from outside has written what lies in the store.
#[tokio::test]
async fn sessions_outlive_a_rotation_of_keys_and_end_with_the_key() {
    let (old, new) = (Keys::generate(), Keys::generate());
    let ring = |text: String| Keys::parse(&text).expect("keys");
    let store = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
    let with = |keys: Keys| {
        let (audience, audit) = ("https://h.example/mcp".parse().expect("one"), Arc::new(DangerousNoAudit));
        SessionAuthority::new(SessionSetup {
            store: store.clone(),
            keys,
            audience,
            audit,
            options: SessionOptions::default(),
        })
    };
    let alice = caller(1, 1, 0, true);
    let id = with(ring(old.expose().to_owned())).begin(&alice, Some("s")).await.expect("a session").id;
    for (keys, status) in [
        (format!("{} sealing\n{}", new.expose(), old.expose()), None),
        (format!("{} sealing\n{} retired", new.expose(), old.expose()), None),
        (new.expose().to_owned(), Some(404)),
    ] {
        let answer = with(ring(keys)).admit(Some(&alice), Asked::Use, Some(id.expose())).await;
        assert_eq!(answer.err().map(|refused| refused.denial().status()), status);
    }
}

#[tokio::test]
async fn a_store_that_does_not_answer_lets_nobody_in() {
    let store = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
    let keys = Keys::dangerous_for_this_process_only();
    let with = |store: Arc<dyn Store>| {
        let (audience, audit) = ("https://h.example/mcp".parse().expect("one"), Arc::new(DangerousNoAudit));
        SessionAuthority::new(SessionSetup {
            store,
            keys: keys.clone(),
            audience,
            audit,
            options: SessionOptions::default(),
        })
    };
    let alice = caller(1, 1, 0, true);
    let id = with(store.clone()).begin(&alice, Some("s")).await.expect("a session").id;
    let down = with(Arc::new(bent::Bent(store.clone(), bent::Bend::DoesNotAnswer)));
    for asked in [Asked::Begin, Asked::Use, Asked::End] {
        let refused = down.admit(Some(&alice), asked, Some(id.expose())).await.expect_err("refused");
        assert_eq!(refused.denial().status(), 503, "{asked:?}");
    }
    assert_eq!(down.begin(&alice, None).await.expect_err("refused").denial().status(), 503);
    assert!(with(store).admit(Some(&alice), Asked::Use, Some(id.expose())).await.is_ok(), "nothing was lost");
}

/// Whoever can write to the store cannot lead one session to another one of the server behind.
#[tokio::test]
async fn the_way_to_the_server_behind_is_good_for_one_session() {
    let store = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
    let keys = Keys::dangerous_for_this_process_only();
    let with = |store: Arc<dyn Store>| {
        let (audience, audit) = ("https://h.example/mcp".parse().expect("one"), Arc::new(DangerousNoAudit));
        SessionAuthority::new(SessionSetup {
            store,
            keys: keys.clone(),
            audience,
            audit,
            options: SessionOptions::default(),
        })
    };
    let (alice, bob) = (caller(1, 1, 0, true), caller(2, 1, 0, true));
    with(store.clone()).begin(&alice, Some("hers")).await.expect("a session");
    let hers = store.list(&Selector::default(), None, 1).await.expect("a list").records[0].object.reference.clone();
    let his = with(store.clone()).begin(&bob, Some("his")).await.expect("a session").id;
    let bent = with(Arc::new(bent::Bent(store.clone(), bent::Bend::LeadsTo(hers))));
    let refused = bent.admit(Some(&bob), Asked::Use, Some(his.expose())).await.expect_err("refused");
    assert_eq!(refused.denial().status(), 404);
    assert!(with(store).admit(Some(&bob), Asked::Use, Some(his.expose())).await.is_ok());
}

/// The cap counts what was begun under every key, and forgets what is over.
#[tokio::test]
async fn so_many_sessions_under_all_keys_together() {
    let clock = Arc::new(ManualClock::at(SystemClock.now()));
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let (old, new) = (Keys::generate(), Keys::generate());
    let with = |keys: String| {
        let (audience, audit) = ("https://h.example/mcp".parse().expect("one"), Arc::new(DangerousNoAudit));
        let (keys, options) =
            (Keys::parse(&keys).expect("keys"), SessionOptions { most: 2, ..SessionOptions::default() });
        SessionAuthority::new(SessionSetup { store: store.clone(), keys, audience, audit, options })
    };
    let alice = caller(1, 1, 0, true);
    for _ in 0..2 {
        with(old.expose().to_owned()).begin(&alice, None).await.expect("a session");
    }
    let rotated = with(format!("{} sealing\n{}", new.expose(), old.expose()));
    let refused = rotated.admit(Some(&alice), Asked::Begin, None).await.expect_err("too many");
    assert_eq!(refused.denial().status(), 429);
    assert_eq!(rotated.begin(&alice, None).await.expect_err("too many").denial().status(), 429);
    assert_eq!(store.list(&Selector::default(), None, 9).await.expect("a list").records.len(), 2);

    clock.advance(std::time::Duration::from_secs(30 * 60));
    rotated.begin(&alice, None).await.expect("a session");
    let kept = store.list(&Selector::default(), None, 9).await.expect("a list").records;
    assert_eq!(kept.len(), 1, "what is over is not kept");
}
