//! A flow that asks for an approval: its honest end, its ends with other answers in one round, and what they came to.

use handfast_wire::{message::Object, result::InputRequired};
use serde_json::Value;

use crate::{
    answers::{self, No},
    checks::state::{
        flow::{Flow, MOST_ROUNDS, Played},
        origins,
    },
    disposition::Disposition,
    identity::Who,
    likeness,
    target::Call,
    trial::{Answer, Trial},
    verdict::{Halt, Judgement, Observation, Reason, Row},
};

/// A flow, and how it ends when everything is approved.
pub(super) struct Scene {
    pub(super) flow: Flow,
    pub(super) done: Played,
}

/// What an end came to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum End {
    /// The answer says what the honest end says.
    Done,
    /// Refused, asked once more, or answered in other words.
    Undone(String),
    /// Neither.
    Unclear(String),
}

/// A flow that was carried to its end with other answers in one round.
pub(super) struct Ended {
    pub(super) answer: Answer,
    rounds: usize,
    again: bool,
}

/// What one check says of one flow.
pub(super) type Judged<'j> = std::pin::Pin<Box<dyn Future<Output = Result<Vec<Row>, Halt>> + 'j>>;

/// Every flow in turn, each judged by `of_flow`.
pub(super) async fn each(
    trial: &mut Trial<'_, '_>,
    of_flow: for<'j> fn(&'j mut Trial<'_, '_>, Flow, &'j mut Vec<Observation>) -> Judged<'j>,
) -> Result<Judgement, Halt> {
    let (origins, unfinished) = origins::find(trial).await?;
    let (mut rows, mut observations) = (trial.unlisted_rows(), Vec::new());
    rows.extend(unfinished.map(|halt| Row::halted("search", halt)));
    for origin in origins {
        let entry = origin.entry.clone();
        match of_flow(trial, Flow::new(origin), &mut observations).await {
            Ok(found) => rows.extend(found),
            Err(halt) => {
                let over = halt.is_final();
                rows.push(Row::halted(&entry, halt));
                if over {
                    break;
                }
            }
        }
    }
    Ok(Judgement::over(rows, observations))
}

impl Scene {
    /// The honest end, twice: where the two differ in their words, others are held against them less strictly.
    pub(super) async fn of(
        trial: &mut Trial<'_, '_>,
        mut flow: Flow,
        observations: &mut Vec<Observation>,
    ) -> Result<Self, Halt> {
        let done = flow.honest(trial, observations).await?;
        if !done.rounds.iter().any(is_approval) {
            let detail = "what is asked for here is information, and no approval";
            return Err(Halt::skipped(Reason::NoApprovalAsked, detail));
        }
        let done = flow.compared(trial, done).await?;
        Ok(Self { flow, done })
    }

    /// Rounds that ask for an approval.
    pub(super) fn approvals(&self) -> Vec<usize> {
        (0..self.done.rounds.len()).filter(|&round| is_approval(&self.done.rounds[round])).collect()
    }

    /// The flow with a no in its own round, and with honest answers in the others. `None` where there is nothing to say no to.
    pub(super) async fn refusing(&self, trial: &mut Trial<'_, '_>, step: &str, no: No) -> Result<Option<Ended>, Halt> {
        self.answering(trial, step, |asked, answers| answers::refuse(asked, no, answers)).await
    }

    /// The flow with other answers in its own round. `None` where `edit` has none.
    pub(super) async fn answering(
        &self,
        trial: &mut Trial<'_, '_>,
        step: &str,
        mut edit: impl FnMut(&InputRequired, &mut Object) -> bool,
    ) -> Result<Option<Ended>, Halt> {
        let (call, asked) = self.waiting(trial).await?;
        let mut retry = honest(trial, &call, &asked);
        let Some(Value::Object(answers)) = retry.params.get_mut("inputResponses") else { return Ok(None) };
        if !edit(&asked, answers) {
            return Ok(None);
        }
        let answer = trial.call(step, Who::A, &retry).await?;
        self.ended(trial, &call, &asked, answer).await.map(Some)
    }

