//! One flow from its first call to its end, with at most one state altered on the way. Each experiment starts from a call of
//! its own: none reuses a state that another has spent.

use super::{loan::soft, origins::Origin};
use crate::{
    answers::Form,
    counts::Counts,
    disposition::{Disposition, Refusal},
    forge,
    identity::Who,
    likeness,
    target::Call,
    trial::{Answer, Trial},
    verdict::{ControlPlan, Controls, Halt, Negative, Observation, Reason, Row},
};
use handfast_wire::result::InputRequired;
use serde_json::Value;

/// A flow, and the round whose state is altered.
#[derive(Debug, Clone)]
pub(in crate::checks) struct Flow {
    pub(in crate::checks) origin: Origin,
    pub(in crate::checks) round: usize,
    /// Two honest flows said the same: then an accepted alteration has to say it as well.
    pub(in crate::checks) steady: bool,
    /// What honest flows counted.
    pub(in crate::checks) counts: Counts,
    /// The other calls that make the server ask.
    pub(super) siblings: Vec<Origin>,
}

/// A flow that was carried to its end, or as far as it went.
#[derive(Debug, Clone)]
pub(in crate::checks) struct Played {
    /// What was asked, round by round.
    pub(in crate::checks) rounds: Vec<InputRequired>,
    /// The exchange that began it.
    pub(in crate::checks) first_step: usize,
    /// The last answer.
    pub(in crate::checks) answer: Answer,
    /// The state that was presented in the altered round.
    pub(in crate::checks) presented: String,
    /// Whether the altered state was presented at all.
    pub(in crate::checks) altered: bool,
}

/// What an altered state came to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Outcome {
    /// The server went on with it.
    Accepted,
    /// The server said no.
    Refused(Refusal),
    /// A complete result that does not say what the honest one says: a "no" without `isError`, or an effect.
    Unlike(String),
    /// The server did not take it, and asked once more.
    AskedAgain,
    /// Neither.
    Unclear(String),
}

/// Alters a state; `None` where it cannot be altered in this way.
pub(in crate::checks) type Alter<'a> = &'a mut dyn FnMut(&str) -> Option<String>;

impl Flow {
    pub(in crate::checks) fn new(origin: Origin) -> Self {
        Self { origin, round: 0, steady: true, counts: Counts::default(), siblings: Vec::new() }
    }

    /// The entry point, with its round where it is not the first.
    pub(in crate::checks) fn entry(&self) -> String {
        match self.round {
            0 => self.origin.entry.clone(),
            round => format!("{} (round {})", self.origin.entry, round + 1),
        }
    }

    /// Whether a result of this flow says what an honest one says, as far as honest ones say the same.
    pub(in crate::checks) fn is_like(&self, result: &Value, honest: &Value) -> bool {
        let alike = if self.steady { likeness::same(result, honest) } else { likeness::alike(result, honest) };
        alike && !self.counts_nothing(result, honest)
    }

    /// Whether a result says by a number that it was not done: "archived 0 items", where every honest one counts some.
    pub(super) fn counts_nothing(&self, result: &Value, honest: &Value) -> bool {
        self.counts.clone().with(honest).denied_by(result)
    }

    /// A second honest end, on objects of its own: what the two do not agree in is no sign of anything. Later ones are on those
    /// objects as well, so that the second is what they are held against.
    pub(in crate::checks) async fn compared(
        &mut self,
        trial: &mut Trial<'_, '_>,
        first: Played,
    ) -> Result<Played, Halt> {
        let purse = trial.session.purse.clone();
        trial.session.purse.retain(|(letter, _), _| *letter != Who::A.letter());
        if !matches!(soft(self.origin.call(trial, Who::A).await)?, Some(Some(_))) {
            // There are no more objects to be had.
            trial.session.purse = purse;
        }
        let again = self.play(trial, Who::A, "untouched-retry", None).await?;
        self.steady = match (again.answer.result(), first.answer.result()) {
            (Some(again), Some(first)) => {
                self.counts = Counts::of(first).with(again);
                likeness::same(again, first)
            }
            _ => false,
        };
        Ok(if again.answer.disposition == Disposition::Accepted { again } else { first })
    }

