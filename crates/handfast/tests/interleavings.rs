//! Every interleaving of a few calls, exhaustively: the real `Handles` over the store in memory, with a possible change
//! of task before every step of the store and of the objects' own backend.

mod support;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use handfast::{
    Denial, Digest, Key, NewRecord, ObjectVersion, Revoked, Why, async_trait,
    clock::Timestamp,
    store::{Found, Lifespan, Listed, MemoryStore, Selector, SpendId, Store, StoreError},
};
use shuttle::{
    future::{JoinHandle, block_on, spawn, yield_now},
    scheduler::DfsScheduler,
};
use support::{Baskets, Bench, alice, clock, grant, principal, read, why};

/// Runs a scenario under every schedule there is, and says how many that were.
fn every_schedule(name: &str, scenario: impl Fn() + Send + Sync + 'static) -> u64 {
    let schedules = Arc::new(AtomicU64::new(0));
    let count = schedules.clone();
    let mut config = shuttle::Config::new();
    // In a debug build a cipher takes more of it than there is unless one asks.
    config.stack_size = 1 << 20;
    shuttle::Runner::new(DfsScheduler::new(None, false), config).run(move || {
        count.fetch_add(1, Ordering::Relaxed);
        scenario();
    });
    let schedules = schedules.load(Ordering::Relaxed);
    tell(name, schedules);
    schedules
}

#[expect(clippy::print_stdout, reason = "how many histories were checked is what this test is for")]
fn tell(name: &str, schedules: u64) {
    println!("{name}: {schedules} schedules, none of them wrong");
}

fn bench() -> Arc<Bench> {
    let clock = clock();
    let inner = Arc::new(MemoryStore::new(clock.clone()));
    Arc::new(Bench::over(Arc::new(Stepped { inner, cache: None }), clock))
}

fn basket() -> handfast::ObjectType {
    "basket".parse().expect("a type")
}

/// A use, and whether it began after the flag was up.
fn using(bench: &Arc<Bench>, handle: &str, flag: &Arc<AtomicBool>) -> JoinHandle<(bool, Option<Denial>)> {
    let (bench, handle, flag) = (bench.clone(), handle.to_owned(), flag.clone());
    spawn(async move {
        let late = flag.load(Ordering::SeqCst);
        let answer = bench.handles.resolve(&alice(), &handle, &read()).await;
        (late, answer.err().map(|refused| refused.denial()))
    })
}

fn revoking(bench: &Arc<Bench>, handle: &str, reason: &'static str, flag: &Arc<AtomicBool>) -> JoinHandle<Revoked> {
    let (replica, handle, flag) = (bench.beside(bench.store.clone()), handle.to_owned(), flag.clone());
    revoking_by(replica, handle, reason, flag)
}

fn revoking_by(by: Baskets, handle: String, reason: &'static str, flag: Arc<AtomicBool>) -> JoinHandle<Revoked> {
    spawn(async move {
        let revoked = by.revoke(&alice(), &basket(), &handle, why(reason)).await.expect("revoked");
        flag.store(true, Ordering::SeqCst);
        revoked
    })
}

fn revocation_against_uses(bench: &Arc<Bench>, revoker: Baskets) {
    block_on(async {
        let handle = bench.minted().await;
        let flag = Arc::<AtomicBool>::default();
        // Time has passed, so that a use has its end to write: it must not bring the handle back to life.
        bench.clock.advance(Duration::from_secs(3 * 3600));
        let revoked = revoking_by(revoker, handle.clone(), "logout", flag.clone());
        // One after the other, so that the first could leave something behind that the second finds.
        let uses = spawn({
            let (bench, handle, flag) = (bench.clone(), handle.clone(), flag.clone());
            async move {
                let first = using(&bench, &handle, &flag).await.expect("no panic");
                [first, using(&bench, &handle, &flag).await.expect("no panic")]
            }
        });
        revoked.await.expect("no panic");
        for each in uses.await.expect("no panic") {
            match each {
                (false, None) | (_, Some(Denial::Revoked)) => {}
                (late, answer) => panic!("began after the revocation: {late}; was answered with {answer:?}"),
            }
        }
        let (_, afterwards) = using(bench, &handle, &flag).await.expect("no panic");
        assert_eq!(afterwards, Some(Denial::Revoked));
    });
}

#[test]
fn no_use_that_begins_after_a_revocation_succeeds() {
    let schedules = every_schedule("revoke, resolve, resolve", || {
        let bench = bench();
        revocation_against_uses(&bench, bench.beside(bench.store.clone()));
    });
    assert!(schedules > 100);
}

/// What all of this is for: a store with a cache in front of it passes every test of one call after the other.
#[test]
#[should_panic(expected = "began after the revocation: true")]
fn a_cache_in_front_of_the_store_is_found_out() {
    every_schedule("a cache", || {
        let clock = clock();
        let inner = Arc::new(MemoryStore::new(clock.clone()));
        let cached = Stepped { inner: inner.clone(), cache: Some(Mutex::default()) };
        let bench = Arc::new(Bench::over(Arc::new(cached), clock));
        let other_replica = bench.beside(Arc::new(Stepped { inner, cache: None }));
        revocation_against_uses(&bench, other_replica);
    });
}

#[test]
fn of_two_revocations_both_tell_of_the_first() {
    let schedules = every_schedule("revoke, revoke", || {
        block_on(async {
            let (bench, flag) = (bench(), Arc::default());
            let handle = bench.minted().await;
            let both = [revoking(&bench, &handle, "one", &flag), revoking(&bench, &handle, "other", &flag)];
            let [one, other] = both.map(|each| async { each.await.expect("no panic") });
            assert_eq!(one.await, other.await);
        });
    });
    assert!(schedules > 5);
}

