//! Every round of every flow that carries a state, each looked at on its own.

use super::{
    flow::{Flow, Played},
    origins,
};
use crate::{
    trial::Trial,
    verdict::{Halt, Judgement, Observation, Reason, Row},
};

/// Which rounds of a flow are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rounds {
    /// Each that carries a state.
    All,
    /// The one whose retry is carried out.
    Last,
}

/// Finds the flows, plays each honestly, and judges its rounds.
pub(super) async fn judge(
    trial: &mut Trial<'_, '_>,
    rounds: Rounds,
    of_round: impl AsyncFn(&mut Trial<'_, '_>, &Flow, &Played, &mut Vec<Observation>) -> Result<Row, Halt>,
) -> Result<Judgement, Halt> {
    let (origins, unfinished) = origins::find(trial).await?;
    let (mut rows, mut observations) = (trial.unlisted_rows(), Vec::new());
    // What was not looked at forbids a refutation.
    rows.extend(unfinished.map(|halt| Row::halted("search", halt)));
    for (at, origin) in origins.iter().enumerate() {
        let siblings = origins.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, other)| other.clone());
        let mut flow = Flow { siblings: siblings.collect(), ..Flow::new(origin.clone()) };
        let baseline = match honest(trial, &mut flow, &mut observations).await {
            Ok(baseline) => baseline,
            Err(halt) => {
                let over = halt.is_final();
                rows.push(Row::halted(&flow.origin.entry, halt));
                if over {
                    break;
                }
                continue;
            }
        };
        let mut carrying: Vec<usize> =
            (0..baseline.rounds.len()).filter(|&round| baseline.rounds[round].state.is_some()).collect();
        if rounds == Rounds::Last {
            carrying.retain(|&round| round + 1 == baseline.rounds.len());
        }
        if carrying.is_empty() {
            let halt = Halt::skipped(Reason::NothingReturnedInputRequired, "no round carried a requestState");
            rows.push(Row::halted(&flow.origin.entry, halt));
        }
        for round in carrying {
            flow.round = round;
            let outcome = of_round(trial, &flow, &baseline, &mut observations).await;
            let over = outcome.as_ref().is_err_and(Halt::is_final);
            rows.push(outcome.unwrap_or_else(|halt| Row::halted(&flow.entry(), halt)));
            if over {
                return Ok(Judgement::over(rows, observations));
            }
        }
    }
    Ok(Judgement::over(rows, observations))
}

/// The honest flow, and whether a second one says the same.
async fn honest(
    trial: &mut Trial<'_, '_>,
    flow: &mut Flow,
    observations: &mut Vec<Observation>,
) -> Result<Played, Halt> {
    let baseline = flow.honest(trial, observations).await?;
    // That a server wants bare values is said once, by the check that finds it first.
    observations.retain(|observation| observation.id != "answers-bare");
    flow.compared(trial, baseline).await
}
