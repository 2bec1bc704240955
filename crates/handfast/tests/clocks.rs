//! Clocks that are wrong: one that is set back revives nothing, in the same process or after a restart.
#![cfg(feature = "sqlite")]

mod support;

use std::{path::Path, sync::Arc, time::Duration};

use handfast::{
    Denial,
    clock::{Clock, ManualClock, Timestamp},
    store::{SqliteOptions, SqliteStore, StoreError},
};
use support::{Bench, alice, clock, denied, read};

fn open(path: &Path, clock: &Arc<ManualClock>) -> Result<Arc<SqliteStore>, StoreError> {
    SqliteStore::open(path, SqliteOptions { clock: clock.clone(), ..SqliteOptions::default() }).map(Arc::new)
}

fn at(time: &str) -> Timestamp {
    time.parse().expect("a time")
}

#[tokio::test]
async fn a_clock_that_is_set_back_revives_nothing_that_was_seen_expired() {
    let bench = Bench::new();
    let (idle, absolute) = (bench.minted().await, bench.minted().await);
    let start = bench.clock.now();

    bench.clock.advance(Duration::from_secs(24 * 3600));
    assert_eq!(denied(&bench.handles, &alice(), &idle, &read()).await, Denial::Idle);
    bench.clock.set(start);
    assert_eq!(denied(&bench.handles, &alice(), &idle, &read()).await, Denial::Idle);
    assert_eq!(denied(&bench.handles, &alice(), &absolute, &read()).await, Denial::Idle);

    let fresh = bench.minted().await;
    bench.handles.resolve(&alice(), &fresh, &read()).await.expect("what is minted now lives from the latest time seen");
}

#[tokio::test]
async fn time_goes_on_where_the_newest_record_was_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("handles.db");
    let clock = clock();
    let bench = Bench::over(open(&path, &clock).expect("opened"), clock.clone());
    let old = bench.minted().await;
    clock.advance(Duration::from_secs(24 * 3600 - 30));
    bench.minted().await;
    drop(bench.handles);
    drop(bench.store);

    // The machine comes up again with a clock that is 59 seconds behind.
    clock.set(clock.now() - jiff::SignedDuration::from_secs(59));
    let again = open(&path, &clock).expect("a minute is within what clocks are off by");
    let key = handfast::Key {
        tenant: "acme".parse().ok(),
        digest: handfast::parse_handle(old.as_bytes(), "bsk".parse().ok().as_ref()).expect("a handle"),
    };
    let found = handfast::store::Store::find(&*again, &key).await.expect("an answer").expect("found");
    assert_eq!(found.now, at("2026-12-01T11:59:30Z"), "time does not go back behind the newest record");
}

#[tokio::test]
async fn a_store_from_the_future_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("handles.db");
    let clock = clock();
    let bench = Bench::over(open(&path, &clock).expect("opened"), clock.clone());
    bench.minted().await;
    drop(bench.handles);
    drop(bench.store);

    clock.set(at("2026-11-30T11:59:00Z"));
    assert!(open(&path, &clock).is_ok(), "a minute behind");
    clock.set(at("2026-11-30T11:58:59.999999Z"));
    let error = open(&path, &clock).map(drop).expect_err("a minute and a tick behind").to_string();
    assert_eq!(
        error,
        "the newest record was made at 2026-11-30T12:00:00Z, but the clock says 2026-11-30T11:58:59.999999Z: set the \
         clock right; or, if those records were made while it was wrong, remove them: DELETE FROM handfast_handles \
         WHERE created_at > 1796039939999999"
    );
}
