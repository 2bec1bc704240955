//! The seam between what a state says and its signature: the one without the other, with another state's, or in another
//! spelling.

use handfast_wire::pointer;
use serde_json::Value;

use super::{
    coding::{Coding, engine},
    envelope::{Envelope, SHORTEST_MAC, SIGNATURE_WORDS},
};
use crate::discovery::names;
use base64::Engine;

/// A state with its signature done away with, in the ways that a careless verifier lets pass. Where one is accepted, anybody can
/// write the rest.
pub fn without_signature(state: &str) -> Vec<(&'static str, String)> {
    let Some(envelope) = Envelope::read(state) else { return Vec::new() };
    let Some(separator) = separator(&envelope.suffix).filter(|_| envelope.suffix.len() >= SHORTEST_MAC) else {
        return inside(&envelope);
    };
    let Some(whole) = envelope.rebuilt(envelope.document.clone()) else { return Vec::new() };
    let Envelope { prefix, suffix, .. } = &envelope;
    let body = &whole[prefix.len()..whole.len() - suffix.len()];
    let cut = |length: usize| suffix.chars().take(separator.len() + length).collect::<String>();
    let mut found = vec![
        ("its signature emptied", format!("{prefix}{body}{separator}")),
        ("its signature removed", format!("{prefix}{body}")),
        ("its signature cut to one character", format!("{prefix}{body}{}", cut(1))),
        ("its signature cut to its first half", format!("{prefix}{body}{}", cut((suffix.len() - separator.len()) / 2))),
    ];
    let header = prefix.strip_suffix('.').and_then(Envelope::read).filter(|header| header.value().get("alg").is_some());
    for (told, none) in [("alg none and no signature", "none"), ("alg nOnE and no signature", "nOnE")] {
        let header = header.as_ref().and_then(|header| header.with("/alg", &Value::from(none)));
        found.extend(header.map(|header| (told, format!("{header}.{body}."))));
    }
    found
}

/// A signature that is a member of the document.
fn inside(envelope: &Envelope) -> Vec<(&'static str, String)> {
    let Some((at, text)) = member(envelope) else { return Vec::new() };
    let half: String = text.chars().take(text.len() / 2).collect();
    let changes = [
        ("its signature emptied", Value::from("")),
        ("null for a signature", Value::Null),
        ("its signature cut to its first half", Value::from(half)),
    ];
    changes.into_iter().filter_map(|(told, new)| Some((told, envelope.with(&at, &new)?))).collect()
}

/// What the one state says, with the signature of the other. `None` where no signature is seen, or both have the same one.
pub fn crossed(state: &str, other: &str) -> Option<String> {
    let (mut own, other) = (Envelope::read(state)?, Envelope::read(other)?);
    if own.suffix.len() >= SHORTEST_MAC {
        own.suffix = other.suffix;
    } else if let (Some((at, _)), Some((_, text))) = (member(&own), member(&other)) {
        return own.with(&at, &Value::from(text)).filter(|crossed| crossed != state);
    } else {
        let framed =
            |envelope: &Envelope| envelope.codings.iter().position(|coding| matches!(coding, Coding::Framed { .. }));
        let (at, others) = (framed(&own)?, framed(&other)?);
        own.codings[at] = other.codings[others].clone();
    }
    own.rebuilt(own.document.clone()).filter(|crossed| crossed != state)
}

/// Where a signature stands that is a member, and what it is.
fn member(envelope: &Envelope) -> Option<(String, String)> {
    let value = envelope.value();
    let scalars = pointer::scalars(&value, MOST_SCALARS).into_iter();
    scalars.filter_map(|(at, scalar)| Some((at, scalar.as_str()?.to_owned()))).find(|(at, text)| {
        let words = names::words(&pointer::last(at));
        text.len() >= SHORTEST_MAC && words.iter().any(|word| SIGNATURE_WORDS.contains(&word.as_str()))
    })
}

fn separator(suffix: &str) -> Option<&str> {
    if suffix.starts_with("--") { Some("--") } else { suffix.get(..1) }
}

/// The same state in another spelling: whoever reads it reads the same. Two texts for one state matter where states are told
/// apart by their text, to be used once or to be revoked.
pub fn spelt_otherwise(state: &str) -> Vec<(&'static str, String)> {
    let mut found = vec![("something behind it", format!("{state}.x"))];
    if !state.contains(['{', '"', '=']) {
        found.push(("padding", format!("{state}=")));
    }
    found.push(("a line break behind it", format!("{state}\n")));
    found.extend(with_unused_bits(state).map(|state| ("other unused bits in its last character", state)));
    found
}

