//! `handle-oracle`: is a handle that is somebody else's refused otherwise than one that nobody minted?

use super::{
    handles::{Manner, in_order, mint, unissued, use_handle},
    kinds,
};
use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    discovery::{Entry, Kind, emitted},
    disposition::{Disposition, RefusedBy},
    identity::Who,
    likeness, owasp,
    trial::{Answer, Trial},
    verdict::{ControlPlan, Halt, Judgement, Observation, Reason, Row, Severity},
};
use serde_json::Value;

/// The check.
pub(super) static CHECK: Check = Check {
    id: "handle-oracle",
    title: "A refusal tells which handles exist",
    claim: "A live handle of somebody else's is refused in another way than a handle that nobody minted.",
    spec: "For authenticated servers, a handle is a name, not a capability. The server should validate the caller's authorization against the handle on every call.",
    spec_url: "https://modelcontextprotocol.io/specification/2026-07-28/server/tools",
    help: include_str!("oracle.md"),
    level: Level::Hardening,
    severity: Severity::Low,
    cwe: &[204, 203],
    cvss: &[cvss::HARDENING],
    owasp: &[owasp::API1, owasp::MCP10],
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
    let mut entries = in_order(trial, kind, observations);
    entries.retain(|(manner, _)| *manner != Manner::Ends);
    let mut rows = Vec::new();
    for (_, entry) in entries.into_iter().take(MOST_ASKED) {
        match of_entry(trial, kind, &entry).await {
            Ok(row) => rows.push(row),
            Err(halt) => {
                let over = halt.is_final();
                rows.push(Row::halted(&entry.to_string(), halt));
                if over {
                    break;
                }
            }
        }
    }
    match rows.is_empty() {
        true => Err(Halt::skipped(Reason::NoToolConsumesAHandle, "every entry point for this handle was left out")),
        false => Ok(rows),
    }
}

async fn of_entry(trial: &mut Trial<'_, '_>, kind: &Kind, entry: &Entry) -> Result<Row, Halt> {
    let own = mint(trial, Who::A, kind).await??;
    let mut plan = ControlPlan::default();
    let (view, _) = use_handle(trial, "owner-use", Who::A, entry, &own.handle).await?;
    plan.accepts(&view, |said| {
        Halt::skipped(Reason::ControlFailed, format!("A could not use its own handle: {said}"))
    })?;
    let strangers = mint(trial, Who::B, kind).await??;
    let (live, _) = use_handle(trial, "stranger-own-use", Who::B, entry, &strangers.handle).await?;
    plan.accepts(&live, |said| {
        Halt::skipped(Reason::SecondIdentityNotLive, format!("B could not use its own handle: {said}"))
    })?;
    // Another one, which nobody has used: a use may be the last.
    let object = mint(trial, Who::A, kind).await??;
    let mut taken = vec![own.handle, strangers.handle, object.handle.clone()];
    let (mut steps, mut differences) = (vec![live.step, object.answer.step], 0);
    let mut told = (String::new(), String::new());
    let mut first: Option<Answer> = None;
    for _ in 0..ROUNDS {
        let mut unminted = Vec::new();
        for _ in 0..2 {
            let forged = unissued(trial, kind, &object.handle, &taken);
            taken.push(forged.clone());
            let (answer, _) = use_handle(trial, "forged-handle", Who::B, entry, &forged).await?;
            decided(&answer)?;
            plan.presents_unissued(&answer, &[emitted::text_of(&forged)])?;
            unminted.push(answer);
        }
        let (subject, _) = use_handle(trial, "subject", Who::B, entry, &object.handle).await?;
        decided(&subject)?;
        steps.extend([unminted[0].step, subject.step]);
        let [one, other] = &unminted[..] else { break };
        let first = first.get_or_insert_with(|| one.clone());
        if !alike(one, other, &taken) || !alike(one, first, &taken) {
            let text = format!(
                "two handles that nobody minted are answered in two ways: {} and {}",
                trial.clean(&one.said()),
                trial.clean(&other.said())
            );
            return Err(Halt::skipped(Reason::HandleWitnessUnusable, text));
        }
        told = (subject.said(), one.said());
        if alike(&subject, one, &taken) {
            break;
        }
        differences += 1;
        if !subject.is_unlike(&view) && subject.disposition == Disposition::Accepted {
            // Where B gets what A's handle opens, another check has the say.
            let text = format!("A's handle is not refused to B: {}", trial.clean(&subject.said()));
            return Err(Halt::skipped(Reason::NothingWasRefused, text));
        }
    }
    // Now that nothing can be used up any more: what B was refused is A's, and alive.
    let (owner, _) = use_handle(trial, "owner-again", Who::A, entry, &object.handle).await?;
    plan.accepts(&owner, |said| {
        Halt::skipped(Reason::ControlFailed, format!("A could not use its own handle: {said}"))
    })?;
    steps.push(owner.step);
    let controls = plan.hold()?;
    let entry = entry.to_string();
    let mut row = match differences {
        0 => {
            let said = trial.clean(&told.1);
            let detail = format!("A's live handle is answered to B as one that nobody minted: {said}");
            Row::refuted(&controls, &entry, Reason::HandlesRefusedAlike, detail)
        }
        ROUNDS => {
            let (live, unknown) = (trial.clean(&told.0), trial.clean(&told.1));
            let detail = format!("B is told of A's live handle: {live}; and of one that nobody minted: {unknown}");
            Row::confirmed(&controls, &entry, Reason::HandleOracle, CHECK.severity, detail)
        }
        _ => return Err(Halt::errored(Reason::Unstable, "A's handle was answered as a forged one once, and once not")),
    };
    row.story = steps;
    Ok(row)
}

