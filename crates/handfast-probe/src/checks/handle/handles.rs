//! Handles for an experiment: minted for A and for B, forged, used, and marked by their owner.

use serde_json::Value;

use crate::{
    canary::Canary,
    discovery::{self, Entry, Kind, emitted, names},
    disposition::Disposition,
    forge,
    identity::Who,
    marker,
    trial::{Answer, Trial},
    verdict::{Halt, Observation, Reason},
};

/// What somebody minted.
#[derive(Debug, Clone)]
pub(in crate::checks) struct Minted {
    pub(in crate::checks) handle: Value,
    /// What the owner planted in the object: by minting it, and by writing to it.
    pub(in crate::checks) marks: Vec<Canary>,
    pub(in crate::checks) answer: Answer,
}

impl Minted {
    /// Where any of the owner's marks stands in an answer, and which.
    pub(in crate::checks) fn marked(&self, answer: &Answer) -> Option<(&Canary, String)> {
        let body = answer.body()?;
        self.marks.iter().find_map(|mark| Some((mark, marker::find_canary(&body, mark, &answer.sent)?)))
    }

    /// Whether an answer to the owner seems to show what it planted. No evidence: a handle that is made of a label may be all
    /// that is shown.
    pub(in crate::checks) fn seems_shown(&self, answer: &Answer) -> bool {
        let shows =
            |result: &Value| self.marks.iter().any(|mark| marker::seems_to_show(result, mark, &answer.sent).is_some());
        answer.result().is_some_and(shows)
    }
}

/// A handle of A, one of B, and one that nobody minted.
#[derive(Debug, Clone)]
pub(in crate::checks) struct Handles {
    pub(in crate::checks) a: Minted,
    pub(in crate::checks) b: Minted,
    pub(in crate::checks) forged: Value,
}

/// Somebody mints a handle of a kind. The inner halt says why it was not to be had.
pub(in crate::checks) async fn mint(
    trial: &mut Trial<'_, '_>,
    who: Who,
    kind: &Kind,
) -> Result<Result<Minted, Halt>, Halt> {
    let Some(tool) = trial.session.surface.tool(&kind.mint).cloned() else {
        return Err(Halt::errored(Reason::ControlFailed, format!("the server lists no tool `{}`", kind.mint)));
    };
    let refused = |detail: String| {
        let detail = format!("{} could not mint a handle: {detail}", who.label());
        match who {
            Who::A => Halt::errored(Reason::ControlFailed, detail),
            _ => Halt::skipped(Reason::SecondIdentityNotLive, detail),
        }
    };
    let (canary, answer) = match discovery::mint_call(trial, who, &tool).await? {
        Ok(made) => made,
        Err(reason) => return Ok(Err(refused(reason))),
    };
    if let Some(halt) = answer.unclear() {
        return Ok(Err(halt));
    }
    let accepted = answer.disposition == Disposition::Accepted;
    let handle = answer
        .result()
        .filter(|_| accepted)
        .and_then(|result| emitted::again(result, &kind.spot, &answer.sent, Some(&canary)));
    Ok(match handle {
        Some(handle) => {
            trial.shorten(&handle);
            Ok(Minted { handle, marks: vec![canary], answer })
        }
        None if accepted => Err(refused(format!("no handle at {}", kind.spot.shown()))),
        None => Err(refused(answer.said())),
    })
}

/// A handle for A, one for B, and one that nobody minted.
pub(in crate::checks) async fn mint_both(trial: &mut Trial<'_, '_>, kind: &Kind) -> Result<Handles, Halt> {
    let b = mint(trial, Who::B, kind).await;
    let mut a = mint(trial, Who::A, kind).await??;
    let b = b??;
    // Counters of one's own may give both the same number: mint on until A's is not one of B's.
    for _ in 0..MORE_MINTS {
        if a.handle != b.handle {
            break;
        }
        a = mint(trial, Who::A, kind).await??;
    }
    if a.handle == b.handle {
        let detail = format!("{} gives A and B the same handle, so B's use of it says nothing", kind.mint);
        return Err(Halt::skipped(Reason::HandleWitnessUnusable, detail));
    }
    let forged = forge::handle(&a.handle, &b.handle, &[a.handle.clone(), b.handle.clone()], most_allowed(trial, kind));
    trial.shorten(&forged);
    Ok(Handles { a, b, forged })
}

/// A handle that nobody minted, of the shape of this one, and none of those that are taken.
pub(in crate::checks) fn unissued(trial: &mut Trial<'_, '_>, kind: &Kind, like: &Value, taken: &[Value]) -> Value {
    let forged = forge::handle(like, like, taken, most_allowed(trial, kind));
    trial.shorten(&forged);
    forged
}

/// The largest number that every entry point of a kind takes, by its schema.
pub(in crate::checks) fn most_allowed(trial: &Trial<'_, '_>, kind: &Kind) -> Option<u64> {
    let maximum = |entry: &Entry| match entry {
        Entry::Tool { tool, argument } => {
            let schema = &trial.session.surface.tool(tool)?.input;
            schema.get("properties")?.get(argument)?.get("maximum")?.as_u64()
        }
        _ => None,
    };
    kind.entries.iter().filter_map(maximum).min()
}

/// Somebody uses a handle at an entry point.
pub(in crate::checks) async fn use_handle(
    trial: &mut Trial<'_, '_>,
    step: &str,
    who: Who,
    entry: &Entry,
    handle: &Value,
) -> Result<(Answer, Canary), Halt> {
    match discovery::entry_call(trial, who, entry, handle).await? {
        Ok((call, canary)) => Ok((trial.complete(step, who, &call).await?, canary)),
        Err(reason) => Err(Halt::skipped(Reason::ControlFailed, format!("no arguments could be made: {reason}"))),
    }
}

