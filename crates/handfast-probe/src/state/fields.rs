//! Which fields of a readable state could change what a server is willing to do, in the order worth trying, and what to
//! change them to.

use handfast_wire::pointer;
use serde_json::{Number, Value, json};

use super::envelope::Envelope;
use crate::{canary::Canary, discovery::names};

/// A changed state, ready to be presented.
#[derive(Debug, Clone, PartialEq)]
pub struct Mutation {
    /// Pointers to the field: one for each layer of encoding, outermost first.
    pub field: Vec<String>,
    /// What was issued.
    pub before: Value,
    /// What is presented.
    pub after: Value,
    /// Why this field: `who`, `what may be done`, ...
    pub why: &'static str,
    /// The whole state.
    pub state: String,
}

/// One change for each recognised field, at any depth and through nested encodings, in the order worth trying.
pub fn mutations(state: &str, canary: &Canary) -> Vec<Mutation> {
    let mut found: Vec<(usize, Mutation)> = Vec::new();
    for field in fields(state, 0) {
        let Some(rank) = KINDS.iter().position(|kind| kind.names(&field.name)) else { continue };
        let kind = &KINDS[rank];
        for after in kind.changes(&field.value, canary) {
            if let Some(changed) = replaced(state, &field.path, &after) {
                let (before, why) = (field.value.clone(), kind.why);
                found.push((rank, Mutation { field: field.path.clone(), before, after, why, state: changed }));
            }
        }
    }
    found.sort_by_key(|(rank, _)| *rank);
    found.into_iter().map(|(_, mutation)| mutation).take(MOST).collect()
}

/// The change of a `who` field to another caller's real name, where one is known.
pub fn impersonations(state: &str, own: &str, other: &str) -> Vec<Mutation> {
    let fields = fields(state, 0).into_iter();
    let who = fields.filter(|field| KINDS[0].names(&field.name) && field.value.as_str() == Some(own));
    who.filter_map(|field| {
        let state = replaced(state, &field.path, &json!(other))?;
        Some(Mutation {
            field: field.path,
            before: field.value,
            after: json!(other),
            why: "who: another caller's real name",
            state,
        })
    })
    .collect()
}

/// Whether any field of the state could change what a server is willing to do, as far as names tell.
pub fn decides_something(state: &str) -> bool {
    fields(state, 0).iter().any(|field| KINDS.iter().any(|kind| kind.names(&field.name)))
}

/// The values of the `who` fields, by path.
pub fn names_inside(state: &str) -> Vec<(Vec<String>, String)> {
    let fields = fields(state, 0).into_iter().filter(|field| KINDS[0].names(&field.name));
    fields.filter_map(|field| Some((field.path, field.value.as_str()?.to_owned()))).collect()
}

/// The smallest changes: one character of a free text, and a member that no program asks for.
pub fn smallest(state: &str) -> Vec<Mutation> {
    let mut found = Vec::new();
    for field in fields(state, 0) {
        if KINDS.iter().any(|kind| kind.names(&field.name)) {
            continue;
        }
        let (after, why) = match &field.value {
            Value::String(text) if text.contains(' ') || is_word(text) => {
                (one_letter_off(text).map(Value::from), "one character of a free text")
            }
            Value::Number(number) => {
                (number.as_i64().and_then(|number| number.checked_add(1)).map(Value::from), "one more")
            }
            Value::Bool(truth) => (Some(json!(!truth)), "the opposite"),
            _ => (None, ""),
        };
        let Some(after) = after else { continue };
        if let Some(changed) = replaced(state, &field.path, &after) {
            found.push(Mutation { field: field.path, before: field.value, after, why, state: changed });
        }
    }
    found.truncate(MOST_SMALLEST);
    if let Some(envelope) = Envelope::read(state)
        && let Some(changed) = envelope.with_member(UNKNOWN_MEMBER, &json!(1))
    {
        let field = vec![format!("/{UNKNOWN_MEMBER}")];
        let why = "a member that no program asks for";
        found.push(Mutation { field, before: Value::Null, after: json!(1), why, state: changed });
    }
    found
}