    /// The flow as far as its own round, and what is asked there.
    pub(super) async fn waiting(&self, trial: &mut Trial<'_, '_>) -> Result<(Call, InputRequired), Halt> {
        let (call, mut asked, _) = self.flow.start(trial, Who::A).await?;
        for _ in 0..self.flow.round {
            let retry = honest(trial, &call, &asked);
            let answer = trial.call("untouched-round", Who::A, &retry).await?;
            match answer.disposition {
                Disposition::Asked(next) => asked = next,
                _ => return Err(no_longer_asks(&answer)),
            }
        }
        Ok((call, asked))
    }

    /// The end of a flow, from the answer to what was said in its own round.
    pub(super) async fn ended(
        &self,
        trial: &mut Trial<'_, '_>,
        call: &Call,
        asked: &InputRequired,
        answer: Answer,
    ) -> Result<Ended, Halt> {
        let again = matches!(&answer.disposition, Disposition::Asked(next) if asks_the_same(next, asked));
        if again {
            return Ok(Ended { answer, rounds: self.flow.round + 1, again });
        }
        let (answer, rounds) = to_the_end(trial, call, answer, self.flow.round + 1).await?;
        Ok(Ended { answer, rounds, again })
    }

    /// What an end came to.
    pub(super) fn end(&self, ended: &Ended) -> End {
        if ended.again || ended.rounds > self.done.rounds.len() {
            return End::Undone("the server asks again".to_owned());
        }
        self.meaning(&ended.answer)
    }

    /// What an answer is, held against the honest end.
    pub(super) fn meaning(&self, answer: &Answer) -> End {
        match &answer.disposition {
            Disposition::Accepted => match (answer.result(), self.done.answer.result()) {
                (Some(result), Some(honest))
                    if self.flow.is_like(result, honest) && !likeness::says_no(result, honest) =>
                {
                    End::Done
                }
                _ => End::Undone(answer.said()),
            },
            Disposition::Asked(_) => End::Undone("the server asks".to_owned()),
            Disposition::Refused(refusal) if refusal.reads_like_an_outage() => End::Unclear(refusal.to_string()),
            Disposition::Refused(refusal) => End::Undone(refusal.to_string()),
            Disposition::Task(_) | Disposition::Unclear(_) => End::Unclear(answer.said()),
        }
    }

    /// The honest flow once more, with an object of its own: a refusal means nothing where it is refused as well.
    pub(super) async fn still_works(&self, trial: &mut Trial<'_, '_>) -> Result<Played, Halt> {
        let after = self.flow.play(trial, Who::A, "untouched-again", None).await?;
        if after.answer.disposition == Disposition::Accepted {
            return Ok(after);
        }
        let detail = format!("the honest flow no longer works: {}", after.answer.said());
        Err(after.answer.unclear().unwrap_or_else(|| Halt::errored(Reason::ControlFailed, detail)))
    }
}

/// The rest of a flow, answered honestly, and how many rounds there were.
pub(super) async fn to_the_end(
    trial: &mut Trial<'_, '_>,
    call: &Call,
    mut answer: Answer,
    mut rounds: usize,
) -> Result<(Answer, usize), Halt> {
    while let Disposition::Asked(asked) = answer.disposition.clone() {
        if rounds >= MOST_ROUNDS {
            break;
        }
        let retry = honest(trial, call, &asked);
        answer = trial.call("untouched-round", Who::A, &retry).await?;
        rounds += 1;
    }
    Ok((answer, rounds))
}

pub(super) fn honest(trial: &mut Trial<'_, '_>, call: &Call, asked: &InputRequired) -> Call {
    let canary = trial.canary(Who::A);
    trial.retry(call, asked, asked.state.clone(), &canary)
}

/// Whether a round asks for an approval.
pub(super) fn is_approval(asked: &InputRequired) -> bool {
    asked.requests.values().any(answers::wants_consent)
}

/// Whether one round asks what another did.
pub(super) fn asks_the_same(one: &InputRequired, other: &InputRequired) -> bool {
    one.requests.keys().any(|key| other.requests.contains_key(key))
}

fn no_longer_asks(answer: &Answer) -> Halt {
    let detail = format!("a call that asked before no longer asks: {}", answer.said());
    answer.unclear().unwrap_or_else(|| Halt::errored(Reason::ControlFailed, detail))
}
