//! Every row of the table, over real HTTP, for every verb, on every store; and what was seen in the wild.

use std::sync::Arc;

use handfast::{
    Keys,
    clock::SystemClock,
    session::SessionOptions,
    store::{MemoryStore, Store},
};
use handfast_twins::issuer::Wish;
use serde_json::{Value, json};

#[path = "support/front.rs"]
mod front;
#[path = "support/naive.rs"]
mod naive;

use front::{Answer, Front, OURS, Parts, issuer, token};
use naive::{Manner, Naive};

const VERBS: [&str; 3] = ["POST", "GET", "DELETE"];

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(Arc::new(SystemClock)))
}

fn parts(store: Arc<dyn Store>) -> Parts {
    Parts { store, keys: Keys::dangerous_for_this_process_only(), options: SessionOptions::default() }
}

/// The whole table, on this store: two replicas share it, and the server behind is one.
async fn table(store: Arc<dyn Store>) {
    let (issuer, naive, keys) = (issuer().await, Arc::new(Naive::default()), Keys::dangerous_for_this_process_only());
    let parts = || Parts { store: store.clone(), keys: keys.clone(), options: SessionOptions::default() };
    let one = Front::start(&issuer, naive.router(), parts()).await;
    let two = Front::start(&issuer, naive.router(), parts()).await;
    let (alice, bob) = (token(&issuer, "alice"), token(&issuer, "bob"));
    let wish = |wish: Wish| issuer.token(&wish);

    // initialize, none: a new session with an id of ours.
    let first = one.initialize(&alice, None).await;
    let hers = first.session.clone().expect("a session");
    assert!(first.status == 200 && hers.starts_with("mcps_") && hers.len() == 48, "{first:?}");
    assert_eq!(one.note(&alice, Some(&hers), "milk").await.notes(), json!(["milk"]));

    // Wrong or absent token: 401, whatever else.
    let elsewhere = wish(Wish::of("alice", "https://mcp.example.com/mcp2"));
    let late = wish(Wish { lifetime: -100, ..Wish::of("alice", OURS) });
    let forged = wish(Wish { foreign_key: true, ..Wish::of("alice", OURS) });
    let before = naive.seen();
    for bad in ["", "rubbish", &elsewhere, &late, &forged] {
        for session in [None, Some(hers.as_str()), Some("s-0")] {
            for verb in VERBS {
                let answer = one.by(verb, bad, session).await;
                assert_eq!((answer.status, answer.session), (401, None), "{verb} {session:?}");
            }
            assert_eq!(one.initialize(bad, session).await.status, 401);
        }
    }

    // Any other request without a session: 400, and none is made.
    for verb in VERBS {
        let answer = one.by(verb, &alice, None).await;
        assert_eq!((answer.status, &answer.session), (400, &None), "{verb}: {answer:?}");
        assert_eq!(one.diary.last().split_once(' ').expect("two words").1, "missing");
    }

    // Unknown, in every way: 404, always the same, and none is made.
    let unknown = format!("mcps_{}", "A".repeat(43));
    let nearly = [
        hers[..47].to_owned(),
        format!("{hers}A"),
        hers.replacen("mcps_", "", 1),
        hers.to_uppercase(),
        format!("{hers}="),
        "s-0".to_owned(),
        "null".to_owned(),
        "a".repeat(4000),
        unknown.clone(),
    ];
    let refused = |verb: &str, answer: &Answer| {
        assert_eq!((answer.status, &answer.session), (404, &None), "{verb}: {answer:?}");
        let json: Value = answer.body.parse().expect("JSON");
        assert_eq!(json["error"], json!({"code": -32001, "message": "Session not found"}));
    };
    for session in &nearly {
        for verb in VERBS {
            refused(verb, &one.by(verb, &alice, Some(session)).await);
        }
    }
    let twice = one.request("POST", &alice, Some(&hers)).header("mcp-session-id", &hers);
    refused("twice", &one.send(twice.body(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)).await);

    // Known, and another's: the same, to the byte.
    let other_client = wish(Wish { client: "other".into(), ..Wish::of("alice", OURS) });
    for (stranger, reason) in [(&bob, "foreign-principal"), (&other_client, "foreign-client")] {
        for verb in VERBS {
            let answer = one.by(verb, stranger, Some(&hers)).await;
            refused(verb, &answer);
            assert_eq!(one.diary.last().split_once(' ').expect("two words").1, reason);
            assert_eq!(answer, one.by(verb, stranger, Some(&unknown)).await);
        }
    }
    assert_eq!(naive.seen(), before, "none of all that came through");
    assert_eq!(naive.sessions(), 1);

    // Known, and the caller's: it goes on, also with a new token and on the other replica.
    let renewed = token(&issuer, "alice");
    assert_ne!(renewed, alice);
    assert_eq!(two.note(&renewed, Some(&hers), "eggs").await.notes(), json!(["milk", "eggs"]));
    drop(one.stream(&alice, &hers).await);

    // initialize, with a stale id, with somebody else's, with one's own: a new session, and nothing is taken over.
    for shown in [unknown.as_str(), "chosen-by-me", &hers] {
        for who in [&alice, &bob] {
            let answer = one.initialize(who, Some(shown)).await;
            let new = answer.session.clone().expect("a session");
            assert!(answer.status == 200 && new != shown, "{answer:?}");
            assert_eq!(one.note(who, Some(&new), "new").await.notes(), json!(["new"]));
        }
    }
    assert_eq!(one.by("POST", &alice, Some("chosen-by-me")).await.status, 404);
    assert_eq!(one.note(&alice, Some(&hers), "tea").await.notes(), json!(["milk", "eggs", "tea"]));

    // DELETE, the caller's: at once, everywhere, and for good.
    let sessions = naive.sessions();
    assert_eq!(two.by("DELETE", &alice, Some(&hers)).await.status, 204);
    assert_eq!(naive.sessions(), sessions - 1, "the server behind was told");
    for front in [&one, &two] {
        for verb in VERBS {
            refused(verb, &front.by(verb, &alice, Some(&hers)).await);
        }
    }
    let told = serde_json::to_string(&one.diary.all()).expect("JSON");
    assert!(!told.contains(&hers) && !told.contains("alice") && !told.contains("s-0"), "{told}");
}

