//! Whether the next id can be foretold. Which it will be is said first; then somebody else is given one. Nothing is
//! concluded from statistics: they bound a choice from above, and never show that it is random.

mod choice;
mod dated;
mod digests;
mod entropy;
mod object_ids;
mod series;
mod views;

use crate::{digest::Algorithm, identity::Who, trial::Trial, verdict::Halt};
pub(crate) use choice::Choice;
use series::Series;
use views::{VIEWS, View};

/// An id, and what was sent to get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Id {
    pub(crate) text: String,
    pub(crate) sent: Vec<String>,
}

/// Where the ids under test come from.
pub(crate) trait Source {
    /// A new one for this caller.
    async fn next(&self, trial: &mut Trial<'_, '_>, who: Who) -> Result<Id, Halt>;
}

/// What a sample of ids came to.
pub(crate) enum Finding {
    /// Every id of one caller is this one.
    Same(String),
    /// The id that B was given was named before, each time.
    Foretold(Foretold),
    /// The next one of the caller's own was named before, each time, and none of anybody else's.
    OfTheirOwn(String),
    /// The ids look like a series, and none was named before.
    Unnamed,
    /// No habit that is known.
    NoHabit,
}

/// Ids that were named before.
pub(crate) struct Foretold {
    /// How they are made.
    pub(crate) how: String,
    /// How many were named for each.
    pub(crate) candidates: u128,
    /// What B was given.
    pub(crate) ids: Vec<String>,
}

/// A sample of A's, and what it came to.
pub(crate) async fn look<S: Source>(trial: &mut Trial<'_, '_>, source: &S) -> Result<(Vec<String>, Finding), Halt> {
    let mut sample = Vec::new();
    for _ in 0..SAMPLE {
        sample.push(source.next(trial, Who::A).await?);
    }
    let ids: Vec<String> = sample.iter().map(|id| id.text.clone()).collect();
    if ids.iter().all(|id| *id == ids[0]) {
        let same = ids[0].clone();
        return Ok((ids, Finding::Same(same)));
    }
    let habits = habits(&sample);
    for habit in &habits {
        if let Some(found) = foretold(trial, source, habit, Who::B).await? {
            let found = Foretold { how: habit.how(), candidates: habit.candidates(), ids: found };
            return Ok((ids, Finding::Foretold(found)));
        }
    }
    // Each caller may have a series of their own.
    for habit in &habits {
        if foretold(trial, source, habit, Who::A).await?.is_some() {
            return Ok((ids, Finding::OfTheirOwn(habit.how())));
        }
    }
    Ok((ids, if habits.is_empty() { Finding::NoHabit } else { Finding::Unnamed }))
}

/// Three times: an id of A's is the last, the candidates are named, and somebody is given the next. All of them, if each was
/// a candidate.
async fn foretold<S: Source>(
    trial: &mut Trial<'_, '_>,
    source: &S,
    habit: &Habit,
    by: Who,
) -> Result<Option<Vec<String>>, Halt> {
    let mut found = Vec::new();
    for _ in 0..ROUNDS {
        let last = source.next(trial, Who::A).await?;
        let next = source.next(trial, by).await?;
        if !habit.foretells(&last, &next) {
            return Ok(None);
        }
        found.push(next.text);
    }
    Ok(Some(found))
}