/// Base64 ends in bits that stand for nothing, where its length says so.
fn with_unused_bits(state: &str) -> Option<String> {
    let start = state.rfind(['.', ':', '|', '~']).map_or(0, |at| at + 1);
    let segment = &state[start..];
    let unused = match segment.len() % 4 {
        2 => 4,
        3 => 2,
        _ => return None,
    };
    let bytes = engine(!segment.contains(['+', '/']), false).decode(segment).ok()?;
    if engine(!segment.contains(['+', '/']), false).encode(bytes) != segment {
        return None;
    }
    let last = segment.bytes().last()?;
    let at = ALPHABET.iter().position(|letter| *letter == last)?;
    let other = *ALPHABET.get(at | ((1 << unused) - 1))?;
    (other != last).then(|| format!("{}{}", &state[..state.len() - 1], char::from(other)))
}

const MOST_SCALARS: usize = 500;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn url64(bytes: impl AsRef<[u8]>) -> String {
        engine(true, false).encode(bytes)
    }

    fn states(found: Vec<(&'static str, String)>) -> Vec<String> {
        found.into_iter().map(|(_, state)| state).collect()
    }

    #[test]
    fn a_signature_is_done_away_with_in_every_careless_way() {
        let (header, body, tag) = (url64(r#"{"alg":"HS256"}"#), url64(r#"{"user":"a"}"#), url64([7; 32]));
        let none = |none: &str| url64(json!({"alg": none}).to_string());
        let expected = [
            format!("{header}.{body}."),
            format!("{header}.{body}"),
            format!("{header}.{body}.B"),
            format!("{header}.{body}.{}", &tag[..21]),
            format!("{}.{body}.", none("none")),
            format!("{}.{body}.", none("nOnE")),
        ];
        assert_eq!(states(without_signature(&format!("{header}.{body}.{tag}"))), expected);
        let rails = format!("{body}--0123456789abcdef");
        assert_eq!(states(without_signature(&rails))[..3], [format!("{body}--"), body.clone(), format!("{body}--0")]);
        assert!(without_signature(&body).is_empty() && without_signature("no document").is_empty());
    }

    #[test]
    fn a_signature_that_is_a_member_is_done_away_with_too() {
        let state = json!({"user": "a", "mac": "0123456789abcdef"}).to_string();
        let expected = [
            json!({"user": "a", "mac": ""}).to_string(),
            json!({"user": "a", "mac": null}).to_string(),
            json!({"user": "a", "mac": "01234567"}).to_string(),
        ];
        assert_eq!(states(without_signature(&state)), expected);
    }

    #[test]
    fn what_one_state_says_gets_the_signature_of_another() {
        let signed = |user: &str, tag: u8| format!("{}.{}", url64(json!({"user": user}).to_string()), url64([tag; 32]));
        let expected = format!("{}.{}", url64(r#"{"user":"a"}"#), url64([8; 32]));
        assert_eq!(crossed(&signed("a", 7), &signed("b", 8)), Some(expected));
        assert_eq!(crossed(&signed("a", 7), &signed("b", 7)), None);
        let inside = |user: &str, mac: &str| json!({"user": user, "mac": mac}).to_string();
        assert_eq!(crossed(&inside("a", "11111111"), &inside("b", "22222222")), Some(inside("a", "22222222")));
        let framed = |user: &str, tag: u8| url64([json!({"user": user}).to_string().as_bytes(), &[tag; 32]].concat());
        assert_eq!(crossed(&framed("a", 0xA5), &framed("b", 0xA6)), Some(framed("a", 0xA6)));
        assert_eq!(crossed(&url64(r#"{"user":"a"}"#), &url64(r#"{"user":"b"}"#)), None);
    }

    #[test]
    fn another_spelling_says_the_same() {
        let state = format!("{}.{}", url64(r#"{"user":"a"}"#), url64([7; 32]));
        let found = spelt_otherwise(&state);
        assert_eq!(found.len(), 4, "{found:?}");
        let (_, bits) = &found[3];
        let lenient = base64::engine::GeneralPurpose::new(
            &base64::alphabet::URL_SAFE,
            base64::engine::general_purpose::NO_PAD.with_decode_allow_trailing_bits(true),
        );
        assert!(*bits != state && bits.len() == state.len());
        assert_eq!(lenient.decode(bits.rsplit('.').next().expect("a tag")), Ok(vec![7; 32]));
    }
}
