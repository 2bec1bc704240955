//! What every test of the probe shares: a run against a twin on loopback, and its verdicts as one line.
#![allow(dead_code, reason = "each test file uses its part of this")]

pub(crate) mod front;
pub(crate) mod mini;

use std::time::Duration;

use handfast_probe::{
    clock::Deadline,
    identity::{Identities, Who},
    profile::Profile,
    report::{CheckReport, EntryPoint, Report},
    runner::Run,
    target::Address,
    verdict::Verdict,
};
use handfast_twins::{Answers, Served};
use serde_json::Value;

pub(crate) const HANDLE: &str = "handle-foreign-principal";
pub(crate) const STATE: &str = "state-tampered";
/// How the checks of sessions begin.
pub(crate) const SESSION: &str = "session-";

/// Two users whom the operator named.
pub(crate) fn alice_and_bob() -> Identities {
    Identities::new(Some("alice".into()), Some("bob".into())).expect("they differ")
}

/// Nobody named: the probe makes two up.
pub(crate) fn made_up() -> Identities {
    Identities::new(None, None).expect("they differ")
}

/// A run of the checks of handles and states against a URL as alice and bob, with bounds that a test can wait for.
pub(crate) fn run_on(url: &str) -> Run {
    let mut run = whole_run_on(url);
    run.checks.retain(|check| [HANDLE, STATE].contains(&check.id));
    run
}

/// The same with every check.
pub(crate) fn whole_run_on(url: &str) -> Run {
    let address = Address::Http(url.parse().expect("a URL"));
    // What the twins take for tokens whose time is over, for another server, and for the client.
    let identities = alice_and_bob()
        .with(Who::NewToken, "renewed-alice".into())
        .with(Who::OtherClient, "phone-alice".into())
        .with(Who::OtherTenant, "acme-carol".into())
        .with(Who::Expired, "expired-alice".into())
        .with(Who::WrongAudience, "elsewhere-alice".into())
        .with(Who::ClientIdAudience, "client-alice".into())
        .with(Who::NewToken, "renewed-alice".into());
    let mut run = Run::new(address, identities);
    run.options.timeout = Duration::from_secs(20);
    run
}

/// The same against a twin, with the tokens that it knows.
pub(crate) fn whole_run_of(twin: &handfast_twins::Twin, url: &str) -> Run {
    let token = |text: &str| twin.token(text).into();
    let identities = Identities::new(Some(token("alice")), Some(token("bob"))).expect("they differ");
    let run = whole_run_on(url);
    let identities = identities
        .with(Who::NewToken, token("renewed-alice"))
        .with(Who::OtherClient, token("phone-alice"))
        .with(Who::OtherTenant, token("acme-carol"))
        .with(Who::Expired, token("expired-alice"))
        .with(Who::WrongAudience, token("elsewhere-alice"))
        .with(Who::ClientIdAudience, token("client-alice"))
        .with(Who::NewToken, token("renewed-alice"));
    Run { identities, ..run }
}

/// A run of the checks of sessions.
pub(crate) fn session_run_on(url: &str) -> Run {
    let mut run = whole_run_on(url);
    run.checks.retain(|check| check.id.starts_with(SESSION));
    run
}

/// A run that tests one way in for a handle and one flow: a third of the calls of a whole one.
pub(crate) fn narrow_run_on(url: &str) -> Run {
    let mut run = run_on(url);
    run.profile = Profile::parse(NARROW).expect("a profile");
    run
}

const NARROW: &str = r#"
[tools]
deny = ["append_note", "whoami"]

[[handle]]
mint = "open_workspace"
pointer = "/structuredContent/workspace_id"
consume = ["tools/call read_workspace#workspace_id", "tools/call archive_workspace#workspace_id"]
"#;

/// A twin, served on loopback.
pub(crate) async fn served(name: &str, answers: Answers) -> Served {
    let twin = handfast_twins::find(name).unwrap_or_else(|| panic!("no twin `{name}`"));
    handfast_twins::serve_http(twin, 0, answers).await.expect("a free port")
}

/// Runs it. Unusable options are a failure of the test.
pub(crate) async fn probed(run: &Run) -> Report {
    run.probe(&|_| {}).await.expect("usable options")
}

