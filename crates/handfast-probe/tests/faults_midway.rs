//! Servers that are honest for a while and then turn bad, at every point of a run: what was not seen through is neither
//! confirmed nor refuted. A flawed server is never refuted because it broke, a sound one never confirmed.

mod support;

use std::time::Duration;

use handfast_probe::{
    report::{CheckReport, Report},
    verdict::Verdict,
};
use handfast_twins::{
    Answers,
    odd::{self, Odd},
};
use serde_json::json;
use support::{
    front::{Act, Front, Recorded},
    narrow_run_on, probed, run_on, served, timed,
};

/// From some request of a narrow run to beyond its last (`a_narrow_run_is_long_enough`).
fn turns(offset: usize, step: usize) -> impl Iterator<Item = usize> {
    (offset..=LENGTH).step_by(step)
}

const LENGTH: usize = 96;

/// What a check may say when the server broke on the way: why nothing was concluded.
const HALTS: [&str; 10] = [
    "timed-out",
    "unreachable",
    "unclear",
    "control-failed",
    "unstable",
    "no-server-answered",
    "no-tool-mints-a-handle",
    "second-identity-not-live",
    "nothing-returned-input-required",
    "untouched-retry-did-not-succeed",
];

fn assert_halted(check: &CheckReport, told: &str) {
    let reason = check.reason.slug();
    let is_halt = HALTS.contains(&reason) || reason == "identities-not-distinguished";
    assert!(is_halt, "{told}: {} {} {reason}: {}", check.id, check.verdict.word(), check.detail);
}

/// A verdict about a flawed server that broke: confirmed on whole evidence, or nothing.
fn assert_flawed(report: &Report, told: &str) {
    for check in &report.checks {
        match check.verdict {
            Verdict::Refuted => panic!("{told}: {} was refuted: {}", check.id, check.detail),
            Verdict::Confirmed => assert_whole(check, told),
            Verdict::Skipped | Verdict::Errored => assert_halted(check, told),
        }
    }
}

/// A verdict about a sound server that broke: refuted on whole evidence, or nothing.
fn assert_sound(report: &Report, told: &str) {
    for check in &report.checks {
        match check.verdict {
            Verdict::Confirmed => panic!("{told}: {} was confirmed: {}", check.id, check.detail),
            Verdict::Refuted => assert_whole(check, told),
            Verdict::Skipped | Verdict::Errored => assert_halted(check, told),
        }
    }
}

fn assert_unconfirmed(report: &Report, told: &str) {
    for check in &report.checks {
        assert_ne!(check.verdict, Verdict::Confirmed, "{told}: {}: {}", check.id, check.detail);
    }
}

/// No exchange of a deciding entry point was answered unclearly.
fn assert_whole(check: &CheckReport, told: &str) {
    for point in check.evidence.entry_points.iter().filter(|point| point.row.verdict == check.verdict) {
        for &at in &point.row.story {
            let step = &check.evidence.exchanges[at];
            assert_ne!(step.disposition, "unclear", "{told}: {} rests on `{}`", check.id, step.step);
        }
    }
}

/// Runs against a twin behind a front that misbehaves.
async fn behind(twin: &str, act: impl Fn(usize, &Recorded) -> Act + Send + Sync + 'static) -> Report {
    let served = served(twin, Answers::Json).await;
    let front = Front::of(&served.url(), act).await;
    let mut run = narrow_run_on(&front.url());
    run.options.timeout = Duration::from_millis(150);
    let (report, took) = timed(probed(&run)).await;
    assert!(took < Duration::from_secs(15), "the run ended after {took:?}");
    report
}

/// Breaks for good after `turn` requests.
async fn for_good(twin: &str, turn: usize, act: Act) -> Report {
    behind(twin, move |number, _| if number < turn { Act::Forward } else { act.clone() }).await
}

