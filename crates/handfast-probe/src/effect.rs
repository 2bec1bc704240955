//! What an owner can see of what was done: a value in the answers that is another one after each use of an object, or a
//! number that goes up by one step with each.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::likeness::facts;

/// Values that tell a used object from an untouched one, by their place in its answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Marks(BTreeMap<String, (Value, Value)>);

/// Numbers that go up with each use, by their place in the answers, with their last value and their step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Counters(BTreeMap<String, (i64, i64)>);

impl Marks {
    /// From the answers to the first use of one object, to its second, and to the first use of another object after that. What
    /// goes on by itself, a clock or a number of all requests, does not come back to what it was.
    pub fn of(first: &Value, second: &Value, other_first: &Value) -> Self {
        let (first, second, other) = (facts(first), facts(second), facts(other_first));
        let told = first.into_iter().filter_map(|(at, value)| {
            let used = second.get(&at).filter(|used| **used != value)?.clone();
            (other.get(&at) == Some(&value)).then_some((at, (value, used)))
        });
        Self(told.collect())
    }

    /// What both say.
    #[must_use]
    pub fn agreed(mut self, other: &Self) -> Self {
        self.0.retain(|at, values| other.0.get(at) == Some(values));
        self
    }

    /// Whether an object looks used: at each of the places, and at one of them at least.
    pub fn show_use(&self, result: &Value) -> bool {
        let found = facts(result);
        !self.0.is_empty() && self.0.iter().all(|(at, (_, used))| found.get(at) == Some(used))
    }

    /// Whether it looks untouched.
    pub fn show_none(&self, result: &Value) -> bool {
        let found = facts(result);
        !self.0.is_empty() && self.0.iter().all(|(at, (untouched, _))| found.get(at) == Some(untouched))
    }
}

impl Counters {
    /// From the answers to three uses in a row.
    pub fn of(uses: [&Value; 3]) -> Self {
        let [first, second, third] = uses.map(numbers);
        let counted = first.into_iter().filter_map(|(at, one)| {
            let [two, three] = [*second.get(&at)?, *third.get(&at)?];
            let step = two.checked_sub(one)?;
            (step != 0 && three.checked_sub(two) == Some(step)).then_some((at, (three, step)))
        });
        Self(counted.collect())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many uses there were since the last one that was counted, this one included; `None` where the counters do not
    /// agree, or count no whole uses.
    pub fn uses_until(&self, result: &Value) -> Option<i64> {
        let found = numbers(result);
        let mut uses = self.0.iter().map(|(at, (last, step))| {
            let gone = found.get(at)?.checked_sub(*last)?;
            (gone % step == 0).then_some(gone / step)
        });
        let first = uses.next()??;
        uses.all(|other| other == Some(first)).then_some(first)
    }

    /// The same counters, at what this answer shows.
    #[must_use]
    pub fn from_here(&self, result: &Value) -> Self {
        let found = numbers(result);
        let here = self.0.iter().filter_map(|(at, (_, step))| Some((at.clone(), (*found.get(at)?, *step))));
        Self(here.collect())
    }
}

/// Every whole number of an answer by its place; in a sentence, by which of its numbers it is.
fn numbers(result: &Value) -> BTreeMap<String, i64> {
    let mut numbers = BTreeMap::new();
    for (at, value) in facts(result) {
        let words = value.as_str().unwrap_or_default().split(|c: char| !c.is_alphanumeric() && !"-_.".contains(c));
        // `7.` ends a sentence; `hf-7` and `7-8` are no counts.
        let counts = words.map(|word| word.trim_end_matches('.')).filter_map(|word| scaled(word.parse().ok()?));
        numbers.extend(counts.enumerate().map(|(which, number)| (format!("{at}#{which}"), number)));
        // How long each list is.
        for (list, index) in at.match_indices('/').filter_map(|(start, _)| {
            let index = at[start + 1..].split('/').next()?.parse::<i64>().ok()?;
            Some((at[..start].to_owned(), index))
        }) {
            let length = numbers.entry(format!("{list}#length")).or_insert(0);
            *length = (*length).max((index + 1) * SCALE);
        }
        numbers.extend(value.as_f64().and_then(scaled).map(|number| (at, number)));
    }
    numbers
}

/// A number in ten-thousandths: `12.5` and `25` are counted alike.
fn scaled(number: f64) -> Option<i64> {
    let number = (number * SCALE as f64).round();
    (number.abs() < LARGEST).then_some(number as i64)
}

const SCALE: i64 = 10_000;
/// Whole numbers are exact up to here.
const LARGEST: f64 = 9e15;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(times: i64, clock: i64) -> Value {
        json!({"structuredContent": {"times": times, "clock": clock, "principal": "alice"}})
    }

