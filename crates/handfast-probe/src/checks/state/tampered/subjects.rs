//! The alterations, each of which differs from the honest retry in one respect, and what came of each.

use serde_json::{Map, Value, json};

use super::flow::{Flow, Outcome, Played};
use crate::{
    forge,
    identity::Who,
    marker,
    state::{
        envelope::Envelope,
        fields::{self, Mutation},
    },
    trial::{Answer, Trial},
    verdict::Halt,
};

/// One alteration, to be made anew on each fresh state.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    how: How,
    who: Who,
    /// In words, for a sentence.
    pub(super) told: String,
    /// The field, where a readable state was changed in one.
    pub(super) mutation: Option<Mutation>,
    /// A change that only an authentication would notice.
    pub(super) smallest: bool,
    /// The weakness if it is accepted.
    pub(super) cwe: u32,
    envelope: String,
}

#[derive(Debug, Clone)]
enum How {
    Field(usize),
    Impersonate { own: String, other: String },
    Signature,
    Smallest(usize),
    Flip(usize),
}

/// What came of an attempt.
#[derive(Debug)]
pub(super) enum Tried {
    Accepted(Box<Played>),
    Refused(String),
    Crashed(String),
    AskedAgain,
    Unclear(String),
    /// A fresh state could not be altered in this way.
    Impossible,
}

/// How an issued state is built, in words.
pub(super) fn envelope_of(state: &str) -> String {
    Envelope::read(state).map_or_else(|| "opaque".to_owned(), |envelope| envelope.shown())
}

/// Everything worth trying on a state like this one, in order.
pub(super) async fn attempts(trial: &mut Trial<'_, '_>, flow: &Flow, issued: &str) -> Result<Vec<Attempt>, Halt> {
    let envelope = Envelope::read(issued);
    let name = envelope_of(issued);
    let new = |how: How, told: String, mutation: Option<Mutation>, smallest: bool, cwe: u32| Attempt {
        how,
        who: Who::A,
        told,
        mutation,
        smallest,
        cwe,
        envelope: name.clone(),
    };
    let Some(envelope) = envelope else {
        return Ok(flips(issued, &new, 649));
    };
    let cwe = if envelope.is_signed() { 347 } else { 353 };
    let canary = trial.canary(Who::A);
    let mut found = Vec::new();
    for (index, mutation) in fields::mutations(issued, &canary).into_iter().enumerate() {
        found.push(new(How::Field(index), told(&mutation), Some(mutation), false, cwe));
    }
    for (own, other) in other_names(trial, flow, issued).await? {
        let mutation = fields::impersonations(issued, &other, &own).into_iter().next().map(|mutation| Mutation {
            before: json!(own),
            after: json!(other),
            ..mutation
        });
        let told = "B's own state with A's name in it".to_owned();
        found.push(Attempt { who: Who::B, ..new(How::Impersonate { own, other }, told, mutation, false, cwe) });
    }
    if envelope.with_altered_signature().is_some() {
        let told = "a state with one character of its signature changed".to_owned();
        found.push(new(How::Signature, told, None, true, 347));
    }
    for (index, mutation) in fields::smallest(issued).into_iter().enumerate() {
        // A MAC over chosen fields need not cover a member that nobody reads; without any MAC there is nothing to cover it.
        let unread = mutation.before.is_null();
        if !(unread && envelope.may_be_authenticated()) {
            found.push(new(How::Smallest(index), told(&mutation), Some(mutation), true, cwe));
        }
    }
    if found.iter().all(|attempt| attempt.smallest) {
        found.extend(flips(issued, &new, cwe));
    }
    Ok(found)
}

fn flips(issued: &str, new: &dyn Fn(How, String, Option<Mutation>, bool, u32) -> Attempt, cwe: u32) -> Vec<Attempt> {
    let offsets = forge::flip_offsets(issued).into_iter();
    offsets
        .map(|offset| {
            let told = format!("a state with the character at offset {offset} of {} flipped", issued.len());
            new(How::Flip(offset), told, None, false, cwe)
        })
        .collect()
}

fn told(mutation: &Mutation) -> String {
    let Mutation { field, before, after, why, .. } = mutation;
    format!("a state with {} changed from {before} to {after} ({why})", field.join(" > "))
}

/// How the states of B and A name their callers, where they do: (B's name, A's name).
async fn other_names(trial: &mut Trial<'_, '_>, flow: &Flow, issued: &str) -> Result<Vec<(String, String)>, Halt> {
    let of_a = fields::names_inside(issued);
    if of_a.is_empty() || flow.round > 0 {
        return Ok(Vec::new());
    }
    // B may not be able to start the flow at all; then there is nothing to try.
    let Ok(played) = flow.play(trial, Who::B, "stranger-untouched", None).await else { return Ok(Vec::new()) };
    let Some(state) = played.rounds.first().and_then(|asked| asked.state.clone()) else { return Ok(Vec::new()) };
    let of_b = fields::names_inside(&state);
    let pairs = of_a.into_iter().filter_map(|(path, a)| {
        let (_, b) = of_b.iter().find(|(other, _)| *other == path)?;
        (*b != a).then(|| (b.clone(), a))
    });
    Ok(pairs.take(1).collect())
}

