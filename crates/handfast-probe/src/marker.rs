//! Where an answer shows whose object it came from: planted canaries, and the names that a server gives its callers.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use handfast_wire::pointer;
use regex::Regex;
use serde_json::Value;

use crate::{canary::Canary, discovery::names};

/// Everything of a result that a model or a person would see, with its place: text blocks, structured content, embedded
/// resources, messages. `_meta` is left out: a server may mirror there what the caller sent.
pub fn visible(result: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (at, value) in pointer::scalars(result, MAX_SCALARS) {
        if at.split('/').any(|segment| segment == "_meta") || OWN_MEMBERS.contains(&at.as_str()) {
            continue;
        }
        match value {
            Value::String(text) => {
                if at.ends_with("/blob")
                    && text.len() <= MAX_BLOB
                    && let Ok(bytes) = STANDARD.decode(text)
                {
                    found.push((at.clone(), String::from_utf8_lossy(&bytes).into_owned()));
                }
                found.push((at, text.clone()));
            }
            Value::Number(number) => found.push((at, number.to_string())),
            _ => {}
        }
    }
    found
}

/// The visible text of a result as one string, for messages.
pub fn visible_text(result: &Value) -> String {
    let blocks = result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block.get("text").and_then(Value::as_str)).collect();
    if texts.is_empty() {
        visible(result).into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(" ")
    } else {
        texts.join("\n")
    }
}

/// Where a canary stands in an answer. What the caller sent in that very request is taken out first: an echo of it proves nothing.
pub fn find_canary(result: &Value, canary: &Canary, sent: &[String]) -> Option<String> {
    find(result, sent, |text| canary.is_in(text))
}

/// Where a caller's name stands in an answer, as a whole word, echoes taken out first.
pub fn find_name(result: &Value, name: &str, sent: &[String]) -> Option<String> {
    find(result, sent, |text| holds_word(text, name))
}

fn find(result: &Value, sent: &[String], matches: impl Fn(&str) -> bool) -> Option<String> {
    visible(result).into_iter().find_map(|(at, text)| {
        let mut text = text;
        // A label may also be the name of a member.
        text.push('\n');
        text.push_str(&at);
        for echo in sent.iter().filter(|echo| echo.len() >= SHORTEST_ECHO) {
            text = text.replace(echo.as_str(), " ");
        }
        matches(&text).then_some(at)
    })
}

fn holds_word(text: &str, word: &str) -> bool {
    let boundary = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    text.match_indices(word)
        .any(|(at, _)| boundary(text[..at].chars().next_back()) && boundary(text[at + word.len()..].chars().next()))
}

/// Whether two results say the same kind of thing: most of their words are the same, values apart. A polite "that has
/// expired, please start again" is complete and no error, and yet unlike an honest answer.
pub fn alike(one: &Value, other: &Value) -> bool {
    let words = |result: &Value| -> BTreeSet<String> {
        let mut words = BTreeSet::new();
        for (at, text) in visible(result) {
            words.extend(names::words(&pointer::last(&at)));
            words.extend(names::words(&text));
        }
        words.retain(|word| word.len() > 1 && !word.bytes().any(|byte| byte.is_ascii_digit()));
        words
    };
    let (one, other) = (words(one), words(other));
    let shared = one.intersection(&other).count();
    let all = one.union(&other).count();
    shared * 2 >= all
}

/// How an answer names its caller or the owner of its object, by place: `owner` fields, and "as principal X" in prose.
pub fn names_given(result: &Value) -> BTreeMap<String, String> {
    let mut given = BTreeMap::new();
    let mut from_json = |root: &Value, base: &str| {
        for (at, value) in pointer::scalars(root, MAX_SCALARS) {
            let inner_meta = at.split('/').any(|segment| segment == "_meta");
            let owner = at.split('/').rev().take(2).any(is_owner_key);
            if let (Value::String(name), true, false) = (value, owner, inner_meta) {
                given.insert(format!("{base}{at}"), name.clone());
            }
        }
    };
    if let Some(structured) = result.get("structuredContent") {
        from_json(structured, "/structuredContent");
    }
    let mut prose = Vec::new();
    for (at, text) in visible(result).into_iter().filter(|(at, _)| at.ends_with("/text")) {
        match serde_json::from_str::<Value>(text.trim()) {
            Ok(json @ (Value::Object(_) | Value::Array(_))) => from_json(&json, &at),
            _ => prose.push((at, text)),
        }
    }
    for (at, text) in prose {
        for (number, found) in OWNER_IN_PROSE.captures_iter(&text).enumerate() {
            if let Some(name) = found.get(1) {
                given.insert(format!("{at}~{number}"), name.as_str().trim_end_matches(['.', ',']).to_owned());
            }
        }
    }
    given.retain(|_, name| !name.is_empty() && name.len() <= 256);
    given
}

fn is_owner_key(key: &str) -> bool {
    let words = names::words(key);
    words.iter().any(|word| OWNER_WORDS.contains(&word.as_str()))
        && !words.iter().any(|word| matches!(word.as_str(), "agent" | "at" | "count" | "type" | "role"))
}

/// Whether a server tells two callers apart, by the names that it gave them at the same places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Naming {
    /// At the same place it named them differently.
    Apart {
        /// The place.
        at: String,
        /// How it named A.
        a: String,
        /// How it named B.
        b: String,
    },
    /// It named both alike: to this server they are one caller.
    Alike(String),
    /// It named nobody.
    Silent,
}

