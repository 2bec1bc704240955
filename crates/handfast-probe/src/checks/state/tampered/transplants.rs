//! Real values in the wrong state: what another state of A's says at one place, put into a state of A's or of B's. An order
//! that nobody placed is refused whatever protects the state; A's own order in B's state is not, where the state is believed.

use super::{
    super::{
        flow::{Flow, Outcome, Played},
        loan::{Waiting, soft},
    },
    subjects::{Attempt, How, New, Tried},
};
use crate::{
    discovery::emitted,
    disposition::Disposition,
    identity::Who,
    likeness, marker,
    state::fields,
    trial::{Answer, Trial},
    verdict::Halt,
};

/// Each place at which two states of A's differ, in a state of A's and in one of B's.
pub(super) async fn attempts(
    trial: &mut Trial<'_, '_>,
    flow: &Flow,
    issued: &str,
    of_b: Option<Played>,
    new: New<'_>,
) -> Result<Vec<Attempt>, Halt> {
    let purse = trial.session.purse.clone();
    let other = soft(flow.wait_afresh(trial, Who::A).await)?;
    // What comes after is tried on the objects of the honest end.
    trial.session.purse = purse;
    let Some(other) = other else { return Ok(Vec::new()) };
    let paths: Vec<Vec<String>> = fields::differing(issued, other.state()?).into_iter().take(MOST_PLACES).collect();
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    // B may not be able to carry out a flow at all.
    let of_b = match of_b {
        Some(played) => Some(played),
        None => soft(flow.play(trial, Who::B, "stranger-untouched", None).await)?,
    };
    let of_b = of_b.filter(|played| played.answer.disposition == Disposition::Accepted);
    let mut found = Vec::new();
    for path in paths {
        let place = path.join(" > ");
        let attempt = |told: String| new(How::Transplant(path.clone()), told, None, false, 353);
        if let Some(honest) = &of_b {
            let told = format!("B's own state with {place} of a state of A's in it");
            found.push(attempt(told).of_b(honest));
        }
        found.push(attempt(format!("a state with {place} of another state of A's in it")));
    }
    Ok(found)
}

/// One value of a fresh state of A's in another fresh state, presented by whom that was issued to. What is not carried out says
/// nothing here: it may be refused for what it names.
pub(super) async fn attempt(
    trial: &mut Trial<'_, '_>,
    flow: &Flow,
    honest: &Played,
    attempt: &Attempt,
    path: &[String],
) -> Result<Tried, Halt> {
    let purse = trial.session.purse.clone();
    let tried = mixed(trial, flow, honest, attempt, path).await;
    trial.session.purse = purse;
    tried
}

async fn mixed(
    trial: &mut Trial<'_, '_>,
    flow: &Flow,
    honest: &Played,
    attempt: &Attempt,
    path: &[String],
) -> Result<Tried, Halt> {
    let Some([donor, own]) = soft(pair(trial, flow, attempt.who).await)? else { return Ok(Tried::Impossible) };
    let mixed = fields::transplanted(own.state()?, donor.state()?, path).and_then(|mixed| attempt.sealed(mixed));
    let Some(mixed) = mixed else { return Ok(Tried::Impossible) };
    let altered = own.with_state(mixed);
    let played = flow.present(trial, "altered-state", attempt.who, &altered, &own.call).await?;
    match played.outcome(flow, honest) {
        Outcome::Unclear(said) => {
            return played.answer.lost().map_or_else(|| Ok(Tried::Unclear(trial.clean(&said))), Err);
        }
        Outcome::Refused(_) | Outcome::AskedAgain => return Ok(Tried::Impossible),
        Outcome::Accepted | Outcome::Unlike(_) => {}
    }
    if !shows(trial, &played.answer, [&donor, &altered], path, honest) {
        return Ok(Tried::Impossible);
    }
    // What the whole of A's state would do here as well, or no state of A's at all, is no work of the one value in it.
    let Some([donor, own]) = soft(pair(trial, flow, attempt.who).await)? else { return Ok(Tried::Impossible) };
    let untouched = flow.present(trial, "untouched-flow", attempt.who, &own, &own.call).await?;
    if shows(trial, &untouched.answer, [&donor, &own], path, honest) {
        return Ok(Tried::Impossible);
    }
    let Some([donor, own]) = soft(pair(trial, flow, attempt.who).await)? else { return Ok(Tried::Impossible) };
    let whole = flow.present(trial, "whole-state", attempt.who, &own.with_state_of(&donor), &own.call).await?;
    match whole.outcome(flow, honest) {
        Outcome::Refused(_) | Outcome::AskedAgain => Ok(Tried::Accepted(Box::new(played))),
        Outcome::Unlike(_) if !shows(trial, &whole.answer, [&donor, &donor], path, honest) => {
            Ok(Tried::Accepted(Box::new(played)))
        }
        _ => Ok(Tried::Impossible),
    }
}

/// A flow of A's, and one of this caller's, each on an object of its own.
async fn pair(trial: &mut Trial<'_, '_>, flow: &Flow, who: Who) -> Result<[Waiting; 2], Halt> {
    Ok([flow.wait_afresh(trial, Who::A).await?, flow.wait_afresh(trial, who).await?])
}

/// Whether an answer, which says the same kind of thing as the honest one, shows what came from A's other state: the value, or
/// what A planted in the call that got it.
fn shows(
    trial: &Trial<'_, '_>,
    answer: &Answer,
    [donor, presented]: [&Waiting; 2],
    path: &[String],
    honest: &Played,
) -> bool {
    let (Some(result), Some(own)) = (answer.result(), honest.answer.result()) else { return false };
    if !likeness::alike(result, own) || likeness::says_no(result, own) {
        return false;
    }
    let state = |waiting: &Waiting| waiting.asked.state.clone().unwrap_or_default();
    let value = fields::value_at(&state(donor), path).map(|value| emitted::text_of(&value)).unwrap_or_default();
    let echoes = [state(presented)];
    let is_shown = |word: &str| {
        word.len() >= SHORTEST_SHOWN
            && !answer.sent.iter().any(|sent| sent.contains(word) && !echoes.contains(sent))
            && marker::find_name(result, word, &echoes).is_some()
            && marker::find_name(own, word, &[]).is_none()
    };
    let planted = crate::trial::strings_in(&serde_json::Value::Object(donor.call.params.clone()));
    let mut planted = planted.iter().filter(|text| trial.session.canaries.planted_by(Who::A, text));
    is_shown(&value) || planted.any(|text| is_shown(text))
}

const MOST_PLACES: usize = 3;
const SHORTEST_SHOWN: usize = 4;