/// Plays the flow with this alteration.
pub(super) async fn attempt(
    trial: &mut Trial<'_, '_>,
    flow: &Flow,
    [baseline, random]: [&Played; 2],
    attempt: &Attempt,
) -> Result<Tried, Halt> {
    let canary = attempt
        .mutation
        .as_ref()
        .and_then(|mutation| mutation.after.as_str())
        .map(|long| crate::canary::Canary { long: long.to_owned(), short: long.to_owned() });
    let canary = match canary {
        Some(canary) if canary.long.starts_with(crate::canary::PREFIX) => canary,
        _ => trial.canary(Who::A),
    };
    let mut alter = |state: &str| attempt.how.apply(state, &canary);
    let played = flow.play(trial, attempt.who, "altered-state", Some(&mut alter)).await?;
    if let Some(halt) = played.answer.lost() {
        return Err(halt);
    }
    if !played.altered {
        return Ok(Tried::Impossible);
    }
    let clean = |text: &str| trial.clean(text);
    Ok(match played.outcome(flow, baseline) {
        Outcome::Accepted => Tried::Accepted(Box::new(played)),
        Outcome::Refused(refusal) if refusal.reads_like_a_crash() => Tried::Crashed(clean(&refusal.to_string())),
        Outcome::Refused(refusal) => Tried::Refused(clean(&refusal.to_string())),
        // The changed value in the answer shows use, whatever the words around it.
        Outcome::Unlike(_) if attempt.observed_in(&played.answer, &baseline.answer) => {
            Tried::Accepted(Box::new(played))
        }
        Outcome::Unlike(text) => match (played.answer.result(), random.answer.result()) {
            (Some(result), Some(refused)) if marker::alike(result, refused) => Tried::Refused(clean(&text)),
            _ => Tried::Unclear(clean(&format!("a complete result unlike the honest one: {text}"))),
        },
        Outcome::AskedAgain => Tried::AskedAgain,
        Outcome::Unclear(text) => Tried::Unclear(clean(&text)),
    })
}

impl How {
    fn apply(&self, state: &str, canary: &crate::canary::Canary) -> Option<String> {
        match self {
            Self::Field(index) => {
                fields::mutations(state, canary).into_iter().nth(*index).map(|mutation| mutation.state)
            }
            Self::Impersonate { own, other } => {
                fields::impersonations(state, own, other).into_iter().next().map(|mutation| mutation.state)
            }
            Self::Signature => Envelope::read(state)?.with_altered_signature(),
            Self::Smallest(index) => fields::smallest(state).into_iter().nth(*index).map(|mutation| mutation.state),
            Self::Flip(offset) => {
                (*offset..state.len()).chain(0..*offset).find_map(|offset| forge::flipped(state, offset))
            }
        }
    }
}

impl Attempt {
    /// Whether one recognised field is changed, so that its use could show in the answer.
    pub(super) fn is_of_a_field(&self) -> bool {
        matches!(self.how, How::Field(_) | How::Impersonate { .. })
    }

    /// Whether the changed value stands in the answer, and did not stand in the honest one.
    pub(super) fn observed_in(&self, answer: &Answer, honest: &Answer) -> bool {
        let Some(after) = self.mutation.as_ref().map(|mutation| crate::discovery::emitted::text_of(&mutation.after))
        else {
            return false;
        };
        let holds = |answer: &Answer, sent: &[String]| {
            answer.result().is_some_and(|result| marker::find_name(result, &after, sent).is_some())
        };
        // A state that is plain JSON holds the value; the echo of the whole state is no sign of use.
        let states: Vec<String> =
            answer.sent.iter().filter(|text| text.contains(&after) && **text != after).cloned().collect();
        // The honest flow is A's: A's name in it says nothing about B's.
        let is_news = matches!(self.how, How::Impersonate { .. }) || !holds(honest, &[]);
        after.len() >= 4 && holds(answer, &states) && is_news
    }

    /// The facts for the evidence.
    pub(super) fn facts(&self, trial: &Trial<'_, '_>, played: &Played, observed: bool) -> Map<String, Value> {
        let mut facts = Map::new();
        facts.insert("envelope".into(), self.envelope.clone().into());
        match (&self.mutation, &self.how) {
            (Some(mutation), _) => {
                let redacted = |value: &Value| match value {
                    Value::String(text) => Value::String(trial.clean(text)),
                    other => other.clone(),
                };
                facts.insert(
                    "mutation".into(),
                    json!({
                        "field": mutation.field.join(" > "),
                        "before": redacted(&mutation.before),
                        "after": redacted(&mutation.after),
                        "why": mutation.why,
                        "came_back_in_answer": observed,
                    }),
                );
            }
            (None, How::Flip(offset)) => {
                facts.insert("flip".into(), json!({"offset": offset, "length": played.presented.len()}));
            }
            (None, _) => {
                facts.insert("alteration".into(), self.told.clone().into());
            }
        }
        facts.insert("answer".into(), trial.clean(&played.answer.said()).into());
        facts
    }
}
