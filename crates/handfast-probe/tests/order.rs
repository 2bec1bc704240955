//! Each check mints its own objects: alone, or with the other before it or after it, it says the same, and says it again.

mod support;

use std::sync::Mutex;

use futures_util::{StreamExt, stream};
use handfast_probe::{check::Check, checks, report::Report, runner::Run};
use handfast_twins::Answers;
use rand::{RngExt as _, rand_core::UnwrapErr, rngs::SysRng, seq::SliceRandom as _};
use serde_json::Value;
use support::{
    HANDLE, STATE,
    front::{Act, Front},
    probed, run_on, served, whole_run_of,
};

/// Twins of every verdict, with all that one check could leave behind for the other: spent handles, forms of answers, purses.
const TWINS: [&str; 9] = [
    "flawed",
    "sound",
    "bare-answers",
    "one-shot",
    "one-shot-flawed",
    "two-rounds-flawed",
    "crashes-on-forgery",
    "get-or-create",
    "ignores-identity",
];

fn chosen(ids: &[&str]) -> Vec<&'static Check> {
    ids.iter().map(|id| checks::find(id).expect("a check")).collect()
}

/// `id verdict reason severity`, sorted; observations aside: what one check learns may spare the other a remark.
fn sorted(reports: &[Report]) -> Vec<String> {
    let mut lines: Vec<String> = reports
        .iter()
        .flat_map(|report| &report.checks)
        .map(|check| format!("{} {} {} {:?}", check.id, check.verdict.word(), check.reason.slug(), check.severity))
        .collect();
    lines.sort_unstable();
    lines
}

async fn with(twin: &str, ids: &[&str]) -> Report {
    let served = served(twin, Answers::Json).await;
    let mut run: Run = run_on(&served.url());
    run.checks = chosen(ids);
    let report = probed(&run).await;
    assert_eq!(report.checks.iter().map(|check| check.id).collect::<Vec<_>>(), ids, "only these, in this order");
    report
}

#[tokio::test]
async fn alone_or_in_either_order_the_verdicts_are_the_same() {
    for twin in TWINS {
        let usual = sorted(&[with(twin, &[HANDLE, STATE]).await]);
        let reversed = sorted(&[with(twin, &[STATE, HANDLE]).await]);
        let alone = sorted(&[with(twin, &[HANDLE]).await, with(twin, &[STATE]).await]);

        assert_eq!(reversed, usual, "{twin}: the other way round");
        assert_eq!(alone, usual, "{twin}: each alone");
    }
}

/// The same of every check: alone, or among all the others, first to last or last to first.
#[tokio::test]
async fn every_check_says_alone_what_it_says_among_all() {
    for name in ["flawed", "sound", "pages", "tasks"] {
        let twin = handfast_twins::find(name).expect("a twin");
        let of = async |chosen: Vec<&'static Check>| {
            let served = served(name, Answers::Json).await;
            let mut run = whole_run_of(twin, &served.url());
            run.checks = chosen;
            probed(&run).await
        };
        let all: Vec<&'static Check> = checks::all().collect();

        let usual = sorted(&[of(all.clone()).await]);
        let reversed = sorted(&[of(all.iter().rev().copied().collect()).await]);
        let alone: Vec<Report> = stream::iter(all).map(|check| of(vec![check])).buffered(AT_ONCE).collect().await;

        assert_eq!(reversed, usual, "{name}: the other way round");
        assert_eq!(sorted(&alone), usual, "{name}: each alone");
    }
}

/// Any of the checks, in any order: each says what it says among all. Drawn anew in each run; a failure prints the order.
#[tokio::test]
async fn any_checks_in_any_order_say_the_same() {
    let case = async |name: &'static str| {
        let twin = handfast_twins::find(name).expect("a twin");
        let of = async |chosen: Vec<&'static Check>| {
            let served = served(name, Answers::Json).await;
            let mut run = whole_run_of(twin, &served.url());
            run.checks = chosen;
            sorted(&[probed(&run).await])
        };
        let usual = of(checks::all().collect()).await;
        for _ in 0..ORDERS {
            let mut drawn: Vec<&'static Check> = checks::all().collect();
            drawn.shuffle(&mut UnwrapErr(SysRng));
            let count = UnwrapErr(SysRng).random_range(2..=drawn.len());
            drawn.truncate(count);
            let ids: Vec<&str> = drawn.iter().map(|check| check.id).collect();
            let wanted: Vec<&String> =
                usual.iter().filter(|line| ids.iter().any(|id| line.starts_with(&format!("{id} ")))).collect();

            let found = of(drawn).await;

            assert_eq!(found.iter().collect::<Vec<_>>(), wanted, "{name}, in this order: {ids:?}");
        }
    };
    stream::iter(ANY_ORDER).map(case).buffered(AT_ONCE).collect::<Vec<()>>().await;
}

