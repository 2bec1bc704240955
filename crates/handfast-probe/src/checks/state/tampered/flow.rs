//! One flow from its first call to its end, with at most one state altered on the way. Each experiment starts from a call of
//! its own: none reuses a state that another has spent.

use handfast_wire::result::InputRequired;
use serde_json::Value;

use super::origins::Origin;
use crate::{
    disposition::{Disposition, Refusal},
    identity::Who,
    marker,
    target::Call,
    trial::{Answer, Trial},
    verdict::{Halt, Reason},
};

/// A flow, and the round whose state is altered.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    pub(super) origin: Origin,
    pub(super) round: usize,
}

/// A flow that was carried to its end, or as far as it went.
#[derive(Debug, Clone)]
pub(super) struct Played {
    /// What was asked, round by round.
    pub(super) rounds: Vec<InputRequired>,
    /// The exchange that began it.
    pub(super) first_step: usize,
    /// The last answer.
    pub(super) answer: Answer,
    /// The state that was presented in the altered round.
    pub(super) presented: String,
    /// Whether the altered state was presented at all.
    pub(super) altered: bool,
}

/// What an altered state came to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Outcome {
    /// The server went on with it.
    Accepted,
    /// The server said no.
    Refused(Refusal),
    /// A complete result, but unlike the honest one: perhaps a "no" without `isError`.
    Unlike(String),
    /// The server asked the same question once more.
    AskedAgain,
    /// Neither.
    Unclear(String),
}

/// Alters a state; `None` where it cannot be altered in this way.
pub(super) type Alter<'a> = &'a mut dyn FnMut(&str) -> Option<String>;

impl Flow {
    pub(super) fn new(origin: Origin) -> Self {
        Self { origin, round: 0 }
    }

    /// The entry point, with its round where it is not the first.
    pub(super) fn entry(&self) -> String {
        match self.round {
            0 => self.origin.entry.clone(),
            round => format!("{} (round {})", self.origin.entry, round + 1),
        }
    }

    /// Plays the flow as somebody. `alter` changes the state of the flow's own round.
    pub(super) async fn play(
        &self,
        trial: &mut Trial<'_, '_>,
        who: Who,
        step: &str,
        mut alter: Option<Alter<'_>>,
    ) -> Result<Played, Halt> {
        let (call, mut asked, first_step) = self.start(trial, who).await?;
        let mut rounds: Vec<InputRequired> = Vec::new();
        let (mut presented, mut altered) = (String::new(), false);
        loop {
            let mut state = asked.state.clone();
            let here = rounds.len() == self.round;
            if let (true, Some(issued), Some(alter)) = (here, &asked.state, alter.as_mut())
                && let Some(changed) = alter(issued)
            {
                presented.clone_from(&changed);
                trial.session.redactor.shorten(&changed);
                state = Some(changed);
                altered = true;
            }
            let canary = trial.canary(who);
            let retry = trial.retry(&call, &asked, state, &canary);
            let named = if here || alter.is_none() { step } else { "untouched-round" };
            let answer = trial.call(named, who, &retry).await?;
            rounds.push(asked);
            match answer.disposition.clone() {
                // After an altered round only the next question may be answered: the same one again means it was not taken.
                Disposition::Asked(next)
                    if rounds.len() < MOST_ROUNDS && !(altered && is_same(&next, &rounds[rounds.len() - 1])) =>
                {
                    asked = next;
                }
                _ => return Ok(Played { rounds, first_step, answer, presented, altered }),
            }
        }
    }

    /// A first call that is asked something: with the handles at hand, else with fresh ones, because an earlier run of the
    /// flow may have used them up.
    async fn start(&self, trial: &mut Trial<'_, '_>, who: Who) -> Result<(Call, InputRequired, usize), Halt> {
        let mut said = "no call could be made".to_owned();
        for _ in 0..2 {
            let Some(call) = self.origin.call(trial, who).await? else { break };
            let answer = trial.call("first-round", who, &call).await?;
            if let Some(halt) = answer.lost() {
                return Err(halt);
            }
            said = answer.said();
            if let Disposition::Asked(asked) = answer.disposition {
                return Ok((call, asked, answer.step));
            }
            trial.session.purse.retain(|(letter, _), _| *letter != who.letter());
        }
        Err(Halt::errored(Reason::ControlFailed, format!("a call that asked before no longer asks: {said}")))
    }
}

impl Played {
    /// What the altered round came to, measured against the honest flow.
    pub(super) fn outcome(&self, flow: &Flow, baseline: &Played) -> Outcome {
        match &self.answer.disposition {
            Disposition::Accepted => match (self.answer.result(), baseline.answer.result()) {
                (Some(result), Some(honest)) if !marker::alike(result, honest) => Outcome::Unlike(self.answer.said()),
                _ => Outcome::Accepted,
            },
            Disposition::Refused(refusal) => {
                // A refusal in a later round, after the altered one was taken.
                if self.rounds.len() > flow.round + 1 {
                    Outcome::Unclear(format!("refused in a later round: {refusal}"))
                } else {
                    Outcome::Refused(refusal.clone())
                }
            }
            Disposition::Asked(next) => {
                let advanced = baseline.rounds.get(self.rounds.len()).is_some_and(|expected| is_same(next, expected));
                let repeats = self.rounds.last().is_some_and(|last| is_same(next, last));
                match (advanced, repeats) {
                    (true, false) => Outcome::Accepted,
                    _ => Outcome::AskedAgain,
                }
            }
            Disposition::Task(_) | Disposition::Unclear(_) => Outcome::Unclear(self.answer.said()),
        }
    }
}

/// Whether two rounds ask the same: the same keys, methods and messages.
fn is_same(one: &InputRequired, two: &InputRequired) -> bool {
    let questions = |asked: &InputRequired| -> Vec<(String, Value, Value)> {
        let mut questions: Vec<_> = asked
            .requests
            .iter()
            .map(|(key, request)| {
                let schema = request.pointer("/params/requestedSchema").or_else(|| request.pointer("/params/schema"));
                (key.clone(), request.get("method").cloned().unwrap_or_default(), schema.cloned().unwrap_or_default())
            })
            .collect();
        questions.sort_by(|one, two| one.0.cmp(&two.0));
        questions
    };
    questions(one) == questions(two)
}

const MOST_ROUNDS: usize = 6;
