//! What the numbers of an answer say of what was done: that nothing was ("archived 0 items"), that something went wrong
//! ("2 failed"), or another status than that of an honest call. All other numbers are free to differ: they are sizes, clocks
//! and counters.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{discovery::names, likeness::facts};

/// The numbers in honest answers, by their place and by what they are called: every value that was seen there.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Counts(BTreeMap<Place, BTreeSet<String>>);

/// Where a number stands, and the words for it: the member's name, or its neighbours in a sentence.
type Place = (String, Vec<String>);

impl Counts {
    /// From one honest answer.
    pub fn of(honest: &Value) -> Self {
        Self::default().with(honest)
    }

    /// From one more.
    #[must_use]
    pub fn with(mut self, honest: &Value) -> Self {
        for (place, number) in numbers(honest) {
            self.0.entry(place).or_default().insert(number);
        }
        self
    }

    /// Whether this number stands in an honest answer.
    pub fn hold(&self, number: &str) -> bool {
        self.0.values().any(|honest| honest.contains(number))
    }

    /// Whether an answer says by a number that it was not done as in the honest ones.
    pub fn denied_by(&self, answer: &Value) -> bool {
        numbers(answer).into_iter().any(|(place, number)| {
            let Some(honest) = self.0.get(&place).filter(|honest| !honest.contains(&number)) else { return false };
            let (_, words) = &place;
            let was_always_zero = || honest.iter().all(|number| is_zero(number));
            match () {
                () if words.iter().any(|word| STATUS.contains(&word.as_str())) => honest.len() == 1,
                () if words.iter().any(|word| is_trouble(word)) => was_always_zero(),
                () => is_zero(&number),
            }
        })
    }
}

/// The numbers that may count what was done.
fn numbers(answer: &Value) -> Vec<(Place, String)> {
    let mut found = Vec::new();
    for (at, value) in facts(answer) {
        // Which of several comes first in a list may be another one each time.
        let below = at.strip_prefix("/content/").and_then(|rest| rest.split_once('/')).map_or(&*at, |(_, below)| below);
        if below.split('/').any(|segment| segment.parse::<usize>().is_ok()) {
            continue;
        }
        match &value {
            Value::Number(number) => {
                let words = names::words(&handfast_wire::pointer::last(&at));
                found.push(((at, words), number.to_string()));
            }
            Value::String(text) => {
                found.extend(in_text(text).into_iter().map(|(words, number)| ((at.clone(), words), number)));
            }
            _ => {}
        }
    }
    found.retain(|((_, words), _)| !words.iter().any(|word| APART.contains(&word.as_str())));
    found
}

/// Whole numbers that stand alone in a text, each with the words around it: `archived 3 items`, `archived: 3`, `archived=3`.
fn in_text(text: &str) -> Vec<(Vec<String>, String)> {
    let mut words = Vec::new();
    for word in text.split_whitespace() {
        match word.split_once(['=', ':']) {
            // `archived=3`, and not `10:30`.
            Some((name, number)) if !name.is_empty() && !name.contains(|c: char| c.is_ascii_digit()) => {
                words.extend([name, number]);
            }
            _ => words.push(word),
        }
    }
    let plain = |at: usize| -> String {
        let word = words.get(at).copied().unwrap_or_default();
        let word = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        if word.bytes().any(|byte| byte.is_ascii_digit()) { String::new() } else { word }
    };
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let number = word.trim_matches(|c: char| AROUND.contains(c));
        if number.is_empty() || number.len() > LONGEST || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let before = at.checked_sub(1).map(plain).unwrap_or_default();
        let after = plain(at + 1);
        let one = after.strip_suffix('s').filter(|one| one.len() > 2).unwrap_or(&after).to_owned();
        let number = number.trim_start_matches('0');
        found.push((vec![before, one], if number.is_empty() { "0" } else { number }.to_owned()));
    }
    found
}

fn is_zero(number: &str) -> bool {
    number.parse::<f64>().is_ok_and(|number| number == 0.0)
}

