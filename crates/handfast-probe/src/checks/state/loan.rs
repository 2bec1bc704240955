//! A state that was issued in one flow, and is presented in another: by somebody else, or for another request. The state
//! itself stays as issued, to the byte.

use handfast_wire::result::InputRequired;

use super::flow::{Flow, MOST_ROUNDS, Played};
use crate::{
    disposition::Disposition,
    identity::Who,
    target::Call,
    trial::Trial,
    verdict::{Halt, Reason},
};

/// A flow that has come to the round under test.
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
}

impl Flow {
    /// Plays as somebody up to the round under test, and leaves it there.
    pub(super) async fn wait(&self, trial: &mut Trial<'_, '_>, who: Who) -> Result<Waiting, Halt> {
        let (call, mut asked, first_step) = self.start(trial, who).await?;
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
        let mut answer = trial.call(step, who, &retry).await?;
        let mut rounds = issued.rounds.clone();
        rounds.push(issued.asked.clone());
        while let Disposition::Asked(asked) = answer.disposition.clone() {
            if rounds.len() >= MOST_ROUNDS {
                break;
            }
            let canary = trial.canary(who);
            let retry = trial.retry(under, &asked, asked.state.clone(), &canary);
            answer = trial.call(step, who, &retry).await?;
            rounds.push(asked);
        }
        Ok(Played { rounds, first_step: issued.first_step, answer, presented, altered: true })
    }
}

fn failed(said: &str) -> Halt {
    Halt::errored(Reason::ControlFailed, format!("a call that asked before no longer asks: {said}"))
}