    #[test]
    fn a_used_object_is_told_from_an_untouched_one_and_a_clock_tells_nothing() {
        let marks = Marks::of(&answer(1, 10), &answer(2, 11), &answer(1, 12));
        assert!(marks.show_use(&answer(2, 13)) && !marks.show_none(&answer(2, 13)));
        assert!(marks.show_none(&answer(1, 11)) && !marks.show_use(&answer(1, 11)));
        assert!(!marks.show_use(&answer(3, 13)));
        let silent = Marks::of(&answer(1, 10), &answer(1, 11), &answer(1, 12));
        assert!(!silent.show_use(&answer(1, 13)) && !silent.show_none(&answer(1, 13)));
    }

    #[test]
    fn what_takes_turns_is_no_mark() {
        let node = |number: i64| json!({"structuredContent": {"node": number % 4, "times": 1}});
        let once = Marks::of(&node(0), &node(1), &node(4));
        assert!(once.show_use(&node(5)), "once it looks like one");
        let agreed = once.agreed(&Marks::of(&node(6), &node(7), &node(9)));
        assert!(!agreed.show_use(&node(5)) && !agreed.show_none(&node(4)));
        let used = |times: i64| answer(times, 0);
        let marks = Marks::of(&used(1), &used(2), &used(1));
        assert!(marks.clone().agreed(&marks).show_use(&used(2)));
    }

    #[test]
    fn uses_are_counted_by_what_steps_evenly() {
        let counters = Counters::of([&answer(1, 10), &answer(2, 11), &answer(3, 13)]);
        assert_eq!([4, 5, 3].map(|times| counters.uses_until(&answer(times, 99))), [Some(1), Some(2), Some(0)]);
        assert_eq!(counters.from_here(&answer(5, 99)).uses_until(&answer(6, 99)), Some(1));
        assert!(Counters::of([&answer(1, 10), &answer(1, 11), &answer(1, 13)]).is_empty());
    }

    #[test]
    fn what_a_sentence_counts_is_counted() {
        let said = |count: i64| {
            let text = format!("1 per cent for hf-a0{count}-canary, offer {count} of 9-12.");
            json!({"content": [{"type": "text", "text": text}]})
        };
        let counters = Counters::of([&said(21), &said(22), &said(23)]);
        assert_eq!([24, 25].map(|count| counters.uses_until(&said(count))), [Some(1), Some(2)]);
        assert_eq!(counters.uses_until(&json!({"content": [{"type": "text", "text": "done"}]})), None);
    }

    #[test]
    fn money_and_lists_are_counted() {
        let seen = |times: usize| {
            let credits = vec!["EUR"; times];
            json!({"structuredContent": {"total": 12.5 * times as f64, "credits": credits, "text": format!("EUR {:.2} so far", 12.5 * times as f64)}})
        };
        let counters = Counters::of([&seen(1), &seen(2), &seen(3)]);
        assert_eq!(counters.0.len(), 3, "{counters:?}");
        assert_eq!([4, 5].map(|times| counters.uses_until(&seen(times))), [Some(1), Some(2)]);
    }

    #[test]
    fn counters_that_disagree_count_nothing() {
        let counters = Counters::of([&answer(1, 10), &answer(2, 11), &answer(3, 12)]);
        assert_eq!(counters.uses_until(&answer(5, 14)), Some(2));
        assert_eq!(counters.uses_until(&answer(5, 13)), None);
        let by_two = Counters::of([&answer(1, 0), &answer(3, 0), &answer(5, 0)]);
        assert_eq!(by_two.uses_until(&answer(8, 0)), None);
    }
}