#[tokio::test]
async fn the_table_in_memory() {
    table(memory()).await;
}

#[cfg(feature = "sqlite")]
#[tokio::test(flavor = "multi_thread")]
async fn the_table_in_sqlite() {
    use handfast::store::{OpenOptions, open};
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite:{}", folder.path().join("sessions.db").display());
    table(open(&url, OpenOptions::default()).await.expect("a store")).await;
    let kept: Vec<u8> = std::fs::read_dir(folder.path())
        .expect("a folder")
        .flat_map(|file| std::fs::read(file.expect("a file").path()).expect("it can be read"))
        .collect();
    for secret in ["mcps_", "alice", "\u{1}s-0"] {
        assert!(!kept.windows(secret.len()).any(|window| window == secret.as_bytes()), "{secret:?} is in the file");
    }
}

#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread")]
async fn the_table_in_postgresql() {
    use handfast::store::{OpenOptions, open};
    let url = handfast_testbed::Cluster::shared().database();
    table(open(&url, OpenOptions::default()).await.expect("a store")).await;
}

/// What was seen: a restart loses every session, and a client goes on with the old id and a token that is as good as can be.
#[tokio::test]
async fn a_restart_makes_everybody_begin_again_and_nothing_else() {
    let (issuer, naive) = (issuer().await, Arc::new(Naive::default()));
    let before = Front::start(&issuer, naive.router(), parts(memory())).await;
    let who: Vec<String> = (0..1000).map(|n| token(&issuer, &format!("svc-agent-{n}"))).collect();
    let old = before.session(&who[0]).await;
    naive.restart();
    let (store, recorder) = (memory(), metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder());
    let metrics = recorder.handle();
    let _counting = metrics::set_default_local_recorder(&recorder);
    let after = Front::start(&issuer, naive.router(), parts(store.clone())).await;
    let count = |name: &str| {
        let text = metrics.render();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<u64>().ok());
        line.unwrap_or_default()
    };

    for client in &who {
        for _ in 0..2 {
            let answer = after.note(client, Some(&old), "x").await;
            assert_eq!((answer.status, answer.session), (404, None));
        }
    }

    assert_eq!(count("auth_valid_total"), 2000);
    assert_eq!(count("authenticated_requests_total"), 2000);
    assert_eq!(count("session_reinit_rejected_total"), 2000);
    assert_eq!((count("sessions_created_total"), naive.sessions()), (0, 0), "{}", metrics.render());
    let kept = store.list(&handfast::Selector::default(), None, 10).await.expect("a list");
    assert_eq!(kept.records.len(), 0, "nothing is kept of them");

    let new = after.session(&who[0]).await;
    assert_eq!(after.note(&who[0], Some(&new), "x").await.notes(), json!(["x"]));
    assert_eq!((count("sessions_created_total"), naive.sessions()), (1, 1));
}

/// The second variant: two clients under one token that was rotated. Same subject, same audience, two sessions.
#[tokio::test]
async fn two_clients_of_one_subject_share_nothing_and_neither_evicts_the_other() {
    let (issuer, naive) = (issuer().await, Arc::new(Naive::default()));
    let front = Front::start(&issuer, naive.router(), parts(memory())).await;
    let (before, rotated) = (token(&issuer, "svc-agent-7"), token(&issuer, "svc-agent-7"));
    let (one, other) = (front.session(&before).await, front.session(&rotated).await);

    assert_eq!(front.note(&rotated, Some(&one), "of one").await.notes(), json!(["of one"]));
    assert_eq!(front.note(&rotated, Some(&other), "of the other").await.notes(), json!(["of the other"]));
    let again = front.initialize(&rotated, Some(&one)).await.session.expect("a session");
    assert_eq!(front.note(&rotated, Some(&again), "anew").await.notes(), json!(["anew"]));
    assert_eq!(front.note(&before, Some(&one), "+").await.notes(), json!(["of one", "+"]));
    assert_eq!(front.note(&before, Some(&other), "+").await.notes(), json!(["of the other", "+"]));
}