/// Compares the names in two answers to the same call, one for A and one for B.
pub fn compare(for_a: &Value, for_b: &Value, sent: &[String]) -> Naming {
    let (a, b) = (names_given(for_a), names_given(for_b));
    let mut alike = None;
    for (at, name) in &a {
        let Some(other) = b.get(at) else { continue };
        // What the caller wrote into the call is no name that the server gave.
        let echoes = |echo: &String| {
            let within = |name: &String| echo.len() >= SHORTEST_PART && name.contains(echo.as_str());
            echo == name || echo == other || within(name) || within(other)
        };
        if sent.iter().any(echoes) {
            continue;
        }
        if name != other {
            return Naming::Apart { at: at.clone(), a: name.clone(), b: other.clone() };
        }
        // Two users of one tenant or account are still two users.
        if !SHARED_WORDS.iter().any(|word| at.to_ascii_lowercase().contains(word)) {
            alike = Some(name.clone());
        }
    }
    alike.map_or(Naming::Silent, Naming::Alike)
}

const OWN_MEMBERS: [&str; 4] = ["/resultType", "/requestState", "/cacheScope", "/ttlMs"];
const OWNER_WORDS: [&str; 16] = [
    "owner",
    "owned",
    "principal",
    "user",
    "username",
    "subject",
    "sub",
    "account",
    "tenant",
    "actor",
    "identity",
    "creator",
    "author",
    "caller",
    "login",
    "whoami",
];
const SHARED_WORDS: [&str; 3] = ["tenant", "account", "author"];
const MAX_SCALARS: usize = 4000;
const MAX_BLOB: usize = 64 * 1024;
const SHORTEST_ECHO: usize = 3;
const SHORTEST_PART: usize = 6;

#[allow(clippy::expect_used)] // constant pattern, compiled by the tests below
static OWNER_IN_PROSE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)\b(?:owner|owned by|principal|user(?:name)?|account|created by|belongs to|caller|logged in as|signed in as|you are)",
        r#"(?:\s+is)?\s*[:=]?\s*["'`]?([A-Za-z0-9][A-Za-z0-9_.@|:/+\-]*)"#
    ))
    .expect("constant pattern")
});

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn canary() -> Canary {
        Canary { long: "hf-canary-a-0011-001".to_owned(), short: "hfa0011001".to_owned() }
    }

    #[test]
    fn a_canary_is_found_wherever_a_reader_would_see_it() {
        for result in [
            json!({"content": [{"type": "text", "text": "label hf-canary-a-0011-001."}]}),
            json!({"structuredContent": {"deep": [{"label": "hfa0011001"}]}}),
            json!({"structuredContent": {"by_label": {"hf-canary-a-0011-001": 1}}}),
            json!({"content": [{"type": "text", "text": "HF_CANARY_A_0011_001"}]}),
            json!({"contents": [{"uri": "x://y", "blob": STANDARD.encode("..hf-canary-a-0011-001..")}]}),
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": "hf-canary-a-0011-001"}}]}),
        ] {
            assert!(find_canary(&result, &canary(), &[]).is_some(), "{result}");
        }
        let mirrored = json!({"_meta": {"echo": "hf-canary-a-0011-001"}, "content": []});
        assert_eq!(find_canary(&mirrored, &canary(), &[]), None);
    }

    #[test]
    fn an_echo_of_the_request_is_no_marker() {
        let result = json!({"content": [{"type": "text", "text": "no such basket: basket-hf-canary-a-0011-001"}]});
        assert!(find_canary(&result, &canary(), &[]).is_some());
        assert_eq!(find_canary(&result, &canary(), &["basket-hf-canary-a-0011-001".to_owned()]), None);
    }

    #[test]
    fn names_are_compared_at_the_same_place() {
        let named = |owner: &str| json!({"structuredContent": {"owner": owner, "label": "x"}});
        let is_apart = |naming: Naming| matches!(naming, Naming::Apart { a, b, .. } if a == "alice" && b == "bob");
        assert!(is_apart(compare(&named("alice"), &named("bob"), &[])));
        assert_eq!(compare(&named("local"), &named("local"), &[]), Naming::Alike("local".to_owned()));
        assert_eq!(compare(&named("alice"), &json!({"content": []}), &[]), Naming::Silent);
        let prose =
            |who: &str| json!({"content": [{"type": "text", "text": format!("archived 1 item as principal {who}.")}]});
        assert!(is_apart(compare(&prose("alice"), &prose("bob"), &[])));
        assert_eq!(compare(&named("alice"), &named("bob"), &["bob".to_owned()]), Naming::Silent);
        let owned = |name: &str| named(&format!("owner of {name}"));
        let sent = ["label-a".to_owned(), "label-b".to_owned()];
        assert_eq!(compare(&owned("label-a"), &owned("label-b"), &sent), Naming::Silent);
    }

    #[test]
    fn a_polite_refusal_is_unlike_an_honest_answer() {
        let says = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        let honest = says("archived 3 items as principal alice");
        assert!(alike(&honest, &says("archived 3007 items as principal mallory")));
        assert!(alike(&says("ok"), &says("ok")) && alike(&says(""), &says("")));
        assert!(!alike(&honest, &says("that confirmation has expired, please start again")));
    }
}
