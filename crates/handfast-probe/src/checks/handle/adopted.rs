//! `handle-adopted`: does a name that a client made up become the handle of something that others reach by it as well?

use super::{
    handles::{Handles, Manner, in_order, mint, mint_both, unissued, use_handle, write_marks},
    identities, kinds,
};
use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    discovery::{Entry, Kind, emitted},
    disposition::Disposition,
    identity::Who,
    likeness, owasp,
    trial::{Answer, Trial},
    verdict::{ControlPlan, Controls, Halt, Judgement, Observation, Reason, Row, Severity},
};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "handle-adopted",
    title: "Handles that a client made up are adopted for all",
    claim: "A handle that a client made up is honoured, and whoever else uses the same name reaches the same object.",
    spec: "MCP servers SHOULD bind handles server-side to the authenticated user, for example by keying stored state as `<user_id>:<handle>` where the user ID is derived from the verified token rather than supplied by the client, and reject a handle presented by any other principal.",
    spec_url: "https://modelcontextprotocol.io/docs/2026-07-28/tutorials/security/security_best_practices",
    help: include_str!("adopted.md"),
    level: Level::Should,
    severity: Severity::High,
    cwe: &[384, 639],
    cvss: &[cvss::TAKEN],
    owasp: &[owasp::MCP07, owasp::API1, owasp::ASI03],
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
    let handles = mint_both(trial, kind).await?;
    let mut entries = in_order(trial, kind, observations);
    entries.retain(|(manner, _)| *manner != Manner::Ends);
    // Whoever makes something of an unknown name does so where something is written, rather than where it is read.
    let mut asked = entries.clone();
    asked.sort_by_key(|(manner, _)| *manner != Manner::Writes);
    asked.truncate(MOST_ASKED);

    let mut plan = ControlPlan::default();
    let (mut honoured, mut untested, mut said, mut steps) = (None, None, String::new(), Vec::new());
    for (_, entry) in &asked {
        match invented(trial, kind, &handles, entry, &mut plan).await {
            Ok((answer, true)) => {
                steps.push(answer.step);
                honoured = Some(entry.clone());
                break;
            }
            Ok((answer, false)) => {
                steps.push(answer.step);
                said = answer.said();
            }
            Err(halt) if halt.is_final() => return Err(halt),
            Err(halt) => untested = untested.or(Some(halt)),
        }
    }
    let Some(honoured) = honoured else {
        let entry = format!("tools/call {}", kind.mint);
        let controls = match (plan.hold(), untested) {
            (Ok(controls), None) => controls,
            (_, Some(halt)) => return Err(halt),
            (Err(_), None) => {
                let text = "every entry point for this handle was left out";
                return Err(Halt::skipped(Reason::NoToolConsumesAHandle, text));
            }
        };
        let detail = format!("a handle that A made up is refused to A: {}", trial.clean(&said));
        let mut row = Row::refuted(&controls, &entry, Reason::InventedHandleRefused, detail);
        row.story = steps;
        return Ok(vec![row]);
    };
    let controls = plan.hold()?;
    let mut row = shared(trial, kind, &handles, (&honoured, &entries), &controls, observations).await?;
    row.story.splice(0..0, steps);
    Ok(vec![row])
}

/// A presents a handle that nobody minted: the answer, and whether it is honoured.
async fn invented(
    trial: &mut Trial<'_, '_>,
    kind: &Kind,
    handles: &Handles,
    entry: &Entry,
    plan: &mut ControlPlan,
) -> Result<(Answer, bool), Halt> {
    let Handles { a, forged, .. } = handles;
    let (mut own, _) = use_handle(trial, "owner-use", Who::A, entry, &a.handle).await?;
    if matches!(own.disposition, Disposition::Refused(_)) {
        // It may have been used up elsewhere.
        let fresh = mint(trial, Who::A, kind).await??;
        own = use_handle(trial, "owner-use", Who::A, entry, &fresh.handle).await?.0;
    }
    plan.accepts(&own, |said| Halt::skipped(Reason::ControlFailed, format!("A could not use its own handle: {said}")))?;
    let (answer, _) = use_handle(trial, "invented-handle", Who::A, entry, forged).await?;
    plan.presents_unissued(&answer, &[emitted::text_of(forged)])?;
    // A "no" in the words of a complete result is a no.
    let taken = match (answer.result(), own.result()) {
        (Some(result), Some(honest)) => likeness::alike(result, honest) && !likeness::says_no(result, honest),
        _ => false,
    };
    Ok((answer.clone(), answer.disposition == Disposition::Accepted && taken))
}

/// What B finds under a name that A made up.
async fn shared(
    trial: &mut Trial<'_, '_>,
    kind: &Kind,
    handles: &Handles,
    (honoured, entries): (&Entry, &[(Manner, Entry)]),
    controls: &Controls,
    observations: &mut Vec<Observation>,
) -> Result<Row, Halt> {
    let entry = honoured.to_string();
    let text = format!("{entry}: a handle that A made up was honoured");
    observations.push(Observation { id: Reason::ForgedHandleHonoured.slug(), text });
    identities::told_apart(trial, kind, handles).await?;
    let other = unissued(trial, kind, &handles.forged, &[handles.a.handle.clone(), handles.b.handle.clone()]);
    let mut object = handles.a.clone();
    object.handle = handles.forged.clone();
    object.marks.clear();
    write_marks(trial, Who::A, &mut object, entries).await?;
    for (_, reader) in entries.iter().take(MOST_ASKED) {
        let (own, _) = use_handle(trial, "owner-view", Who::A, reader, &object.handle).await?;
        if own.disposition != Disposition::Accepted || object.marked(&own).is_none() {
            continue;
        }
        let (elsewhere, _) = use_handle(trial, "forged-handle", Who::B, reader, &other).await?;
        let (subject, _) = use_handle(trial, "subject", Who::B, reader, &object.handle).await?;
        let (again, _) = use_handle(trial, "subject-again", Who::B, reader, &object.handle).await?;
        for answer in [&elsewhere, &subject, &again] {
            if let Some(halt) = answer.unclear() {
                return Err(halt);
            }
        }
        if object.marked(&elsewhere).is_some() {
            let text = "B sees what A wrote under a name that A never used as well";
            return Err(Halt::skipped(Reason::HandleWitnessUnusable, text));
        }
        let mut row = match [object.marked(&subject), object.marked(&again)] {
            [Some((mark, at)), Some(_)] => {
                let detail = format!(
                    "A wrote under a handle of its own making, and B got A's canary `{}` at {at} by it",
                    mark.long
                );
                Row::confirmed(
                    controls,
                    &reader.to_string(),
                    Reason::InventedHandleShared,
                    CHECK.severity,
                    trial.clean(&detail),
                )
            }
            [None, None] => {
                let said = trial.clean(&subject.said());
                let text = format!("{entry}: a name that A made up leads B to nothing of A's: {said}");
                observations.push(Observation { id: "client-chosen-name-partitioned", text: text.clone() });
                Row::refuted(controls, &entry, Reason::InventedHandleApart, text)
            }
            _ => return Err(Halt::errored(Reason::Unstable, "B got A's data by the name once, and once not")),
        };
        row.facts.insert("invented_handle".into(), trial.shown(&object.handle));
        row.story = [own, elsewhere, subject].map(|answer| answer.step).to_vec();
        return Ok(row);
    }
    let text =
        "what A wrote under a handle of its own making did not come back to A: nothing shows that anything is kept";
    Ok(Row::refuted(controls, &entry, Reason::HandleWitnessUnusable, text.to_owned()))
}

const MOST_ASKED: usize = 4;
