//! Crashes: a process is killed in the middle of a thousand mints and revocations, and a database server as well. What
//! was acknowledged is there afterwards.
#![cfg(all(feature = "sqlite", feature = "postgres"))]

#[path = "support/child.rs"]
mod child;
mod support;

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    process::{Child, ChildStdout},
    sync::Arc,
};

use handfast::{
    Denial,
    store::{OpenOptions, Store, open},
};
use handfast_testbed::{Cluster, Ending};
use support::{Bench, alice, clock, grant, read, why};

/// A thousand mints, and a revocation of every second handle, by four tasks at once. Each is told once it is done.
#[tokio::test(flavor = "multi_thread")]
async fn child_that_mints_and_revokes() {
    let Some(url) = child::told() else { return };
    let bench = Arc::new(bench(&url).await);
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let bench = bench.clone();
            tokio::spawn(async move {
                for turn in 0..250 {
                    let grant = grant("basket", "b-1", &["basket:read"]);
                    let Ok(minted) = bench.handles.mint(&alice(), grant).await else { return false };
                    let handle = minted.handle().expose();
                    child::tell(&format!("minted {handle}"));
                    let basket = "basket".parse().expect("a type");
                    if turn % 2 == 0 && bench.handles.revoke(&alice(), &basket, handle, why("x")).await.is_ok() {
                        child::tell(&format!("revoked {handle}"));
                    }
                }
                true
            })
        })
        .collect();
    let mut all = true;
    for task in tasks {
        all &= task.await.expect("no panic");
    }
    if all {
        child::tell("done");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_keeps_what_was_acknowledged_before_a_process_was_killed() {
    for after in [1, 60, 400, 1200] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("handles.db");
        let url = format!("sqlite:{}", path.display());

        let (mut child, lines) = started(&url);
        let acknowledged = read_and(lines, after, || child.kill().expect("killed"));
        child.wait().expect("it has ended");

        assert!(acknowledged.len() >= after / 3);
        all_there(&url, &acknowledged).await;
        let sound: String = rusqlite::Connection::open(&path)
            .and_then(|connection| connection.pragma_query_value(None, "integrity_check", |row| row.get(0)))
            .expect("an answer");
        assert_eq!(sound, "ok");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_keeps_what_was_acknowledged_before_a_process_was_killed() {
    let cluster = Cluster::start(&[]);
    for after in [1, 400, 1200] {
        let url = cluster.database();

        let (mut child, lines) = started(&url);
        let acknowledged = read_and(lines, after, || child.kill().expect("killed"));
        child.wait().expect("it has ended");

        all_there(&url, &acknowledged).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_keeps_what_was_acknowledged_before_the_server_was_killed() {
    // However careless the server's own settings are: the store asks for what it needs.
    let cluster = Cluster::start(&["-c", "synchronous_commit=off", "-c", "wal_writer_delay=10s"]);
    for after in [60, 600] {
        let url = cluster.database();

        let (mut child, lines) = started(&url);
        let acknowledged = read_and(lines, after, || cluster.end(Ending::Killed));
        child.wait().expect("it gives up by itself");
        cluster.start_again();

        all_there(&url, &acknowledged).await;
    }
}

async fn bench(url: &str) -> Bench {
    let store = open(url, OpenOptions::default()).await.expect("opened");
    // The key dies with the process; what is looked for afterwards is found by digest.
    Bench::over(store, clock())
}

fn started(url: &str) -> (Child, BufReader<ChildStdout>) {
    let mut child = child::start("child_that_mints_and_revokes", url);
    let lines = BufReader::new(child.stdout.take().expect("a pipe"));
    (child, lines)
}

/// Reads what is acknowledged, does something after so many lines, and reads on to the end. For each handle, whether its
/// revocation was acknowledged.
fn read_and(lines: BufReader<ChildStdout>, after: usize, act: impl FnOnce()) -> BTreeMap<String, bool> {
    let (mut acknowledged, mut act, mut seen) = (BTreeMap::new(), Some(act), 0);
    for line in lines.lines() {
        let line = line.expect("text");
        match line.split_once(' ') {
            Some(("minted", handle)) => drop(acknowledged.insert(handle.to_owned(), false)),
            Some(("revoked", handle)) => drop(acknowledged.insert(handle.to_owned(), true)),
            _ => {
                assert_ne!(line, "done", "it was to be stopped in the middle");
                continue;
            }
        }
        seen += 1;
        if seen >= after
            && let Some(act) = act.take()
        {
            act();
        }
    }
    assert!(act.is_none(), "it ended by itself after {seen} acknowledgements");
    acknowledged
}

async fn all_there(url: &str, acknowledged: &BTreeMap<String, bool>) {
    let store: Arc<dyn Store> = open(url, OpenOptions::default()).await.expect("opened");
    for (handle, revoked) in acknowledged {
        let digest = handfast::parse_handle(handle.as_bytes(), "bsk".parse().ok().as_ref()).expect("a handle");
        let key = handfast::Key { tenant: "acme".parse().ok(), digest };
        let found = store.find(&key).await.expect("an answer").expect("what was acknowledged is there");
        assert!(!revoked || found.record.revoked.is_some(), "a revocation that was acknowledged is lost");
    }
    let bench = Bench::over(store, clock());
    for handle in acknowledged.keys().take(3) {
        let refused = support::denied(&bench.handles, &alice(), handle, &read()).await;
        assert_eq!(refused, Denial::UnknownKey, "and nobody without its key gets at it");
    }
}
