//! How much two answers have in common: whether one is of the kind of the other, whether it says the same, which values the
//! two share, and whether one value of the one became another in the other.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use handfast_wire::pointer;
use regex::Regex;
use serde_json::Value;

use crate::{discovery::names, marker};

/// Every visible value by its place; texts that are JSON are opened.
pub(crate) fn facts(result: &Value) -> BTreeMap<String, Value> {
    let mut facts = BTreeMap::new();
    for (at, value) in pointer::scalars(result, MOST_FACTS) {
        if at.split('/').any(|segment| segment == "_meta") || at.starts_with("/ttlMs") || at == "/resultType" {
            continue;
        }
        match value.as_str().and_then(|text| serde_json::from_str::<Value>(text.trim()).ok()) {
            Some(json) if json.is_object() || json.is_array() => {
                let inner = pointer::scalars(&json, MOST_FACTS).into_iter();
                facts.extend(inner.map(|(inner, value)| (format!("{at}{inner}"), value.clone())));
            }
            _ => {
                facts.insert(at, value.clone());
            }
        }
    }
    facts
}

/// Whether two results say the same kind of thing: most of their words are the same, values apart, and no yes has become a
/// no. A polite "that has expired, please start again" is complete and no error, and yet unlike an honest answer.
pub fn alike(one: &Value, other: &Value) -> bool {
    let (facts_one, facts_other) = (facts(one), facts(other));
    let turned = facts_one
        .iter()
        .any(|(at, value)| value.is_boolean() && facts_other.get(at).is_some_and(|other| other != value));
    let words = |facts: &BTreeMap<String, Value>| -> BTreeSet<String> {
        let mut words = BTreeSet::new();
        for (at, value) in facts {
            words.extend(names::words(&pointer::last(at)));
            // A handle in mixed case would fall into many words, all of them its own.
            let telling = value.as_str().map(|text| LONG_IDENTIFIER.replace_all(text, " ").into_owned());
            words.extend(telling.map(|text| names::words(&text)).unwrap_or_default());
        }
        words.retain(|word| word.len() > 1 && !word.bytes().any(|byte| byte.is_ascii_digit()));
        words
    };
    let (one, other) = (words(&facts_one), words(&facts_other));
    !turned && one.intersection(&other).count() * 2 >= one.union(&other).count()
}

/// Whether two results say the same, numbers and identifiers apart: the same places hold the same words.
pub fn same(one: &Value, other: &Value) -> bool {
    let plain = |result: &Value| -> BTreeSet<(String, String)> {
        let facts = facts(result).into_iter();
        facts
            .map(|(at, value)| {
                let place: Vec<&str> =
                    at.split('/').map(|part| if part.parse::<usize>().is_ok() { "*" } else { part }).collect();
                let value = match value {
                    Value::String(text) => VARYING.replace_all(&text, "<value>").into_owned(),
                    Value::Number(_) => "<value>".to_owned(),
                    other => other.to_string(),
                };
                (place.join("/"), value)
            })
            .collect()
    };
    plain(one) == plain(other)
}

/// Whether an answer has a word of refusal in it that the honest one has not.
pub fn says_no(answer: &Value, honest: &Value) -> bool {
    says(&REFUSAL, answer, honest)
}

/// Whether an answer says that there is no such session, or another word of refusal, and the honest one does not.
pub fn says_gone(answer: &Value, honest: &Value) -> bool {
    says_no(answer, honest) || says(&GONE, answer, honest)
}

fn says(words: &Regex, answer: &Value, honest: &Value) -> bool {
    let text = |result: &Value| marker::visible(result).into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(" ");
    words.is_match(&text(answer)) && !words.is_match(&text(honest))
}

/// Values that could belong to one object alone: long enough, or with a digit in them.
pub fn particular_values(result: &Value) -> BTreeSet<String> {
    let mut values = BTreeSet::new();
    for value in facts(result).into_values() {
        match value {
            Value::Number(number) if number.to_string().len() >= SHORTEST_NUMBER => {
                values.insert(number.to_string());
            }
            Value::String(text) => {
                values.extend(
                    VARYING
                        .find_iter(&text)
                        .map(|found| found.as_str().to_owned())
                        .filter(|word| word.len() >= SHORTEST_WORD),
                );
                // A whole text as well: "salary of alice" is nobody else's.
                if text.len() >= SHORTEST_WORD {
                    values.insert(text);
                }
            }
            _ => {}
        }
    }
    values
}

