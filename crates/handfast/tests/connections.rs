//! Connections that the server does not grant, closes or has changed under us, and callers who open one and go away.
#![cfg(all(unix, feature = "postgres"))]

mod support;

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Waker},
    time::Duration,
};

use handfast::{
    Denial,
    store::{PostgresOptions, PostgresStore},
};
use handfast_testbed::Cluster;
use support::{Bench, alice, clock, grant, need, read, why};

const TIMEOUT: Duration = Duration::from_secs(2);

async fn store(url: &str, connections: usize) -> Arc<PostgresStore> {
    let options = PostgresOptions { timeout: TIMEOUT, connections, ..PostgresOptions::default() };
    Arc::new(PostgresStore::connect(url, options).await.expect("connected"))
}

/// A store in a database of its own, and the URL of that.
async fn bench(connections: usize) -> (Arc<Bench>, String) {
    let url = Cluster::shared().database();
    (Arc::new(Bench::over(store(&url, connections).await, clock())), url)
}

async fn resolve(bench: &Bench, handle: &str) -> Result<(), Denial> {
    bench.handles.resolve(&alice(), handle, &read()).await.map(drop).map_err(|refused| refused.denial())
}

/// A handle whose use writes nothing: its type has no idle window.
async fn order(bench: &Bench) -> String {
    bench.shop.set("o-1", Some("1"));
    let minted = bench.handles.mint(&alice(), grant("order", "o-1", &["order:read"])).await.expect("minted");
    minted.handle().expose().to_owned()
}

async fn use_order(bench: &Bench, handle: &str) -> Result<(), Denial> {
    let resolved = bench.handles.resolve(&alice(), handle, &need("order", "order:read")).await;
    resolved.map(drop).map_err(|refused| refused.denial())
}

/// Uses it by so many tasks, fifty times each: how many uses were refused.
async fn refused(bench: &Arc<Bench>, handle: &str, tasks: usize) -> usize {
    let users: Vec<_> = (0..tasks)
        .map(|_| {
            let (bench, handle) = (bench.clone(), handle.to_owned());
            tokio::spawn(async move {
                let mut refused = 0;
                for _ in 0..50 {
                    refused += usize::from(use_order(&bench, &handle).await.is_err());
                }
                refused
            })
        })
        .collect();
    let mut all = 0;
    for user in users {
        all += user.await.expect("no panic");
    }
    all
}

/// Cuts connections of this role, or of all who serve this database: as many as this.
fn cut(url: &str, role: &str, most: u32) {
    let sql = format!(
        "SELECT count(pg_terminate_backend(pid, 5000)) FROM (SELECT pid FROM pg_stat_activity WHERE datname = \
         current_database() AND application_name = 'handfast' AND usename = '{role}' LIMIT {most}) AS chosen"
    );
    Cluster::shared().sql(url, &sql);
}

