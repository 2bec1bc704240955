//! `session-outlives-delete`: is a session that was ended at an end? At once, and after a while.

use std::time::Duration;

use crate::{
    check::{Check, Level, Running},
    checks,
    clock::Deadline,
    cvss,
    disposition::Disposition,
    errand::{self, Errand},
    identity::Who,
    owasp,
    target::session::Verb,
    trial::Trial,
    verdict::{ControlPlan, Halt, Judgement, Observation, Reason, Row, Severity},
};

use super::{endings, scene};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "session-outlives-delete",
    title: "Sessions outlive their end",
    claim: "A session that its owner ended with DELETE serves later requests.",
    spec: "The server MAY terminate the session at any time, after which it MUST respond to requests containing that session ID with HTTP 404 Not Found.",
    spec_url: "https://modelcontextprotocol.io/specification/2025-11-25/basic/transports",
    help: include_str!("outlives_delete.md"),
    level: Level::Must,
    severity: Severity::Medium,
    cwe: &[613],
    cvss: &[cvss::TOUCHED],
    owasp: &[owasp::API2, owasp::MCP07],
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
        rows.push(outcome.unwrap_or_else(|halt| Row::halted(entry(verb), halt)));
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
    let tried = scene::live(trial, Who::A, errand).await?;
    let own = scene::present(trial, "owner-use", Who::A, verb, Some(&tried.id), errand).await?;
    scene::offered(&own, verb)?;
    let opened = Deadline::after(Duration::ZERO);
    let a = scene::live(trial, Who::A, errand).await?;
    let canary = trial.canary(Who::A);
    let keep = errand.memory.as_ref().and_then(|memory| memory.write(&canary));
    if let Some(keep) = &keep {
        scene::post(trial, "keep", Who::A, Some(&a.id), keep).await?;
    }
    let unissued = scene::unissued(trial, Who::A, verb, &a, errand).await?;
    let mut plan = ControlPlan::default();
    plan.accepts(&own, |said| Halt::errored(Reason::ControlFailed, said))?;
    plan.presents_unissued(&unissued.answer, std::slice::from_ref(&unissued.id))?;
    let controls = plan.hold()?;

    let end = scene::present(trial, "end", Who::A, Verb::Delete, Some(&a.id), errand).await?;
    if end.disposition != Disposition::Accepted {
        let detail = format!("the server does not let its clients end a session: {}", trial.clean(&end.said()));
        return Err(end.lost().unwrap_or_else(|| Halt::skipped(Reason::VerbNotOffered, detail)));
    }
    let at_once = scene::present(trial, "subject", Who::A, verb, Some(&a.id), errand).await?;
    let served = |answer: &crate::trial::Answer| answer.disposition == Disposition::Accepted;
    let mut later = at_once.clone();
    // 202 says that it will be done, and not that it is.
    let patience = if end.reply.status == Some(202) { PROMISED } else { PAUSES };
    for pause in patience.iter().filter(|_| served(&at_once)) {
        tokio::time::sleep(*pause).await;
        later = scene::present(trial, "subject-later", Who::A, verb, Some(&a.id), errand).await?;
        if !served(&later) {
            break;
        }
    }
    let latest = scene::present(trial, "subject-later", Who::A, verb, Some(&a.id), errand).await?;
    let lasted = opened.elapsed();
    let after = scene::live(trial, Who::A, errand).await?;

    if let Some(halt) = [&at_once, &later, &latest].into_iter().find_map(|answer| answer.unclear()) {
        return Err(halt);
    }
    let entry = entry(verb);
    let remembers = keep.is_some() && errand::shown(&later, &canary);
    let mut row = match (served(&at_once), served(&later), served(&latest)) {
        (_, true, true) if remembers => {
            let detail = format!(
                "after DELETE was answered with success, the session still shows what was kept in it: `{}`",
                canary.long
            );
            Row::confirmed(&controls, entry, Reason::EndedSessionServed, CHECK.severity, detail)
        }
        (_, true, true) if !unissued.is_honoured() => {
            let detail = "after DELETE was answered with success, the session is still served, while an id that nobody issued is refused";
            Row::confirmed(&controls, entry, Reason::EndedSessionServed, CHECK.severity, detail.to_owned())
        }
        (_, true, true) => {
            let text =
                "an ended session is served as one that nobody issued is, and shows nothing of what was kept in it";
            observations.push(Observation { id: "unknown-session-served", text: text.to_owned() });
            Row::refuted(&controls, entry, Reason::SessionWitnessUnusable, text.to_owned())
        }
        (first, false, false) => {
            if first {
                // Or its time was over, whoever wanted to end it.
                endings::goes_on(trial, lasted, errand).await?;
                let text = "the session was still served at once after DELETE, and no longer a moment later";
                observations.push(Observation { id: "ended-session-lingers", text: text.to_owned() });
            }
            let detail = format!("an ended session is refused: {}", trial.clean(&later.said()));
            Row::refuted(&controls, entry, Reason::SessionGuardHeld, detail)
        }
        _ => return Err(Halt::errored(Reason::Unstable, "an ended session was served once and refused once")),
    };
    row.story = [&own, &unissued.answer, &end, &at_once, &later, &after.answer].map(|answer| answer.step).to_vec();
    row.story.dedup();
    Ok(row)
}

fn entry(verb: Verb) -> &'static str {
    if verb == Verb::Get { "DELETE, then GET" } else { "DELETE, then POST" }
}

/// What several processes may need to tell each other.
const PAUSES: &[Duration] = &[Duration::from_millis(300), Duration::from_millis(700)];
/// What an end that was only promised may need.
const PROMISED: &[Duration] = &[Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];
