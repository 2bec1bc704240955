//! Histories: four processes use, change and revoke the same handles in one store, each with its own connections; what
//! they saw is then checked against what may be seen.
#![cfg(all(feature = "postgres", feature = "sqlite"))]

#[path = "support/child.rs"]
mod child;
mod support;

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    sync::Arc,
    time::Duration,
};

use handfast::{
    Denial, Keys,
    store::{OpenOptions, Selector, open},
};
use handfast_testbed::Cluster;
use nix::time::{ClockId, clock_gettime};
use support::{Bench, POLICY, alice, caller, clock, grant, read, why};

const PROCESSES: usize = 4;
const HANDLES: usize = 300;

/// One call, as one process saw it: from when to when, on which handle, what it was and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Call {
    from: i64,
    until: i64,
    handle: usize,
    what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    /// The owner used it.
    Used(Option<Denial>),
    /// A stranger tried.
    Tried(Option<Denial>),
    /// The owner changed the object from one version to the next.
    Moved { from: u64, done: bool },
    /// The owner revoked it: when it was revoked, as told.
    Revoked(Option<String>),
}

/// A time that all processes of a machine share and nobody sets.
fn now() -> i64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("a clock");
    time.tv_sec() * 1_000_000_000 + time.tv_nsec()
}

/// One of the processes. It reads the key and the handles, and tells each call.
#[tokio::test(flavor = "multi_thread")]
async fn child_that_uses_handles() {
    let Some(told) = child::told() else { return };
    let (url, seed) = told.split_once(' ').expect("a URL and a number");
    let mut lines = std::io::stdin().lines().map(|line| line.expect("text"));
    let keys = Keys::parse(&lines.next().expect("a key")).expect("a key");
    let handles: Arc<Vec<String>> = Arc::new(lines.collect());
    let store =
        open(url, OpenOptions { timeout: Duration::from_secs(20), ..OpenOptions::default() }).await.expect("opened");
    let bench = Bench::over(store, clock());
    let replica = Arc::new(bench.under(POLICY, &keys));
    let tasks: Vec<_> = (0..4)
        .map(|task| {
            let (replica, handles) = (replica.clone(), handles.clone());
            let mut dice = Dice(seed.parse::<u64>().expect("a number") * 4 + task);
            tokio::spawn(async move {
                for _ in 0..handles.len() * 3 {
                    one_call(&replica, &handles, &mut dice).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
}

async fn one_call(replica: &support::Baskets, handles: &[String], dice: &mut Dice) {
    let at = dice.below(handles.len());
    let handle = &handles[at];
    let denial = |refused: handfast::Refused| refused.denial();
    let tell = |from: i64, what: String| child::tell(&format!("call {from} {} {at} {what}", now()));
    let slug = |denial: Option<Denial>| denial.map_or("ok", Denial::slug);
    match dice.below(20) {
        0 => {
            let from = now();
            let basket = "basket".parse().expect("a type");
            let revoked = replica.revoke(&alice(), &basket, handle, why("raced")).await.ok();
            tell(from, format!("revoked {}", revoked.map_or("-".into(), |revoked| revoked.at.to_string())));
        }
        1..5 => {
            let Ok(resolved) = replica.resolve(&alice(), handle, &read()).await else { return };
            // The object stays at version 1 in this shop; it is the handle's own version that is moved, and back.
            let to = format!("1-{}", dice.below(1_000_000));
            let from = now();
            let moved = replica.advance(&alice(), resolved, to.parse().expect("a version")).await;
            tell(from, format!("moved 1 {}", moved.is_ok()));
        }
        5..9 => {
            let bob = caller("bob", "acme", "desktop");
            let from = now();
            let tried = replica.resolve(&bob, handle, &read()).await.err().map(denial);
            tell(from, format!("tried {}", slug(tried)));
        }
        _ => {
            let from = now();
            let used = replica.resolve(&alice(), handle, &read()).await.err().map(denial);
            tell(from, format!("used {}", slug(used)));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_history_of_four_processes_on_postgresql_breaks_a_rule() {
    check("PostgreSQL", &Cluster::shared().database()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_history_of_four_processes_on_sqlite_breaks_a_rule() {
    let folder = tempfile::tempdir().expect("a folder");
    check("SQLite", &format!("sqlite:{}", folder.path().join("handles.db").display())).await;
}

async fn check(name: &str, url: &str) {
    let bench = Bench::over(open(url, OpenOptions::default()).await.expect("opened"), clock());
    let key = Keys::generate();
    let shop = bench.under(POLICY, &Keys::parse(key.expose()).expect("a key"));
    let mut told = format!("{}\n", key.expose());
    for _ in 0..HANDLES {
        let minted = shop.mint(&alice(), grant("basket", "b-1", &["basket:read"])).await.expect("minted");
        told += &format!("{}\n", minted.handle().expose());
    }

    let children: Vec<_> = (0..PROCESSES)
        .map(|seed| {
            let mut child = child::start("child_that_uses_handles", &format!("{url} {seed}"));
            child.stdin.take().expect("a pipe").write_all(told.as_bytes()).expect("it listens");
            // Its lines are read while it writes them, or it would wait for us.
            std::thread::spawn(move || {
                let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
                let calls: Vec<Call> = lines.filter_map(|line| parse(&line.expect("text"))).collect();
                assert!(child.wait().expect("it ends").success());
                calls
            })
        })
        .collect();
    let calls: Vec<Call> = children.into_iter().flat_map(|child| child.join().expect("no panic")).collect();

    let histories = by_handle(&calls);
    let wrong: Vec<String> = histories.values().flat_map(|history| violations(history)).collect();
    let revoked = histories.values().filter(|history| history.iter().any(|call| matches!(call.what, What::Revoked(_))));
    report(name, histories.len(), revoked.count(), calls.len(), wrong.len());
    assert_eq!(wrong, [""; 0]);
    assert_eq!(histories.len(), HANDLES);
    let left = bench.handles.revoke_all(&Selector::everything(), &why("end")).await.expect("revoked");
    assert!(left < HANDLES as u64, "some were revoked");
}

#[expect(clippy::print_stdout, reason = "how many histories were checked is what this test is for")]
fn report(name: &str, histories: usize, revoked: usize, calls: usize, wrong: usize) {
    println!(
        "{name}: {histories} histories of {PROCESSES} processes, {revoked} of them with a revocation, {calls} calls: {wrong} violations"
    );
}

/// What may not be seen of one handle.
fn violations(history: &[Call]) -> Vec<String> {
    let mut wrong = Vec::new();
    let ended = history.iter().filter(|call| matches!(call.what, What::Revoked(Some(_)))).map(|call| call.until).min();
    let moved: Vec<&Call> = history.iter().filter(|call| matches!(call.what, What::Moved { done: true, .. })).collect();
    let began = history.iter().filter(|call| matches!(call.what, What::Revoked(_))).map(|call| call.from).min();
    for call in history {
        let after_revocation = ended.is_some_and(|ended| call.from > ended);
        match &call.what {
            What::Used(None) if after_revocation => wrong.push(format!("used after it was revoked: {call:?}")),
            What::Used(Some(Denial::Revoked)) if began.is_none_or(|began| call.until < began) => {
                wrong.push(format!("refused as revoked before anybody revoked it: {call:?}"));
            }
            What::Used(Some(Denial::StaleVersion)) if moved.iter().all(|moved| moved.from > call.until) => {
                wrong.push(format!("refused as changed before anybody changed it: {call:?}"));
            }
            What::Used(None | Some(Denial::Revoked | Denial::StaleVersion)) => {}
            What::Used(Some(_)) => wrong.push(format!("refused for no reason: {call:?}")),
            What::Tried(Some(Denial::ForeignPrincipal)) => {}
            What::Tried(_) => wrong.push(format!("a stranger was told something else: {call:?}")),
            What::Moved { done: true, .. } if after_revocation => {
                wrong.push(format!("changed after it was revoked: {call:?}"));
            }
            What::Moved { .. } => {}
            What::Revoked(None) => wrong.push(format!("the owner could not revoke it: {call:?}")),
            What::Revoked(Some(_)) => {}
        }
    }
    if moved.len() > 1 {
        wrong.push(format!("one version was changed {} times: {moved:?}", moved.len()));
    }
    let told: std::collections::BTreeSet<_> = history
        .iter()
        .filter_map(|call| if let What::Revoked(Some(at)) = &call.what { Some(at) } else { None })
        .collect();
    if told.len() > 1 {
        wrong.push(format!("the first revocation did not stay: {told:?}"));
    }
    wrong
}

fn by_handle(calls: &[Call]) -> BTreeMap<usize, Vec<Call>> {
    let mut histories: BTreeMap<usize, Vec<Call>> = BTreeMap::new();
    for call in calls {
        histories.entry(call.handle).or_default().push(call.clone());
    }
    histories
}

fn parse(line: &str) -> Option<Call> {
    let words: Vec<&str> = line.strip_prefix("call ")?.split(' ').collect();
    let [from, until, handle, what, told @ ..] = words.as_slice() else { panic!("half a line: {line}") };
    let denial = |slug: &str| Denial::ALL.into_iter().find(|denial| denial.slug() == slug);
    let what = match (*what, told) {
        ("used", [slug]) => What::Used(denial(slug)),
        ("tried", [slug]) => What::Tried(denial(slug)),
        ("moved", [from, done]) => What::Moved { from: from.parse().ok()?, done: *done == "true" },
        ("revoked", [at]) => What::Revoked((*at != "-").then(|| (*at).to_owned())),
        _ => panic!("half a line: {line}"),
    };
    Some(Call { from: from.parse().ok()?, until: until.parse().ok()?, handle: handle.parse().ok()?, what })
}

/// A check that has never been seen to fire is not a check.
#[test]
fn a_history_that_breaks_a_rule_is_found() {
    let call = |from, until, what| Call { from, until, handle: 0, what };
    let revoked = |at: &str| What::Revoked(Some(at.to_owned()));
    let moved = || What::Moved { from: 1, done: true };
    let found = |history: &[Call]| violations(history).len();

    assert_eq!(found(&[call(1, 2, What::Used(None)), call(3, 5, revoked("t")), call(4, 6, What::Used(None))]), 0);
    assert_eq!(found(&[call(3, 5, revoked("t")), call(6, 7, What::Used(None))]), 1, "used afterwards");
    assert_eq!(found(&[call(3, 5, revoked("t")), call(6, 7, moved())]), 1, "changed afterwards");
    assert_eq!(found(&[call(1, 2, What::Used(Some(Denial::Revoked))), call(3, 5, revoked("t"))]), 1, "before");
    assert_eq!(found(&[call(1, 2, What::Used(Some(Denial::Unavailable)))]), 1);
    assert_eq!(found(&[call(1, 2, What::Used(Some(Denial::StaleVersion)))]), 1);
    assert_eq!(found(&[call(1, 2, What::Tried(None))]), 1, "a stranger");
    assert_eq!(found(&[call(1, 2, What::Tried(Some(Denial::Revoked)))]), 1, "a stranger who learns something");
    assert_eq!(found(&[call(1, 2, moved()), call(1, 2, moved())]), 1, "twice");
    assert_eq!(found(&[call(1, 2, revoked("t")), call(3, 4, revoked("u"))]), 1, "the second");
    assert_eq!(found(&[call(1, 2, What::Revoked(None))]), 1);
}

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % most
    }
}