/// Where two states differ in values that may be somebody's: not in who acts, not in times, and not in what is only there to
/// make each state another one.
pub fn differing(state: &str, other: &str) -> Vec<Vec<String>> {
    let others = fields(other, 0);
    let differs = |field: &Field| {
        let of_other = others.iter().find(|other| other.path == field.path);
        of_other.is_some_and(|other| {
            let alike = matches!((&field.value, &other.value), (Value::String(_), Value::String(_)))
                || (field.value.is_number() && other.value.is_number());
            alike && other.value != field.value
        })
    };
    let known = |field: &Field| {
        let words = names::words(&field.name);
        KINDS[0].names(&field.name)
            || KINDS[4].names(&field.name)
            || words.iter().any(|word| ONCE.contains(&word.as_str()))
    };
    let fields = fields(state, 0).into_iter().filter(|field| differs(field) && !known(field));
    fields.map(|field| field.path).collect()
}

/// The value at a place of a state.
pub fn value_at(state: &str, path: &[String]) -> Option<Value> {
    fields(state, 0).into_iter().find(|field| field.path == path).map(|field| field.value)
}

/// The state with what another one has at this place.
pub fn transplanted(state: &str, other: &str, path: &[String]) -> Option<String> {
    let value = value_at(other, path)?;
    replaced(state, path, &value).filter(|changed| changed != state)
}

/// A scalar of a state.
pub(super) struct Field {
    /// Pointers to it: one for each layer of encoding, outermost first.
    pub(super) path: Vec<String>,
    pub(super) name: String,
    pub(super) value: Value,
}

/// Every scalar of a readable state.
pub(super) fn all(state: &str) -> Vec<Field> {
    fields(state, 0)
}

/// Every scalar of the document, and of documents encoded inside its strings.
fn fields(state: &str, depth: usize) -> Vec<Field> {
    let Some(envelope) = Envelope::read(state).filter(|_| depth <= DEEPEST) else { return Vec::new() };
    let document = envelope.value();
    let mut found = Vec::new();
    for (at, value) in pointer::scalars(&document, MOST_SCALARS) {
        let inner = value.as_str().filter(|text| text.len() >= SHORTEST_INNER).map(|text| fields(text, depth + 1));
        match inner.filter(|inner| !inner.is_empty()) {
            Some(inner) => found.extend(inner.into_iter().map(|mut field| {
                field.path.insert(0, at.clone());
                field
            })),
            None => found.push(Field { name: nearest_name(&at), path: vec![at], value: value.clone() }),
        }
    }
    found
}

/// The name of a scalar: its member's, or that of the array it stands in.
fn nearest_name(at: &str) -> String {
    at.split('/').rev().find(|segment| segment.parse::<usize>().is_err()).map(pointer::last).unwrap_or_default()
}

fn replaced(state: &str, path: &[String], new: &Value) -> Option<String> {
    let envelope = Envelope::read(state)?;
    let (first, rest) = path.split_first()?;
    if rest.is_empty() {
        return envelope.with(first, new);
    }
    let inner = envelope.value().pointer(first)?.as_str()?.to_owned();
    envelope.with(first, &json!(replaced(&inner, rest, new)?))
}

/// A family of fields.
struct Kind {
    why: &'static str,
    words: &'static [&'static str],
    change: fn(&Value, &Canary) -> Vec<Value>,
}

impl Kind {
    fn names(&self, name: &str) -> bool {
        names::words(name).iter().any(|word| self.words.iter().any(|known| names::same_noun(word, known)))
    }

    fn changes(&self, value: &Value, canary: &Canary) -> Vec<Value> {
        (self.change)(value, canary).into_iter().filter(|after| after != value && !after.is_null()).collect()
    }
}

