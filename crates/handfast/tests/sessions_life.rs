//! How sessions begin, live and end behind the layer, and what the server behind is told of it, over real HTTP.

use std::{sync::Arc, time::Duration};

use handfast::{
    Keys,
    clock::{Clock, ManualClock, SystemClock},
    session::SessionOptions,
    store::{MemoryStore, Store},
};
use handfast_twins::issuer::Wish;
use serde_json::json;

#[path = "support/front.rs"]
mod front;
#[path = "support/naive.rs"]
mod naive;

use front::{Answer, Front, OURS, Parts, issuer, token};
use naive::{Manner, Naive};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(Arc::new(SystemClock)))
}

fn parts(store: Arc<dyn Store>) -> Parts {
    Parts { store, keys: Keys::dangerous_for_this_process_only(), options: SessionOptions::default() }
}

#[tokio::test]
async fn what_the_server_behind_has_lost_is_lost() {
    let (issuer, naive) = (issuer().await, Arc::new(Naive::default()));
    let front = Front::start(&issuer, naive.router(), parts(memory())).await;
    let alice = token(&issuer, "alice");
    for (manner, event) in [(Manner::Usual, "session-use lost"), (Manner::Revives, "session-use forked")] {
        let session = front.session(&alice).await;
        naive.restart();
        naive.set(manner);
        let answer = front.note(&alice, Some(&session), "x").await;
        assert_eq!((answer.status, answer.session), (404, None), "{manner:?}");
        assert_eq!(front.diary.last(), event);
        assert_eq!(naive.sessions(), 0, "{manner:?}: what it made unasked is ended there");
        let seen = naive.seen();
        assert_eq!(front.note(&alice, Some(&session), "x").await.status, 404);
        assert_eq!(naive.seen(), seen, "{manner:?}: nothing comes through any more");
    }
}

#[tokio::test]
async fn a_session_begins_when_initialize_has_succeeded_and_not_before() {
    let (issuer, naive) = (issuer().await, Arc::new(Naive::default()));
    let front = Front::start(&issuer, naive.router(), parts(memory())).await;
    let alice = token(&issuer, "alice");

    for (manner, status) in [
        (Manner::RefusesYetMints, 200),
        (Manner::RefusesBadly, 400),
        (Manner::Creates, 201),
        (Manner::Babbles, 502),
        (Manner::Rambles, 502),
        (Manner::NamesItBadly, 502),
    ] {
        naive.set(manner);
        let answer = front.initialize(&alice, None).await;
        assert_eq!((answer.status, &answer.session), (status, &None), "{manner:?}");
        assert_eq!(naive.sessions(), 0, "{manner:?}: the server behind was told to forget it");
    }
    assert_eq!(front.diary.all().iter().filter(|event| event["decision"] == "allowed").count(), 0);

    naive.set(Manner::Streams);
    let session = front.session(&alice).await;
    assert_eq!(front.note(&alice, Some(&session), "x").await.notes(), json!(["x"]));

    naive.set(Manner::Stateless);
    let session = front.session(&alice).await;
    assert_eq!(front.by("POST", &alice, Some(&session)).await.status, 200);
    assert_eq!(front.by("POST", &alice, None).await.status, 400);

    let seen = naive.seen();
    for body in [
        "",
        "[]",
        "{",
        r#"{"jsonrpc":"2.0","method":"initialize"}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"initialize"}]"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"initialize"}"#,
    ] {
        let request = front.request("POST", &alice, Some(&session)).body(body);
        assert_eq!(front.send(request).await.status, 400, "{body}");
    }
    let long = front.request("POST", &alice, Some(&session)).body(" ".repeat(4 * 1024 * 1024 + 1));
    assert_eq!(front.send(long).await.status, 413);
    assert_eq!(front.send(front.request("PUT", &alice, Some(&session))).await.status, 405);
    assert_eq!(naive.seen(), seen);
}

/// Servers that echo their session id with every answer, or have no streams, are servers like others.
#[tokio::test]
async fn what_the_server_behind_says_of_its_own_sessions_does_not_leave() {
    let (issuer, naive) = (issuer().await, Arc::new(Naive::default()));
    let front = Front::start(&issuer, naive.router(), parts(memory())).await;
    let alice = token(&issuer, "alice");
    naive.set(Manner::Echoes);
    let session = front.session(&alice).await;
    for verb in ["POST", "GET"] {
        let answer = front.request(verb, &alice, Some(&session)).body(PING).send().await.expect("an answer");
        assert_eq!((answer.status().as_u16(), answer.headers().get("mcp-session-id")), (200, None), "{verb}");
    }
    naive.set(Manner::NoStreams);
    assert_eq!(front.by("GET", &alice, Some(&session)).await.status, 405);
    assert_eq!(front.by("POST", &alice, Some(&session)).await.status, 200, "the session is as good as before");
}

