//! `handle-oracle`: is a handle that is somebody else's refused otherwise than one that nobody minted?

mod telling;

use super::{
    endings,
    handles::{Manner, in_order, mint, most_allowed, unissued, use_handle},
    kinds,
};
use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    discovery::{Entry, Kind, emitted},
    disposition::Disposition,
    forge,
    identity::Who,
    owasp,
    trial::{Answer, Trial},
    verdict::{ControlPlan, Halt, Judgement, Observation, Reason, Row, Severity},
};
use serde_json::Value;
use telling::{alike, told};

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
    let looks_signed = forge::looks_signed(&own.handle, &object.handle);
    let of_a = [own.handle.clone(), object.handle.clone()];
    let mut taken = vec![own.handle, strangers.handle, object.handle.clone()];
    let (mut unminted, mut subjects): (Vec<Answer>, Vec<Answer>) = (Vec::new(), Vec::new());
    let (mut steps, mut differences) = (vec![live.step, object.answer.step], 0);
    for _ in 0..ROUNDS {
        for _ in 0..2 {
            let forged = never_minted(trial, kind, &of_a, &taken);
            taken.push(forged.clone());
            let (answer, _) = use_handle(trial, "forged-handle", Who::B, entry, &forged).await?;
            decided(&answer)?;
            plan.presents_unissued(&answer, &[emitted::text_of(&forged)])?;
            if let Some(first) = unminted.first().filter(|first| !alike(first, &answer, &taken)) {
                let text = format!(
                    "two handles that nobody minted are answered in two ways: {} and {}",
                    trial.clean(&first.said()),
                    trial.clean(&answer.said())
                );
                return Err(Halt::skipped(Reason::HandleWitnessUnusable, text));
            }
            unminted.push(answer);
        }
        let (subject, _) = use_handle(trial, "subject", Who::B, entry, &object.handle).await?;
        decided(&subject)?;
        steps.extend([unminted[unminted.len() - 2].step, subject.step]);
        let is_another = !alike(&subject, &unminted[0], &taken);
        let is_served = !subject.is_unlike(&view) && subject.disposition == Disposition::Accepted;
        let goes_on = is_another || told(&subject, &unminted, &taken).is_some();
        differences += usize::from(is_another);
        subjects.push(subject);
        if goes_on && is_served {
            // Where B gets what A's handle opens, another check has the say.
            let text = format!("A's handle is not refused to B: {}", trial.clean(&subjects[0].said()));
            return Err(Halt::skipped(Reason::NothingWasRefused, text));
        }
        if !goes_on {
            break;
        }
    }
    if differences != 0 && differences != ROUNDS {
        return Err(Halt::errored(Reason::Unstable, "A's handle was answered as a forged one once, and once not"));
    }
    // What only stood still for a while tells nothing: each of A's answers is held against all of the others.
    let what: Vec<String> = subjects.iter().filter_map(|subject| told(subject, &unminted, &taken)).collect();
    let is_told = differences == ROUNDS || what.len() == ROUNDS;
    let over = match is_told && looks_signed {
        true => Some(is_answered_as_over(trial, kind, entry, &subjects[ROUNDS - 1], &mut taken).await?),
        false => None,
    };
    // Now that nothing can be used up any more: what B was refused is A's, and alive.
    let (owner, _) = use_handle(trial, "owner-again", Who::A, entry, &object.handle).await?;
    plan.accepts(&owner, |said| {
        Halt::skipped(Reason::ControlFailed, format!("A could not use its own handle: {said}"))
    })?;
    if let (false, Some(highest)) = (is_told, highest(trial, &of_a)) {
        still_highest(trial, kind, highest).await?;
    }
    steps.push(owner.step);
    let controls = plan.hold()?;
    let entry = entry.to_string();
    let [live, unknown] = [&subjects, &unminted].map(|answers| trial.clean(&answers[0].said()));
    let mut row = match (is_told, over) {
        (false, _) => {
            let detail = format!("A's live handle is answered to B as one that nobody minted: {unknown}");
            Row::refuted(&controls, &entry, Reason::HandlesRefusedAlike, detail)
        }
        (true, Some(Some(true))) => {
            let detail = format!(
                "A's live handle is answered to B as one of A's that is over: {live}; one that nobody minted has another form"
            );
            Row::refuted(&controls, &entry, Reason::HandlesRefusedAlike, detail)
        }
        (true, Some(None)) => {
            let text = "handles look signed, so that one that nobody minted may be refused for its form alone, and there is none that is over to compare with";
            return Err(Halt::skipped(Reason::HandleWitnessUnusable, text));
        }
        (true, Some(Some(false)) | None) => {
            // Where the words are the same, what is not is named.
            let what = what.first().filter(|_| differences == 0).map(|what| format!(" ({})", trial.clean(what)));
            let what = what.unwrap_or_default();
            let detail =
                format!("B is told of A's live handle: {live}; and of one that nobody minted: {unknown}{what}");
            Row::confirmed(&controls, &entry, Reason::HandleOracle, CHECK.severity, detail)
        }
    };
    row.story = steps;
    Ok(row)
}

