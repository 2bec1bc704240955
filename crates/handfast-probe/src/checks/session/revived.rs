//! `session-revived`: is a session that does not exist made on the spot? One respect differs from the control: the id.

use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    disposition::Disposition,
    errand::Errand,
    identity::Who,
    owasp,
    target::session::Verb,
    trial::Trial,
    verdict::{ControlPlan, Halt, Judgement, Negative, Observation, Reason, Row, Severity},
};

use super::scene;

/// The check.
pub(super) static CHECK: Check = Check {
    id: "session-revived",
    title: "Unknown sessions are silently made anew",
    claim: "A request with a session id that the server does not know is carried out instead of being refused.",
    spec: "The server MAY terminate the session at any time, after which it MUST respond to requests containing that session ID with HTTP 404 Not Found.",
    spec_url: "https://modelcontextprotocol.io/specification/2025-11-25/basic/transports",
    help: include_str!("revived.md"),
    level: Level::Must,
    severity: Severity::Medium,
    cwe: &[613, 384],
    cvss: &[cvss::TOUCHED, cvss::HARDENING],
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
    let (mut rows, mut observations) = (Vec::new(), Vec::new());
    for verb in [Verb::Post, Verb::Get] {
        let outcome = of_verb(trial, verb, &errand, &mut observations).await;
        rows.push(outcome.unwrap_or_else(|halt| Row::halted(verb.word(), halt)));
        if scene::is_over(&rows) {
            break;
        }
    }
    Ok(Judgement::over(rows, observations))
}

async fn of_verb(
    trial: &mut Trial<'_, '_>,
    verb: Verb,
    errand: &Errand,
    observations: &mut Vec<Observation>,
) -> Result<Row, Halt> {
    let a = scene::live(trial, Who::A, errand).await?;
    let own = scene::present(trial, "owner-use", Who::A, verb, Some(&a.id), errand).await?;
    scene::offered(&own, verb)?;
    // A server that refuses nothing at all consults no id.
    let without = scene::present(trial, "without-id", Who::A, verb, None, errand).await?;
    let mut plan = ControlPlan::default();
    plan.accepts(&own, |said| Halt::errored(Reason::ControlFailed, said))?;
    plan.presents_unissued(&without, &[])?;
    let controls = plan.hold()?;

    let subject = scene::unissued(trial, Who::A, verb, &a, errand).await?;
    let after = scene::still_live(trial, &a, errand).await?;

    if let Some(halt) = subject.answer.unclear() {
        return Err(halt);
    }
    let said = trial.clean(&subject.answer.said());
    let mut row = match subject.answer.disposition {
        Disposition::Accepted => {
            let ignored = *controls.negative() == Negative::Honoured;
            if ignored {
                let text = format!("{}: a request without any session id is carried out as well", verb.word());
                observations.push(Observation { id: "session-id-ignored", text });
            }
            let severity = if ignored { Severity::Low } else { CHECK.severity };
            let detail = format!("a request with a session id that nobody issued was carried out: {said}");
            Row::confirmed(&controls, verb.word(), Reason::UnknownSessionServed, severity, detail)
        }
        _ if let Some(again) = &subject.opened_by_refusal => {
            let detail = format!(
                "a session id that nobody issued was refused ({said}), and the same id is served from then on: {}",
                trial.clean(&again.said())
            );
            Row::confirmed(&controls, verb.word(), Reason::UnknownSessionServed, CHECK.severity, detail)
        }
        _ => {
            let detail = format!("session ids that nobody issued are refused: {said}");
            Row::refuted(&controls, verb.word(), Reason::UnknownSessionRefused, detail)
        }
    };
    let again = subject.opened_by_refusal.iter().map(|again| again.step);
    row.story = [&own, &without, &subject.answer, &after].map(|answer| answer.step).into_iter().chain(again).collect();
    Ok(row)
}