/// The ways in which a server falls silent; none of them is a word of the protocol.
fn breakdowns() -> [(&'static str, Act); 5] {
    [
        ("500 with a JSON-RPC error", Act::ErrorUnder(500, -32602, "no")),
        ("500", Act::Status(500, Vec::new())),
        ("429", Act::Status(429, vec![("retry-after", "1".to_owned())])),
        ("closes", Act::Close),
        (
            "garbage",
            Act::Raw(vec![b"HTTP/1.1 200 so\r\ncontent-length: 4\r\nconnection: close\r\n\r\n{\"a\"".to_vec()]),
        ),
    ]
}

#[tokio::test]
async fn a_flawed_server_that_breaks_down_is_never_refuted() {
    for (offset, (name, act)) in breakdowns().into_iter().enumerate() {
        for turn in turns(offset * 2, 11) {
            let report = for_good("flawed", turn, act.clone()).await;

            assert_flawed(&report, &format!("{name} after {turn}"));
        }
    }
}

#[tokio::test]
async fn a_sound_server_that_breaks_down_is_never_confirmed_and_only_refuted_before() {
    for (offset, (name, act)) in breakdowns().into_iter().enumerate() {
        for turn in turns(offset * 2, 11) {
            let report = for_good("sound", turn, act.clone()).await;

            assert_sound(&report, &format!("{name} after {turn}"));
        }
    }
}

#[tokio::test]
async fn the_odd_servers_that_turn_bad_are_never_refuted() {
    for n in (0..90).step_by(15) {
        let kinds =
            [Odd::StatusAfter { honest: n, status: 502 }, Odd::ClosesAfter(n), Odd::RateLimits(n), Odd::HangsAfter(n)];
        for kind in kinds {
            let server = odd::start(kind.clone()).await.expect("a free port");
            let mut run = run_on(&server.url());
            run.options.timeout = Duration::from_millis(100);
            let (report, took) = timed(probed(&run)).await;

            assert_flawed(&report, &format!("{kind:?}"));
            assert!(took < Duration::from_secs(15), "{kind:?} took {took:?}");
        }
    }
}

#[tokio::test]
async fn refusals_that_begin_half_way_are_not_taken_for_a_guard() {
    let refusals: [(&str, Act); 3] = [
        ("error", Act::Error(-32602, "no")),
        ("403", Act::Status(403, Vec::new())),
        ("isError", Act::Result(json!({"isError": true, "content": [{"type": "text", "text": "maintenance"}]}))),
    ];
    for (turn, (name, act)) in turns(4, 3).zip(refusals.into_iter().cycle()) {
        let report = for_good("flawed", turn, act).await;

        assert_flawed(&report, &format!("{name} after {turn}"));
    }
}

#[tokio::test]
async fn acceptance_that_begins_half_way_is_not_taken_for_a_flaw() {
    let done = json!({"resultType": "complete", "content": [{"type": "text", "text": "done"}]});
    for turn in turns(4, 4) {
        let report = for_good("sound", turn, Act::Result(done.clone())).await;

        assert_unconfirmed(&report, &format!("after {turn}"));
    }
}

#[tokio::test]
async fn one_refusal_out_of_place_hides_no_flaw() {
    for turn in turns(4, 2) {
        let refuse = move |number, _: &Recorded| if number == turn { Act::Error(-32602, "no") } else { Act::Forward };
        let report = behind("flawed", refuse).await;

        for check in &report.checks {
            assert_ne!(check.verdict, Verdict::Refuted, "request {turn}: {}: {}", check.id, check.detail);
        }
    }
}

#[tokio::test]
async fn one_acceptance_out_of_place_makes_no_finding() {
    let done = json!({"resultType": "complete", "content": [{"type": "text", "text": "done"}]});
    for turn in turns(6, 4) {
        let done = done.clone();
        let accept = move |number, _: &Recorded| if number == turn { Act::Result(done.clone()) } else { Act::Forward };
        let report = behind("sound", accept).await;

        assert_unconfirmed(&report, &format!("request {turn}"));
    }
}

#[tokio::test]
async fn one_answer_from_the_cache_of_another_caller_makes_no_finding() {
    // What the honest caller got: the owner's data, or the end of the honest flow.
    for turn in turns(5, 2) {
        let replay = move |number, _: &Recorded| if number == turn { Act::Replay } else { Act::Forward };
        let report = behind("sound", replay).await;

        assert_unconfirmed(&report, &format!("request {turn}"));
    }
}

#[tokio::test]
async fn faults_that_come_and_go_change_no_verdict_into_its_opposite() {
    for every in [2, 3, 5, 7, 11, 13] {
        let fails = move |number: usize, _: &Recorded| match number % every {
            0 if number > 4 => Act::Status(503, Vec::new()),
            _ => Act::Forward,
        };
        let (flawed, sound) = (behind("flawed", fails).await, behind("sound", fails).await);

        assert_flawed(&flawed, &format!("every {every}th"));
        assert_sound(&sound, &format!("every {every}th"));
    }
}

#[tokio::test]
async fn a_narrow_run_is_long_enough_to_be_whole_and_short_enough_for_the_sweeps() {
    for (twin, verdict) in [("flawed", "confirmed"), ("sound", "refuted")] {
        let served = served(twin, Answers::Json).await;
        let front = Front::of(&served.url(), |_, _| Act::Forward).await;
        let report = probed(&narrow_run_on(&front.url())).await;

        assert!(report.checks.iter().all(|check| check.verdict.word() == verdict), "{twin}");
        let requests = front.seen().len();
        assert!((20..LENGTH).contains(&requests), "{twin}: {requests} requests, and the sweeps end at {LENGTH}");
    }
}