/// Four connections are granted, and the store would have eight.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_grants_fewer_connections_serves_reads_and_writes() {
    let cluster = Cluster::shared();
    let url = cluster.database();
    drop(store(&url, 2).await);
    cluster.sql(
        &url,
        "CREATE ROLE few LOGIN CONNECTION LIMIT 4; GRANT ALL ON handfast_handles, handfast_spent, handfast_migrations TO few",
    );
    let theirs = url.replace("handfast@", "few@");
    let bench = Arc::new(Bench::over(store(&theirs, 8).await, clock()));
    let handle = order(&bench).await;
    assert_eq!(refused(&bench, &handle, 40).await, 0);

    // Somebody else takes the place of one of them.
    cut(&url, "few", 1);
    let (_somebody, connection) = tokio_postgres::connect(&theirs, tokio_postgres::NoTls).await.expect("connected");
    tokio::spawn(connection);
    for tasks in [1, 4, 40] {
        assert_eq!(refused(&bench, &handle, tasks).await, 0, "{tasks} tasks");
    }

    // All writes' connections are lost, and reads have taken what there is.
    cut(&url, "few", 8);
    assert_eq!(refused(&bench, &handle, 40).await, 0);
    let kind = "order".parse().expect("a type");
    bench.handles.revoke(&alice(), &kind, &handle, why("x")).await.expect("revoked");
    assert_eq!(use_order(&bench, &handle).await, Err(Denial::Revoked));
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_that_are_stale_or_gone_are_prepared_anew() {
    let (bench, url) = bench(2).await;
    let handle = bench.minted().await;
    resolve(&bench, &handle).await.expect("resolved");

    let cluster = Cluster::shared();
    cluster.sql(&url, "ALTER TABLE handfast_handles ALTER COLUMN created_at TYPE timestamptz(3)");
    assert_eq!(resolve(&bench, &handle).await, Ok(()), "to read once more changes nothing");
    let mint = async || bench.handles.mint(&alice(), grant("basket", "b-1", &["basket:read"])).await;
    let first = mint().await;
    assert!(first.is_ok() || mint().await.is_ok(), "a connection that does not answer as it should is closed");

    cut(&url, "handfast", 8);
    assert_eq!(resolve(&bench, &handle).await, Ok(()), "nor does it where the connection was closed");
}

/// What cannot be prepared is told at once, and not tried for as long as anybody waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_gone_is_told_at_once() {
    let (bench, url) = bench(2).await;
    let handle = bench.minted().await;
    Cluster::shared().sql(&url, "ALTER TABLE handfast_handles RENAME TO gone");

    for _ in 0..3 {
        let told = tokio::time::timeout(TIMEOUT / 2, resolve(&bench, &handle)).await;
        assert_eq!(told.expect("at once"), Err(Denial::Unavailable));
    }
    Cluster::shared().sql(&url, "ALTER TABLE gone RENAME TO handfast_handles");
    assert_eq!(resolve(&bench, &handle).await, Ok(()));
}

/// Whoever opens a connection may not be polled for a while, or may go away: it is opened all the same.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_whoever_opens_a_connection() {
    let (bench, url) = bench(2).await;
    let handle = bench.minted().await;
    resolve(&bench, &handle).await.expect("resolved");
    cut(&url, "handfast", 8);

    let (who, need) = (alice(), read());
    let mut held = pin!(bench.handles.resolve(&who, &handle, &need));
    assert!(held.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert_eq!(resolve(&bench, &handle).await, Ok(()));
    held.await.expect("and so is the first one served");

    cut(&url, "handfast", 8);
    let mut tries = 0;
    while !matches!(tokio::time::timeout(Duration::from_millis(2), resolve(&bench, &handle)).await, Ok(Ok(()))) {
        tries += 1;
        assert!(tries < 1000, "nothing is ever opened");
    }
}

/// Tests, and servers that start again within one process, use one store from one runtime after the other.
#[test]
fn a_store_outlives_the_runtime_that_opened_its_connections() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let first = runtime();
    let (bench, _) = first.block_on(bench(4));
    let handle = first.block_on(async {
        let handle = bench.minted().await;
        resolve(&bench, &handle).await.expect("resolved");
        handle
    });
    drop(first);

    for _ in 0..3 {
        let next = runtime();
        assert_eq!(next.block_on(resolve(&bench, &handle)), Ok(()));
        next.block_on(bench.minted());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_number_of_connections_may_be_asked_for() {
    for connections in [0, 1, 2, 3, usize::MAX] {
        let (bench, url) = bench(connections).await;
        let handle = order(&bench).await;
        assert_eq!(refused(&bench, &handle, 4).await, 0, "{connections}");
        if connections < 4 {
            let open = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'handfast' AND datname = \
                current_database()";
            let open: usize = Cluster::shared().sql(&url, open).trim().parse().expect("a number");
            assert!(open <= connections.max(2), "{open} of {connections}");
        }
    }
}
