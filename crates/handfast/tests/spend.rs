//! What may happen once happens once: many processes at a time, one PostgreSQL.
#![cfg(feature = "postgres")]

#[path = "support/child.rs"]
mod child;

use std::io::{BufRead, BufReader, Write};

use handfast::{
    clock::Timestamp,
    store::{OpenOptions, SpendId, open},
};
use handfast_testbed::Cluster;

const IDS: u8 = 100;
const PROCESSES: usize = 4;

fn until() -> Timestamp {
    "2100-01-01T00:00:00Z".parse().expect("a time")
}

/// Waits until it is told to begin, and says of which ids it was the first.
#[tokio::test(flavor = "multi_thread")]
async fn child_that_spends() {
    let Some(url) = child::told() else { return };
    let store = open(&url, OpenOptions { timeout: std::time::Duration::from_secs(30), ..OpenOptions::default() });
    let store = store.await.expect("opened");
    child::tell("ready");
    std::io::stdin().read_line(&mut String::new()).expect("told to begin");
    let tasks: Vec<_> = (0..IDS)
        .map(|id| {
            let store = store.clone();
            tokio::spawn(
                async move { (id, store.spend(&SpendId::from_bytes([id; 16]), until()).await.expect("an answer")) },
            )
        })
        .collect();
    for task in tasks {
        let (id, first) = task.await.expect("no panic");
        if first {
            child::tell(&format!("first {id}"));
        }
    }
    child::tell("done");
}

#[test]
fn of_four_processes_one_is_first() {
    let url = Cluster::shared().database();
    let mut children: Vec<_> = (0..PROCESSES).map(|_| child::start("child_that_spends", &url)).collect();
    let mut outputs: Vec<_> = children
        .iter_mut()
        .map(|child| BufReader::new(child.stdout.take().expect("it is piped")).lines().map_while(Result::ok))
        .collect();
    for lines in &mut outputs {
        assert!(lines.any(|line| line == "ready"), "it did not open the store");
    }
    for child in &mut children {
        child.stdin.take().expect("it is piped").write_all(b"go\n").expect("it waits");
    }

    let mut first = [0; IDS as usize];
    for lines in &mut outputs {
        let told: Vec<String> = lines.take_while(|line| line != "done").collect();
        for id in told.iter().filter_map(|line| line.strip_prefix("first ")) {
            first[id.parse::<usize>().expect("a number")] += 1;
        }
    }
    for mut child in children {
        assert!(child.wait().expect("it ends").success());
    }
    assert_eq!(first, [1; IDS as usize]);
}