/// Runs it against a twin with everything as usual.
pub(crate) async fn probed_twin(name: &str) -> Report {
    let served = served(name, Answers::Json).await;
    probed(&run_on(&served.url())).await
}

/// One check of a report.
pub(crate) fn check<'r>(report: &'r Report, id: &str) -> &'r CheckReport {
    report.checks.iter().find(|check| check.id == id).unwrap_or_else(|| panic!("no check `{id}` in the report"))
}

/// `confirmed handle-not-bound high`, with the observations behind it.
pub(crate) fn verdict(check: &CheckReport) -> String {
    let mut text = format!("{} {}", check.verdict.word(), check.reason.slug());
    if check.verdict == Verdict::Confirmed {
        text.push_str(&format!(" {:?}", check.severity).to_lowercase());
    }
    let mut observed: Vec<&str> = check.observations.iter().map(|observation| observation.id).collect();
    observed.sort_unstable();
    observed.dedup();
    for id in observed {
        // The twins declare one tool destructive; that it was left out is the subject of `harmless.rs`.
        if id != "entry-point-left-out" {
            text.push_str(&format!(" +{id}"));
        }
    }
    text
}

/// The verdicts of both checks as one line.
pub(crate) fn verdicts(report: &Report) -> String {
    format!("{} | {}", verdict(check(report, HANDLE)), verdict(check(report, STATE)))
}

/// The verdicts of the checks of sessions as one cell of the table: what all are, or those that are not plainly refuted.
pub(crate) fn sessions(report: &Report) -> String {
    cell(report, |id| id.strip_prefix(SESSION))
}

/// The same of the checks of tokens.
pub(crate) fn tokens(report: &Report) -> String {
    cell(report, |id| id.strip_prefix("token-").or((id == "challenge-missing").then_some("challenge-missing")))
}

fn cell(report: &Report, name: impl Fn(&'static str) -> Option<&'static str>) -> String {
    let seen: Vec<(&str, String)> =
        report.checks.iter().filter_map(|check| Some((name(check.id)?, verdict(check)))).collect();
    if let Some((_, first)) =
        seen.first().filter(|(_, first)| first.starts_with("skipped") || first.starts_with("errored"))
        && seen.iter().all(|(_, other)| other == first)
    {
        return first.clone();
    }
    // Most twins have tokens that bear no signature.
    let plain = |name: &str, verdict: &str| {
        // And most tests name no renewed one.
        (name == "forged" && verdict == "skipped no-signature-seen")
            || (name == "overbound" && verdict == "skipped needs-identity:a-new-token")
    };
    let telling = seen
        .iter()
        .filter(|(name, verdict)| (!verdict.starts_with("refuted") || verdict.contains('+')) && !plain(name, verdict));
    let telling: Vec<String> = telling.map(|(name, verdict)| format!("{name} {verdict}")).collect();
    if telling.is_empty() { "refuted".to_owned() } else { telling.join("; ") }
}

/// The reasons of both checks.
pub(crate) fn reasons(report: &Report) -> [&'static str; 2] {
    [check(report, HANDLE).reason.slug(), check(report, STATE).reason.slug()]
}

/// The entry point of this name.
pub(crate) fn entry<'c>(check: &'c CheckReport, name: &str) -> &'c EntryPoint {
    check.evidence.entry_points.iter().find(|point| point.row.entry == name).unwrap_or_else(|| {
        let known: Vec<&str> = check.evidence.entry_points.iter().map(|point| point.row.entry.as_str()).collect();
        panic!("no entry point `{name}` among {known:?}")
    })
}

/// The exchanges that tell the story of an entry point: step and disposition.
pub(crate) fn story(check: &CheckReport, point: &EntryPoint) -> Vec<(String, &'static str)> {
    point
        .row
        .story
        .iter()
        .map(|&at| &check.evidence.exchanges[at])
        .map(|step| (step.step.clone(), step.disposition))
        .collect()
}

/// A report as its JSON form.
pub(crate) fn as_json(report: &Report) -> Value {
    serde_json::to_value(report).expect("a report serialises")
}

/// How long something took, by the one clock.
pub(crate) async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let watch = Deadline::after(Duration::from_secs(3600));
    let made = work.await;
    (made, watch.elapsed())
}
