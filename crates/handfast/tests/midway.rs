//! Calls that are under way while things change: what ends meanwhile has ended, and a call that nobody waits for any
//! more leaves an event.

#[path = "support/bent.rs"]
mod bent;
mod support;

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Waker},
    time::Duration,
};

use bent::{Bend, Bent};
use handfast::{Action, Denial, Outward, store::MemoryStore};
use support::{Bench, alice, caller, clock, denied, grant, read, why};
use tokio::sync::Notify;

/// The shop takes its time; meanwhile the idle window ends. The use that began before that must not bring it back.
#[tokio::test]
async fn what_ends_while_its_object_is_fetched_has_ended() {
    let bench = Arc::new(Bench::new());
    let handle = bench.minted().await;
    let (gate, reached) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    *bench.shop.gate.lock().expect("not poisoned") = Some((reached.clone(), gate.clone()));
    bench.clock.advance(Duration::from_secs(24 * 3600) - Duration::from_micros(1));

    let slow = tokio::spawn({
        let (bench, handle) = (bench.clone(), handle.clone());
        async move { bench.handles.resolve(&alice(), &handle, &read()).await.map(drop).map_err(|refused| refused.denial()) }
    });
    reached.notified().await;
    bench.clock.advance(Duration::from_micros(1));
    gate.notify_one();

    assert_eq!(slow.await.expect("no panic"), Err(Denial::Idle));
    assert_eq!(denied(&bench.handles, &alice(), &handle, &read()).await, Denial::Idle);
}

#[tokio::test]
async fn what_is_revoked_while_its_object_is_fetched_is_not_given_out() {
    let bench = Arc::new(Bench::new());
    let handle = bench.minted().await;
    let (gate, reached) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    *bench.shop.gate.lock().expect("not poisoned") = Some((reached.clone(), gate.clone()));
    bench.clock.advance(Duration::from_secs(3 * 3600));

    let slow = tokio::spawn({
        let (bench, handle) = (bench.clone(), handle.clone());
        async move { bench.handles.resolve(&alice(), &handle, &read()).await.map(drop).map_err(|refused| refused.denial()) }
    });
    reached.notified().await;
    bench.handles.revoke(&alice(), &"basket".parse().expect("a type"), &handle, why("x")).await.expect("revoked");
    gate.notify_one();

    assert_eq!(slow.await.expect("no panic"), Err(Denial::Revoked));
}

/// A use that cannot be written down where it has to be is none.
#[tokio::test]
async fn a_use_whose_end_cannot_be_moved_is_refused() {
    let time = clock();
    let store = Arc::new(Bent(Arc::new(MemoryStore::new(time.clone())), Bend::CannotTouch));
    let bench = Bench::over(store, time);
    let handle = bench.minted().await;
    bench.handles.resolve(&alice(), &handle, &read()).await.expect("there is nothing to move yet");

    bench.clock.advance(Duration::from_secs(3600));

    let refused = bench.handles.resolve(&alice(), &handle, &read()).await.map(drop).expect_err("refused");
    assert_eq!((refused.denial(), refused.outward()), (Denial::Unavailable, Outward::Unavailable));
    assert!(std::error::Error::source(&refused).is_some_and(|source| source.to_string().contains("full")));
}

/// A client that hangs up drops the future of its call.
#[tokio::test]
async fn a_call_that_nobody_waits_for_leaves_an_event() {
    let bench = Bench::new();
    let handle = bench.minted().await;
    let close = || *bench.shop.gate.lock().expect("not poisoned") = Some(<(Arc<Notify>, Arc<Notify>)>::default());
    let before = bench.log.count();

    close();
    begun(bench.handles.resolve(&alice(), &handle, &read()));
    close();
    begun(bench.handles.mint(&alice(), grant("basket", "b-1", &["basket:read"])));

    let events = bench.log.events.lock().expect("not poisoned").split_off(before);
    let told: Vec<_> = events.iter().map(|event| (event.action, event.denial)).collect();
    assert_eq!(told, [(Action::Resolve, Some(Denial::Unavailable)), (Action::Mint, Some(Denial::Unavailable))]);
    assert!(events[0].handle.is_some(), "it says which");
}

/// A call as far as it goes without waiting; it must not be at its end then.
fn begun<F: Future>(call: F) {
    let mut call = pin!(call);
    assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

/// Whoever got hold of what was resolved for somebody else cannot go on with it.
#[tokio::test]
async fn what_was_resolved_for_one_caller_is_not_advanced_by_another() {
    let bench = Bench::new();
    let handle = bench.minted().await;
    for (stranger, expected) in [
        (caller("bob", "acme", "desktop"), Denial::ForeignPrincipal),
        (caller("alice@example.com", "acme", "mobile"), Denial::ForeignClient),
        (caller("alice@example.com", "umbrella", "desktop"), Denial::Unknown),
        (handfast::Caller::anonymous(), Denial::IdentityIncomplete),
    ] {
        let resolved = bench.handles.resolve(&alice(), &handle, &read()).await.expect("resolved");
        let refused = bench.handles.advance(&stranger, resolved, "2".parse().expect("a version")).await;
        assert_eq!(refused.expect_err("refused").denial(), expected);
    }
    bench.handles.resolve(&alice(), &handle, &read()).await.expect("nothing has moved");
}
