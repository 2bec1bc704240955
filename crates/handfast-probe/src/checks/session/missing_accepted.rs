//! `session-missing-accepted`: does a server that issues ids carry out what comes without one? And whose session does it
//! take then? A server may fall back on the only one that is open.

use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    disposition::Disposition,
    errand::{self, Errand},
    identity::Who,
    owasp,
    target::session::Verb,
    trial::Trial,
    verdict::{ControlPlan, Halt, Judgement, Reason, Row, Severity},
};

use super::scene;

/// The check.
pub(super) static CHECK: Check = Check {
    id: "session-missing-accepted",
    title: "Requests without a session id are carried out",
    claim: "A server that issues session ids carries out later requests that carry none.",
    spec: "Servers that require a session ID SHOULD respond to requests without an MCP-Session-Id header (other than initialization) with HTTP 400 Bad Request.",
    spec_url: "https://modelcontextprotocol.io/specification/2025-11-25/basic/transports",
    help: include_str!("missing_accepted.md"),
    level: Level::Should,
    severity: Severity::High,
    cwe: &[306, 639],
    cvss: &[cvss::TAKEN, cvss::TOUCHED, cvss::HARDENING],
    owasp: &[owasp::MCP07, owasp::API2],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = judge(trial).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

async fn judge(trial: &mut Trial<'_, '_>) -> Result<Judgement, Halt> {
    let errand = scene::enter(trial).await?;
    let mut rows = Vec::new();
    for entry in [WITH_TWO, WITH_ONE, STREAM] {
        // Our own others are ended first: nothing is known of other people's.
        trial.session.target.end_visits().await;
        let outcome = match entry {
            STREAM => stream(trial, &errand).await,
            _ => with_open(trial, &errand, entry).await,
        };
        rows.push(outcome.unwrap_or_else(|halt| Row::halted(entry, halt)));
        if scene::is_over(&rows) {
            break;
        }
    }
    Ok(Judgement::over(rows, Vec::new()))
}

/// Whether a stream is attached that belongs to no session.
async fn stream(trial: &mut Trial<'_, '_>, errand: &Errand) -> Result<Row, Halt> {
    let a = scene::live(trial, Who::A, errand).await?;
    let own = scene::present(trial, "owner-use", Who::A, Verb::Get, Some(&a.id), errand).await?;
    scene::offered(&own, Verb::Get)?;
    let unissued = scene::unissued(trial, Who::A, Verb::Get, &a, errand).await?;
    let mut plan = ControlPlan::default();
    plan.accepts(&own, |said| Halt::errored(Reason::ControlFailed, said))?;
    plan.presents_unissued(&unissued.answer, std::slice::from_ref(&unissued.id))?;
    let controls = plan.hold()?;

    let subject = scene::present(trial, "subject", Who::A, Verb::Get, None, errand).await?;
    let after = scene::still_live(trial, &a, errand).await?;

    if let Some(halt) = subject.unclear() {
        return Err(halt);
    }
    let said = trial.clean(&subject.said());
    let mut row = match subject.disposition {
        Disposition::Accepted => {
            let detail = "a stream is attached without any session id".to_owned();
            Row::confirmed(&controls, STREAM, Reason::SessionNotNeeded, Severity::Low, detail)
        }
        _ => {
            let detail = format!("no stream is attached without a session id: {said}");
            Row::refuted(&controls, STREAM, Reason::SessionGuardHeld, detail)
        }
    };
    row.story = [&own, &unissued.answer, &subject, &after].map(|answer| answer.step).to_vec();
    Ok(row)
}

const WITH_TWO: &str = "with two sessions of ours open";
const WITH_ONE: &str = "with one session of ours open";
const STREAM: &str = "GET";

async fn with_open(trial: &mut Trial<'_, '_>, errand: &Errand, entry: &str) -> Result<Row, Halt> {
    let a = scene::live(trial, Who::A, errand).await?;
    if entry == WITH_TWO {
        // Of B's: a server may keep one for each caller.
        scene::live(trial, Who::B, errand).await?;
    }
    let canary = trial.canary(Who::A);
    let memory = errand.memory.as_ref().and_then(|memory| Some((memory, memory.write(&canary)?)));
    if let Some((_, keep)) = &memory {
        scene::post(trial, "keep", Who::A, Some(&a.id), keep).await?;
    }
    let unissued = scene::unissued(trial, Who::A, Verb::Post, &a, errand).await?;
    let mut plan = ControlPlan::default();
    plan.accepts(&a.answer, |said| Halt::errored(Reason::ControlFailed, said))?;
    plan.presents_unissued(&unissued.answer, std::slice::from_ref(&unissued.id))?;
    let controls = plan.hold()?;

    let subject = scene::present(trial, "subject", Who::A, Verb::Post, None, errand).await?;
    let again = scene::present(trial, "subject-again", Who::A, Verb::Post, None, errand).await?;
    // The same from B: with a fallback, A's session would serve whoever comes.
    let stranger = scene::present(trial, "stranger-without-id", Who::B, Verb::Post, None, errand).await?;
    let after = scene::still_live(trial, &a, errand).await?;

    if let Some(halt) = subject.unclear().or_else(|| again.unclear()) {
        return Err(halt);
    }
    if subject.disposition.word() != again.disposition.word() {
        return Err(Halt::errored(Reason::Unstable, "a request without an id was carried out once and refused once"));
    }
    let in_session = memory.is_some() && errand::shown(&subject, &canary);
    let to_stranger = memory.is_some() && errand::shown(&stranger, &canary);
    let said = trial.clean(&subject.said());
    let confirmed =
        |severity, detail: String| Row::confirmed(&controls, entry, Reason::SessionNotNeeded, severity, detail);
    let mut row = if to_stranger {
        let detail = format!("without any session id B is shown what A keeps in its session: `{}`", canary.long);
        confirmed(Severity::High, detail)
    } else if in_session {
        // With A's own token: nobody is served who should not be.
        confirmed(Severity::Low, "without any session id A's request was carried out in A's session".to_owned())
    } else if subject.disposition == Disposition::Accepted {
        // Nothing shows that it was carried out in anybody's session.
        confirmed(Severity::Low, format!("a request without any session id was carried out: {said}"))
    } else {
        let detail = format!("a request without a session id is refused: {said}");
        Row::refuted(&controls, entry, Reason::SessionGuardHeld, detail)
    };
    row.story = [&a.answer, &unissued.answer, &subject, &stranger, &after].map(|answer| answer.step).to_vec();
    Ok(row)
}