#[tokio::test]
async fn revision_2026_07_28_has_no_sessions() {
    let (issuer, naive) = (issuer().await, Arc::new(Naive::default()));
    let strict = Front::start(&issuer, naive.router(), parts(memory())).await;
    let both = Front::with(&issuer, naive.router(), parts(memory()), |layer| layer.also_without_sessions()).await;
    let alice = token(&issuer, "alice");
    let sent = |front: &Front, token: &str, versions: &[&'static str], method: &str| {
        let mut request = front.request("POST", token, Some("s-0"));
        for version in versions {
            request = request.header("mcp-protocol-version", *version);
        }
        request.body(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#))
    };
    const MODERN: &[&str] = &["2026-07-28"];
    let seen = naive.seen();
    let answer = strict.send(sent(&strict, &alice, MODERN, "tools/call")).await;
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("-32022") && answer.body.contains("2025-11-25"), "{answer:?}");
    assert_eq!(both.send(sent(&both, "", MODERN, "tools/call")).await.status, 401);
    // There are servers that begin a session whatever the revision; and of two revisions nobody knows which is meant.
    let answer = both.send(sent(&both, &alice, MODERN, "initialize")).await;
    let told: Value = serde_json::from_str(&answer.body).expect("JSON");
    assert_eq!((answer.status, &told["id"], &told["error"]["code"]), (404, &1.into(), &(-32601).into()));
    for versions in [
        &["2025-11-25", "2026-07-28"][..],
        &["2026-07-28", "2025-11-25"],
        &["2025-11-25", "zzz"],
        &["zzz"],
        &["3000"],
        &["2026-07-28 , 2025-11-25"],
        &["2024-01-01"],
        &[""],
    ] {
        for method in ["initialize", "tools/call"] {
            let answer = both.send(sent(&both, &alice, versions, method)).await;
            assert_eq!((answer.status, &answer.session), (400, &None), "{versions:?} {method}");
            let told: Value = serde_json::from_str(&answer.body).expect("JSON");
            assert_eq!((&told["id"], &told["error"]["code"]), (&1.into(), &(-32022).into()), "{told}");
            assert_eq!(told["error"]["data"]["requested"], versions[0], "{told}");
            assert_eq!(told["error"]["data"]["supported"][0], "2026-07-28", "{told}");
        }
    }
    for verb in ["GET", "DELETE", "PUT"] {
        let request = both.request(verb, &alice, None).header("mcp-protocol-version", "2026-07-28");
        assert_eq!(both.send(request).await.status, 405, "{verb}");
    }
    assert_eq!((naive.seen(), naive.sessions()), (seen, 0));

    naive.set(Manner::Stateless);
    let answer = both.send(sent(&both, &alice, MODERN, "tools/call")).await;
    assert_eq!(answer.notes(), json!([]), "it was shown no session");
    naive.set(Manner::Echoes);
    let answer = both.send(sent(&both, &alice, MODERN, "tools/call")).await;
    assert_eq!(answer.session, None, "what the server hands out does not leave");
}

#[tokio::test]
async fn the_metadata_are_for_everybody_and_challenges_lead_to_them() {
    let (issuer, naive) = (issuer().await, Arc::new(Naive::default()));
    let front = Front::start(&issuer, naive.router(), parts(memory())).await;
    let origin = front.url.trim_end_matches("/mcp");
    let text = reqwest::get(format!("{origin}/.well-known/oauth-protected-resource/mcp")).await.expect("an answer");
    let told: Value = text.text().await.expect("text").parse().expect("JSON");
    assert_eq!(told["resource"], OURS);
    assert_eq!(told["authorization_servers"], json!([issuer.url()]));

    let alice = token(&issuer, "alice");
    let url = format!("{}?access_token={alice}", front.url);
    assert_eq!(reqwest::get(&url).await.expect("an answer").status(), 400);
    let request = reqwest::Client::new().get(&url).bearer_auth(&alice).send().await.expect("an answer");
    assert_eq!(request.status(), 400);
    for (shown, error) in
        [(None, false), (Some("Bearer rubbish"), true), (Some("Basic YTpi"), true), (Some("Bearer"), true)]
    {
        let mut request = reqwest::Client::new().post(&front.url);
        if let Some(shown) = shown {
            request = request.header("authorization", shown);
        }
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 401);
        let challenge = response.headers()["www-authenticate"].to_str().expect("ASCII").to_owned();
        assert!(
            challenge
                .contains("resource_metadata=\"https://mcp.example.com/.well-known/oauth-protected-resource/mcp\"")
        );
        assert_eq!(challenge.contains("invalid_token"), error, "{challenge}");
    }
    let twice = front.request("POST", &alice, None).header("authorization", "Bearer x");
    assert_eq!(front.send(twice).await.status, 401);
}
