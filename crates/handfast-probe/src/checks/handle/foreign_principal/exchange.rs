//! A finished experiment at one entry point, judged by the table of the page.

use serde_json::Value;

use super::{
    super::handles::Handles,
    witness::{Seen, is_as_good},
};
use crate::{
    discovery::{Entry, emitted},
    disposition::Disposition,
    trial::{Answer, Trial},
    verdict::{Controls, Halt, Negative, Observation, Reason, Row},
};

/// A finished experiment at one entry point, ready to be judged.
pub(super) struct Exchange<'e> {
    pub(super) entry: &'e Entry,
    pub(super) handles: &'e Handles,
    pub(super) controls: &'e Controls,
    /// Of the owner's use, B's own use, the forged handle, and the subject.
    pub(super) answers: [&'e Answer; 4],
    /// The entry point only shows something.
    pub(super) reads: bool,
}

impl Exchange<'_> {
    /// One entry point's verdict: what B saw, against what the forged handle showed.
    pub(super) fn row(&self, trial: &Trial<'_, '_>, seen: Seen, observations: &mut Vec<Observation>) -> Row {
        let entry = self.entry.to_string();
        let [.., unissued, subject] = self.answers;
        let polite = self.is_polite();
        let forged_honoured = self.is_forged_honoured();
        let mut observe =
            |id: &'static str, text: String| observations.push(Observation { id, text: format!("{entry}: {text}") });
        if forged_honoured {
            observe(
                "forged-handle-honoured",
                format!("a handle that was never minted was honoured: {}", trial.clean(&unissued.said())),
            );
        }
        let subject_said = trial.clean(&subject.said());
        let mut row = match seen {
            Seen::Marked { ref marker, severity } => {
                let control =
                    if forged_honoured { "a forged one brings nothing of A's" } else { "a forged one is refused" };
                let detail = format!("B presented A's handle and got {}, while {control}", trial.clean(marker));
                Row::confirmed(self.controls, &entry, Reason::HandleNotBound, severity, detail)
            }
            Seen::Listed => {
                let text = "a listing shows A's object to B without any handle, so what its handle brings tells nothing; if such objects are not meant to be public, that listing is the leak";
                observe("listed-to-others", text.to_owned());
                Row::halted(&entry, Halt::skipped(Reason::HandleWitnessUnusable, text))
            }
            Seen::Refused => match self.crashed() {
                Some(text) => Row::halted(
                    &entry,
                    Halt::errored(
                        Reason::Unclear,
                        format!(
                            "A's handle was refused as if by a crash or a limit, where a forged one was not: {}",
                            trial.clean(&text)
                        ),
                    ),
                ),
                None => Row::refuted(
                    self.controls,
                    &entry,
                    Reason::HandleBound,
                    format!("A's handle was refused to B: {subject_said}"),
                ),
            },
            // A "no" without `isError`, in the words that a forged handle gets.
            Seen::Accepted if polite && is_as_good(unissued, subject, self.reads) => {
                let text = format!("an unknown handle is refused in a result that is no error: {subject_said}");
                observe("refusal-is-no-error", text);
                let detail = format!("A's handle was refused to B as a forged one is: {subject_said}");
                Row::refuted(self.controls, &entry, Reason::HandleBound, detail)
            }
            Seen::Accepted if forged_honoured => Row::refuted(
                self.controls,
                &entry,
                Reason::HandleWitnessUnusable,
                "B's use of A's handle was accepted, as that of a forged one was, and brought nothing of A's"
                    .to_owned(),
            ),
            Seen::Accepted => {
                let text = format!(
                    "B's use of A's handle was accepted while a forged one was refused, but nothing shows that it reached A's object: {subject_said}"
                );
                observe("cross-use-unattributable", text.clone());
                Row::refuted(self.controls, &entry, Reason::CrossUseUnattributable, text)
            }
        };
        let mut fact = |name: &str, value: Value| {
            row.facts.insert(name.to_owned(), value);
        };
        fact("canary_of_a", self.handles.a.marks.first().map(|mark| mark.long.clone()).into());
        fact("handle_of_a", trial.shown(&self.handles.a.handle));
        fact("handle_of_b", trial.shown(&self.handles.b.handle));
        fact("forged_handle", trial.shown(&self.handles.forged));
        fact("forged_handle_control", unissued.disposition.word().into());
        if let Seen::Marked { marker, .. } = seen {
            fact("marker", trial.clean(&marker).into());
        }
        let minted = [&self.handles.a.answer, &self.handles.b.answer];
        row.story = minted.into_iter().chain(self.answers).map(|answer| answer.step).collect();
        row
    }

    /// Whether a handle that nobody minted was really honoured.
    pub(super) fn is_forged_honoured(&self) -> bool {
        *self.controls.negative() == Negative::Honoured && !self.is_polite()
    }

    /// Whether the forged handle was "honoured" in form only: a complete result, and nothing like what B's own handle brings.
    fn is_polite(&self) -> bool {
        let [_, own, unissued, _] = self.answers;
        *self.controls.negative() == Negative::Honoured && !is_as_good(unissued, own, self.reads)
    }

    /// The words of a refusal that reads like a crash, where the forged handle was refused in other words.
    fn crashed(&self) -> Option<String> {
        let Disposition::Refused(refusal) = &self.answers[3].disposition else { return None };
        let like_the_forged_one = match self.controls.negative() {
            Negative::Refused(words) => refusal.normalised(&[emitted::text_of(&self.handles.a.handle)]) == *words,
            _ => false,
        };
        let decides_nothing = refusal.reads_like_a_crash() || refusal.reads_like_an_outage();
        (decides_nothing && !like_the_forged_one).then(|| refusal.text.clone())
    }
}
