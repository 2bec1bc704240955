//! Servers that refuse everything, fall over, hang, or send garbage: none of it is ever confirmed or refuted, the reason is
//! named, and the run ends in time. Servers that turn bad half way are in `faults_midway.rs`.

mod support;

use std::time::Duration;

use handfast_probe::{report::Report, runner::Run, verdict::Verdict};
use handfast_twins::odd::{self, Odd};
use support::{as_json, probed, reasons, run_on, timed};

/// A run against an odd server, with bounds that end soon, and how long it took.
async fn against(kind: Odd) -> (Report, Duration) {
    let server = odd::start(kind).await.expect("a free port");
    timed(probed(&impatient(&server.url()))).await
}

fn impatient(url: &str) -> Run {
    let mut run = run_on(url);
    run.options.timeout = Duration::from_millis(300);
    run.max_time = Duration::from_secs(5);
    run
}

fn concludes(report: &Report) -> bool {
    report.checks.iter().any(|check| matches!(check.verdict, Verdict::Confirmed | Verdict::Refuted))
}

/// Never confirmed, never refuted, not green, in time, and for this reason.
fn assert_tells_nothing(kind: &Odd, report: &Report, took: Duration, expected: [&str; 2]) {
    assert!(!concludes(report), "{kind:?}: {:?}", as_json(report));
    assert_eq!(reasons(report), expected, "{kind:?}: {}", report.checks[0].detail);
    assert_eq!(report.exit_code(false, &[]), 3, "{kind:?}");
    assert!(took < Duration::from_secs(4), "{kind:?} took {took:?}");
    assert!(report.checks.iter().all(|check| !check.detail.is_empty()), "{kind:?}: a reason is told in words too");
}

#[tokio::test]
async fn what_is_no_mcp_server_is_skipped_as_such() {
    let elsewhere = odd::start(Odd::Hangs).await.expect("a free port");
    let kinds = [
        Odd::RefusesEverything,
        Odd::Status(200),
        Odd::Status(204),
        Odd::Status(404),
        Odd::Status(405),
        Odd::Status(429),
        Odd::Status(500),
        Odd::Status(503),
        Odd::ClosesSocket,
        Odd::Garbage,
        Odd::DeepJson,
        Odd::Html,
        Odd::WrongId,
        Odd::RedirectsElsewhere(elsewhere.url()),
    ];
    for kind in kinds {
        let (report, took) = against(kind.clone()).await;

        assert_tells_nothing(&kind, &report, took, ["no-server-answered"; 2]);
        assert_eq!(report.checks[0].verdict, Verdict::Skipped, "{kind:?}");
    }
    assert_eq!(elsewhere.requests(), 0, "a redirect to another origin is not followed");
}

#[tokio::test]
async fn a_server_that_never_answers_has_timed_out() {
    for kind in [Odd::Hangs, Odd::EndlessSse] {
        let (report, took) = against(kind.clone()).await;

        assert_tells_nothing(&kind, &report, took, ["timed-out"; 2]);
        assert_eq!(report.checks[0].verdict, Verdict::Errored, "{kind:?}");
        assert!(took >= Duration::from_millis(250), "it waited {took:?} before it gave up");
    }
}

#[tokio::test]
async fn a_server_that_wants_other_credentials_is_skipped_for_want_of_them() {
    for status in [401, 403] {
        let kind = Odd::Status(status);
        let server = odd::start(kind.clone()).await.expect("a free port");
        for (identities, advice) in
            [(support::alice_and_bob(), "is the credential of A"), (support::made_up(), "--identity-a")]
        {
            let mut run = impatient(&server.url());
            run.identities = identities;
            let (report, took) = timed(probed(&run)).await;

            assert_tells_nothing(&kind, &report, took, ["needs-identity:a"; 2]);
            assert!(report.checks[0].detail.contains(advice), "it says what to do: {}", report.checks[0].detail);
        }
    }
}

#[tokio::test]
async fn a_server_that_lists_and_refuses_every_call_has_nothing_to_test() {
    let (report, took) = against(Odd::RefusesCalls).await;

    let expected = ["no-tool-mints-a-handle", "nothing-returned-input-required"];
    assert_tells_nothing(&Odd::RefusesCalls, &report, took, expected);
}

#[tokio::test]
async fn a_server_that_answers_everything_alike_has_nothing_to_test() {
    let (report, took) = against(Odd::AnswersEverything).await;

    let expected = ["no-tool-mints-a-handle", "nothing-returned-input-required"];
    assert_tells_nothing(&Odd::AnswersEverything, &report, took, expected);
    assert!(report.checks[0].detail.contains("of 6 tools were tried"), "{}", report.checks[0].detail);
}

#[tokio::test]
async fn memory_does_not_follow_a_body_of_a_gigabyte() {
    let before = peak_memory();
    let (report, took) = against(Odd::Huge).await;

    assert_tells_nothing(&Odd::Huge, &report, took, ["no-server-answered"; 2]);
    assert!(report.checks[0].detail.contains("longer than"), "{}", report.checks[0].detail);
    let grown = peak_memory() - before;
    assert!(grown < 64 << 10, "the peak grew by {grown} KiB");
}

#[tokio::test]
async fn the_size_of_an_answer_is_bounded_by_the_option_and_not_by_what_the_server_announces() {
    let server = odd::start(Odd::RefusesCalls).await.expect("a free port");
    let mut run = impatient(&server.url());
    run.options.max_body = 200;

    let report = probed(&run).await;

    assert_eq!(reasons(&report), ["no-server-answered"; 2]);
    assert!(report.checks[0].detail.contains("longer than 200 bytes"), "{}", report.checks[0].detail);
}

/// In KiB, of this process.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}
