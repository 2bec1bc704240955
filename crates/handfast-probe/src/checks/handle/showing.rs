//! An entry point that shows its owner what it planted in an object: what is gone, or another's, would be seen there.

use serde_json::Value;

use super::handles::{Manner, Minted, in_order, mint, use_handle, write_marks};
use crate::{
    counts::Counts,
    discovery::{Entry, Kind},
    disposition::Disposition,
    identity::Who,
    likeness,
    trial::{Answer, Trial},
    verdict::{ControlPlan, Halt, Observation, Reason},
};

/// What shows the objects of a kind.
pub(in crate::checks) struct Showing {
    pub(in crate::checks) entry: Entry,
    entries: Vec<(Manner, Entry)>,
    /// What is planted by minting does not show; what is written does.
    written: bool,
}

/// An object, and its owner's view of it.
pub(in crate::checks) struct Shown {
    pub(in crate::checks) object: Minted,
    pub(in crate::checks) view: Answer,
}

impl Showing {
    /// Finds an entry point that shows A a fresh object with A's canary in it.
    ///
    /// # Errors
    /// [`Reason::HandleWitnessUnusable`] where there is none.
    pub(in crate::checks) async fn find(
        trial: &mut Trial<'_, '_>,
        kind: &Kind,
        plan: &mut ControlPlan,
        observations: &mut Vec<Observation>,
    ) -> Result<(Self, Shown), Halt> {
        let mut entries = in_order(trial, kind, observations);
        entries.retain(|(manner, _)| *manner != Manner::Ends);
        let mut refused = None;
        let has_writers = entries.iter().any(|(manner, _)| *manner == Manner::Writes);
        for written in [false, true].into_iter().filter(|written| !written || has_writers) {
            let mut fresh = None;
            for (_, entry) in entries.clone().into_iter().take(MOST_ASKED) {
                let showing = Self { entry, entries: entries.clone(), written };
                let object = match fresh.take() {
                    Some(object) => object,
                    None => showing.mint(trial, kind, Who::A).await?,
                };
                let view = match showing.show(trial, "owner-use", Who::A, &object.handle).await {
                    Ok(view) => view,
                    Err(halt) if halt.is_final() => return Err(halt),
                    Err(halt) => {
                        refused.get_or_insert(halt);
                        continue;
                    }
                };
                if let Some(halt) = view.unclear() {
                    return Err(halt);
                }
                if object.marked(&view).is_some() && plan.accepts(&view, never).is_ok() {
                    return Ok((showing, Shown { object, view }));
                }
                if let Disposition::Refused(refusal) = &view.disposition {
                    let detail = format!("A could not use its own handle: {refusal}");
                    refused.get_or_insert(Halt::skipped(Reason::ControlFailed, detail));
                } else {
                    // What was refused may have been used up; this one was not.
                    fresh = Some(object);
                    refused = None;
                }
            }
        }
        let unseen = "nothing shows A what it planted in an object of its own";
        Err(refused.unwrap_or_else(|| Halt::skipped(Reason::HandleWitnessUnusable, unseen)))
    }

    /// A fresh object of somebody's with a canary that would show.
    pub(in crate::checks) async fn mint(
        &self,
        trial: &mut Trial<'_, '_>,
        kind: &Kind,
        who: Who,
    ) -> Result<Minted, Halt> {
        let mut object = mint(trial, who, kind).await??;
        if self.written {
            write_marks(trial, who, &mut object, &self.entries).await?;
        }
        Ok(object)
    }

    /// What an object looks like to somebody, by its handle.
    pub(in crate::checks) async fn show(
        &self,
        trial: &mut Trial<'_, '_>,
        step: &str,
        who: Who,
        handle: &Value,
    ) -> Result<Answer, Halt> {
        Ok(use_handle(trial, step, who, &self.entry, handle).await?.0)
    }

    /// A fresh object of somebody, and what it looks like to them.
    pub(in crate::checks) async fn fresh(
        &self,
        trial: &mut Trial<'_, '_>,
        kind: &Kind,
        who: Who,
    ) -> Result<Shown, Halt> {
        let object = self.mint(trial, kind, who).await?;
        let view = self.show(trial, "owner-use", who, &object.handle).await?;
        match view.unclear() {
            Some(halt) => Err(halt),
            None => Ok(Shown { object, view }),
        }
    }

    /// The control at the end: a fresh object of A's still shows, so that what was refused before was refused for a reason.
    pub(in crate::checks) async fn still_shows(&self, trial: &mut Trial<'_, '_>, kind: &Kind) -> Result<(), Halt> {
        let Shown { object, view } = self.fresh(trial, kind, Who::A).await?;
        let shows = view.disposition == Disposition::Accepted && object.marked(&view).is_some();
        let failed = || format!("a fresh object of A's does not show any more: {}", view.said());
        if shows { Ok(()) } else { Err(Halt::errored(Reason::ControlFailed, failed())) }
    }
}

/// What a handle brings after it should bring nothing.
pub(in crate::checks) enum After {
    /// The object, as it was.
    Served(String),
    /// Something of the object, in an answer that says otherwise than before.
    Told,
    /// Nothing of the object.
    Refused,
}

/// What an object's answer means, compared with the answer about an object that is not over.
///
/// # Errors
/// Where it says neither yes nor no.
pub(in crate::checks) fn after(object: &Minted, answer: &Answer, before: &Answer) -> Result<After, Halt> {
    if let Some(halt) = answer.unclear() {
        return Err(halt);
    }
    match (&answer.disposition, answer.result(), before.result()) {
        (Disposition::Accepted, Some(result), Some(honest)) => Ok(match object.marked(answer) {
            Some((mark, at)) if likeness::same(result, honest) && !Counts::of(honest).denied_by(result) => {
                After::Served(format!("A's canary `{}` at {at}", mark.long))
            }
            Some(_) => After::Told,
            None => After::Refused,
        }),
        (Disposition::Refused(refusal), ..) if refusal.reads_like_an_outage() || refusal.reads_like_a_crash() => {
            Err(Halt::errored(Reason::Unclear, format!("refused as if by a crash or a limit: {refusal}")))
        }
        (Disposition::Refused(_), ..) => Ok(After::Refused),
        _ => Err(Halt::errored(
            Reason::Unclear,
            format!("the use of the handle never came to an end: {}", answer.said()),
        )),
    }
}

fn never(said: String) -> Halt {
    Halt::errored(Reason::ControlFailed, said)
}

const MOST_ASKED: usize = 6;