/// A way in which ids are made that names the next one.
enum Habit {
    /// The time, what stays the same, and a counter.
    ObjectIds,
    /// A digest of what the caller said.
    Digests(Algorithm),
    /// Always the same step.
    Steps(&'static View, Series, u128),
    /// Small steps, as counters and clocks make.
    Near(&'static View, Series),
}

/// The likeliest first.
fn habits(sample: &[Id]) -> Vec<Habit> {
    let ids: Vec<String> = sample.iter().map(|id| id.text.clone()).collect();
    let mut habits = Vec::new();
    if object_ids::are_object_ids(&ids) {
        habits.push(Habit::ObjectIds);
    }
    habits.extend(digests::of_what_was_said(sample).map(Habit::Digests));
    for view in &VIEWS {
        let read: Option<Vec<String>> = ids.iter().map(|id| (view.read)(id)).collect();
        let Some(series) = read.and_then(|ids| Series::of(&ids)).filter(Series::is_a_habit) else { continue };
        habits.extend(series.step().map(|step| Habit::Steps(view, series.clone(), step)));
        habits.push(Habit::Near(view, series));
    }
    habits
}

impl Habit {
    fn how(&self) -> String {
        match self {
            Self::ObjectIds => "each id is the time, what stays the same, and a counter".to_owned(),
            Self::Digests(algorithm) => format!("each id is the {} of what its caller said", algorithm.name()),
            Self::Steps(view, series, step) => {
                format!("each id{} is {step} {} than the last", view.how, series.direction())
            }
            Self::Near(view, series) => {
                let direction = series.direction();
                format!("each id{} is a little {direction} than the last, as counters and clocks are", view.how)
            }
        }
    }

    fn candidates(&self) -> u128 {
        match self {
            Self::ObjectIds => u128::from(object_ids::MOST_SECONDS) + 1,
            Self::Digests(_) => MOST_SAID,
            Self::Steps(..) => 1,
            Self::Near(..) => CANDIDATES,
        }
    }

    fn foretells(&self, last: &Id, next: &Id) -> bool {
        match self {
            Self::ObjectIds => object_ids::candidates(&last.text).contains(&next.text),
            Self::Digests(algorithm) => digests::algorithm_of(next) == Some(*algorithm),
            Self::Steps(view, series, step) => match ((view.read)(&last.text), (view.read)(&next.text)) {
                (Some(last), Some(next)) => series.after(&last, *step) == Some(next),
                _ => false,
            },
            Self::Near(view, series) => match ((view.read)(&last.text), (view.read)(&next.text)) {
                (Some(last), Some(next)) => series.is_roomy() && series.follows(&next, &last, CANDIDATES),
                _ => false,
            },
        }
    }
}

/// How often an id is foretold.
pub(crate) const ROUNDS: usize = 3;
/// How many ids are looked at.
pub(crate) const SAMPLE: usize = 24;
const CANDIDATES: u128 = 4096;
/// What a caller says in one call.
const MOST_SAID: u128 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(texts: impl IntoIterator<Item = String>) -> Vec<Id> {
        texts.into_iter().map(|text| Id { text, sent: Vec::new() }).collect()
    }

    #[test]
    fn a_counter_is_a_habit_and_the_next_of_it_is_named() {
        let sample = ids((0..SAMPLE).map(|at| format!("s-{}", 100 + at)));
        let found = habits(&sample);
        let [last, next, other] = ["s-200", "s-201", "s-202"].map(|id| ids([id.to_owned()]).remove(0));
        assert!(matches!(found[0], Habit::Steps(_, _, 1)) && found[0].candidates() == 1);
        assert!(found[0].foretells(&last, &next) && !found[0].foretells(&last, &other));
    }

    #[test]
    fn a_hidden_counter_is_one_as_well() {
        let md5 = |at: usize| format!("id-{}", digests::hex(Algorithm::Md5, &at.to_string()));
        let sample = ids((0..SAMPLE).map(|at| md5(7 + at)));
        let found = habits(&sample);
        let [last, next, other] = [100, 101, 102].map(|at| ids([md5(at)]).remove(0));
        assert!(found[0].foretells(&last, &next) && !found[0].foretells(&last, &other), "{}", found[0].how());
        assert!(found[0].how().contains("digest of a small number"), "{}", found[0].how());
    }

    #[test]
    fn what_is_random_is_none() {
        let sample = ids((0..SAMPLE).map(|_| crate::random::hex(16)));
        assert!(habits(&sample).is_empty());
    }
}