    /// The honest flow: right answers, every state untouched. A server that wants bare values gets them on a second try.
    pub(in crate::checks) async fn honest(
        &self,
        trial: &mut Trial<'_, '_>,
        observations: &mut Vec<Observation>,
    ) -> Result<Played, Halt> {
        let first = self.play(trial, Who::A, "untouched-retry", None).await?;
        if first.answer.disposition == Disposition::Accepted {
            return Ok(first);
        }
        if let Some(halt) = first.answer.unclear() {
            return Err(halt);
        }
        let said = first.answer.said();
        trial.session.form = Form::Bare;
        let second = self.play(trial, Who::A, "untouched-retry", None).await;
        if let Ok(second) = second
            && second.answer.disposition == Disposition::Accepted
        {
            let text = format!(
                "{}: takes bare values as answers, not the ElicitResult of the specification",
                self.origin.entry
            );
            observations.push(Observation { id: "answers-bare", text });
            return Ok(second);
        }
        trial.session.form = Form::Specified;
        Err(Halt::skipped(Reason::UntouchedRetryDidNotSucceed, format!("the honest retry was not accepted: {said}")))
    }

    /// Plays the flow as somebody with a state that nobody issued.
    pub(super) async fn with_random(&self, trial: &mut Trial<'_, '_>, who: Who, step: &str) -> Result<Played, Halt> {
        self.play(trial, who, step, Some(&mut |state| Some(forge::state(state)))).await
    }

    /// Plays the flow as somebody. `alter` changes the state of the flow's own round.
    pub(in crate::checks) async fn play(
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
                // Played to its end in any case: how it ends tells whether an altered state was taken or asked for again.
                Disposition::Asked(next) if rounds.len() < MOST_ROUNDS => asked = next,
                _ => return Ok(Played { rounds, first_step, answer, presented, altered }),
            }
        }
    }

    /// A first call that is asked something.
    pub(in crate::checks) async fn start(
        &self,
        trial: &mut Trial<'_, '_>,
        who: Who,
    ) -> Result<(Call, InputRequired, usize), Halt> {
        let is_asked = |answer: &Answer| matches!(answer.disposition, Disposition::Asked(_)) || answer.lost().is_some();
        let failed = |said: &str| match who {
            Who::A => Halt::errored(Reason::ControlFailed, format!("a call that asked before no longer asks: {said}")),
            _ => Halt::skipped(
                Reason::SecondIdentityNotLive,
                format!("{} is not asked what A is asked: {said}", who.label()),
            ),
        };
        let Some((call, answer)) = self.origin.begin(trial, who, "first-round", is_asked).await? else {
            return Err(failed("no call could be made"));
        };
        if let Some(halt) = answer.lost() {
            return Err(halt);
        }
        let said = answer.said();
        match answer.disposition {
            Disposition::Asked(asked) => Ok((call, asked, answer.step)),
            _ => Err(failed(&said)),
        }
    }
}

impl Flow {
    /// The controls that most experiments share: the honest flow was accepted, and a random state is not, or is not consulted.
    pub(super) async fn controls(
        &self,
        trial: &mut Trial<'_, '_>,
        baseline: &Played,
    ) -> Result<(Controls, Played), Halt> {
        let mut plan = ControlPlan::default();
        plan.accepts(&baseline.answer, |said| Halt::skipped(Reason::UntouchedRetryDidNotSucceed, said))?;
        let random = self.with_random(trial, Who::A, "random-state").await?;
        random.as_negative(&mut plan, self, baseline)?;
        Ok((plan.hold()?, random))
    }

    /// The row of a flow whose state nobody consults.
    pub(super) fn unconsulted(&self, controls: &Controls) -> Option<Row> {
        let entry = self.entry();
        let text = format!("{entry}: a random state of the same shape was accepted: the state is not consulted");
        (*controls.negative() == Negative::Honoured)
            .then(|| Row::refuted(controls, &entry, Reason::StateWitnessUnusable, text))
    }

    /// The honest flow once more, after refusals: they may have been an outage or a limit.
    pub(super) async fn still_works(&self, trial: &mut Trial<'_, '_>) -> Result<(), Halt> {
        let after = self.play(trial, Who::A, "untouched-again", None).await?;
        if after.answer.disposition == Disposition::Accepted {
            return Ok(());
        }
        let detail = format!("the honest retry no longer works: {}", after.answer.said());
        Err(after.answer.unclear().unwrap_or_else(|| Halt::errored(Reason::ControlFailed, detail)))
    }