/// A handle that nobody minted, like A's: where they are counted, the next number, because one far beyond may be refused as
/// out of range.
fn never_minted(trial: &mut Trial<'_, '_>, kind: &Kind, of_a: &[Value; 2], taken: &[Value]) -> Value {
    let [_, like] = of_a;
    let most = most_allowed(trial, kind);
    let next = highest(trial, of_a).and_then(|highest| forge::next_of_counter(like, highest, taken, most));
    next.unwrap_or_else(|| unissued(trial, kind, like, taken))
}

/// The highest number of this run, where handles are counted.
fn highest(trial: &Trial<'_, '_>, [earlier, later]: &[Value; 2]) -> Option<u64> {
    let minted: Vec<Value> = trial.session.minted.iter().map(|(_, _, handle)| handle.clone()).collect();
    forge::highest_of_counter(earlier, later, &minted)
}

/// The control for numbers just above ours: had somebody else been given one meanwhile, A's next would be further up.
async fn still_highest(trial: &mut Trial<'_, '_>, kind: &Kind, highest: u64) -> Result<(), Halt> {
    let next = mint(trial, Who::A, kind).await??.handle;
    if forge::counted(&next).is_some_and(|next| next <= highest + 1) {
        return Ok(());
    }
    let detail = "somebody else is given handles as well: the numbers that nobody should have may be theirs";
    Err(Halt::skipped(Reason::HandleWitnessUnusable, detail))
}

/// Whether B is told of A's live handle what it is told of one of A's that was ended; `None` where none can be.
async fn is_answered_as_over(
    trial: &mut Trial<'_, '_>,
    kind: &Kind,
    entry: &Entry,
    subject: &Answer,
    taken: &mut Vec<Value>,
) -> Result<Option<bool>, Halt> {
    let Ok(ender) = endings::tool_that_ends(trial, kind) else { return Ok(None) };
    let object = mint(trial, Who::A, kind).await??;
    taken.push(object.handle.clone());
    match endings::end(trial, &ender, &object).await {
        Ok(_) => {}
        Err(halt) if halt.is_final() => return Err(halt),
        Err(_) => return Ok(None),
    }
    let mut over = Vec::new();
    for _ in 0..2 {
        let (answer, _) = use_handle(trial, "ended-handle", Who::B, entry, &object.handle).await?;
        decided(&answer)?;
        over.push(answer);
    }
    let is_steady = alike(&over[0], &over[1], taken);
    Ok(is_steady.then(|| alike(subject, &over[0], taken) && told(subject, &over, taken).is_none()))
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

/// A difference must be there three times of three.
const ROUNDS: usize = 3;
const MOST_ASKED: usize = 3;
