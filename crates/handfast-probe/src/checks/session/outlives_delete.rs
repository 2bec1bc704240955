//! `session-outlives-delete`: is a session that was ended at an end? At once, and after a while.

use std::time::Duration;

use crate::{
    check::{Check, Level, Running},
    checks,
    disposition::Disposition,
    errand,
    identity::Who,
    target::session::Verb,
    trial::Trial,
    verdict::{ControlPlan, Halt, Judgement, Observation, Reason, Row, Severity},
};

use super::scene;

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
    let a = scene::live(trial, Who::A, &errand).await?;
    let canary = trial.canary(Who::A);
    let keep = errand.memory.as_ref().and_then(|memory| memory.write(&canary));
    if let Some(keep) = &keep {
        scene::post(trial, "keep", Who::A, Some(&a.id), keep).await?;
    }
    let unissued = scene::unissued(trial, Who::A, Verb::Post, &a, &errand).await?;
    let mut plan = ControlPlan::default();
    plan.accepts(&a.answer, |said| Halt::errored(Reason::ControlFailed, said))?;
    plan.presents_unissued(&unissued.answer, std::slice::from_ref(&unissued.id))?;
    let controls = plan.hold()?;

    let end = scene::present(trial, "end", Who::A, Verb::Delete, Some(&a.id), &errand).await?;
    if end.disposition != Disposition::Accepted {
        let detail = format!("the server does not let its clients end a session: {}", trial.clean(&end.said()));
        return Err(end.lost().unwrap_or_else(|| Halt::skipped(Reason::VerbNotOffered, detail)));
    }
    let at_once = scene::present(trial, "subject", Who::A, Verb::Post, Some(&a.id), &errand).await?;
    let served = |answer: &crate::trial::Answer| answer.disposition == Disposition::Accepted;
    if served(&at_once) {
        tokio::time::sleep(PAUSE).await;
    }
    let later = scene::present(trial, "subject-later", Who::A, Verb::Post, Some(&a.id), &errand).await?;
    let latest = scene::present(trial, "subject-later", Who::A, Verb::Post, Some(&a.id), &errand).await?;
    let after = scene::live(trial, Who::A, &errand).await?;

    if let Some(halt) = [&at_once, &later, &latest].into_iter().find_map(|answer| answer.unclear()) {
        return Err(halt);
    }
    let mut observations = Vec::new();
    let remembers = keep.is_some() && errand::shown(&later, &canary);
    let mut row = match (served(&at_once), served(&later), served(&latest)) {
        (_, true, true) if remembers => {
            let detail = format!(
                "after DELETE was answered with success, the session still shows what was kept in it: `{}`",
                canary.long
            );
            Row::confirmed(&controls, ENTRY, Reason::EndedSessionServed, CHECK.severity, detail)
        }
        (_, true, true) if !unissued.is_honoured() => {
            let detail = "after DELETE was answered with success, the session is still served, while an id that nobody issued is refused";
            Row::confirmed(&controls, ENTRY, Reason::EndedSessionServed, CHECK.severity, detail.to_owned())
        }
        (_, true, true) => {
            let text =
                "an ended session is served as one that nobody issued is, and shows nothing of what was kept in it";
            observations.push(Observation { id: "unknown-session-served", text: text.to_owned() });
            Row::refuted(&controls, ENTRY, Reason::SessionWitnessUnusable, text.to_owned())
        }
        (first, false, false) => {
            if first {
                let text = "the session was still served at once after DELETE, and no longer a moment later";
                observations.push(Observation { id: "ended-session-lingers", text: text.to_owned() });
            }
            let detail = format!("an ended session is refused: {}", trial.clean(&later.said()));
            Row::refuted(&controls, ENTRY, Reason::SessionGuardHeld, detail)
        }
        _ => return Err(Halt::errored(Reason::Unstable, "an ended session was served once and refused once")),
    };
    row.story = [&a.answer, &unissued.answer, &end, &at_once, &later, &after.answer].map(|answer| answer.step).to_vec();
    Ok(Judgement::over(vec![row], observations))
}

const ENTRY: &str = "DELETE, then POST";
/// What several processes may need to tell each other.
const PAUSE: Duration = Duration::from_millis(300);