/// Whether the only news in an answer is that one value became another: at a place that held the one and holds the other, or
/// in a sentence that is the same but for it.
pub fn became(honest: &Value, altered: &Value, before: &Value, after: &Value) -> bool {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (before, after) = (text(before), text(after));
    let (honest, altered) = (facts(honest), facts(altered));
    honest.iter().any(|(at, value)| {
        let (Some(now), was) = (altered.get(at).map(text), text(value)) else { return false };
        let replaced = || was.contains(&before) && was.replace(&before, &after) == now;
        was != now && ((was == before && now == after) || replaced())
    })
}

/// Whether two answers differ in one word at most, at the same places: what a flipped character would do to a value.
pub fn one_word_off(one: &Value, other: &Value) -> bool {
    let (one, other) = (facts(one), facts(other));
    if !one.keys().eq(other.keys()) {
        return false;
    }
    let mut off = 0;
    for (one, other) in one.values().zip(other.values()) {
        match (one.as_str(), other.as_str()) {
            (Some(one), Some(other)) => {
                let (one, other): (Vec<&str>, Vec<&str>) =
                    (one.split_whitespace().collect(), other.split_whitespace().collect());
                if one.len() != other.len() {
                    return false;
                }
                off += one.iter().zip(&other).filter(|(one, other)| one != other).count();
            }
            _ if one == other => {}
            (None, None) if one.is_number() && other.is_number() => off += 1,
            _ => return false,
        }
    }
    off <= MOST_OFF
}

/// Whether an answer still shows what the altered field said before: then it took that from somewhere else. In words, or,
/// for what is too short to be told from chance in a sentence, at the same place of both answers.
pub fn still_shows(honest: &Value, altered: &Value, before: &Value) -> bool {
    let word = before.as_str().map_or_else(|| before.to_string(), str::to_owned);
    let shows = |result: &Value| marker::find_name(result, &word, &[]).is_some();
    let in_words = word.len() >= SHORTEST_SHOWN && shows(honest) && shows(altered);
    let (honest, altered) = (facts(honest), facts(altered));
    let in_place =
        before.is_number() && honest.iter().any(|(at, value)| value == before && altered.get(at) == Some(before));
    in_words || in_place
}

const MOST_FACTS: usize = 4000;
const SHORTEST_NUMBER: usize = 4;
const SHORTEST_WORD: usize = 6;
const SHORTEST_SHOWN: usize = 3;
/// A value may stand in the text and in the structured content.
const MOST_OFF: usize = 2;

#[allow(clippy::expect_used)] // constant pattern, compiled by the tests below
pub(crate) static VARYING: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[A-Za-z0-9_-]*\d[A-Za-z0-9_-]*").expect("constant pattern"));

#[allow(clippy::expect_used)]
static REFUSAL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(reject|refus|den(y|ied)|invalid|expired|tamper|mismatch|forbidden|unauthori|fail|error|not (valid|allowed|accepted|permitted)|cannot|(authentication|authorization|login) (is )?required|(log|sign) ?in\b)")
        .expect("constant pattern")
});

#[allow(clippy::expect_used)]
static LONG_IDENTIFIER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\b[A-Za-z0-9_+/=-]*\d[A-Za-z0-9_+/=-]{20,}|\b[A-Za-z0-9_+/=-]{20,}\d[A-Za-z0-9_+/=-]*")
        .expect("constant pattern")
});

