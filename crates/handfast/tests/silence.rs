//! Connections that fall silent: nothing comes back, and nothing says so. And callers who stop waiting.
#![cfg(all(unix, feature = "postgres"))]

#[path = "support/relay.rs"]
mod relay;
mod support;

use std::{sync::Arc, time::Duration};

use handfast::{
    Denial, Resolved,
    store::{PostgresOptions, PostgresStore},
};
use handfast_testbed::Cluster;
use relay::Relay;
use support::{Bench, alice, clock, grant, read, why};

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
    assert_eq!(resolve(&bench, &handle).await, Ok(()), "by a new connection");
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

    let before = relay.connections();
    let vain = async {
        let first = soon(replica.resolve(&who, &handle, &need));
        let second = soon(replica.resolve(&who, &handle, &need));
        tokio::join!(first, second)
    };
    let third = async {
        // Because the second one found a connection that is busy, another one is opened.
        while relay.connections() == before {
            tokio::task::yield_now().await;
        }
        for _ in 0..5 {
            let call = tokio::time::timeout(TIMEOUT / 10, replica.resolve(&who, &handle, &need));
            if let Ok(answer) = call.await {
                return answer.map(drop);
            }
        }
        panic!("nobody is served until the first one gives up");
    };
    let ((first, _), third) = tokio::join!(vain, third);

    assert_eq!(first.map(drop).expect_err("it waits in vain").denial(), Denial::Unavailable);
    third.expect("by another connection");
}

/// Those that have waited beside it are as silent as it: nobody has to find that out for each of them.
#[tokio::test(flavor = "multi_thread")]
async fn of_many_silent_connections_one_is_found_out() {
    let (relay, url) = Relay::before(&Cluster::shared().database());
    let bench = Arc::new(Bench::over(store(&url, 8).await, clock()));
    let handle = bench.minted().await;
    while relay.connections() < 8 {
        let calls: Vec<_> = (0..64)
            .map(|call| {
                let (bench, handle) = (bench.clone(), handle.clone());
                tokio::spawn(async move {
                    if call % 2 == 0 {
                        resolve(&bench, &handle).await.expect("resolved");
                    } else {
                        bench.minted().await;
                    }
                })
            })
            .collect();
        for call in calls {
            call.await.expect("no panic");
        }
    }
    let who = alice();
    let mint = || soon(bench.handles.mint(&who, grant("basket", "b-1", &["basket:read"])));

    relay.silence();

    assert_eq!(resolve(&bench, &handle).await, Err(Denial::Unavailable));
    assert_eq!(resolve(&bench, &handle).await, Ok(()));
    assert!(mint().await.is_err());
    assert!(mint().await.is_ok());
}

/// A server whose own deadline is shorter than the store's never waits to the end; the connection is found out all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_connection_is_found_out_by_the_impatient() {
    let (bench, relay) = bench().await;
    let handle = bench.minted().await;
    resolve(&bench, &handle).await.expect("resolved");
    relay.silence();

    let mut tries = 0;
    while tokio::time::timeout(TIMEOUT * 3 / 5, resolve(&bench, &handle)).await.is_err() {
        tries += 1;
        assert!(tries < 10, "it is asked for ever");
    }
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
