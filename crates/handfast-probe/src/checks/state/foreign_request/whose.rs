//! Which of two requests an answer is the answer to.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Played;
use crate::{effect::Marks, likeness, marker, target::Call, trial::strings_in};

/// Whose answer it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// That of the request that the state was issued for.
    Own,
    /// That of the other one, shown by the answer or by an effect.
    Others(&'static str),
    /// Nothing tells.
    Unknown,
}

/// Two requests, and what each is answered with in its own flow.
pub(super) struct Pair<'p> {
    /// Values that stand in the one request and its answer, and not in the other.
    own: BTreeSet<String>,
    others: BTreeSet<String>,
    honest: [Option<&'p Value>; 2],
    /// The two are calls of different tools, prompts or resources.
    of_two_tools: bool,
}

impl<'p> Pair<'p> {
    /// The honest answers come after the one that is looked at: what a clock wrote into that one stands in both or in neither.
    pub(super) fn new(calls: [&Call; 2], answers: [Option<&'p Played>; 2]) -> Self {
        let honest = answers.map(|played| played.and_then(|played| played.answer.result()));
        let values = |at: usize| -> BTreeSet<String> {
            let mut values = honest[at].map(likeness::particular_values).unwrap_or_default();
            let sent = strings_in(&Value::Object(calls[at].params.clone()));
            values.extend(sent.into_iter().filter(|text| text.len() >= SHORTEST));
            values
        };
        let [own, others] = [values(0), values(1)];
        Self {
            own: own.difference(&others).cloned().collect(),
            others: others.difference(&own).cloned().collect(),
            honest,
            of_two_tools: calls[0].title() != calls[1].title(),
        }
    }

    /// Whose answer this is. `marks` tell whether the object of the other request was used before its own flow.
    pub(super) fn whose(&self, played: &Played, marks: Option<&Marks>) -> Whose {
        let Some(result) = played.answer.result() else { return Whose::Unknown };
        if let (Some(marks), Some(after)) = (marks, self.honest[1])
            && marks.show_use(after)
        {
            return Whose::Others("effect");
        }
        let shows =
            |values: &BTreeSet<String>| values.iter().any(|value| marker::find_name(result, value, &[]).is_some());
        // Who speaks of its own work has done it, with whatever the state told it.
        if self.of_two_tools && self.speaks_as_the_other(result) {
            return Whose::Others("words");
        }
        match (shows(&self.own), shows(&self.others), self.form(result)) {
            (false, true, Whose::Unknown | Whose::Others(_)) | (false, false, Whose::Others(_)) => {
                Whose::Others("answer")
            }
            (true, false, Whose::Unknown | Whose::Own) | (false, false, Whose::Own) => Whose::Own,
            _ => Whose::Unknown,
        }
    }

    /// Whether an answer has all the words that only the other tool uses, and none that only the own one does.
    fn speaks_as_the_other(&self, result: &Value) -> bool {
        let [Some(own), Some(others)] = self.honest.map(|honest| honest.map(words)) else { return false };
        let (said, of_others) = (words(result), &others - &own);
        !of_others.is_empty() && of_others.is_subset(&said) && said.is_disjoint(&(&own - &others))
    }

    /// Whose answer it is by its form, where the two have different ones.
    fn form(&self, result: &Value) -> Whose {
        let [Some(own), Some(others)] = self.honest else { return Whose::Unknown };
        match (likeness::alike(result, own), likeness::alike(result, others)) {
            (true, false) => Whose::Own,
            (false, true) => Whose::Others("answer"),
            _ => Whose::Unknown,
        }
    }
}

/// The words of an answer, but for those with a digit in them: these are values.
fn words(result: &Value) -> BTreeSet<String> {
    let text = marker::visible_text(result).to_lowercase();
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
    words
        .filter(|word| word.len() >= SHORTEST && !word.bytes().any(|byte| byte.is_ascii_digit()))
        .map(str::to_owned)
        .collect()
}

const SHORTEST: usize = 3;
