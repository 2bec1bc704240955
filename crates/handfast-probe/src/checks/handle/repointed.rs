//! `handle-repointed`: does the handle of what is over lead to something else one day?

use super::{
    endings,
    handles::{Minted, unissued, use_handle},
    kinds,
    showing::Showing,
};
use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    discovery::{Entry, Kind, emitted},
    disposition::Disposition,
    identity::Who,
    owasp,
    trial::{Answer, Trial},
    verdict::{ControlPlan, Halt, Judgement, Observation, Reason, Row, Severity},
};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "handle-repointed",
    title: "Handles of what is over lead to something else",
    claim: "The handle of an object that was ended, or whose time is over, opens another object that was made later.",
    spec: "A call against an expired or unknown handle should return a tool execution error that says so, so the model can recover by creating a new one.",
    spec_url: "https://modelcontextprotocol.io/specification/2026-07-28/server/tools",
    help: include_str!("repointed.md"),
    level: Level::Hardening,
    severity: Severity::High,
    cwe: &[488, 672],
    cvss: &[cvss::TAKEN, cvss::TOUCHED],
    owasp: &[owasp::MCP07, owasp::API1],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = kinds::of_each(trial, of_kind).await.map(|(rows, seen)| Judgement::over(rows, seen));
        checks::finish(trial, &CHECK, outcome).await
    })
}

/// How A's objects come to their end.
enum End {
    By(Entry),
    Time(std::time::Duration),
}

async fn of_kind(
    trial: &mut Trial<'_, '_>,
    kind: &Kind,
    observations: &mut Vec<Observation>,
) -> Result<Vec<Row>, Halt> {
    let end = match endings::tool_that_ends(trial, kind) {
        Ok(ender) => End::By(ender),
        // Only what the description says: an object is not minted for this alone.
        Err(halt) => match endings::lifetime_of(trial, kind, None).map(|lifetime| endings::wait_for(trial, lifetime)) {
            Some(Ok(wait)) => End::Time(wait),
            _ => return Err(halt),
        },
    };
    let mut plan = ControlPlan::default();
    let (showing, owner) = Showing::find(trial, kind, &mut plan, observations).await?;
    let entry = showing.entry.to_string();
    let forged = unissued(trial, kind, &owner.object.handle, &[]);

    // Whose objects come next: a number that is free again may go to anybody.
    let mut found = Vec::new();
    // What A had was given to B as well.
    let mut free_for_all = false;
    let mut said = String::new();
    let mut steps = vec![owner.view.step];
    for next in [Who::B, Who::A] {
        let object = showing.mint(trial, kind, Who::A).await?;
        match &end {
            End::By(ender) => steps.push(endings::end(trial, ender, &object).await?.step),
            End::Time(wait) => trial.pause(*wait).await?,
        }
        let mut later = Vec::new();
        for _ in 0..LATER {
            match showing.mint(trial, kind, next).await {
                Ok(minted) => later.push(minted),
                Err(halt) if halt.is_final() || next == Who::A => return Err(halt),
                // What B cannot mint cannot take the place of A's.
                Err(_) => break,
            }
        }
        let answer = showing.show(trial, "subject", Who::A, &object.handle).await?;
        let again = showing.show(trial, "subject-again", Who::A, &object.handle).await?;
        steps.extend([object.answer.step, answer.step]);
        said = answer.said();
        let given_again = later.iter().any(|one| one.handle == object.handle);
        free_for_all |= next == Who::B && given_again;
        match [leads_to(&answer, &later)?, leads_to(&again, &later)?] {
            // A name of A's own, which nobody else is ever given: no wonder that it leads to what has it now.
            [Some(_), Some(_)]
                if next == Who::A && given_again && !free_for_all && object.handle == owner.object.handle => {}
            [Some(marker), Some(_)] => found.push((next, later, marker)),
            [None, None] => {}
            _ => return Err(Halt::errored(Reason::Unstable, "the handle led elsewhere once, and once not")),
        }
    }
    let (unminted, _) = use_handle(trial, "forged-handle", Who::A, &showing.entry, &forged).await?;
    plan.presents_unissued(&unminted, &[emitted::text_of(&forged)])?;
    let controls = plan.hold()?;
    showing.still_shows(trial, kind).await?;

    let mut rows = Vec::new();
    for (next, later, marker) in &found {
        if later.iter().any(|minted| minted.marked(&unminted).is_some()) {
            let detail = "a handle that nobody minted brings the later object as well";
            rows.push(Row::halted(&entry, Halt::skipped(Reason::HandleWitnessUnusable, detail)));
            continue;
        }
        let severity = if *next == Who::B { Severity::High } else { Severity::Medium };
        let detail =
            format!("A's handle of what is over brings {marker} of an object that {} made later", next.label());
        rows.push(Row::confirmed(&controls, &entry, Reason::HandleRepointed, severity, trial.clean(&detail)));
    }
    if rows.is_empty() {
        let detail = format!("A's handle of what is over leads to nothing that was made later: {}", trial.clean(&said));
        rows.push(Row::refuted(&controls, &entry, Reason::HandleNotRepointed, detail));
    }
    rows.iter_mut().for_each(|row| row.story.clone_from(&steps));
    Ok(rows)
}

/// What of a later object stands in an answer.
fn leads_to(answer: &Answer, later: &[Minted]) -> Result<Option<String>, Halt> {
    if let Some(halt) = answer.unclear() {
        return Err(halt);
    }
    let found = later.iter().find_map(|minted| minted.marked(answer));
    let accepted = answer.disposition == Disposition::Accepted;
    Ok(found.filter(|_| accepted).map(|(mark, at)| format!("the canary `{}` at {at}", mark.long)))
}

/// How many objects are made after the end of one.
const LATER: usize = 3;