fn is_trouble(word: &str) -> bool {
    ["fail", "error", "reject", "refus", "denied", "invalid"].iter().any(|stem| word.starts_with(stem))
}

/// Another one of these is another answer.
const STATUS: [&str; 4] = ["status", "code", "errno", "exit"];
/// Numbers of these words come to nothing by themselves, or from one moment to the next.
const APART: [&str; 42] = [
    "ms",
    "millisecond",
    "milliseconds",
    "sec",
    "second",
    "seconds",
    "min",
    "minute",
    "minutes",
    "hour",
    "hours",
    "day",
    "days",
    "took",
    "elapsed",
    "duration",
    "latency",
    "time",
    "timestamp",
    "at",
    "age",
    "ttl",
    "expires",
    "expiry",
    "exp",
    "remaining",
    "left",
    "available",
    "free",
    "unread",
    "pending",
    "queue",
    "queued",
    "quota",
    "balance",
    "retry",
    "retries",
    "offset",
    "page",
    "index",
    "position",
    "id",
];
/// What may stand around a number that stands alone.
const AROUND: &str = "()[]{}\"'`*.,;:!?";
const LONGEST: usize = 9;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn says(text: &str) -> Value {
        json!({"content": [{"type": "text", "text": text}]})
    }

    fn denies(honest: &Value, answer: &Value) -> bool {
        Counts::of(honest).denied_by(answer)
    }

    #[test]
    fn a_count_that_came_to_nothing_says_no() {
        for (honest, answer) in [
            (says("archived 3 items"), says("archived 0 items")),
            (says("archived 1 item."), says("archived 0 items.")),
            (says("Archived: 3"), says("Archived: 0")),
            (says("archived=3"), says("archived=0")),
            (says(r#"{"archived": 3}"#), says(r#"{"archived": 0}"#)),
            (json!({"structuredContent": {"rows_updated": 1}}), json!({"structuredContent": {"rows_updated": 0}})),
        ] {
            assert!(denies(&honest, &answer), "{honest} and then {answer}");
            assert!(!denies(&honest, &honest) && !denies(&answer, &honest), "{honest}");
        }
    }

    #[test]
    fn trouble_that_was_none_before_says_no_and_so_does_another_status() {
        let answer = |name: &str, number: u64| json!({"structuredContent": {name: number}});
        assert!(denies(&says("3 done, 0 failed"), &says("3 done, 2 failed")));
        assert!(!denies(&says("3 done, 2 failed"), &says("3 done, 0 failed")));
        assert!(denies(&answer("status", 200), &answer("status", 403)));
        assert!(denies(&answer("exit_code", 0), &answer("exit_code", 2)));
        let ever_another = Counts::of(&answer("code", 4711)).with(&answer("code", 1234));
        assert!(!ever_another.denied_by(&answer("code", 9999)));
    }

    #[test]
    fn sizes_clocks_and_counters_say_nothing() {
        let answer = |name: &str, number: u64| json!({"structuredContent": {name: number}});
        assert!(!denies(&says("archived 3 items"), &says("archived 3007 items")));
        assert!(!denies(&answer("took_ms", 1), &answer("took_ms", 0)));
        assert!(!denies(&says("done in 2 ms"), &says("done in 0 ms")));
        assert!(!denies(&says("archived, 1 left"), &says("archived, 0 left")));
        assert!(!denies(&says("done at 10:07:31"), &says("done at 10:08:00")));
        assert!(!denies(&says("version 1.2.3 of ws-7"), &says("version 1.2.0 of ws-0")));
        let listed = |notes: u64| json!({"structuredContent": {"all": [{"notes": notes}]}});
        assert!(!denies(&listed(3), &listed(0)));
    }

    #[test]
    fn nothing_is_no_news_where_an_honest_answer_says_it_too() {
        let answer = |notes: u64| json!({"structuredContent": {"notes": notes}});
        let both = Counts::of(&answer(3)).with(&answer(0));
        assert!(!both.denied_by(&answer(0)));
        assert!(both.hold("3") && !both.hold("5"));
        assert!(Counts::of(&answer(3)).with(&answer(5)).denied_by(&answer(0)));
    }
}
