//! Where an answer shows whose object it came from: planted canaries, and the names that a server gives its callers.

use std::{collections::BTreeMap, sync::LazyLock};

use base64::{Engine, engine::general_purpose::STANDARD};
use handfast_wire::pointer;
use regex::Regex;
use serde_json::Value;

use crate::{
    canary::{Canaries, Canary},
    discovery::names,
    echo,
    identity::Who,
};

/// Everything of a result that a model or a person would see, with its place: text blocks, structured content, embedded
/// resources, messages. `_meta` is left out: a server may mirror there who is calling.
pub fn visible(result: &Value) -> Vec<(String, String)> {
    let mut found = everything(result);
    found.retain(|(at, _)| !at.split('/').any(|segment| segment == "_meta"));
    found
}

fn everything(result: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (at, value) in pointer::scalars(result, MAX_SCALARS) {
        match value {
            _ if OWN_MEMBERS.contains(&at.as_str()) => {}
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

/// Where a canary stands in an answer, `_meta` included. An echo of what the caller sent in that very request proves nothing,
/// and it comes in any spelling: a canary that stands in what was sent, however that is read, is no evidence in this answer.
pub fn find_canary(result: &Value, canary: &Canary, sent: &[String]) -> Option<String> {
    find(everything(result), &[], |text| canary.is_in(text)).filter(|_| !echo::carries(sent, canary))
}

/// Where a canary seems to stand: only what was sent to the letter is taken out first. Good enough to choose where to look,
/// and no evidence.
pub fn seems_to_show(result: &Value, canary: &Canary, sent: &[String]) -> Option<String> {
    find(everything(result), sent, |text| canary.is_in(text))
}

/// The canaries of a caller that stand in an answer, and were not sent.
pub fn canaries_of(who: Who, result: &Value, canaries: &Canaries, sent: &[String]) -> Vec<Canary> {
    let text: String = everything(result).into_iter().map(|(at, text)| format!("{text}\n{at}\n")).collect();
    let mut found = canaries.those_in(&text, who);
    found.retain(|canary| !echo::carries(sent, canary));
    found
}

/// Where a caller's name stands in an answer, as a whole word, echoes taken out first.
pub fn find_name(result: &Value, name: &str, sent: &[String]) -> Option<String> {
    find(visible(result), sent, |text| holds_word(text, name))
}

fn find(texts: Vec<(String, String)>, sent: &[String], matches: impl Fn(&str) -> bool) -> Option<String> {
    let echoes: Vec<&String> = sent.iter().filter(|echo| matches(echo)).collect();
    texts.into_iter().find_map(|(at, text)| {
        // A label may also be the name of a member.
        let mut text = format!("{text}\n{at}");
        for echo in &echoes {
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
        let text = &text[..text.floor_char_boundary(LONGEST_PROSE)];
        for (number, found) in OWNER_IN_PROSE.captures_iter(text).take(MOST_NAMES).enumerate() {
            if let Some(name) = found.get(1) {
                given.insert(format!("{at}~{number}"), name.as_str().trim_end_matches(['.', ',']).to_owned());
            }
        }
    }
    given.retain(|_, name| is_name(name));
    given
}

/// `owner`, `owner_id`, `created_by`: the last word that is no suffix tells what a key is about. `user_message` is about a
/// message, `login_url` about a URL.
fn is_owner_key(key: &str) -> bool {
    let words = names::words(key);
    let about = words.iter().rev().find(|word| !OWNER_SUFFIXES.contains(&word.as_str()));
    let by = words.last().is_some_and(|word| word == "by")
        && words.iter().any(|word| ["created", "owned", "opened", "issued"].contains(&word.as_str()));
    by || about.is_some_and(|word| OWNER_WORDS.contains(&word.as_str()))
}

/// A name is a word or two, and no pronoun.
fn is_name(text: &str) -> bool {
    let words = text.split_whitespace().count();
    (1..=3).contains(&words)
        && text.len() <= 256
        && !text.ends_with(['!', '?'])
        && !PRONOUNS.contains(&text.to_ascii_lowercase().as_str())
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
const OWNER_SUFFIXES: [&str; 7] = ["id", "name", "email", "handle", "uid", "uuid", "ref"];
const PRONOUNS: [&str; 7] = ["you", "me", "i", "self", "yours", "mine", "yourself"];
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
/// Places where two users may well be named alike: by their tenant, or by the program that acts for both.
const SHARED_WORDS: [&str; 7] = ["tenant", "account", "author", "creator", "actor", "created", "caller"];
const MAX_SCALARS: usize = 4000;
const MAX_BLOB: usize = 64 * 1024;
const LONGEST_PROSE: usize = 20_000;
const MOST_NAMES: usize = 50;
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
        Canary { long: "hf-a0010011-canary".to_owned(), short: "hfa0010011".to_owned() }
    }

    #[test]
    fn a_canary_is_found_wherever_a_reader_would_see_it() {
        for result in [
            json!({"content": [{"type": "text", "text": "label hf-a0010011-canary."}]}),
            json!({"structuredContent": {"deep": [{"label": "hfa0010011"}]}}),
            json!({"structuredContent": {"by_label": {"hf-a0010011-canary": 1}}}),
            json!({"content": [{"type": "text", "text": "HF_A0010011_CAN"}]}),
            json!({"contents": [{"uri": "x://y", "blob": STANDARD.encode("..hf-a0010011-canary..")}]}),
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": "hf-a0010011-canary"}}]}),
        ] {
            assert!(find_canary(&result, &canary(), &[]).is_some(), "{result}");
        }
        let in_meta = json!({"_meta": {"label": "hf-a0010011-canary", "owner": "alice"}, "content": []});
        assert!(find_canary(&in_meta, &canary(), &[]).is_some());
        assert_eq!(find_name(&in_meta, "alice", &[]), None, "a server may mirror who is calling");
    }

    #[test]
    fn an_echo_of_the_request_is_no_marker() {
        let result = json!({"content": [{"type": "text", "text": "no such basket: basket-hf-a0010011-canary"}]});
        assert!(find_canary(&result, &canary(), &[]).is_some());
        assert_eq!(find_canary(&result, &canary(), &["basket-hf-a0010011-canary".to_owned()]), None);
        let shouted = json!({"content": [{"type": "text", "text": "NO BASKET BASKET-HF-A0010011-CANARY"}]});
        let cut = json!({"content": [{"type": "text", "text": "no such basket: `basket-hf-a0010011-c...`"}]});
        let sent = ["basket-hf-a0010011-canary".to_owned()];
        assert_eq!([&shouted, &cut].map(|result| find_canary(result, &canary(), &sent)), [None, None]);
        let coded = [STANDARD.encode("hf-a0010011-canary")];
        assert_eq!(find_canary(&result, &canary(), &coded), None, "what was sent, decoded");
        let part_of_it = ["canary".to_owned(), "hf".to_owned()];
        assert!(find_canary(&result, &canary(), &part_of_it).is_some(), "a word that was sent is not the canary");
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
    fn what_is_no_name_names_nobody() {
        for (key, value) in [
            ("user_message", "All set"),
            ("login_url", "x"),
            ("owner", "you"),
            ("user", "Everything went very well today"),
            ("user_agent", "curl"),
        ] {
            assert!(names_given(&json!({"structuredContent": {key: value}})).is_empty(), "{key}: {value}");
        }
        for key in ["owner", "owner_id", "ownerEmail", "created_by", "principal", "user.name"] {
            assert_eq!(names_given(&json!({"structuredContent": {key: "alice"}})).len(), 1, "{key}");
        }
    }
}
