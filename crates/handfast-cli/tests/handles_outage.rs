//! Stores that do not answer, or go away half-way: told in one line, within the timeout, and what was done is told as well.

#[path = "support/stores.rs"]
mod stores;
mod support;

use std::{
    io::{BufReader, Read},
    process::{Command, Stdio},
    time::Duration,
};

use handfast::clock::{Clock, SystemClock};
use handfast_testbed::{Cluster, Ending};
use stores::{Lock, empty, many};
use support::{Ran, Scratch, handfast};

const PASSWORD: &str = "hunter2hunter2";
const WHY: [&str; 4] = ["--reason", "r", "--receipt", "c"];

/// `handles` with these words, split at spaces: one line with these words in it, and code 2.
fn assert_told(arguments: &str, words: &[&str]) {
    let ran = Ran::of(handfast().arg("handles").args(arguments.split(' ')));
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.lines().count()), (2, "", 1), "{arguments}: {ran:?}");
    assert!(words.iter().all(|word| ran.stderr.contains(word)), "{arguments}: {words:?} in {}", ran.stderr);
    assert!(!ran.stderr.contains(PASSWORD), "{}", ran.stderr);
}

#[test]
fn a_database_that_does_not_answer_is_told_within_the_timeout() {
    // Connections are taken, and never answered.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("postgres://u:{PASSWORD}@{}/d", silent.local_addr().expect("bound"));
    let begun = SystemClock.now();
    assert_told(&format!("list --store {url}"), &["no answer within 2s", "--timeout"]);
    let took = SystemClock.now().duration_since(begun).unsigned_abs();
    assert!(took >= Duration::from_secs(2) && took < Duration::from_secs(8), "{took:?}");
    assert_told(&format!("purge --timeout 50ms --store {url}"), &["no answer within 50ms"]);
    assert_told(&format!("verify --timeout 50ms --store {url}"), &["no answer within 50ms"]);
    let closed = format!("postgres://u:{PASSWORD}@127.0.0.1:{}/d", support::free_port());
    assert_told(&format!("list --store {closed}"), &["Connection refused", "see that it runs"]);

    let cluster = Cluster::shared();
    let url = cluster.database();
    many(cluster, &url, 1);
    let _lock = Lock::hold(cluster, &url);
    for command in ["list", "purge", "revoke --all --reason r --receipt c"] {
        assert_told(&format!("{command} --timeout 1s --store {url}"), &["no answer within 1s", "--timeout"]);
    }
}

#[test]
fn a_file_that_somebody_else_has_locked() {
    let scratch = Scratch::new("outage-locked");
    let path = scratch.path("handles.db");
    let url = format!("sqlite:{}", path.display());
    drop(empty(&url));
    let other = rusqlite::Connection::open(path).expect("opened");
    other.execute_batch("BEGIN IMMEDIATE").expect("locked");

    for command in ["purge", "revoke --all --reason r --receipt c"] {
        assert_told(&format!("{command} --timeout 200ms --store {url}"), &["handles.db: the store did not answer"]);
    }
    assert_eq!(Ran::of(handfast().args(["handles", "list", "--store", &url])).code, 0, "readers wait for no writer");
}

#[test]
fn a_database_that_goes_away_half_way() {
    let (cluster, scratch) = (Cluster::start(&["-c", "fsync=off"]), Scratch::new("errors-away"));
    let url = cluster.database();
    many(&cluster, &url, 2500);
    let events = scratch.path("events").display().to_string();
    assert!(Command::new("mkfifo").arg(&events).status().expect("mkfifo runs").success());
    let mut list = handfast();
    list.args(["handles", "list", "--limit", "2500", "--store", &url]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut revoke = handfast();
    revoke.args(["handles", "revoke", "--all", "--audit", &events, "--store", &url]).args(WHY);
    let (mut list, revoke) = (
        list.spawn().expect("it runs"),
        revoke.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs"),
    );
    // Each has done a part when its first byte is here, and goes no further: more than a pipe holds is not taken from it.
    let mut listed = BufReader::new(list.stdout.take().expect("it is piped"));
    let mut events = BufReader::new(std::fs::File::open(events).expect("it is opened at the other end"));
    listed.read_exact(&mut [0]).expect("a byte");
    events.read_exact(&mut [0]).expect("a byte");
    cluster.end(Ending::Killed);

    std::io::copy(&mut events, &mut std::io::sink()).expect("drained");
    std::io::copy(&mut listed, &mut std::io::sink()).expect("drained");
    let list = Ran::from(list.wait_with_output().expect("it ends"));
    let revoke = Ran::from(revoke.wait_with_output().expect("it ends"));

    assert_eq!((list.code, list.stderr.lines().count()), (2, 1), "{list:?}");
    assert!(list.stderr.contains("the store did not answer"), "{list:?}");
    assert_eq!((revoke.code, revoke.stdout.as_str(), revoke.stderr.lines().count()), (3, "", 1), "{revoke:?}");
    assert!(
        revoke.stderr.starts_with("handfast: 1000 were revoked, and there may be more; run it again: "),
        "{revoke:?}"
    );

    cluster.start_again();
    let again = Ran::of(handfast().args(["handles", "revoke", "--all", "--store", &url]).args(WHY));
    assert_eq!((again.code, again.stdout.as_str()), (0, "1500 revoked\n"), "{again:?}");
}
