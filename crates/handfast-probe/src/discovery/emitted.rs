//! Values that an answer hands out and that may be handles: at keys of JSON, in recognisable places of text, in URIs.
//!
//! Each has a [`Spot`] from which the value of a later answer of the same tool is read again.

use std::sync::LazyLock;

use handfast_wire::pointer;
use regex::Regex;
use serde_json::{Number, Value};

use super::names;
use crate::canary::Canary;

/// Where in an answer a value stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spot {
    /// In `structuredContent`, at this pointer.
    Structured(String),
    /// In a text block that is JSON, at this pointer.
    TextJson {
        /// Which block of `content`.
        block: usize,
        /// Where in the JSON.
        pointer: String,
    },
    /// In prose.
    Text {
        /// Which block of `content`.
        block: usize,
        /// The words before it, which name it.
        label: Vec<String>,
        /// How the value is shaped: its constant prefix and the kinds of its characters.
        shape: String,
    },
    /// In a URI that the answer hands out: the variable part of it.
    Uri(String),
    /// Where the operator's profile says.
    Given(Given),
}

impl Spot {
    /// Whether the value stands in the object at this pointer, or in one inside of it.
    pub fn stands_within(&self, object: &str) -> bool {
        let at = match self {
            Self::Structured(at) | Self::TextJson { pointer: at, .. } => at.as_str(),
            Self::Given(Given { json: Some(at), .. }) => at.as_str(),
            Self::Given(Given { pointer: Some(at), .. }) => at.strip_prefix("/structuredContent").unwrap_or_default(),
            Self::Given(_) | Self::Text { .. } | Self::Uri(_) => "",
        };
        object.is_empty() || at.strip_prefix(object).is_some_and(|rest| rest.starts_with('/'))
    }
}

/// A place that a profile names; also the form in which every other place is written into one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Given {
    /// JSON Pointer into the result.
    pub pointer: Option<String>,
    /// JSON Pointer into the JSON text that stands there.
    pub json: Option<String>,
    /// A pattern for the text there, or for all visible text; its first group is the handle.
    pub pattern: Option<String>,
}

impl Given {
    fn read(&self, result: &Value) -> Option<Value> {
        let place = match &self.pointer {
            Some(pointer) => result.pointer(pointer)?.clone(),
            None => Value::String(
                crate::marker::visible(result).into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("\n"),
            ),
        };
        let place = match (&self.json, place) {
            (Some(pointer), Value::String(text)) => {
                serde_json::from_str::<Value>(text.trim()).ok()?.pointer(pointer)?.clone()
            }
            (_, place) => place,
        };
        match (&self.pattern, place) {
            (Some(pattern), Value::String(text)) => {
                let found = Regex::new(pattern).ok()?.captures(&text)?.get(1)?.as_str().to_owned();
                Some(Value::String(found))
            }
            (None, place @ (Value::String(_) | Value::Number(_))) => Some(place),
            _ => None,
        }
    }
}

