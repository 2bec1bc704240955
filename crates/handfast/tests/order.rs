//! The order of the checks, and that nothing reaches an object before its handle has passed all of them.

mod support;

use std::{sync::Arc, time::Duration};

use handfast::{
    Caller, Denial, Digest, Key, Need, NewRecord, NotAuthorized, ObjectVersion, Why, async_trait,
    clock::{ManualClock, Timestamp},
    store::{Found, Lifespan, Listed, MemoryStore, Selector, SpendId, Store, StoreError},
};
use support::{Bench, POLICY, alice, caller, clock, denied, grant, need, read, why};

/// One handle that everything speaks against, and what is put right one after the other, in the order in which it is
/// checked: each time the next check is the one that refuses.
#[tokio::test]
async fn resolve_refuses_by_the_first_check_that_fails() {
    let bench = Bench::new();
    let alices = bench.minted().await;
    bench.clock.advance(Duration::from_secs(8 * 24 * 3600));
    bench.handles.revoke(&alice(), &"basket".parse().expect("a type"), &alices, why("lost")).await.expect("revoked");
    bench.shop.set("b-1", Some("2"));
    *bench.shop.refuses.lock().expect("not poisoned") = Some(NotAuthorized::Refused);
    let newer = bench.under(&POLICY.replace("2026-11", "2026-12"), &bench.keys);
    let before = bench.shop.calls();
    let refused = async |who: &Caller, presented: &str, need: &Need| denied(&newer, who, presented, need).await;
    let (bob, mobile) = (caller("bob", "acme", "mobile"), caller("alice@example.com", "acme", "mobile"));
    let elsewhere = caller("bob", "umbrella", "mobile");

    assert_eq!(refused(&bob, "nonsense", &need("basket", "basket:fly")).await, Denial::Malformed);
    assert_eq!(refused(&elsewhere, &alices, &need("basket", "basket:fly")).await, Denial::UnknownScope);
    assert_eq!(refused(&elsewhere, &alices, &need("order", "order:read")).await, Denial::Unknown);
    assert_eq!(refused(&bob, &alices, &need("order", "order:read")).await, Denial::ForeignPrincipal);
    assert_eq!(refused(&mobile, &alices, &need("order", "order:read")).await, Denial::ForeignClient);
    assert_eq!(refused(&alice(), &alices, &need("order", "order:read")).await, Denial::Revoked);
    assert_eq!(bench.shop.calls(), before, "the shop was not asked");
}

/// The same for a handle that lives no longer, but was not revoked, and on from there.
#[tokio::test]
async fn resolve_refuses_by_the_first_check_that_fails_after_revocation() {
    let bench = Bench::new();
    let handle = bench.minted().await;
    let start: Timestamp = handfast::clock::Clock::now(&*bench.clock);
    let newer = bench.under(&POLICY.replace("2026-11", "2026-12"), &bench.keys);
    bench.shop.set("b-1", None);
    let before = bench.shop.calls();

    let sell = need("basket", "basket:sell");
    let order = need("order", "order:read");
    assert_eq!(denied(&newer, &alice(), &handle, &order).await, Denial::PolicyChanged);
    assert_eq!(denied(&bench.handles, &alice(), &handle, &order).await, Denial::WrongObject);
    assert_eq!(denied(&bench.handles, &alice(), &handle, &sell).await, Denial::MissingScope);
    assert_eq!(bench.shop.calls(), before, "the shop was not asked");

    *bench.shop.refuses.lock().expect("not poisoned") = Some(NotAuthorized::Refused);
    assert_eq!(denied(&bench.handles, &alice(), &handle, &read()).await, Denial::ObjectGone);
    bench.shop.set("b-1", Some("2"));
    assert_eq!(denied(&bench.handles, &alice(), &handle, &read()).await, Denial::StaleVersion);
    bench.shop.set("b-1", Some("1"));
    assert_eq!(denied(&bench.handles, &alice(), &handle, &read()).await, Denial::NotAuthorized);
    *bench.shop.refuses.lock().expect("not poisoned") = Some(NotAuthorized::Down);
    assert_eq!(denied(&bench.handles, &alice(), &handle, &read()).await, Denial::Unavailable);
    *bench.shop.refuses.lock().expect("not poisoned") = None;
    *bench.shop.down.lock().expect("not poisoned") = true;
    assert_eq!(denied(&bench.handles, &alice(), &handle, &read()).await, Denial::Unavailable);
    *bench.shop.down.lock().expect("not poisoned") = false;
    let resolved = bench.handles.resolve(&alice(), &handle, &read()).await.expect("resolved");
    assert_eq!(resolved.object(), "basket b-1");

    let asked = bench.shop.calls();
    bench.clock.set(start);
    bench.clock.advance(Duration::from_secs(25 * 3600 + 1800));
    assert_eq!(denied(&newer, &alice(), &handle, &order).await, Denial::Idle);
    bench.clock.advance(Duration::from_secs(7 * 24 * 3600));
    assert_eq!(denied(&newer, &alice(), &handle, &order).await, Denial::Expired);
    assert_eq!(bench.shop.calls(), asked, "the shop was not asked");
}

