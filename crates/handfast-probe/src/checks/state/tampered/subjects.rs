//! The alterations, each of which differs from the honest retry in one respect, and what came of each.

use serde_json::{Map, Value, json};

use super::{
    super::flow::{Flow, Outcome, Played},
    transplants,
};
use crate::{
    canary::{self, Canary},
    forge,
    identity::Who,
    likeness, marker,
    state::{
        envelope::{self, Envelope},
        fields::{self, Mutation},
        tag::Recipe,
    },
    trial::{Answer, Trial},
    verdict::Halt,
};

/// One alteration, to be made anew on each fresh state.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    pub(super) how: How,
    pub(super) who: Who,
    /// In words, for a sentence.
    pub(super) told: String,
    /// The field, where a readable state was changed in one.
    pub(super) mutation: Option<Mutation>,
    /// A change that only an authentication would notice.
    pub(super) smallest: bool,
    /// The weakness if it is accepted.
    pub(super) cwe: u32,
    envelope: String,
    /// The honest flow of the caller, where that is not A.
    honest: Option<Box<Played>>,
    /// How the tag beside the document is made anew, where that takes no key.
    recipe: Option<Recipe>,
}

#[derive(Debug, Clone)]
pub(super) enum How {
    Field(usize),
    /// What stands there in another state of A's.
    Transplant(Vec<String>),
    Impersonate {
        own: String,
        other: String,
    },
    Signature,
    Smallest(usize),
    Rename {
        from: String,
        to: String,
    },
    Flip(usize),
    MinorFlip(usize),
}

/// What came of an attempt.
#[derive(Debug)]
pub(super) enum Tried {
    Accepted(Box<Played>),
    Refused(String),
    Crashed(String),
    AskedAgain,
    Unclear(String),
    /// Accepted, but the answer still shows what was issued: the field is not used.
    FieldIgnored(String),
    /// A fresh state could not be altered in this way.
    Impossible,
}

/// Makes an attempt of what is done, in words and as a mutation, whether it is the smallest, and the weakness.
pub(super) type New<'n> = &'n dyn Fn(How, String, Option<Mutation>, bool, u32) -> Attempt;

/// How an issued state is built, in words.
pub(super) fn envelope_of(state: &str) -> String {
    Envelope::read(state).map_or_else(|| "opaque".to_owned(), |envelope| envelope.shown())
}

/// Everything worth trying on a state like this one, in order.
pub(super) async fn attempts(
    trial: &mut Trial<'_, '_>,
    flow: &Flow,
    baseline: &Played,
    issued: &str,
) -> Result<Vec<Attempt>, Halt> {
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
        honest: None,
        recipe: None,
    };
    let Some(envelope) = envelope else {
        let mut found = renames(trial, flow, baseline, issued, &new).await?;
        found.extend(flips(issued, &new, 649));
        return Ok(found);
    };
    let cwe = if envelope.is_signed() { 347 } else { 353 };
    let canary = trial.canary(Who::A);
    let mut found = Vec::new();
    for (index, mutation) in fields::mutations(issued, &canary).into_iter().enumerate() {
        found.push(new(How::Field(index), told(&mutation), Some(mutation), false, cwe));
    }
    for (own, other, honest) in other_names(trial, flow, issued).await? {
        let mutation = fields::impersonations(issued, &other, &own).into_iter().next().map(|mutation| Mutation {
            before: json!(own),
            after: json!(other),
            ..mutation
        });
        let told = "B's own state with A's name in it".to_owned();
        found.push(new(How::Impersonate { own, other }, told, mutation, false, cwe).of_b(&honest));
    }
    if let Some(recipe) = Recipe::of(issued) {
        let anew = |attempt: &Attempt| Attempt {
            told: format!("{}, and with its {} made anew", attempt.told, recipe.name()),
            recipe: Some(recipe),
            cwe: 353,
            ..attempt.clone()
        };
        found.extend(found.iter().map(anew).collect::<Vec<_>>());
    }
    let of_b = found.iter().find_map(|attempt| attempt.honest.as_deref()).cloned();
    found.extend(transplants::attempts(trial, flow, issued, of_b, &new).await?);
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
    Ok(found)
}

fn flips(issued: &str, new: New<'_>, cwe: u32) -> Vec<Attempt> {
    let told = |offset: usize| format!("a state with the character at offset {offset} of {} flipped", issued.len());
    let major = forge::flip_offsets(issued).into_iter();
    let minor = forge::minor_flip_offsets(issued).into_iter();
    major
        .map(|offset| new(How::Flip(offset), told(offset), None, false, cwe))
        .chain(minor.map(|offset| new(How::MinorFlip(offset), told(offset), None, false, cwe)))
        .collect()
}

fn told(mutation: &Mutation) -> String {
    let Mutation { field, before, after, why, .. } = mutation;
    format!("a state with {} changed from {before} to {after} ({why})", field.join(" > "))
}