const KINDS: [Kind; 6] = [
    Kind {
        why: "who",
        words: &[
            "principal",
            "subject",
            "sub",
            "user",
            "username",
            "owner",
            "actor",
            "account",
            "tenant",
            "identity",
            "caller",
            "impersonate",
            "uid",
            "customer",
        ],
        change: to_canary,
    },
    Kind {
        why: "what may be done",
        words: &[
            "role",
            "scope",
            "perm",
            "permission",
            "grant",
            "privilege",
            "admin",
            "elevated",
            "audience",
            "aud",
            "level",
        ],
        change: to_more_rights,
    },
    Kind {
        why: "what was decided",
        words: &[
            "approved",
            "approval",
            "confirmed",
            "confirm",
            "allow",
            "allowed",
            "authorized",
            "authorised",
            "verified",
            "consent",
            "accepted",
            "step",
        ],
        change: to_opposite,
    },
    Kind {
        why: "how much",
        words: &[
            "amount", "limit", "quota", "count", "item", "max", "total", "budget", "qty", "quantity", "balance",
            "price", "cents", "size", "number",
        ],
        change: to_more,
    },
    Kind {
        why: "how long",
        words: &["exp", "expiry", "expires", "expiration", "ttl", "deadline", "until", "after", "valid"],
        change: to_later,
    },
    Kind {
        why: "where",
        words: &[
            "path",
            "target",
            "resource",
            "destination",
            "dest",
            "uri",
            "url",
            "bucket",
            "table",
            "workspace",
            "repo",
            "project",
            "file",
            "tool",
            "env",
            "environment",
            "id",
            "recipient",
            "email",
        ],
        change: to_canary,
    },
];

fn to_canary(value: &Value, canary: &Canary) -> Vec<Value> {
    match value {
        Value::String(_) => vec![json!(canary.long)],
        Value::Number(_) => to_more(value, canary),
        _ => Vec::new(),
    }
}

fn to_more_rights(value: &Value, canary: &Canary) -> Vec<Value> {
    match value {
        Value::String(text) if text != "admin" => vec![json!("admin"), json!(canary.long)],
        Value::Bool(_) => to_opposite(value, canary),
        Value::Number(_) => to_more(value, canary),
        _ => to_canary(value, canary),
    }
}

fn to_opposite(value: &Value, canary: &Canary) -> Vec<Value> {
    match value {
        Value::Bool(truth) => vec![json!(!truth)],
        Value::Number(number) if number.as_u64() == Some(0) => vec![json!(1)],
        Value::Number(_) => to_more(value, canary),
        Value::String(text) => match text.as_str() {
            "true" | "yes" | "approved" => vec![json!("false"), json!("no")],
            _ => vec![json!("approved"), json!("true")],
        },
        _ => Vec::new(),
    }
}

/// x1000 + 7: a change that no rounding and no default would make.
fn to_more(value: &Value, canary: &Canary) -> Vec<Value> {
    match value {
        // And one more, where a business rule caps the amount.
        Value::Number(number) => match number
            .as_i64()
            .and_then(|number| Some([number.checked_mul(1000)?.checked_add(7)?, number.checked_add(1)?]))
        {
            Some([much, one]) => vec![json!(much), json!(one)],
            None => number
                .as_f64()
                .and_then(|number| Number::from_f64(number * 1000.0 + 7.0))
                .map(Value::Number)
                .into_iter()
                .collect(),
        },
        Value::String(text) => match text.parse::<i64>() {
            Ok(number) => vec![json!(number.saturating_mul(1000).saturating_add(7).to_string())],
            Err(_) => to_canary(value, canary),
        },
        _ => Vec::new(),
    }
}

