//! A's handle in the hands of somebody whom the operator named: A by another client, A with a new token, a user of another
//! tenant. One respect differs from A's own use: who presents it.

use super::{
    handles::{Manner, Minted, in_order, mint, most_allowed, unissued, use_handle, used_up, write_marks},
    kinds,
};
use crate::{
    discovery::{Entry, Kind, emitted},
    disposition::{Disposition, Refusal, RefusedBy},
    forge,
    identity::Who,
    trial::{Answer, Trial},
    verdict::{ControlPlan, Controls, Halt, Observation, Reason, Row, Severity},
};

/// What becomes of A's handle in other hands.
pub(super) enum Outcome {
    /// A's mark came back, and where it stood.
    Marked(String),
    /// The same in an answer that says no.
    Told(String),
    /// Accepted, and nothing shows what it reached.
    Accepted,
    /// Refused by a decision.
    Refused(Refusal),
}

/// One entry point with its controls: A's own use, the borrower's own use, and a use that is refused.
pub(super) struct Loan {
    pub(super) entry: String,
    pub(super) controls: Controls,
    pub(super) outcome: Outcome,
    pub(super) story: Vec<usize>,
}

/// Who must be refused, so that an acceptance says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// B, with A's handle.
    Stranger,
    /// The borrower, with a handle that nobody minted.
    Forged,
}

/// Lends A's handles to somebody, entry point by entry point; `judge` says what each comes to.
pub(super) async fn each(
    trial: &mut Trial<'_, '_>,
    borrower: Who,
    refused: Refused,
    missing: Reason,
    judge: fn(&Trial<'_, '_>, Loan, &mut Vec<Observation>) -> Row,
) -> Result<(Vec<Row>, Vec<Observation>), Halt> {
    if !trial.session.map.kinds.is_empty() && !trial.session.target.identities().has(borrower) {
        let detail = format!("the profile names no credential of this kind: {}", borrower.label());
        return Err(Halt::skipped(missing, detail));
    }
    let lend = async |trial: &mut Trial<'_, '_>, kind: &Kind, observations: &mut Vec<Observation>| {
        of_kind(trial, kind, borrower, refused, judge, observations).await
    };
    kinds::of_each(trial, lend).await
}

async fn of_kind(
    trial: &mut Trial<'_, '_>,
    kind: &Kind,
    borrower: Who,
    refused: Refused,
    judge: fn(&Trial<'_, '_>, Loan, &mut Vec<Observation>) -> Row,
    observations: &mut Vec<Observation>,
) -> Result<Vec<Row>, Halt> {
    let own = mint(trial, borrower, kind).await??;
    let mut a = mint(trial, Who::A, kind).await??;
    let entries = in_order(trial, kind, &mut Vec::new());
    write_marks(trial, Who::A, &mut a, &entries).await?;
    let mut rows = Vec::new();
    // What ends an object would need one for each use, and is no other door for this.
    for (_, entry) in entries.iter().filter(|(manner, _)| *manner != Manner::Ends).take(MOST_ENTRIES) {
        match lent(trial, kind, entry, &a, &own, borrower, refused).await {
            Ok(loan) => rows.push(judge(trial, loan, observations)),
            Err(halt) => {
                let over = halt.is_final();
                rows.push(Row::halted(&entry.to_string(), halt));
                if over {
                    break;
                }
            }
        }
    }
    if rows.is_empty() {
        return Err(Halt::skipped(Reason::NoToolConsumesAHandle, "every entry point ends the object or is left out"));
    }
    Ok(rows)
}