/// Whoever goes away while a session is made has none, and neither has anybody else.
#[tokio::test]
async fn a_session_that_nobody_waits_for_is_not_kept() {
    let (issuer, naive, store) = (issuer().await, Arc::new(Naive::default()), memory());
    let front = Front::start(&issuer, naive.router(), parts(store.clone())).await;
    let alice = token(&issuer, "alice");
    naive.set(Manner::Waits);
    {
        let mut going = Box::pin(front.initialize(&alice, None));
        while naive.seen() == 0 {
            assert!(futures_util::poll!(&mut going).is_pending());
            tokio::task::yield_now().await;
        }
    }
    // By the time that others were answered the server has seen that the first one is gone.
    for _ in 0..20 {
        assert_eq!(front.by("POST", &alice, None).await.status, 400);
    }
    while naive.sessions() > 0 || naive.seen() < 2 {
        naive.go_on();
        tokio::task::yield_now().await;
    }
    let kept = store.list(&handfast::Selector::default(), None, 10).await.expect("a list");
    assert_eq!(kept.records.len(), 0);
}

/// What nobody can account for does not happen.
#[tokio::test]
async fn without_an_audit_no_session_begins_and_none_ends() {
    let (issuer, naive, store) = (issuer().await, Arc::new(Naive::default()), memory());
    let front = Front::start(&issuer, naive.router(), parts(store.clone())).await;
    let alice = token(&issuer, "alice");
    let session = front.session(&alice).await;
    front.diary.close();

    assert_eq!(front.initialize(&alice, None).await.status, 503);
    assert_eq!(front.by("DELETE", &alice, Some(&session)).await.status, 503);
    assert_eq!(front.by("POST", &alice, Some("mcps_unknown")).await.status, 503);
    assert_eq!(naive.sessions(), 1);
    let kept = store.list(&handfast::Selector::default(), None, 10).await.expect("a list");
    assert_eq!(kept.records.len(), 1, "what could not be accounted for is not kept");
    assert_eq!(front.by("POST", &alice, Some(&session)).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_begin_at_once_are_so_many_and_no_more() {
    let (issuer, naive) = (issuer().await, Arc::new(Naive::default()));
    let few = Parts { options: SessionOptions { most: 5, ..SessionOptions::default() }, ..parts(memory()) };
    let front = Arc::new(Front::start(&issuer, naive.router(), few).await);
    let alice = token(&issuer, "alice");
    let all = (0..60).map(|_| front.initialize(&alice, None));
    let answers = futures_util::future::join_all(all).await;
    let begun: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 200).collect();
    assert!(begun.iter().all(|answer| answer.session.is_some()));
    // Of two that begin at the same microsecond neither may be the last.
    assert!((1..=5).contains(&begun.len()), "{}", begun.len());
    assert!(answers.iter().all(|answer| [200, 429].contains(&answer.status)));
    assert_eq!(naive.sessions(), begun.len(), "the server behind was told to forget the others");
}

#[tokio::test]
async fn a_principal_has_so_many_sessions_and_no_more() {
    let (issuer, naive) = (issuer().await, Arc::new(Naive::default()));
    let clock = Arc::new(ManualClock::at(SystemClock.now()));
    let few = SessionOptions { most: 3, ..SessionOptions::default() };
    let few = Parts { options: few, ..parts(Arc::new(MemoryStore::new(clock.clone()))) };
    let front = Front::start(&issuer, naive.router(), few).await;
    let (alice, bob) = (token(&issuer, "alice"), token(&issuer, "bob"));
    let first = front.session(&alice).await;
    for _ in 0..2 {
        front.session(&alice).await;
    }
    let answer = front.initialize(&alice, None).await;
    assert_eq!((answer.status, &answer.session), (429, &None), "{answer:?}");
    assert_eq!(naive.sessions(), 3, "the server behind was not asked");
    front.session(&bob).await;
    assert_eq!(front.by("POST", &alice, Some(&first)).await.status, 200, "nobody's is evicted");

    assert_eq!(front.by("DELETE", &alice, Some(&first)).await.status, 204);
    front.session(&alice).await;
    assert_eq!(front.initialize(&alice, None).await.status, 429);
    clock.advance(Duration::from_secs(30 * 60));
    front.session(&alice).await;
}

#[tokio::test]
async fn it_ends_unused_and_in_any_case() {
    let (issuer, naive) = (issuer().await, Arc::new(Naive::default()));
    let clock = Arc::new(ManualClock::at(SystemClock.now()));
    let front = Front::start(&issuer, naive.router(), parts(Arc::new(MemoryStore::new(clock.clone())))).await;
    let alice = issuer.token(&Wish { lifetime: 1_000_000, ..Wish::of("alice", OURS) });
    let tick = Duration::from_micros(1);
    let (used, unused) = (front.session(&alice).await, front.session(&alice).await);
    let idle = Duration::from_secs(30 * 60);
    clock.advance(idle - tick);
    assert_eq!(front.by("POST", &alice, Some(&used)).await.status, 200);
    clock.advance(tick);
    assert_eq!(front.by("POST", &alice, Some(&unused)).await.status, 404);
    assert_eq!(front.diary.last(), "session-use over");
    for _ in 0..22 {
        clock.advance(idle - tick);
        assert_eq!(front.by("POST", &alice, Some(&used)).await.status, 200);
    }
    clock.advance(idle + 21 * tick);
    assert_eq!(front.by("POST", &alice, Some(&used)).await.status, 200);
    clock.advance(tick);
    assert_eq!(front.by("POST", &alice, Some(&used)).await.status, 404, "twelve hours are over");
}

#[tokio::test]
async fn a_stream_ends_with_its_session_and_with_its_token() {
    let (issuer, naive, store) = (issuer().await, Arc::new(Naive::default()), memory());
    let keys = Keys::dangerous_for_this_process_only();
    let parts = || Parts { store: store.clone(), keys: keys.clone(), options: SessionOptions::default() };
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let metrics = recorder.handle();
    let _counting = metrics::set_default_local_recorder(&recorder);
    let one = Front::start(&issuer, naive.router(), parts()).await;
    let two = Front::start(&issuer, Arc::new(Naive::default()).router(), parts()).await;
    let alice = token(&issuer, "alice");
    let (ended, kept) = (one.session(&alice).await, one.session(&alice).await);
    let (mut ending, mut keeping) = (one.stream(&alice, &ended).await, one.stream(&alice, &kept).await);
    assert!(metrics.render().contains("sse_streams_open 2"), "{}", metrics.render());

    // Ended on another replica, whose server behind knows nothing of it.
    assert_eq!(two.by("DELETE", &alice, Some(&ended)).await.status, 204);
    assert_eq!(ending.chunk().await.expect("an end in good order"), None);
    assert!(metrics.render().contains("sse_streams_open 1"), "{}", metrics.render());

    // A stream with the answer to a call ends with its session, too.
    naive.set(Manner::AnswersForEver);
    let third = one.session(&alice).await;
    let mut answering = one.request("POST", &alice, Some(&third)).body(PING).send().await.expect("an answer");
    assert!(answering.chunk().await.expect("a stream").is_some());
    assert_eq!(two.by("DELETE", &alice, Some(&third)).await.status, 204);
    assert_eq!(answering.chunk().await.expect("an end in good order"), None);
    naive.set(Manner::Usual);

    // One that nobody reads does not keep the server behind busy.
    let (fourth, open) = (one.session(&alice).await, naive.streams());
    let unread = one.stream(&alice, &fourth).await;
    assert_eq!(naive.streams(), open + 1);
    assert_eq!(two.by("DELETE", &alice, Some(&fourth)).await.status, 204);
    while naive.streams() > open {
        tokio::task::yield_now().await;
    }
    drop(unread);

    // The token runs out within its second of life, and the session does not.
    let short = issuer.token(&Wish { lifetime: 1, ..Wish::of("alice", OURS) });
    let mut short = one.stream(&short, &kept).await;
    assert_eq!(short.chunk().await.expect("an end in good order"), None);
    assert_eq!(one.by("POST", &alice, Some(&kept)).await.status, 200);
    let open = tokio::time::timeout(Duration::from_millis(50), keeping.chunk()).await;
    assert!(open.is_err(), "the other one goes on");
}