/// +10^7 seconds, in the unit that the number seems to have; a year more for a date.
fn to_later(value: &Value, _: &Canary) -> Vec<Value> {
    let later = |number: i64| number.saturating_add(if number > MILLISECONDS { 10_000_000_000 } else { 10_000_000 });
    match value {
        Value::Number(number) => match number.as_i64() {
            Some(number) => vec![json!(later(number))],
            None => number.as_f64().map(|number| json!(number + 1e7)).into_iter().collect(),
        },
        Value::String(text) => {
            let year = text
                .get(..4)
                .filter(|_| text.as_bytes().get(4) == Some(&b'-'))
                .and_then(|year| year.parse::<i64>().ok());
            match (text.parse::<i64>(), year) {
                (Ok(number), _) => vec![json!(later(number).to_string())],
                (Err(_), Some(year)) => vec![json!(format!("{}{}", year + 1, &text[4..]))],
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}

fn is_word(text: &str) -> bool {
    text.len() >= 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

fn one_letter_off(text: &str) -> Option<String> {
    let at = text.char_indices().filter(|(_, c)| c.is_ascii_lowercase()).map(|(at, _)| at).nth(1)?;
    let neighbour = if &text[at..=at] == "z" { 'y' } else { char::from(text.as_bytes()[at] + 1) };
    Some(format!("{}{neighbour}{}", &text[..at], &text[at + 1..]))
}

/// What makes each state another one, or says when it was made or for which request, or protects it.
const ONCE: [&str; 22] = [
    "n",
    "nonce",
    "jti",
    "salt",
    "iv",
    "rand",
    "random",
    "iat",
    "ts",
    "time",
    "timestamp",
    "issued",
    "created",
    "mac",
    "hmac",
    "sig",
    "signature",
    "checksum",
    "digest",
    "hash",
    "arguments",
    "args",
];
const UNKNOWN_MEMBER: &str = "hf_unknown";
const MOST: usize = 24;
const MOST_SMALLEST: usize = 8;
const MOST_SCALARS: usize = 500;
const DEEPEST: usize = 2;
const SHORTEST_INNER: usize = 8;
const MILLISECONDS: i64 = 100_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn canary() -> Canary {
        Canary { long: "hf-a0010000-canary".into(), short: "hfa0010000".into() }
    }

    fn changes(state: &Value) -> Vec<(String, Value, Value)> {
        let found = mutations(&state.to_string(), &canary());
        found.into_iter().map(|change| (change.field.join(" > "), change.before, change.after)).collect()
    }

    #[test]
    fn who_comes_first_and_where_comes_last() {
        let state = json!({"target": "t", "exp": 1_800_000_000, "amount": 10, "approved": false, "role": "user", "principal": "alice"});
        let order: Vec<String> = changes(&state).into_iter().map(|(field, ..)| field).collect();
        assert_eq!(order, ["/principal", "/role", "/role", "/approved", "/amount", "/amount", "/exp", "/target"]);
    }

    #[test]
    fn each_family_changes_in_its_own_way() {
        let state = json!({"approved": false, "amount": 10, "exp": 1_800_000_000, "expiresAt": "2026-11-29T10:00:00Z", "ttl_ms": 1_800_000_000_000_i64});
        let after: Vec<Value> = changes(&state).into_iter().map(|(.., after)| after).collect();
        let expected = json!([true, 10_007, 11, 1_810_000_000, "2027-11-29T10:00:00Z", 1_810_000_000_000_i64]);
        assert_eq!(Value::Array(after), expected);
    }

    #[test]
    fn fields_are_found_at_any_depth_and_through_encodings() {
        let inner = json!({"user": "alice"}).to_string();
        let state = json!({"a": [{"b": {"owner_id": "alice"}}], "token": inner, "items": ["x", "y"]});
        let fields: Vec<String> = changes(&state).into_iter().map(|(field, ..)| field).collect();
        assert_eq!(fields, ["/a/0/b/owner_id", "/token > /user", "/items/0", "/items/1"]);
    }

    #[test]
    fn what_two_states_differ_in_is_put_from_one_into_the_other() {
        let state =
            |order: &str, nonce: u64| json!({"user": order, "order": order, "nonce": nonce, "exp": nonce, "kind": "x"});
        let (one, other) = (state("ord-1", 1).to_string(), state("ord-2", 2).to_string());
        assert_eq!(differing(&one, &other), [["/order"]]);
        let mixed = transplanted(&one, &other, &["/order".to_owned()]).expect("mixed");
        let mixed: Value = serde_json::from_str(&mixed).expect("JSON");
        assert_eq!((&mixed["order"], &mixed["user"], &mixed["nonce"]), (&json!("ord-2"), &json!("ord-1"), &json!(1)));
        assert_eq!(transplanted(&one, &one, &["/order".to_owned()]), None);
    }

    #[test]
    fn another_callers_name_replaces_only_the_own_one() {
        let state = json!({"principal": "bob", "user_agent": "x", "amount": 1}).to_string();
        let found = impersonations(&state, "bob", "alice");
        assert_eq!(found.len(), 1);
        assert_eq!(serde_json::from_str::<Value>(&found[0].state).expect("JSON")["principal"], json!("alice"));
    }
}
