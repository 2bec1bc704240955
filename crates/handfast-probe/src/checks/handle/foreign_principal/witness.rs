//! What shows that B reached A's object: A's canary, A's name, what B wrote in A's own view, a value that only A's handle
//! brings, a change that A can see. The strongest first.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    super::handles::{Minted, mint, use_handle},
    Experiment,
};
use crate::{
    canary::Canary,
    counts::Counts,
    digest,
    discovery::{Entry, emitted},
    disposition::Disposition,
    echo,
    identity::Who,
    likeness, marker,
    trial::{Answer, Trial},
    verdict::{Halt, Reason, Severity},
};

/// What an answer to B shows of A's object.
pub(super) enum Seen {
    /// A's marker came back: what it is and where, and how bad that is.
    Marked {
        /// What of A's, where, and in which kind of answer.
        marker: String,
        /// Lower where the answer is no answer like the owner's.
        severity: Severity,
    },
    /// A's marker came back, but B sees it without any handle as well.
    Listed,
    /// Accepted, but without a marker.
    Accepted,
    /// Refused.
    Refused,
}

impl Seen {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Marked { .. } => "with A's data",
            Self::Listed | Self::Accepted => "accepted",
            Self::Refused => "refused",
        }
    }
}

/// What can tell A's object from any other.
pub(super) struct Witness<'w> {
    pub(super) owner: &'w Minted,
    pub(super) owners_view: &'w Answer,
    pub(super) names: Option<&'w (String, String)>,
    /// Answers about objects that are not A's: a marker that stands in them as well proves nothing.
    pub(super) innocent: [&'w Answer; 2],
    /// B sees A's object without any handle.
    pub(super) listed: bool,
    /// The entry point shows an object; a name in the answer of any other may be that of somebody to be asked.
    pub(super) reads: bool,
}

impl Witness<'_> {
    /// Canary first: an answer that carries A's canary gave A's data away, whatever else it says.
    pub(super) fn look(&self, answer: &Answer) -> Result<Seen, Halt> {
        if let Some((mark, at)) = self.owner.marked(answer) {
            let same = |other: &&Answer| other.body().and_then(|body| marker::find_canary(&body, mark, &other.sent));
            if self.innocent.iter().all(|other| same(other).is_none()) {
                if self.listed && answer.disposition == Disposition::Accepted {
                    return Ok(Seen::Listed);
                }
                return Ok(self.marked(answer, format!("A's canary `{}` at {at}", mark.long)));
            }
        }
        if let Some(halt) = answer.unclear() {
            return Err(halt);
        }
        match &answer.disposition {
            Disposition::Refused(_) => Ok(Seen::Refused),
            Disposition::Accepted => Ok(self.named(answer).unwrap_or(Seen::Accepted)),
            _ => Err(Halt::errored(
                Reason::Unclear,
                format!("B's use of A's handle never came to an end: {}", answer.said()),
            )),
        }
    }

    fn marked(&self, answer: &Answer, marker: String) -> Seen {
        let (form, severity) = match &answer.disposition {
            Disposition::Accepted if !are_alike(answer, self.owners_view) => {
                (" in an answer unlike the owner's own", Severity::Medium)
            }
            Disposition::Accepted => ("", Severity::High),
            _ => (" in an answer that calls itself an error", Severity::Medium),
        };
        Seen::Marked { marker: format!("{marker}{form}"), severity }
    }

    /// A's name counts only in an answer that says the same as the owner's: "this belongs to alice" names A as well.
    fn named(&self, answer: &Answer) -> Option<Seen> {
        // `demo` and `guest` stand in many texts for other reasons.
        let names = self.names.filter(|_| self.reads);
        let (name, _) = names.filter(|(name, _)| name.len() >= SHORTEST_NAME && !COMMON.contains(&name.as_str()))?;
        let (result, own) = (answer.result()?, self.owners_view.result()?);
        let named = |answer: &Answer| marker::find_name(answer.result()?, name, &answer.sent);
        let at = named(answer).filter(|_| likeness::same(result, own) && !Counts::of(own).denied_by(result))?;
        let innocent = self.innocent.iter().all(|other| named(other).is_none());
        innocent.then(|| self.marked(answer, format!("A's name `{name}` at {at}")))
    }
}

pub(super) fn are_alike(one: &Answer, other: &Answer) -> bool {
    matches!((one.result(), other.result()), (Some(one), Some(other)) if likeness::alike(one, other))
}

/// Whether a complete answer says the same kind of thing as one to a good handle. What is not there has nothing in it when it
/// is read; where something is to be done to it, "0 rows updated" is a no.
pub(super) fn is_as_good(answer: &Answer, good: &Answer, reads: bool) -> bool {
    let nothing_done = || {
        let results = answer.result().zip(good.result());
        results.is_some_and(|(result, good)| Counts::of(good).denied_by(result))
    };
    are_alike(answer, good) && (reads || !nothing_done())
}