async fn lent(
    trial: &mut Trial<'_, '_>,
    kind: &Kind,
    entry: &Entry,
    a: &Minted,
    own: &Minted,
    borrower: Who,
    refused: Refused,
) -> Result<Loan, Halt> {
    let mut plan = ControlPlan::default();
    let (owner, _) = use_handle(trial, "owner-use", Who::A, entry, &a.handle).await?;
    plan.accepts(&owner, |said| Halt::skipped(Reason::ControlFailed, format!("A could not use its own: {said}")))?;
    let (live, _) = use_handle(trial, "borrower-own-use", borrower, entry, &own.handle).await?;
    plan.accepts(&live, |said| {
        let detail = format!("{} could not use its own handle: {said}", borrower.label());
        Halt::skipped(Reason::SecondIdentityNotLive, detail)
    })?;
    let stranger = match refused {
        Refused::Stranger => {
            let (stranger, _) = use_handle(trial, "stranger-use", Who::B, entry, &a.handle).await?;
            if stranger.disposition == Disposition::Accepted {
                let detail = "A's handle serves B as well, so that nothing is left to say of anybody else";
                return Err(Halt::skipped(Reason::HandleNotRefused, detail));
            }
            plan.presents_unissued(&stranger, &[emitted::text_of(&a.handle)])?;
            stranger
        }
        Refused::Forged => {
            let taken = [a.handle.clone(), own.handle.clone()];
            let forged = forge::handle(&a.handle, &own.handle, &taken, most_allowed(trial, kind));
            trial.shorten(&forged);
            let (unissued, _) = use_handle(trial, "forged-handle", borrower, entry, &forged).await?;
            plan.presents_unissued(&unissued, &[emitted::text_of(&forged)])?;
            unissued
        }
    };
    let controls = plan.hold()?;
    let (subject, _) = use_handle(trial, "subject", borrower, entry, &a.handle).await?;
    let (again, _) = use_handle(trial, "subject-again", borrower, entry, &a.handle).await?;
    let mut quotes = refused == Refused::Stranger && is_a_no(&subject, &live) && a.marked(&subject).is_some();
    if quotes {
        // Some refusals quote everybody, whatever the handle.
        let forged = unissued(trial, kind, &a.handle, &[a.handle.clone(), own.handle.clone()]);
        let (unminted, _) = use_handle(trial, "forged-handle", borrower, entry, &forged).await?;
        quotes = [&unminted, &live].iter().all(|other| a.marked(other).is_none());
    }
    let (after, _) = use_handle(trial, "owner-again", Who::A, entry, &a.handle).await?;
    if after.disposition != Disposition::Accepted {
        return Err(used_up(trial, kind, entry, &after).await?);
    }
    let outcomes = [outcome(a, &subject, &live, quotes)?, outcome(a, &again, &live, quotes)?];
    let same = std::mem::discriminant(&outcomes[0]) == std::mem::discriminant(&outcomes[1]);
    let [outcome, _] = outcomes;
    if !same {
        let detail = format!("A's handle was answered in two ways: {} and {}", subject.said(), again.said());
        return Err(Halt::errored(Reason::Unstable, trial.clean(&detail)));
    }
    let story = [&a.answer, &owner, &live, &stranger, &subject, &after].map(|answer| answer.step).to_vec();
    Ok(Loan { entry: entry.to_string(), controls, outcome, story })
}

fn is_a_no(answer: &Answer, live: &Answer) -> bool {
    answer.disposition != Disposition::Accepted || answer.is_unlike(live)
}

fn outcome(a: &Minted, answer: &Answer, live: &Answer, quotes: bool) -> Result<Outcome, Halt> {
    let mark = a.marked(answer).map(|(mark, at)| format!("A's canary `{}` at {at}", mark.long));
    let is_a_no = is_a_no(answer, live);
    match mark {
        Some(mark) if !is_a_no => return Ok(Outcome::Marked(mark)),
        Some(mark) if quotes => return Ok(Outcome::Told(mark)),
        _ => {}
    }
    if let Some(halt) = answer.unclear() {
        return Err(halt);
    }
    match &answer.disposition {
        Disposition::Refused(refusal) if refusal.reads_like_a_crash() || refusal.reads_like_an_outage() => {
            Err(Halt::errored(Reason::Unclear, format!("refused as if by a crash or a limit: {refusal}")))
        }
        Disposition::Refused(refusal) => Ok(Outcome::Refused(refusal.clone())),
        // "Sorry, no such thing": a no in a complete result.
        Disposition::Accepted if is_a_no => {
            Ok(Outcome::Refused(Refusal { by: RefusedBy::ToolError, text: answer.said() }))
        }
        Disposition::Accepted => Ok(Outcome::Accepted),
        _ => Err(Halt::errored(Reason::Unclear, answer.said())),
    }
}

/// The verdict where the handle should be refused to the borrower, as it is to B.
pub(super) fn bound_row(
    trial: &Trial<'_, '_>,
    loan: Loan,
    borrower: Who,
    severity: Severity,
    observations: &mut Vec<Observation>,
) -> Row {
    let Loan { entry, controls, outcome, story } = loan;
    let whom = borrower.label();
    let mut row = match outcome {
        Outcome::Marked(mark) => {
            let detail = format!("A's handle is refused to B, and brings {whom} {}", trial.clean(&mark));
            Row::confirmed(&controls, &entry, Reason::HandleNotBound, severity, detail)
        }
        Outcome::Told(mark) => {
            let mark = trial.clean(&mark);
            let detail = format!("A's handle is refused to B, and {whom} is told {mark}, in an answer that says no");
            Row::confirmed(&controls, &entry, Reason::HandleNotBound, severity.lower(), detail)
        }
        Outcome::Refused(refusal) => {
            let detail = format!("A's handle is refused to {whom}: {}", trial.clean(&refusal.to_string()));
            Row::refuted(&controls, &entry, Reason::HandleBound, detail)
        }
        Outcome::Accepted => {
            let text = format!("{whom} may use A's handle and B may not, but nothing shows that it reached A's object");
            observations.push(Observation { id: "cross-use-unattributable", text: format!("{entry}: {text}") });
            Row::refuted(&controls, &entry, Reason::CrossUseUnattributable, text)
        }
    };
    row.story = story;
    row
}

const MOST_ENTRIES: usize = 20;