/// A limit says "not now", and nothing about a handle.
fn decided(answer: &Answer) -> Result<(), Halt> {
    match (&answer.disposition, answer.unclear()) {
        (_, Some(halt)) => Err(halt),
        (Disposition::Refused(refusal), _) if refusal.reads_like_an_outage() => {
            Err(Halt::errored(Reason::Unclear, format!("refused as if by a limit: {refusal}")))
        }
        _ => Ok(()),
    }
}

/// Whether two answers are the same but for the handles in them and what differs from call to call.
fn alike(one: &Answer, other: &Answer, handles: &[Value]) -> bool {
    let handles: Vec<String> = handles.iter().map(emitted::text_of).collect();
    let results = [one, other].map(|answer| answer.result().map(|result| without(result, &handles)));
    let same_results = match &results {
        [Some(one), Some(other)] => likeness::same(one, other),
        [None, None] => true,
        _ => false,
    };
    let same = match (&one.disposition, &other.disposition) {
        // Of the words of a tool the result says more: where they stand, and what else there is.
        (Disposition::Refused(said), Disposition::Refused(otherwise)) => {
            said.by == otherwise.by
                && match said.by {
                    RefusedBy::ToolError => same_results,
                    _ => said.normalised(&handles) == otherwise.normalised(&handles),
                }
        }
        (Disposition::Accepted, Disposition::Accepted) => same_results,
        (Disposition::Asked(_), Disposition::Asked(_)) => true,
        _ => false,
    };
    same && one.reply.status == other.reply.status
}

/// A result with all handles made one: each answer may tell the one that was presented to it, or all of them.
fn without(result: &Value, handles: &[String]) -> Value {
    let mut text = result.to_string();
    for handle in handles.iter().filter(|handle| handle.len() >= SHORTEST) {
        text = text.replace(handle.as_str(), "handle0");
    }
    text.parse().unwrap_or_else(|_| result.clone())
}

/// A difference must be there three times of three.
const ROUNDS: usize = 3;
const MOST_ASKED: usize = 3;
/// What is shorter stands in many texts for other reasons.
const SHORTEST: usize = 3;