/// Names of callers, where they stand in a state that cannot be read: A's replaced by one that nobody has, and B's by A's.
async fn renames(
    trial: &mut Trial<'_, '_>,
    flow: &Flow,
    baseline: &Played,
    issued: &str,
    new: New<'_>,
) -> Result<Vec<Attempt>, Halt> {
    let names = |trial: &Trial<'_, '_>, who: Who, played: &Played| -> Vec<String> {
        let given = played.answer.result().map(marker::names_given).unwrap_or_default().into_values();
        given.chain(trial.session.target.identities().of(who).credential().map(str::to_owned)).collect()
    };
    let renamed = |state: &str, from: &str, to: &str| {
        let state = envelope::renamed(state, from, to)?;
        let (field, before, after, why) = (vec!["(a name inside)".to_owned()], json!(from), json!(to), "who");
        let mutation = Mutation { field, before, after, why, state };
        let how = How::Rename { from: from.to_owned(), to: to.to_owned() };
        Some(new(how, told(&mutation), Some(mutation), false, 353))
    };
    let of_a = names(trial, Who::A, baseline);
    let Some(a) = of_a.into_iter().find(|name| envelope::renamed(issued, name, name).is_some()) else {
        return Ok(Vec::new());
    };
    let mut found: Vec<Attempt> = renamed(issued, &a, &forge::scrambled(&a)).into_iter().collect();
    if flow.round == 0
        && let Ok(played) = flow.play(trial, Who::B, "stranger-untouched", None).await
        && let Some(state) = played.rounds.first().and_then(|asked| asked.state.clone())
    {
        let of_b = names(trial, Who::B, &played).into_iter();
        let attempt = of_b.filter(|b| *b != a).find_map(|b| renamed(&state, &b, &a));
        found.extend(attempt.map(|attempt| attempt.of_b(&played)));
    }
    Ok(found)
}

/// How the states of B and A name their callers, where they do: (B's name, A's name, B's honest flow).
async fn other_names(
    trial: &mut Trial<'_, '_>,
    flow: &Flow,
    issued: &str,
) -> Result<Vec<(String, String, Played)>, Halt> {
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
        (*b != a).then(|| (b.clone(), a, played.clone()))
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
    if let How::Transplant(path) = &attempt.how {
        return transplants::attempt(trial, flow, attempt.honest.as_deref().unwrap_or(baseline), attempt, path).await;
    }
    // The canary of the first try, so that a repetition changes the same value to the same value.
    let planted = attempt.mutation.as_ref().and_then(|mutation| mutation.after.as_str());
    let canary = match planted.filter(|text| text.starts_with(canary::PREFIX)) {
        Some(long) => Canary { long: long.to_owned(), short: long.to_owned() },
        None => trial.canary(Who::A),
    };
    let mut alter = |state: &str| attempt.apply(state, &canary);
    let played = flow.play(trial, attempt.who, "altered-state", Some(&mut alter)).await?;
    if let Some(halt) = played.answer.lost() {
        return Err(halt);
    }
    if !played.altered {
        return Ok(Tried::Impossible);
    }
    let clean = |text: &str| trial.clean(text);
    let baseline = attempt.honest.as_deref().unwrap_or(baseline);
    let observed = attempt.observed_in(flow, &played.answer, &baseline.answer);
    let both = played.answer.result().zip(baseline.answer.result());
    let still_shows =
        |before: &Value| both.is_some_and(|(result, honest)| likeness::still_shows(honest, result, before));
    // A polite "no" may quote what it refuses.
    let agrees =
        || both.is_some_and(|(result, honest)| likeness::alike(result, honest) && !likeness::says_no(result, honest));
    let garbled = || both.is_some_and(|(result, honest)| likeness::one_word_off(honest, result));
    Ok(match played.outcome(flow, baseline) {
        Outcome::Accepted if matches!(attempt.how, How::MinorFlip(_)) => Tried::FieldIgnored(clean(&attempt.told)),
        Outcome::Accepted => match &attempt.mutation {
            Some(mutation) if !observed && still_shows(&mutation.before) => Tried::FieldIgnored(clean(&attempt.told)),
            _ => Tried::Accepted(Box::new(played)),
        },
        // The changed value in the answer shows use, whatever the words around it; so does a garbled word after a flip.
        Outcome::Unlike(_) if observed && agrees() => Tried::Accepted(Box::new(played)),
        Outcome::Unlike(_) if matches!(attempt.how, How::Flip(_) | How::MinorFlip(_)) && garbled() => {
            Tried::Accepted(Box::new(played))
        }
        Outcome::Unlike(text) if both.is_some_and(|(result, honest)| flow.counts_nothing(result, honest)) => {
            // Nobody of that name has anything that could be counted: so it is where the name is believed.
            if attempt.names_somebody() { Tried::Impossible } else { Tried::Refused(clean(&text)) }
        }
        Outcome::Unlike(text) => match (played.answer.result(), random.answer.result()) {
            (Some(result), Some(refused)) if likeness::alike(result, refused) => Tried::Refused(clean(&text)),
            _ => Tried::Unclear(clean(&format!("a complete result unlike the honest one: {text}"))),
        },
        Outcome::Refused(refusal) if refusal.reads_like_a_crash() => Tried::Crashed(clean(&refusal.to_string())),
        Outcome::Refused(refusal) if refusal.reads_like_an_outage() => Tried::Unclear(clean(&refusal.to_string())),
        Outcome::Refused(refusal) => Tried::Refused(clean(&refusal.to_string())),
        Outcome::AskedAgain => Tried::AskedAgain,
        Outcome::Unclear(text) => Tried::Unclear(clean(&text)),
    })
}