#[allow(clippy::expect_used)]
static GONE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(no (such|active|open) session|unknown session|session (id )?(is |was |has |does )?(un(known|recogni[sz]ed)|not (found|exist|known|active|yours)|gone|over|ended|closed|terminated)|(not|isn't) your session|re-?initiali[sz]e|(call|send) initialize)")
        .expect("constant pattern")
});

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn says(text: &str) -> Value {
        json!({"content": [{"type": "text", "text": text}]})
    }

    #[test]
    fn a_polite_refusal_is_unlike_an_honest_answer() {
        let honest = says("archived 3 items as principal alice");
        assert!(alike(&honest, &says("archived 3007 items as principal mallory")));
        assert!(alike(&says("ok"), &says("ok")) && alike(&says(""), &says("")));
        assert!(!alike(&honest, &says("that confirmation has expired, please start again")));
    }

    #[test]
    fn a_no_is_unlike_a_yes() {
        let answer = |ok: bool| json!({"structuredContent": {"ok": ok, "archived": 3, "principal": "alice"}});
        assert!(alike(&answer(true), &answer(true)) && !alike(&answer(true), &answer(false)));
        let in_text = |ok: bool| says(&json!({"success": ok, "principal": "alice"}).to_string());
        assert!(!alike(&in_text(true), &in_text(false)));
    }

    #[test]
    fn a_no_that_quotes_what_it_refuses_is_a_no() {
        let honest = says("archived 3 items as principal alice");
        assert!(says_no(&says("archived 0 items: the state for principal mallory was rejected"), &honest));
        assert!(!says_no(&says("archived 3 items as principal mallory"), &honest));
        assert!(!says_no(&says("3 errors archived for mallory"), &says("2 errors archived for alice")));
    }

    #[test]
    fn handles_in_mixed_case_make_no_answer_unlike_another() {
        let answer = |handle: &str, note: &str| {
            let data = json!({"workspace_id": handle, "label": "weekly", "owner": "alice", "notes": [note]});
            json!({"content": [{"type": "text", "text": data.to_string()}], "structuredContent": data})
        };
        let (one, other) = (
            answer("ws-eyJ0YWJsZSI6IndvcmtzcGFjZXMiLCJvd25lciI6ImFsaWNlIiwia2V5IjoiNGY5ZDFjIn0", "milk"),
            answer("QmFzZTY0VGV4dFdpdGhNYW55SHVtcHMxN0FuZFNvT24tYWJjREVGZ2hpSktM", "bread"),
        );
        assert!(alike(&one, &other));
        assert!(!alike(&says("sorry, there is no such thing here"), &other));
    }

    #[test]
    fn a_session_that_is_not_there_is_told_in_many_words() {
        for gone in ["Session not found", "session ended", "There is no such session.", "please re-initialize first"] {
            assert!(says_gone(&says(gone), &says("alice")), "{gone}");
        }
        assert!(says_gone(&says("your session has expired"), &says("nothing is kept")));
        for served in ["alice", "nothing is kept", "the session of alice goes on", "2 notes were found"] {
            assert!(!says_gone(&says(served), &says("alice")), "{served}");
        }
        assert!(!says_gone(&says("session ended: no"), &says("session ended: yes")));
    }

    #[test]
    fn the_same_words_at_the_same_places_are_the_same() {
        assert!(same(&says("page 1 of alice's book b-91"), &says("page 2 of alice's book b-17")));
        assert!(!same(&says("archived 3 items"), &says("archived 0 items (state rejected)")));
        let state = |status: &str| json!({"structuredContent": {"owner": "alice", "status": status}});
        assert!(!same(&state("open"), &state("requested")));
    }

    #[test]
    fn a_value_that_became_another_is_seen_even_when_it_is_short() {
        let answer = |seats: u64| json!({"structuredContent": {"seats": seats, "rows": 3}});
        assert!(became(&answer(5), &answer(6), &json!(5), &json!(6)));
        assert!(!became(&answer(5), &answer(5), &json!(5), &json!(6)));
        assert!(became(&says("5 seats for alice"), &says("6 seats for alice"), &json!(5), &json!(6)));
        assert!(!became(&says("5 seats for alice"), &says("6 of your 9 seats"), &json!(5), &json!(6)));
    }

    #[test]
    fn what_was_issued_still_shows() {
        let answer = |items: u64| json!({"structuredContent": {"archived": items, "principal": "alice"}});
        assert!(still_shows(&answer(3), &answer(3), &json!(3)) && still_shows(&answer(3), &answer(4), &json!("alice")));
        assert!(!still_shows(&answer(3), &answer(4), &json!(3)) && !still_shows(&answer(3), &answer(3), &json!("bob")));
    }

    #[test]
    fn a_garbled_name_is_one_word_off_and_a_polite_no_is_not() {
        let honest = says("archived 3 items as principal alice");
        assert!(one_word_off(&honest, &says("archived 3 items as principal alicd")));
        assert!(!one_word_off(&honest, &says("archived 0 items as principal alice (state rejected)")));
        assert!(!one_word_off(&honest, &json!({"content": [], "structuredContent": {}})));
    }

    #[test]
    fn only_particular_values_count() {
        let found = particular_values(
            &json!({"structuredContent": {"key": "sk-83jd7x", "ok": true, "n": 7, "balance": 83417, "kind": "basket note"}}),
        );
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["83417", "basket note", "sk-83jd7x"]);
    }
}