    /// A random state once more, after an acceptance: it must still be refused.
    pub(super) async fn still_refuses(&self, trial: &mut Trial<'_, '_>, baseline: &Played) -> Result<(), Halt> {
        let again = self.with_random(trial, Who::A, "random-state-again").await?;
        match again.outcome(self, baseline) {
            Outcome::Accepted => Err(Halt::errored(Reason::Unstable, "a random state was refused first and then not")),
            Outcome::Unclear(said) => Err(Halt::errored(Reason::Unclear, said)),
            _ => Ok(()),
        }
    }

    /// Whether even the first call is refused to this caller, and for the credential alone: the very same call does for A.
    pub(super) async fn is_refused(&self, trial: &mut Trial<'_, '_>, who: Who) -> Result<bool, Halt> {
        let (call, ..) = self.start(trial, Who::A).await?;
        let answer = trial.call("without-identity", who, &call).await?;
        if !matches!(answer.disposition, Disposition::Refused(_)) {
            return Ok(false);
        }
        let own = trial.call("with-identity", Who::A, &call).await?;
        Ok(matches!(own.disposition, Disposition::Asked(_)))
    }
}

impl Played {
    /// A flow with a random state, as the control that must not be accepted.
    pub(super) fn as_negative(&self, plan: &mut ControlPlan, flow: &Flow, baseline: &Played) -> Result<(), Halt> {
        match self.outcome(flow, baseline) {
            Outcome::Accepted => plan.presents_unissued(&baseline.answer, &[]),
            Outcome::AskedAgain => {
                plan.was_asked_again();
                Ok(())
            }
            Outcome::Unlike(text) => {
                plan.refused_in_words(&text);
                Ok(())
            }
            _ => plan.presents_unissued(&self.answer, std::slice::from_ref(&self.presented)),
        }
    }

    /// Whether a complete result says no: as it does to a random state, or in words or by a number that the honest one has not.
    pub(super) fn is_a_no(&self, flow: &Flow, [honest, random]: [&Played; 2]) -> bool {
        let Some(result) = self.answer.result() else { return false };
        let as_random = random.answer.result().is_some_and(|random| likeness::alike(result, random));
        let says_no = |honest: &Value| likeness::says_no(result, honest) || flow.counts_nothing(result, honest);
        as_random || honest.answer.result().is_some_and(says_no)
    }

    /// What the altered round came to, measured against the honest flow.
    pub(super) fn outcome(&self, flow: &Flow, baseline: &Played) -> Outcome {
        let asked_more = self.rounds.len() > baseline.rounds.len();
        match &self.answer.disposition {
            // A flow that took a round more than the honest one was asked the same once more.
            Disposition::Accepted | Disposition::Asked(_) if asked_more => Outcome::AskedAgain,
            Disposition::Asked(_) => Outcome::AskedAgain,
            Disposition::Accepted => match (self.answer.result(), baseline.answer.result()) {
                (Some(result), Some(honest)) if !flow.is_like(result, honest) => Outcome::Unlike(self.answer.said()),
                _ => Outcome::Accepted,
            },
            // Neither does "not now" say "not this one".
            Disposition::Refused(refusal) if refusal.reads_like_an_outage() => Outcome::Unclear(refusal.to_string()),
            Disposition::Refused(refusal) if self.rounds.len() == flow.round + 1 => Outcome::Refused(refusal.clone()),
            Disposition::Refused(refusal) => Outcome::Unclear(format!("refused in a later round: {refusal}")),
            Disposition::Task(_) | Disposition::Unclear(_) => Outcome::Unclear(self.answer.said()),
        }
    }
}

pub(in crate::checks) const MOST_ROUNDS: usize = 12;

/// The first call of the honest flow, and the end of each flow.
pub(super) fn story(flows: &[&Played]) -> Vec<usize> {
    flows.first().map(|flow| flow.first_step).into_iter().chain(flows.iter().map(|flow| flow.answer.step)).collect()
}