/// Readers first, because they tell what an object holds; what ends an object last. What must not be called is left out.
pub(in crate::checks) fn in_order(
    trial: &Trial<'_, '_>,
    kind: &Kind,
    observations: &mut Vec<Observation>,
) -> Vec<(Manner, Entry)> {
    let by_profile = kind.is_by_profile();
    let mut ordered: Vec<(Manner, Entry)> = Vec::new();
    for entry in &kind.entries {
        if let Some(word) = meant_for_others(entry).filter(|_| !by_profile) {
            let text =
                format!("{entry}: `{word}` sounds as if possession is meant to be enough (a profile can name it)");
            observations.push(Observation { id: "entry-point-left-out", text });
            continue;
        }
        let Entry::Tool { tool, .. } = entry else {
            ordered.push((Manner::Reads, entry.clone()));
            continue;
        };
        let Some(tool) = trial.session.surface.tool(tool) else { continue };
        if let Some(why) = trial.session.why_not(tool) {
            observations.push(Observation { id: "entry-point-left-out", text: format!("{entry}: {why}") });
            continue;
        }
        let words = names::words(&tool.name);
        let has = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
        let manner = match () {
            // What destroys an object needs one of its own for each use.
            () if names::names_an_end(&tool.name) || tool.destructive.is_some() => Manner::Ends,
            () if tool.read_only || has(&READERS) => Manner::Reads,
            () => Manner::Writes,
        };
        ordered.push((manner, entry.clone()));
    }
    ordered.sort_by_key(|(manner, _)| *manner);
    ordered
}

/// The word by which an argument says that whoever has the value may use it: a share link, an invitation.
fn meant_for_others(entry: &Entry) -> Option<String> {
    let (Entry::Tool { argument, .. } | Entry::Prompt { argument, .. } | Entry::Resource { variable: argument, .. }) =
        entry;
    names::words(argument).into_iter().find(|word| SHARED.contains(&word.as_str()))
}

/// What an entry point seems to do with an object, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::checks) enum Manner {
    Reads,
    Writes,
    Ends,
}

/// The owner writes into its own object wherever text is taken: where the mint takes none, nothing else would show whose it is.
pub(in crate::checks) async fn write_marks(
    trial: &mut Trial<'_, '_>,
    who: Who,
    owner: &mut Minted,
    entries: &[(Manner, Entry)],
) -> Result<(), Halt> {
    let writers = entries.iter().filter(|(manner, _)| *manner == Manner::Writes).take(MOST_MARKS);
    for (_, entry) in writers {
        let handle = owner.handle.clone();
        match use_handle(trial, "owner-mark", who, entry, &handle).await {
            Ok((answer, mark)) if answer.disposition == Disposition::Accepted => owner.marks.push(mark),
            // What the owner cannot do here is told when the entry point is tested.
            Ok(_) => {}
            Err(halt) if halt.is_final() => return Err(halt),
            Err(_) => {}
        }
    }
    Ok(())
}

/// A way in that does not end the object, and where A's own handle serves A: the first of a few.
///
/// # Errors
/// A [`Halt`] where there is none.
pub(in crate::checks) async fn way_in(trial: &mut Trial<'_, '_>, kind: &Kind) -> Result<Entry, Halt> {
    let entries = in_order(trial, kind, &mut Vec::new()).into_iter().filter(|(manner, _)| *manner != Manner::Ends);
    let mut halt = Halt::skipped(Reason::NoToolConsumesAHandle, "every entry point ends the object or is left out");
    for (_, entry) in entries.take(MOST_WAYS) {
        let own = mint(trial, Who::A, kind).await??;
        match use_handle(trial, "way-in", Who::A, &entry, &own.handle).await {
            Ok((answer, _)) if answer.disposition == Disposition::Accepted => return Ok(entry),
            Ok((answer, _)) => {
                let detail = format!("A could not use its own handle: {}", answer.said());
                halt = answer.unclear().unwrap_or_else(|| Halt::skipped(Reason::ControlFailed, detail));
            }
            Err(failed) if failed.is_final() => return Err(failed),
            Err(failed) => halt = failed,
        }
    }
    Err(halt)
}

/// What it means that A's own handle does not serve A a last time: each use may use a handle up, as a fresh one shows.
///
/// # Errors
/// As [`Trial::call`].
pub(in crate::checks) async fn used_up(
    trial: &mut Trial<'_, '_>,
    kind: &Kind,
    entry: &Entry,
    refused: &Answer,
) -> Result<Halt, Halt> {
    if let Some(halt) = refused.unclear() {
        return Ok(halt);
    }
    let fresh = mint(trial, Who::A, kind).await??.handle;
    let (first, _) = use_handle(trial, "fresh-use", Who::A, entry, &fresh).await?;
    let (second, _) = use_handle(trial, "fresh-use-again", Who::A, entry, &fresh).await?;
    let is_used_up =
        first.disposition == Disposition::Accepted && matches!(second.disposition, Disposition::Refused(_));
    Ok(if is_used_up {
        Halt::skipped(Reason::HandleUsedUp, "each use uses a handle up, so that no second use of it tells anything")
    } else {
        Halt::errored(Reason::ControlFailed, format!("A could not use its own handle again: {}", refused.said()))
    })
}

const MOST_WAYS: usize = 4;
const MORE_MINTS: usize = 3;
const MOST_MARKS: usize = 6;
const SHARED: [&str; 7] = ["share", "shared", "sharing", "invite", "invitation", "public", "join"];
const READERS: [&str; 11] =
    ["get", "read", "show", "view", "list", "describe", "fetch", "find", "status", "summarise", "summarize"];