/// What a mint is refused for, in its order; the shop is asked last, and the store after it.
#[tokio::test]
async fn mint_refuses_by_the_first_check_that_fails() {
    let counted = Arc::new(Counted::new(clock()));
    let bench = Bench::over(counted.clone(), clock());
    *bench.shop.refuses.lock().expect("not poisoned") = Some(NotAuthorized::Refused);
    let anonymous = Caller::anonymous();
    let refused = async |who: &Caller, kind: &str, scopes: &[&str]| {
        bench.handles.mint(who, grant(kind, "b-1", scopes)).await.expect_err("refused").to_string()
    };

    assert!(refused(&anonymous, "sofa", &["basket:fly"]).await.starts_with("the caller lacks a principal"));
    assert_eq!(refused(&alice(), "sofa", &["basket:fly"]).await, "the policy does not allow handles to a sofa");
    assert!(refused(&anonymous, "basket", &["basket:fly"]).await.starts_with("the caller lacks a principal"));
    assert!(refused(&alice(), "basket", &["basket:fly"]).await.contains("does not allow the scope `basket:fly`"));
    let all = ["basket:read", "basket:write", "basket:sell"];
    assert!(refused(&alice(), "basket", &all).await.contains("allows 2 scopes at once, not 3"));
    assert_eq!(bench.shop.calls(), 0, "the shop was not asked");
    assert!(refused(&alice(), "basket", &all[..1]).await.contains("may not have a handle to this object"));
    assert_eq!(bench.shop.calls(), 1);
    assert_eq!(counted.inserts(), 0, "nothing was kept");
    *bench.shop.refuses.lock().expect("not poisoned") = None;
    bench.minted().await;
    assert_eq!(counted.inserts(), 1);
}

/// "Writes at most once per sixteenth of the idle window", and never lets a handle end sooner than that window after its
/// last use.
#[tokio::test]
async fn sliding_writes_once_for_each_sixteenth_of_the_idle_window() {
    let time = clock();
    let counted = Arc::new(Counted::new(time.clone()));
    let bench = Bench::over(counted.clone(), time);
    let handle = bench.minted().await;
    let (idle, minute) = (24 * 60, Duration::from_secs(60));

    for _ in 0..2 * idle {
        bench.clock.advance(minute);
        bench.handles.resolve(&alice(), &handle, &read()).await.expect("resolved");
    }
    let written = counted.touches();
    assert!((30..=33).contains(&written), "{written} writes in two idle windows");

    bench.clock.advance(minute * idle - Duration::from_micros(1));
    bench.handles.resolve(&alice(), &handle, &read()).await.expect("a tick before the idle window is over");
    bench.clock.advance(minute * idle + minute * idle / 16);
    let ended = bench.handles.resolve(&alice(), &handle, &read()).await.expect_err("refused");
    assert_eq!(ended.denial(), Denial::Idle, "a sixteenth after it, at the latest");
}

/// A bulk revocation goes on until nothing is left, whatever a store does at once.
#[tokio::test]
async fn a_bulk_revocation_ends_when_nothing_is_left() {
    let bench = Bench::over(Arc::new(Counted::new(clock())), clock());
    for _ in 0..10 {
        bench.minted().await;
    }

    assert_eq!(bench.handles.revoke_all(&Selector::everything(), &why("logout")).await.expect("revoked"), 10);
    assert_eq!(bench.handles.revoke_all(&Selector::everything(), &why("logout")).await.expect("revoked"), 0);
}

/// A store in memory that counts what it is asked to write.
struct Counted {
    inner: MemoryStore,
    inserts: std::sync::atomic::AtomicU64,
    touches: std::sync::atomic::AtomicU64,
}

impl Counted {
    fn new(clock: Arc<ManualClock>) -> Self {
        Self { inner: MemoryStore::new(clock), inserts: 0.into(), touches: 0.into() }
    }

    fn inserts(&self) -> u64 {
        self.inserts.load(std::sync::atomic::Ordering::SeqCst)
    }

    fn touches(&self) -> u64 {
        self.touches.load(std::sync::atomic::Ordering::SeqCst)
    }
}

#[async_trait]
impl Store for Counted {
    async fn insert(&self, new: &NewRecord) -> Result<Lifespan, StoreError> {
        self.inserts.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        self.inner.insert(new).await
    }

    async fn find(&self, key: &Key) -> Result<Option<Found>, StoreError> {
        self.inner.find(key).await
    }

    async fn touch(&self, key: &Key, ends: Timestamp) -> Result<bool, StoreError> {
        self.touches.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        self.inner.touch(key, ends).await
    }

    async fn advance(&self, key: &Key, from: &ObjectVersion, to: &ObjectVersion) -> Result<bool, StoreError> {
        self.inner.advance(key, from, to).await
    }

    async fn revoke(
        &self,
        which: &Selector,
        why: &Why,
        after: Option<Digest>,
        limit: u32,
    ) -> Result<Vec<Digest>, StoreError> {
        // Fewer than asked for, as when somebody else revokes the others at the same time.
        self.inner.revoke(which, why, after, limit.min(3)).await
    }

    async fn list(&self, which: &Selector, after: Option<Digest>, limit: u32) -> Result<Listed, StoreError> {
        self.inner.list(which, after, limit).await
    }

    async fn spend(&self, id: &SpendId, until: Timestamp) -> Result<bool, StoreError> {
        self.inner.spend(id, until).await
    }

    async fn purge(&self, dead_for: Duration, limit: u32) -> Result<u64, StoreError> {
        self.inner.purge(dead_for, limit).await
    }

    async fn erase(&self, digests: &[Digest]) -> Result<u64, StoreError> {
        self.inner.erase(digests).await
    }
}