#[test]
fn of_two_changes_of_one_version_one_succeeds() {
    let schedules = every_schedule("advance, advance", || {
        block_on(async {
            let bench = bench();
            let handle = bench.minted().await;
            let advancing = |to: &'static str| {
                let (bench, handle) = (bench.clone(), handle.clone());
                spawn(async move {
                    // Whoever comes so late that the version has moved already is refused before that.
                    let Ok(resolved) = bench.handles.resolve(&alice(), &handle, &read()).await else { return false };
                    bench.handles.advance(&alice(), resolved, to.parse().expect("a version")).await.is_ok()
                })
            };
            let (one, other) = (advancing("2"), advancing("3"));
            let (one, other) = (one.await.expect("no panic"), other.await.expect("no panic"));
            assert!(one ^ other, "{one} {other}");
        });
    });
    assert!(schedules > 20);
}

#[test]
fn nothing_that_is_dead_advances() {
    let schedules = every_schedule("advance, revoke, purge", || {
        block_on(async {
            let (bench, flag) = (bench(), Arc::<AtomicBool>::default());
            let handle = bench.minted().await;
            let resolved = bench.handles.resolve(&alice(), &handle, &read()).await.expect("resolved");
            let revoked = revoking(&bench, &handle, "logout", &flag);
            let advancing = {
                let (bench, flag) = (bench.clone(), flag.clone());
                spawn(async move {
                    let late = flag.load(Ordering::SeqCst);
                    let to = "2".parse().expect("a version");
                    (late, bench.handles.advance(&alice(), resolved, to).await.is_ok())
                })
            };
            let purging = {
                let bench = bench.clone();
                spawn(async move { bench.handles.purge(Duration::ZERO).await.expect("purged") })
            };
            revoked.await.expect("no panic");
            assert_ne!(advancing.await.expect("no panic"), (true, true), "advanced after the revocation");
            assert_eq!(purging.await.expect("no panic"), 0, "what was revoked this moment is not dead for longer");
            bench.clock.advance(Duration::from_micros(1));
            assert_eq!(bench.handles.purge(Duration::ZERO).await.expect("purged"), 1);
            let (_, afterwards) = using(&bench, &handle, &flag).await.expect("no panic");
            assert_eq!(afterwards, Some(Denial::Unknown));
        });
    });
    assert!(schedules > 100);
}

#[test]
fn what_was_minted_before_a_bulk_revocation_is_revoked_by_it() {
    let schedules = every_schedule("mint, revoke all", || {
        block_on(async {
            let bench = bench();
            let minted = Arc::<AtomicBool>::default();
            let minting = {
                let (bench, minted) = (bench.clone(), minted.clone());
                spawn(async move {
                    let new = bench.handles.mint(&alice(), grant("basket", "b-1", &["basket:read"])).await;
                    minted.store(true, Ordering::SeqCst);
                    new.expect("minted").handle().expose().to_owned()
                })
            };
            let revoking = {
                let (bench, minted) = (bench.clone(), minted.clone());
                spawn(async move {
                    let before = minted.load(Ordering::SeqCst);
                    let which = bench.handles.selector_of(&principal("alice@example.com"));
                    bench.handles.revoke_all(&which, &why("logout")).await.expect("revoked");
                    before
                })
            };
            let (handle, before) = (minting.await.expect("no panic"), revoking.await.expect("no panic"));
            let (_, afterwards) = using(&bench, &handle, &Arc::default()).await.expect("no panic");
            assert!(!before || afterwards == Some(Denial::Revoked));
        });
    });
    assert!(schedules > 5);
}

/// The store in memory, where another task may run before every step; perhaps with a cache, as of one replica.
struct Stepped {
    inner: Arc<MemoryStore>,
    cache: Option<Mutex<BTreeMap<Key, Found>>>,
}

#[async_trait]
impl Store for Stepped {
    async fn insert(&self, new: &NewRecord) -> Result<Lifespan, StoreError> {
        yield_now().await;
        self.inner.insert(new).await
    }

    async fn find(&self, key: &Key) -> Result<Option<Found>, StoreError> {
        yield_now().await;
        let Some(cache) = &self.cache else { return self.inner.find(key).await };
        let cached = cache.lock().expect("not poisoned").get(key).cloned();
        if cached.is_some() {
            return Ok(cached);
        }
        let found = self.inner.find(key).await?;
        if let Some(found) = &found {
            cache.lock().expect("not poisoned").insert(key.clone(), found.clone());
        }
        Ok(found)
    }

    async fn touch(&self, key: &Key, ends: Timestamp) -> Result<bool, StoreError> {
        yield_now().await;
        self.inner.touch(key, ends).await
    }

    async fn advance(&self, key: &Key, from: &ObjectVersion, to: &ObjectVersion) -> Result<bool, StoreError> {
        yield_now().await;
        self.inner.advance(key, from, to).await
    }

    async fn revoke(
        &self,
        which: &Selector,
        why: &Why,
        after: Option<Digest>,
        limit: u32,
    ) -> Result<Vec<Digest>, StoreError> {
        yield_now().await;
        self.inner.revoke(which, why, after, limit).await
    }

    async fn list(&self, which: &Selector, after: Option<Digest>, limit: u32) -> Result<Listed, StoreError> {
        yield_now().await;
        self.inner.list(which, after, limit).await
    }

    async fn spend(&self, id: &SpendId, until: Timestamp) -> Result<bool, StoreError> {
        self.inner.spend(id, until).await
    }

    async fn purge(&self, dead_for: Duration, limit: u32) -> Result<u64, StoreError> {
        yield_now().await;
        self.inner.purge(dead_for, limit).await
    }

    async fn erase(&self, digests: &[Digest]) -> Result<u64, StoreError> {
        yield_now().await;
        self.inner.erase(digests).await
    }
}