impl Spot {
    /// The spot as a report or a profile shows it.
    pub fn shown(&self) -> String {
        match self {
            Self::Structured(at) => format!("structuredContent{at}"),
            Self::TextJson { block, pointer } => format!("content/{block}/text as JSON{pointer}"),
            Self::Text { block, label, .. } if label.is_empty() => format!("content/{block}/text"),
            Self::Text { block, label, .. } => format!("content/{block}/text after \"{}\"", label.join(" ")),
            Self::Uri(prefix) => format!("URI after {prefix}"),
            Self::Given(given) => {
                let parts = [given.pointer.as_deref(), given.json.as_deref(), given.pattern.as_deref()];
                parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// The spot in the form of a profile.
    pub fn as_given(&self) -> Given {
        let text = |block: &usize| Some(format!("/content/{block}/text"));
        match self {
            Self::Given(given) => given.clone(),
            Self::Structured(at) => Given { pointer: Some(format!("/structuredContent{at}")), ..Given::default() },
            Self::TextJson { block, pointer } => {
                Given { pointer: text(block), json: Some(pointer.clone()), pattern: None }
            }
            Self::Text { block, label, shape } => {
                let prefix = regex::escape(shape.trim_end_matches(['9', 'a']));
                let before = label
                    .last()
                    .map(|word| format!(r"(?i:{})\W+(?:\w+\W+){{0,3}}?", regex::escape(word)))
                    .unwrap_or_default();
                let pattern = Some(format!(r"{before}\b({prefix}[A-Za-z0-9_\-]*[0-9][A-Za-z0-9_\-]*)"));
                Given { pointer: text(block), json: None, pattern }
            }
            Self::Uri(prefix) => {
                let pattern = Some(format!(r#"{}([^/\s"'`<>)\]]+)"#, regex::escape(prefix)));
                Given { pointer: None, json: None, pattern }
            }
        }
    }
}

/// A value that an answer handed out.
#[derive(Debug, Clone, PartialEq)]
pub struct Emitted {
    /// Where it stood.
    pub spot: Spot,
    /// A string or a number.
    pub value: Value,
}

impl Emitted {
    /// The words that name the value: those of its key, and those of the keys above or the text before it.
    pub fn name(&self) -> String {
        match &self.spot {
            Spot::Structured(at) | Spot::TextJson { pointer: at, .. } => {
                let is_index = |segment: &&str| segment.parse::<usize>().is_err();
                at.split('/').rfind(is_index).unwrap_or_default().to_owned()
            }
            Spot::Text { label, .. } => label.join("_"),
            Spot::Given(_) => String::new(),
            Spot::Uri(prefix) => prefix
                .split(|c: char| !c.is_alphanumeric())
                .rfind(|part| !part.is_empty())
                .unwrap_or_default()
                .to_owned(),
        }
    }
}

/// Every value of a result that may be a handle. `supplied` are the strings that the caller sent: none of them is one.
pub fn emitted(result: &Value, supplied: &[String]) -> Vec<Emitted> {
    let mut found = Vec::new();
    if let Some(structured) = result.get("structuredContent") {
        in_json(structured, Spot::Structured, &mut found);
    }
    let blocks = result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for (block, content) in blocks.iter().enumerate().take(MAX_BLOCKS) {
        if let Some(text) = content.get("text").and_then(Value::as_str) {
            in_text(block, text, &mut found);
        }
        for at in ["/uri", "/resource/uri"] {
            if let Some(uri) = content.pointer(at).and_then(Value::as_str) {
                in_uris(uri, &mut found);
            }
        }
    }
    found.retain(|emitted| {
        is_candidate(&emitted.value) && !supplied.iter().any(|sent| text_of(&emitted.value) == *sent)
    });
    found.truncate(MAX_CANDIDATES);
    found
}

/// The value at the same spot of a later answer. In a list it is that of the item that carries the mark just planted.
pub fn again(result: &Value, spot: &Spot, supplied: &[String], mark: Option<&Canary>) -> Option<Value> {
    match spot {
        Spot::Structured(at) => in_list(result.get("structuredContent")?, at, mark),
        Spot::TextJson { block, pointer } => {
            let text = result.pointer(&format!("/content/{block}/text"))?.as_str()?;
            in_list(&serde_json::from_str::<Value>(text.trim()).ok()?, pointer, mark)
        }
        Spot::Text { label, shape, .. } => {
            let candidates = emitted(result, supplied);
            let fits = |wanted: bool| {
                candidates.iter().find(|candidate| match &candidate.spot {
                    Spot::Text { label: other, shape: form, .. } => other == label && (!wanted || form == shape),
                    _ => false,
                })
            };
            fits(true).or_else(|| fits(false)).map(|candidate| candidate.value.clone())
        }
        Spot::Given(given) => given.read(result),
        Spot::Uri(_) => {
            emitted(result, supplied).into_iter().find(|other| other.spot == *spot).map(|other| other.value)
        }
    }
}

/// The value at a pointer; where the pointer goes through an array, that of the first item that carries the mark.
fn in_list(root: &Value, at: &str, mark: Option<&Canary>) -> Option<Value> {
    let plain = || root.pointer(at).cloned();
    let parts: Vec<&str> = at.split('/').collect();
    let (Some(mark), Some(index)) = (mark, parts.iter().position(|part| part.parse::<usize>().is_ok())) else {
        return plain();
    };
    let (above, below) = (parts[..index].join("/"), parts[index + 1..].join("/"));
    let items = root.pointer(&above).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let Some(marked) = items.iter().find(|item| mark.is_in(&item.to_string())) else { return plain() };
    marked.pointer(&if below.is_empty() { String::new() } else { format!("/{below}") }).cloned()
}

fn in_json(root: &Value, spot: impl Fn(String) -> Spot, found: &mut Vec<Emitted>) {
    for (at, value) in pointer::scalars(root, MAX_CANDIDATES) {
        let emitted = Emitted { spot: spot(at), value: value.clone() };
        if !names::names_no_handle(&emitted.name()) {
            found.push(emitted);
            if let Some(uri) = value.as_str().filter(|text| text.contains("://")) {
                in_uris(uri, found);
            }
        }
    }
}

fn in_text(block: usize, text: &str, found: &mut Vec<Emitted>) {
    let trimmed = text.trim();
    if trimmed.starts_with(['{', '['])
        && let Ok(json) = serde_json::from_str::<Value>(trimmed)
    {
        in_json(&json, |pointer| Spot::TextJson { block, pointer }, found);
        return;
    }
    let shown = &text[..text.floor_char_boundary(MAX_TEXT)];
    for line in shown.lines() {
        in_uris(line, found);
        for token in TOKEN.find_iter(line) {
            let token_text = token.as_str().trim_end_matches(['.', ':', '-', '_']);
            let before = &line[..token.start()];
            let Some(label) = label(before, token_text) else { continue };
            let value = match token_text.parse::<u64>() {
                Ok(number) if !token_text.starts_with('0') || token_text == "0" => Value::Number(Number::from(number)),
                _ => Value::String(token_text.to_owned()),
            };
            found.push(Emitted { spot: Spot::Text { block, label, shape: shape(token_text) }, value });
        }
    }
}

/// The words that name a token, if the token is recognisably a handle: it has the shape of an identifier, or the text
/// before it announces one (`ID: 17`, `basket 17`, `Basket ID: ...`).
fn label(before: &str, token: &str) -> Option<Vec<String>> {
    let words: Vec<String> = names::words(before).into_iter().rev().take(LABEL_WORDS).collect();
    // Words with digits are values of their own, and would differ the next time.
    let says_what = |word: &String| {
        word.len() > 1 && !FILLERS.contains(&word.as_str()) && !word.bytes().any(|byte| byte.is_ascii_digit())
    };
    let nearest: Vec<String> = words.into_iter().rev().filter(says_what).collect();
    let has_digit = token.bytes().any(|byte| byte.is_ascii_digit());
    let all_digits = token.bytes().all(|byte| byte.is_ascii_digit());
    let announced = before.trim_end().ends_with([':', '=', '#', '`', '"', '\'', '('])
        || nearest.last().is_some_and(|word| names::names_a_handle(word));
    let shaped = has_digit && !all_digits && token.len() >= 6;
    let plain_number = all_digits && !nearest.is_empty();
    (shaped || (announced && token.len() >= 3 && (has_digit || token.len() >= 8)) || plain_number).then_some(nearest)
}

fn in_uris(text: &str, found: &mut Vec<Emitted>) {
    for uri in URI.captures_iter(text) {
        let (Some(scheme), Some(rest)) = (uri.get(1), uri.get(2)) else { continue };
        if ["http", "https", "file", "data"].contains(&scheme.as_str()) {
            continue;
        }
        let mut prefix = format!("{}://", scheme.as_str());
        for part in rest.as_str().split('/') {
            if part.bytes().any(|byte| byte.is_ascii_digit()) {
                found.push(Emitted { spot: Spot::Uri(prefix.clone()), value: Value::String(part.to_owned()) });
                break;
            }
            prefix.push_str(part);
            prefix.push('/');
        }
    }
}

/// The constant prefix up to the last separator, and the kinds of characters behind it.
fn shape(token: &str) -> String {
    let split = token.rfind(['-', '_', ':', '.']).map(|at| at + 1).filter(|&at| at <= 8).unwrap_or(0);
    let kind = |c: char| if c.is_ascii_digit() { '9' } else { 'a' };
    let mut kinds: Vec<char> = token[split..].chars().map(kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    format!("{}{}", &token[..split], kinds.into_iter().collect::<String>())
}

fn is_candidate(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_u64().is_some(),
        Value::String(text) => {
            let length = text.chars().count();
            (1..=MAX_LENGTH).contains(&length)
                && !text.chars().any(|c| c.is_whitespace() || c.is_control())
                && !text.starts_with("http://")
                && !text.starts_with("https://")
                && !TIMESTAMP.is_match(text)
        }
        _ => false,
    }
}

/// A handle as text: strings as they are, numbers in decimal.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

const MAX_BLOCKS: usize = 16;
const MAX_CANDIDATES: usize = 400;
const MAX_TEXT: usize = 20_000;
const MAX_LENGTH: usize = 512;
const LABEL_WORDS: usize = 5;
const FILLERS: [&str; 13] = [
    "is",
    "the",
    "an",
    "of",
    "with",
    "for",
    "as",
    "to",
    "by",
    "new",
    "your",
    crate::canary::WORD,
    crate::canary::PREFIX,
];

// The patterns are constants, and every test that reads text compiles them.
#[allow(clippy::expect_used)]
static TOKEN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[A-Za-z0-9][A-Za-z0-9_\-.:~]*[A-Za-z0-9]|[0-9]").expect("constant pattern"));
#[allow(clippy::expect_used)]
static URI: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"\b([a-z][a-z0-9+.\-]*)://([^\s"'`<>)\]]+)"#).expect("constant pattern"));
#[allow(clippy::expect_used)]
static TIMESTAMP: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\d{4}-\d{2}-\d{2}([T ]|$)|^\d{2}:\d{2}(:\d{2})?$").expect("constant pattern"));
