//! `handle-outlives-close`: does a handle still work after its owner has ended what it names?

use super::{
    endings,
    handles::{unissued, use_handle},
    kinds,
    showing::{After, Showing, after},
};
use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    discovery::{Kind, emitted},
    identity::Who,
    owasp,
    trial::Trial,
    verdict::{ControlPlan, Halt, Judgement, Observation, Reason, Row},
};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "handle-outlives-close",
    title: "Handles work after they were ended",
    claim: "A handle still opens its object after its owner has closed, ended or released it.",
    spec: "A call against an expired or unknown handle should return a tool execution error that says so, so the model can recover by creating a new one.",
    spec_url: "https://modelcontextprotocol.io/specification/2026-07-28/server/tools",
    help: include_str!("outlives_close.md"),
    level: Level::Hardening,
    severity: crate::verdict::Severity::Medium,
    cwe: &[672, 613],
    cvss: &[cvss::UNSHOWN],
    owasp: &[owasp::API2, owasp::MCP07],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = kinds::of_each(trial, of_kind).await.map(|(rows, seen)| Judgement::over(rows, seen));
        checks::finish(trial, &CHECK, outcome).await
    })
}

async fn of_kind(
    trial: &mut Trial<'_, '_>,
    kind: &Kind,
    observations: &mut Vec<Observation>,
) -> Result<Vec<Row>, Halt> {
    let ender = endings::tool_that_ends(trial, kind)?;
    let mut plan = ControlPlan::default();
    let (showing, owner) = Showing::find(trial, kind, &mut plan, observations).await?;
    let entry = showing.entry.to_string();
    let forged = unissued(trial, kind, &owner.object.handle, &[]);

    let (mut served, mut told, mut steps, mut said) = (Vec::new(), false, vec![owner.view.step], String::new());
    for _ in 0..TWICE {
        // An object that nobody has looked at yet: looking may use it up.
        let object = showing.mint(trial, kind, Who::A).await?;
        let ended = endings::end(trial, &ender, &object).await?;
        let answer = showing.show(trial, "subject", Who::A, &object.handle).await?;
        steps.extend([object.answer.step, ended.step, answer.step]);
        said = answer.said();
        match after(&object, &answer, &owner.view)? {
            After::Served(marker) => served.push((object, marker)),
            After::Told => told = true,
            After::Refused => {}
        }
        if served.is_empty() {
            break;
        }
    }
    let (unminted, _) = use_handle(trial, "forged-handle", Who::A, &showing.entry, &forged).await?;
    plan.presents_unissued(&unminted, &[emitted::text_of(&forged)])?;
    let controls = plan.hold()?;
    showing.still_shows(trial, kind).await?;

    let said = trial.clean(&said);
    let mut row = match &served[..] {
        [(object, _), ..] if object.marked(&unminted).is_some() => {
            let detail = "a handle that nobody minted brings A's object as well".to_owned();
            Row::halted(&entry, Halt::skipped(Reason::HandleWitnessUnusable, detail))
        }
        [(_, marker), _] => {
            let detail = format!("A ended its object by {ender}, and its handle still brings {marker}");
            Row::confirmed(&controls, &entry, Reason::EndedHandleServed, CHECK.severity, trial.clean(&detail))
        }
        [_] => Row::halted(&entry, Halt::errored(Reason::Unstable, "an ended handle worked once, and once not")),
        _ if told => {
            let text = format!("{entry}: after {ender} the object is still shown, in other words than before: {said}");
            observations.push(Observation { id: "ended-object-shown", text });
            let detail = format!("after {ender} the answer is another one: {said}");
            Row::refuted(&controls, &entry, Reason::EndedHandleRefused, detail)
        }
        _ => {
            let detail = format!("after {ender} the handle is refused: {said}");
            Row::refuted(&controls, &entry, Reason::EndedHandleRefused, detail)
        }
    };
    row.facts.insert("ended_by".into(), ender.to_string().into());
    row.story = steps;
    Ok(vec![row])
}

/// A finding must not be a fluke.
const TWICE: usize = 2;
