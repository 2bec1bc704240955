//! A state that was issued in one flow, and is presented in another, or at another time: by somebody else, for another
//! request, once more. The state itself stays as issued, to the byte.

use handfast_wire::result::InputRequired;

use super::flow::{Flow, MOST_ROUNDS, Played};
pub(super) use crate::verdict::soft;
use crate::{
    disposition::Disposition,
    forge,
    identity::Who,
    target::Call,
    trial::Trial,
    verdict::{Halt, Reason},
};

/// A flow that has come to the round under test.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    pub(super) call: Call,
    pub(super) asked: InputRequired,
    rounds: Vec<InputRequired>,
    first_step: usize,
}

impl Waiting {
    /// The state that was issued.
    pub(super) fn state(&self) -> Result<&str, Halt> {
        let missing = || Halt::errored(Reason::ControlFailed, "a round that carried a state before carries none");
        self.asked.state.as_deref().ok_or_else(missing)
    }

    /// The same flow, to be gone on with by a state that nobody issued.
    pub(super) fn forged(&self) -> Result<Self, Halt> {
        Ok(self.with_state(forge::state(self.state()?)))
    }

    /// The same flow, to be gone on with by another one's state.
    pub(super) fn with_state_of(&self, other: &Self) -> Self {
        let asked = InputRequired { state: other.asked.state.clone(), ..self.asked.clone() };
        Self { asked, ..self.clone() }
    }

    /// The same flow, to be gone on with by this state.
    pub(super) fn with_state(&self, state: String) -> Self {
        let asked = InputRequired { state: Some(state), ..self.asked.clone() };
        Self { asked, ..self.clone() }
    }
}

impl Flow {
    /// Plays as somebody up to the round under test, and leaves it there.
    pub(super) async fn wait(&self, trial: &mut Trial<'_, '_>, who: Who) -> Result<Waiting, Halt> {
        let begun = self.start(trial, who).await?;
        self.wait_after(trial, who, begun).await
    }

    /// The same on an object that was not used before.
    pub(super) async fn wait_afresh(&self, trial: &mut Trial<'_, '_>, who: Who) -> Result<Waiting, Halt> {
        trial.session.purse.retain(|(letter, _), _| *letter != who.letter());
        self.wait(trial, who).await
    }

    /// The same with this very call, which was made before.
    pub(super) async fn wait_on(&self, trial: &mut Trial<'_, '_>, who: Who, call: &Call) -> Result<Waiting, Halt> {
        let answer = trial.call("first-round", who, call).await?;
        match answer.disposition {
            Disposition::Asked(asked) => self.wait_after(trial, who, (call.clone(), asked, answer.step)).await,
            _ => Err(answer.unclear().unwrap_or_else(|| failed(&answer.said()))),
        }
    }

    async fn wait_after(
        &self,
        trial: &mut Trial<'_, '_>,
        who: Who,
        (call, mut asked, first_step): (Call, InputRequired, usize),
    ) -> Result<Waiting, Halt> {
        let mut rounds = Vec::new();
        while rounds.len() < self.round {
            let canary = trial.canary(who);
            let retry = trial.retry(&call, &asked, asked.state.clone(), &canary);
            let answer = trial.call("untouched-round", who, &retry).await?;
            rounds.push(asked);
            match answer.disposition {
                Disposition::Asked(next) => asked = next,
                _ => return Err(failed(&answer.said())),
            }
        }
        Ok(Waiting { call, asked, rounds, first_step })
    }

    /// Makes this very call and answers it honestly to its end.
    pub(super) async fn carry_out(&self, trial: &mut Trial<'_, '_>, who: Who, call: &Call) -> Result<Played, Halt> {
        let own = self.wait_on(trial, who, call).await?;
        self.present(trial, "untouched-flow", who, &own, call).await
    }

    /// Presents the state of one flow in another as somebody, with answers to what its own flow asked, and plays to the end.
    pub(super) async fn present(
        &self,
        trial: &mut Trial<'_, '_>,
        step: &str,
        who: Who,
        issued: &Waiting,
        under: &Call,
    ) -> Result<Played, Halt> {
        let presented = issued.state()?.to_owned();
        let canary = trial.canary(who);
        let retry = trial.retry(under, &issued.asked, Some(presented.clone()), &canary);
        self.send(trial, step, who, issued, &retry).await
    }

    /// Sends a retry, and plays to the end.
    pub(super) async fn send(
        &self,
        trial: &mut Trial<'_, '_>,
        step: &str,
        who: Who,
        issued: &Waiting,
        retry: &Call,
    ) -> Result<Played, Halt> {
        let presented = issued.state()?.to_owned();
        trial.session.redactor.shorten(&presented);
        let mut answer = trial.call(step, who, retry).await?;
        let mut rounds = issued.rounds.clone();
        rounds.push(issued.asked.clone());
        while let Disposition::Asked(asked) = answer.disposition.clone() {
            if rounds.len() >= MOST_ROUNDS {
                break;
            }
            let canary = trial.canary(who);
            // What it asks now is answered; everything else of the call stays.
            let mut call = retry.clone();
            call.params.retain(|name, _| !["inputResponses", "requestState"].contains(&name.as_str()));
            let next = trial.retry(&call, &asked, asked.state.clone(), &canary);
            answer = trial.call(step, who, &next).await?;
            rounds.push(asked);
        }
        Ok(Played { rounds, first_step: issued.first_step, answer, presented, altered: true })
    }
}

fn failed(said: &str) -> Halt {
    Halt::errored(Reason::ControlFailed, format!("a call that asked before no longer asks: {said}"))
}