/// Whether an answer is a "no" without `isError`: what a forged handle brings, and nothing like what a good one brings.
pub(super) fn says_no(answer: &Answer, good: &Answer, unissued: &Answer, reads: bool) -> bool {
    is_as_good(unissued, answer, reads) && !is_as_good(unissued, good, reads)
}

/// An accepted use that shows no marker, to be looked at more closely.
pub(super) struct Doubt<'d> {
    pub(super) entry: &'d Entry,
    /// The owner's uses.
    pub(super) owners: [&'d Answer; 2],
    /// B's uses of its own handle.
    pub(super) own: [&'d Answer; 2],
    pub(super) unissued: &'d Answer,
    pub(super) subjects: [&'d Answer; 2],
    /// A's view of its object right after the subject calls, where an entry point shows one.
    pub(super) view: Option<&'d Answer>,
    /// What B planted in the subject calls.
    pub(super) planted: [&'d Canary; 2],
    /// What B planted under the forged handle.
    pub(super) unissued_planted: &'d Canary,
    /// The forged handle was honoured.
    pub(super) forged_honoured: bool,
    /// B sees A's object without any handle: what it reads there tells nothing, what it writes does.
    pub(super) listed: bool,
}

impl Doubt<'_> {
    /// What shows, after all, that B reached A's object.
    pub(super) async fn resolve(
        &self,
        trial: &mut Trial<'_, '_>,
        experiment: &Experiment<'_>,
    ) -> Result<Option<Seen>, Halt> {
        if let Some(marker) = self.written() {
            return Ok(Some(Seen::Marked { marker, severity: Severity::High }));
        }
        // From here on only the difference to a refused forgery tells anything.
        if self.forged_honoured || self.listed {
            return Ok(None);
        }
        if let Some(marker) = self.to_the_letter(experiment) {
            return Ok(Some(Seen::Marked { marker, severity: Severity::High }));
        }
        if let Some(marker) = self.private_value(trial, experiment).await? {
            return Ok(Some(Seen::Marked { marker, severity: Severity::High }));
        }
        let changed = self.changed(trial, experiment).await?;
        Ok(changed.map(|marker| Seen::Marked { marker, severity: Severity::Medium }))
    }

    /// Whether what B wrote through A's handle is visible to A.
    fn written(&self) -> Option<String> {
        let view = self.view?;
        let result = view.result()?;
        if marker::find_canary(result, self.unissued_planted, &view.sent).is_some() {
            // Writes under a handle that nobody minted reach A as well: the place shows nothing about handles.
            return None;
        }
        let found = self.planted.into_iter().find_map(|canary| marker::find_canary(result, canary, &view.sent));
        found.map(|at| {
            format!("what B wrote into A's own view at {at} (no weakness only where others are meant to write there)")
        })
    }

    /// A handle that is made of A's words takes the proof from them: each may be an echo. What A gets and what B gets may still
    /// be one and the same to the letter, with a text in it as A wrote it, where a handle that nobody minted is refused.
    fn to_the_letter(&self, experiment: &Experiment<'_>) -> Option<String> {
        let facts = |answer: &Answer| answer.result().map(likeness::facts);
        let of_a = facts(self.owners[0])?;
        if !self.owners.into_iter().chain(self.subjects).all(|answer| facts(answer).as_ref() == Some(&of_a)) {
            return None;
        }
        let others: Vec<&Value> =
            self.own.into_iter().chain([self.unissued]).filter_map(|answer| answer.result()).collect();
        let elsewhere = |mark: &Canary| others.iter().any(|other| marker::seems_to_show(other, mark, &[]).is_some());
        let marks = experiment.handles.a.marks.iter().filter(|mark| !elsewhere(mark));
        let written = |mark: &Canary| {
            let as_written =
                |(_, value): &(&String, &Value)| value.as_str().is_some_and(|text| text.contains(&mark.long));
            of_a.iter()
                .find(as_written)
                .map(|(at, _)| format!("to the letter what A gets, with A's canary `{}` at {at}", mark.long))
        };
        marks.filter_map(written).next()
    }

    /// A value that A's handle brings to A and to B, every time, and that B's own handle never brings.
    async fn private_value(
        &self,
        trial: &mut Trial<'_, '_>,
        experiment: &Experiment<'_>,
    ) -> Result<Option<String>, Halt> {
        let (a, b) = (&experiment.handles.a.handle, &experiment.handles.b.handle);
        let handles = [a, b, &experiment.handles.forged].map(emitted::text_of);
        let values = |answer: &Answer| -> BTreeSet<String> {
            let mut values = answer.result().map(likeness::particular_values).unwrap_or_default();
            // What follows from the text of a handle shows no object.
            values.retain(|value| {
                let from_handle = |handle: &String| handle.contains(value.as_str()) || value.contains(handle.as_str());
                let a_name = experiment.names.as_ref().is_some_and(|(name, _)| name == value);
                // A canary that could testify has done so before: this one stands in the handle.
                let marked = experiment.handles.a.marks.iter().any(|mark| mark.is_in(value));
                // That somebody owns it is known even where nobody is let in.
                !a_name
                    && !marked
                    && !handles.iter().any(from_handle)
                    && !echo::repeats(&answer.sent, value)
                    && !echo::repeats(&handles, value)
                    && !handles.iter().chain(&answer.sent).any(|text| digest::follows_from(value, text))
            });
            values
        };
        let mut shared = values(self.owners[0]);
        for answer in self.owners.into_iter().chain(self.subjects) {
            let here = values(answer);
            shared.retain(|value| here.contains(value));
        }
        let drop_innocent = |shared: &mut BTreeSet<String>, answer: &Answer| {
            let here = values(answer);
            shared.retain(|value| !here.contains(value));
        };
        for answer in self.own.into_iter().chain([self.unissued]) {
            drop_innocent(&mut shared, answer);
        }
        // Answers of several replicas may differ by chance; not time after time in the same way.
        for _ in 0..REPETITIONS {
            if shared.is_empty() {
                return Ok(None);
            }
            let (own, _) = use_handle(trial, "stranger-own-again", Who::B, self.entry, b).await?;
            let (subject, _) = use_handle(trial, "subject-again", Who::B, self.entry, a).await?;
            drop_innocent(&mut shared, &own);
            let here = values(&subject);
            shared.retain(|value| here.contains(value));
        }
        // The value itself may be a secret of A's.
        let shown = shared.into_iter().next().map(|value| crate::redact::fingerprint(&value));
        Ok(shown
            .map(|value| format!("the value `{value}` that A's handle brings to A, and B's own handle never brings")))
    }

    /// Whether A's view of its object stands still until B uses A's handle, and then changes: of two fresh objects, and not
    /// with the time that B's use of its own takes.
    async fn changed(&self, trial: &mut Trial<'_, '_>, experiment: &Experiment<'_>) -> Result<Option<String>, Halt> {
        let Some(viewer) = experiment.viewer.as_ref().filter(|viewer| *viewer != self.entry) else { return Ok(None) };
        let (b, forged) = (&experiment.handles.b.handle, &experiment.handles.forged);
        for _ in 0..OBJECTS {
            let Ok(fresh) = mint(trial, Who::A, experiment.kind).await? else { return Ok(None) };
            let mut views: Vec<Value> = Vec::new();
            for step in ["owner-view", "forged-handle", "stranger-own-again", "stranger-own-again", "subject-again"] {
                let (who, handle) = match step {
                    "forged-handle" => (Who::B, forged),
                    "stranger-own-again" => (Who::B, b),
                    "subject-again" => (Who::B, &fresh.handle),
                    _ => (Who::A, &fresh.handle),
                };
                let at = if who == Who::A { viewer } else { self.entry };
                let (seen, _) = use_handle(trial, step, who, at, handle).await?;
                views.extend(seen.result().filter(|_| who == Who::A).cloned());
                let (view, _) = use_handle(trial, "owner-view", Who::A, viewer, &fresh.handle).await?;
                views.extend(view.result().cloned());
            }
            let [still @ .., last, after] = &views[..] else { return Ok(None) };
            if still.len() + 2 != VIEWS || last == after || still.iter().any(|view| view != last) {
                return Ok(None);
            }
            // What was thrown away may be counted as well: B's use has to change what A's own use changes.
            use_handle(trial, "owner-use", Who::A, self.entry, &fresh.handle).await?;
            let (own, _) = use_handle(trial, "owner-view", Who::A, viewer, &fresh.handle).await?;
            let Some(own) = own.result() else { return Ok(None) };
            if changes(last, after) != changes(after, own) {
                return Ok(None);
            }
        }
        let marker = "an effect on A's object: A's own view by";
        Ok(Some(format!(
            "{marker} {viewer} changes with B's use as it does with A's, and with nothing else that B does there (no weakness only where others are meant to write there)"
        )))
    }
}

/// The places at which one view is another.
fn changes(one: &Value, other: &Value) -> BTreeSet<String> {
    let (one, other) = (likeness::facts(one), likeness::facts(other));
    let places = one.keys().chain(other.keys());
    places.filter(|at| one.get(*at) != other.get(*at)).cloned().collect()
}

/// How many objects have to show a change, and how often each is looked at.
const OBJECTS: usize = 2;
const VIEWS: usize = 6;
const REPETITIONS: usize = 3;
const SHORTEST_NAME: usize = 3;
const COMMON: [&str; 10] = ["demo", "guest", "user", "admin", "test", "local", "default", "public", "system", "root"];