impl How {
    fn apply(&self, state: &str, canary: &Canary) -> Option<String> {
        match self {
            Self::Field(index) => {
                fields::mutations(state, canary).into_iter().nth(*index).map(|mutation| mutation.state)
            }
            Self::Impersonate { own, other } => {
                fields::impersonations(state, own, other).into_iter().next().map(|mutation| mutation.state)
            }
            // It takes another state.
            Self::Transplant(_) => None,
            Self::Signature => Envelope::read(state)?.with_altered_signature(),
            Self::Smallest(index) => fields::smallest(state).into_iter().nth(*index).map(|mutation| mutation.state),
            Self::Rename { from, to } => envelope::renamed(state, from, to),
            Self::Flip(offset) | Self::MinorFlip(offset) => {
                (*offset..state.len()).chain(0..*offset).find_map(|offset| forge::flipped(state, offset))
            }
        }
    }
}

impl Attempt {
    /// The same as B, who is honest in this way.
    pub(super) fn of_b(self, honest: &Played) -> Self {
        Self { who: Who::B, honest: Some(Box::new(honest.clone())), ..self }
    }

    fn apply(&self, state: &str, canary: &Canary) -> Option<String> {
        self.sealed(self.how.apply(state, canary)?)
    }

    /// A state that was altered, with its tag made anew where this attempt does that.
    pub(super) fn sealed(&self, altered: String) -> Option<String> {
        match &self.recipe {
            Some(recipe) => recipe.apply(&altered),
            None => Some(altered),
        }
    }

    /// Whether one recognised field is changed, so that its use could show in the answer.
    pub(super) fn is_of_a_field(&self) -> bool {
        matches!(self.how, How::Field(_) | How::Transplant(_) | How::Impersonate { .. } | How::Rename { .. })
    }

    /// Whether it puts a name of somebody or something into the state, where perhaps nothing is.
    fn names_somebody(&self) -> bool {
        let after = self.mutation.as_ref().and_then(|mutation| mutation.after.as_str());
        self.is_of_a_field() && after.is_some()
    }

    /// Whether a change like this one says nothing unless something comes of it: the state decides nothing that is known, or a
    /// MAC over chosen fields may leave this one out on purpose.
    pub(super) fn is_harmless(&self, issued: &str) -> bool {
        let authenticated = || Envelope::read(issued).is_some_and(|envelope| envelope.may_be_authenticated());
        matches!(self.how, How::Smallest(_)) && (!fields::decides_something(issued) || authenticated())
    }

    /// Whether the answer shows the changed value, and the honest one did not: as a word of its own, or in the place of the old one.
    pub(super) fn observed_in(&self, flow: &Flow, answer: &Answer, baseline: &Answer) -> bool {
        let honest = self.honest.as_ref().map_or(baseline, |honest| &honest.answer);
        // Of an accepted transplant it was seen before.
        let Some(mutation) = &self.mutation else { return matches!(self.how, How::Transplant(_)) };
        let (Some(result), Some(honest)) = (answer.result(), honest.result()) else { return false };
        let after = crate::discovery::emitted::text_of(&mutation.after);
        // A state that is plain JSON holds the value; the echo of the whole state is no sign of use.
        let states: Vec<String> =
            answer.sent.iter().filter(|text| text.contains(&after) && **text != after).cloned().collect();
        let is_word = after.len() >= SHORTEST_SHOWN
            && marker::find_name(result, &after, &states).is_some()
            && marker::find_name(honest, &after, &[]).is_none();
        // One more is no news where another honest end said the same.
        let known = flow.counts.hold(&after);
        is_word || (!known && likeness::became(honest, result, &mutation.before, &mutation.after))
    }

    /// The facts for the evidence.
    pub(super) fn facts(&self, trial: &Trial<'_, '_>, played: &Played, observed: bool) -> Map<String, Value> {
        let mut facts = Map::new();
        facts.insert("envelope".into(), self.envelope.clone().into());
        facts.extend(self.recipe.map(|recipe| ("made_anew".to_owned(), recipe.name().into())));
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
            (None, How::Flip(offset) | How::MinorFlip(offset)) => {
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

const SHORTEST_SHOWN: usize = 4;