/// Twins of every family of checks.
const ANY_ORDER: [&str; 14] = [
    "flawed",
    "sound",
    "pages",
    "tasks-listed-to-anybody",
    "reuses-numbers",
    "shared-memory",
    "heeds-sessions",
    "counted-handles",
    "two-rounds-flawed",
    "one-shot-flawed",
    "gated",
    "unbound-sessions",
    "dual-era-unbound",
    "first-of-several",
];
const ORDERS: usize = 2;
const AT_ONCE: usize = 4;

#[tokio::test]
async fn a_check_may_run_twice_in_one_run() {
    for twin in ["flawed", "one-shot-flawed"] {
        let report = with(twin, &[STATE, HANDLE, STATE, HANDLE]).await;

        let seen: Vec<String> = report.checks.iter().map(support::verdict).collect();
        assert_eq!(seen[..2], seen[2..], "{twin}");
    }
}

#[tokio::test]
async fn repeated_runs_against_one_server_say_the_same() {
    for twin in ["flawed", "sound", "noguard", "one-shot-flawed", "numeric-handles", "partitioned"] {
        let served = served(twin, Answers::Json).await;
        let first = support::verdicts(&probed(&run_on(&served.url())).await);
        let again = support::verdicts(&probed(&run_on(&served.url())).await);
        assert_eq!(again, first, "{twin}");
    }
}

#[tokio::test]
async fn two_runs_at_once_do_not_disturb_each_other() {
    for twin in ["flawed", "one-shot", "numeric-handles", "lists-everything"] {
        let served = served(twin, Answers::Json).await;
        let alone = support::verdicts(&probed(&run_on(&served.url())).await);
        let (one, other) = (run_on(&served.url()), run_on(&served.url()));

        let (one, other) = tokio::join!(probed(&one), probed(&other));

        assert_eq!(support::verdicts(&one), alone, "{twin}");
        assert_eq!(support::verdicts(&other), alone, "{twin}");
    }
}

/// What ends an object (`close_report`) spoils it for every tool after it: a fresh one has to do.
#[tokio::test]
async fn an_object_that_was_used_up_hides_no_flaw() {
    let served = served("flawed", Answers::Json).await;
    let used_up = Mutex::new(None::<Value>);
    let front = Front::of(&served.url(), move |_, request| {
        let handle = &request.body["params"]["arguments"]["workspace_id"];
        let is_used_up = |first: &mut Option<Value>| first.get_or_insert_with(|| handle.clone()) == handle;
        match request.tool() == "archive_workspace" && is_used_up(&mut used_up.lock().expect("no panic")) {
            true => Act::Refusal("no such workspace".to_owned()),
            false => Act::Forward,
        }
    })
    .await;
    let mut run = run_on(&front.url());
    run.checks = chosen(&[STATE]);

    let report = probed(&run).await;

    assert_eq!(report.checks[0].verdict.word(), "confirmed", "{}", report.checks[0].detail);
}

/// With --include-destructive a tool that really deletes is called: each use of it gets an object of its own, and no other
/// entry point is left with a deleted one.
#[tokio::test]
async fn an_object_that_was_deleted_spoils_no_run() {
    for (twin, expected) in [("sound", "refuted"), ("flawed", "confirmed")] {
        let served = served(twin, Answers::Json).await;
        let deleted = Mutex::new(Vec::new());
        let front = Front::of(&served.url(), move |_, request| {
            // Each deletes its own: whether B may delete A's is another question.
            let handle = &request.body["params"]["arguments"]["workspace_id"];
            let own = (request.token().map(str::to_owned), handle.clone());
            let mut deleted = deleted.lock().expect("no panic");
            if deleted.contains(&own) {
                return Act::Refusal("no such workspace".to_owned());
            }
            if request.tool() == "purge_workspace" {
                deleted.push(own);
            }
            Act::Forward
        })
        .await;
        let mut run = run_on(&front.url());
        run.include_destructive = true;

        let report = probed(&run).await;

        for check in &report.checks {
            assert_eq!(check.verdict.word(), expected, "{twin}: {} {}", check.id, check.detail);
            let untested = check.observations.iter().find(|seen| seen.id == "entry-point-untested");
            assert!(untested.is_none(), "{twin}: {untested:?}");
        }
    }
}
