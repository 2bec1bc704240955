//! Connections that fall silent: nothing comes back, and nothing says so. And callers who stop waiting.
#![cfg(all(unix, feature = "postgres"))]

mod support;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use handfast::{
    Denial, Resolved,
    store::{PostgresOptions, PostgresStore},
};
use handfast_testbed::Cluster;
use support::{Bench, alice, clock, grant, read, why};
use tokio::{
    net::{UnixListener, UnixStream},
    sync::watch,
};

/// Stands between the store and the server.
struct Relay {
    folder: tempfile::TempDir,
    /// How many connections there have been.
    connections: Arc<AtomicU32>,
    /// Every connection that was made before this number was raised is silent.
    silenced: watch::Sender<u32>,
}

impl Relay {
    /// Before the server of this URL; the URL of the relay.
    fn before(url: &str) -> (Self, String) {
        let (_, after) = url.split_once('@').expect("a user");
        let (host, database) = after.split_once('/').expect("a database");
        let server = format!("{}/.s.PGSQL.5432", host.replace("%2F", "/"));
        let folder = tempfile::tempdir().expect("a folder");
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).expect("a socket");
        let (connections, (silenced, _)) = (Arc::new(AtomicU32::new(0)), watch::channel(0));
        tokio::spawn(accept(listener, server, connections.clone(), silenced.clone()));
        let host = folder.path().display().to_string().replace('/', "%2F");
        (Self { folder, connections, silenced }, format!("postgres://handfast@{host}/{database}"))
    }

    /// From now on nothing passes on the connections that there are. They stay open.
    fn silence(&self) {
        self.silenced.send_modify(|number| *number += 1);
    }

    fn connections(&self) -> u32 {
        assert!(self.folder.path().exists());
        self.connections.load(Ordering::SeqCst)
    }
}

async fn accept(listener: UnixListener, server: String, connections: Arc<AtomicU32>, silenced: watch::Sender<u32>) {
    while let Ok((mut client, _)) = listener.accept().await {
        connections.fetch_add(1, Ordering::SeqCst);
        let (mut silenced, server) = (silenced.subscribe(), UnixStream::connect(&server).await);
        tokio::spawn(async move {
            let mut server = server.expect("the server");
            tokio::select! {
                _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                _ = silenced.changed() => std::future::pending().await,
            }
        });
    }
}

const TIMEOUT: Duration = Duration::from_millis(500);

async fn store(url: &str, connections: usize) -> Arc<PostgresStore> {
    let options = PostgresOptions { timeout: TIMEOUT, connections, ..PostgresOptions::default() };
    Arc::new(PostgresStore::connect(url, options).await.expect("connected"))
}

/// A store with one connection for reads and one for writes, behind a relay.
async fn bench() -> (Arc<Bench>, Relay) {
    let (relay, url) = Relay::before(&Cluster::shared().database());
    (Arc::new(Bench::over(store(&url, 2).await, clock())), relay)
}

/// Ends well within what the store takes at most for it, or the test fails.
async fn soon<T>(call: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT * 6, call).await.expect("in time")
}

async fn resolve(bench: &Bench, handle: &str) -> Result<(), Denial> {
    soon(bench.handles.resolve(&alice(), handle, &read())).await.map(drop).map_err(|refused| refused.denial())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_fell_silent_is_not_asked_again() {
    let (bench, relay) = bench().await;
    let handle = bench.minted().await;
    resolve(&bench, &handle).await.expect("resolved");

    let who = alice();
    let mint = || soon(bench.handles.mint(&who, grant("basket", "b-1", &["basket:read"])));
    for round in 0..2 {
        relay.silence();
        assert_eq!(resolve(&bench, &handle).await, Err(Denial::Unavailable), "round {round}");
        assert!(mint().await.is_err(), "round {round}");
        assert_eq!(resolve(&bench, &handle).await, Ok(()), "round {round}: by a new connection");
        assert!(mint().await.is_ok(), "round {round}: by a new connection");
    }
    assert_eq!(relay.connections(), 6, "two at first, and two in each round");
    soon(bench.handles.revoke(&alice(), &"basket".parse().expect("a type"), &handle, why("x"))).await.expect("revoked");
    assert_eq!(resolve(&bench, &handle).await, Err(Denial::Revoked));
}

/// Reads that had been asked on it before are refused in time as well, each for itself.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_on_a_silent_connection_is_refused_in_time() {
    let (bench, relay) = bench().await;
    let handle = bench.minted().await;
    resolve(&bench, &handle).await.expect("resolved");
    relay.silence();

    let reads: Vec<_> = (0..20)
        .map(|_| {
            let (bench, handle) = (bench.clone(), handle.clone());
            tokio::spawn(async move { resolve(&bench, &handle).await })
        })
        .collect();
    for read in reads {
        assert_eq!(read.await.expect("no panic"), Err(Denial::Unavailable));
    }
    // The connection that wrote before is silent as well: it is the next one that is asked, and the last.
    assert_eq!(resolve(&bench, &handle).await, Err(Denial::Unavailable));
    assert_eq!(resolve(&bench, &handle).await, Ok(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_goes_where_nobody_waits() {
    let url = Cluster::shared().database();
    let bench = Bench::over(store(&url, 2).await, clock());
    let handle = bench.minted().await;
    // The first use writes; the replica's are to read only.
    resolve(&bench, &handle).await.expect("resolved");
    let (relay, url) = Relay::before(&url);
    let replica = bench.beside(store(&url, 4).await);
    let (who, need) = (alice(), read());
    replica.resolve(&who, &handle, &need).await.expect("resolved");
    relay.silence();

    let first = soon(replica.resolve(&who, &handle, &need));
    let second = soon(replica.resolve(&who, &handle, &need));
    let (first, second) = tokio::join!(first, second);

    assert_eq!(first.map(drop).expect_err("it waits in vain").denial(), Denial::Unavailable);
    second.map(drop).expect("by another connection");
}

/// A client that hangs up is no reason to close what others use.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_nobody_waits_for_takes_no_connection_with_it() {
    let (bench, relay) = bench().await;
    let handle = bench.minted().await;
    resolve(&bench, &handle).await.expect("resolved");
    let (before, mut left) = (relay.connections(), 0);

    for _ in 0..100 {
        let (who, need) = (alice(), read());
        let call = bench.handles.resolve(&who, &handle, &need);
        tokio::select! {
            biased;
            _ = call => {}
            () = std::future::ready(()) => left += 1,
        }
    }

    assert!(left > 0, "every answer was there at once");
    assert_eq!(resolve(&bench, &handle).await, Ok(()));
    assert_eq!(relay.connections(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_that_share_a_connection_each_have_their_own_answer() {
    let (bench, relay) = bench().await;
    let mut handles = Vec::new();
    for number in 0..50 {
        let basket = format!("b-{number}");
        bench.shop.set(&basket, Some("1"));
        let minted = bench.handles.mint(&alice(), grant("basket", &basket, &["basket:read"])).await.expect("minted");
        handles.push((minted.handle().expose().to_owned(), format!("basket {basket}")));
    }

    let reads: Vec<_> = (0..10)
        .flat_map(|_| handles.clone())
        .map(|(handle, basket)| {
            let bench = bench.clone();
            tokio::spawn(async move {
                let resolved = bench.handles.resolve(&alice(), &handle, &read()).await;
                assert_eq!(resolved.as_ref().map(Resolved::object).expect("resolved"), &basket);
            })
        })
        .collect();
    for read in reads {
        read.await.expect("its own");
    }
    assert_eq!(relay.connections(), 2, "one for all reads, one for writes");
}
