//! `design-error-is-protocol-error`: can a model recover from a handle that is no good?

use super::{ADVICE, Advice, row, stateless};
use crate::{
    check::{Check, Level, Running},
    checks::{
        self,
        handle::{
            handles::{Manner, in_order, mint, unissued, use_handle},
            kinds,
        },
    },
    cvss,
    discovery::{Entry, Kind, emitted},
    disposition::{Disposition, RefusedBy, Unclear},
    identity::Who,
    likeness, owasp,
    trial::{Answer, Trial},
    verdict::{ControlPlan, Halt, Judgement, Observation, Reason, Row, Severity},
};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "design-error-is-protocol-error",
    title: "A bad handle is a protocol error",
    claim: "A tool that is given an unknown handle answers with a JSON-RPC error or a bare HTTP status instead of a result with isError.",
    spec: "A call against an expired or unknown handle should return a tool execution error that says so, so the model can recover by creating a new one.",
    spec_url: ADVICE,
    help: include_str!("error_is_protocol_error.md"),
    level: Level::Hardening,
    severity: Severity::Info,
    cwe: &[755],
    cvss: &[cvss::NOTHING],
    owasp: &[owasp::API8],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = judge(trial).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

async fn judge(trial: &mut Trial<'_, '_>) -> Result<Judgement, Halt> {
    let (rows, observations) = kinds::of_each(trial, of_kind).await?;
    Ok(Judgement::over(rows, observations))
}

async fn of_kind(
    trial: &mut Trial<'_, '_>,
    kind: &Kind,
    observations: &mut Vec<Observation>,
) -> Result<Vec<Row>, Halt> {
    stateless(trial)?;
    let mut entries = in_order(trial, kind, &mut Vec::new());
    // A prompt and a resource have no other errors.
    entries.retain(|(manner, entry)| *manner != Manner::Ends && matches!(entry, Entry::Tool { .. }));
    let mut rows = Vec::new();
    for (_, entry) in entries.into_iter().take(MOST_ASKED) {
        match of_entry(trial, kind, &entry, observations).await {
            Ok(row) => rows.push(row),
            Err(halt) if halt.is_final() => return Err(halt),
            Err(halt) => rows.push(Row::halted(&entry.to_string(), halt)),
        }
    }
    match rows.is_empty() {
        true => Err(Halt::skipped(Reason::NoToolConsumesAHandle, "no tool that may be called takes this handle")),
        false => Ok(rows),
    }
}

async fn of_entry(
    trial: &mut Trial<'_, '_>,
    kind: &Kind,
    entry: &Entry,
    observations: &mut Vec<Observation>,
) -> Result<Row, Halt> {
    let mut plan = ControlPlan::default();
    let object = mint(trial, Who::A, kind).await??;
    let (own, _) = use_handle(trial, "owner-use", Who::A, entry, &object.handle).await?;
    plan.accepts(&own, |said| Halt::skipped(Reason::ControlFailed, format!("A could not use its own handle: {said}")))?;
    let forged = unissued(trial, kind, &object.handle, &[]);
    let (unminted, _) = use_handle(trial, "forged-handle", Who::A, entry, &forged).await?;
    let said = trial.clean(&unminted.said());
    let story = vec![object.answer.step, own.step, unminted.step];
    let entry_shown = entry.to_string();
    if is_crash(&unminted) {
        // Once is an outage; twice, while A's own handle works, is the answer.
        let (again, _) = use_handle(trial, "forged-handle", Who::A, entry, &forged).await?;
        let fresh = mint(trial, Who::A, kind).await??;
        let (after, _) = use_handle(trial, "owner-again", Who::A, entry, &fresh.handle).await?;
        if !is_crash(&again) || after.disposition != Disposition::Accepted {
            return Err(Halt::errored(Reason::Unclear, said));
        }
        plan.refused_in_words(&said);
        let advice = Advice::NotFollowed(format!("a handle that nobody minted makes the server fall over: {said}"));
        return Ok(row(trial, &plan.hold()?, &entry_shown, advice, story));
    }
    plan.presents_unissued(&unminted, &[emitted::text_of(&forged)])?;
    let controls = plan.hold()?;
    let advice = match &unminted.disposition {
        Disposition::Refused(refusal) if refusal.by == RefusedBy::ToolError => {
            Advice::Followed(format!("a handle that nobody minted is an error of the tool's: {said}"))
        }
        Disposition::Refused(_) => {
            Advice::NotFollowed(format!("a handle that nobody minted is an error of the protocol's: {said}"))
        }
        _ if is_no(&unminted, &own) => {
            let text = format!("{entry}: an unknown handle is refused in a result that is no error: {said}");
            observations.push(Observation { id: "refusal-is-no-error", text });
            Advice::Followed(format!("a handle that nobody minted is refused in a result: {said}"))
        }
        _ => {
            let text = "a handle that nobody minted is honoured, and so there is no error to be seen";
            return Err(Halt::skipped(Reason::HandleWitnessUnusable, text));
        }
    };
    Ok(row(trial, &controls, &entry_shown, advice, story))
}

fn is_crash(answer: &Answer) -> bool {
    matches!(answer.disposition, Disposition::Unclear(Unclear::Status(500..)))
}

/// A "no" in a complete result.
fn is_no(answer: &Answer, own: &Answer) -> bool {
    matches!((answer.result(), own.result()), (Some(answer), Some(own)) if !likeness::alike(answer, own))
}

const MOST_ASKED: usize = 2;
