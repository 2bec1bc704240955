//! What stands in a readable state that should not lie about: secrets by their name or their form, and what tells who a person is.

use std::sync::LazyLock;

use handfast_wire::pointer;
use regex::Regex;
use serde_json::Value;

use super::{
    coding::{base64, hex},
    envelope::Envelope,
    fields,
};
use crate::discovery::names;

/// Something that can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Legible {
    /// Where it stands.
    pub field: String,
    /// What it is.
    pub kind: &'static str,
    /// The value itself, for nobody's eyes.
    pub value: String,
    /// It stands where a state says whose it is.
    pub names_caller: bool,
}

/// Everything of that kind in a state.
pub fn found(state: &str) -> Vec<Legible> {
    let mut found = Vec::new();
    let mut look = |field: String, name: &str, text: &str, names_caller: bool| {
        if let Some((kind, value)) = by_name(name, text).or_else(|| by_form(text)) {
            found.push(Legible { field, kind, value, names_caller });
        }
    };
    let Some(envelope) = Envelope::read(state) else {
        // No document, and perhaps text all the same: as it is, and in what its parts encode.
        look(String::new(), "", state, false);
        for segment in state.split(['.', ':', '|', '~']) {
            let decoded = hex(segment).or_else(|| base64(segment)).and_then(|(_, bytes)| String::from_utf8(bytes).ok());
            look(String::new(), "", &decoded.unwrap_or_default(), false);
        }
        return found;
    };
    let whose = fields::names_inside(state);
    let document = envelope.value();
    // A token is a document as well: it is looked at as a whole before its members are.
    for (at, value) in pointer::scalars(&document, MOST_SCALARS) {
        let Value::String(text) = value else { continue };
        let names_caller = whose.iter().any(|(path, _)| path[..] == [at.clone()]);
        look(at.clone(), &pointer::last(&at), text, names_caller);
    }
    for field in fields::all(state).into_iter().filter(|field| field.path.len() > 1) {
        if let Value::String(text) = &field.value {
            let names_caller = whose.iter().any(|(path, _)| *path == field.path);
            look(field.path.join(" > "), &field.name, text, names_caller);
        }
    }
    found
}

fn by_name(name: &str, text: &str) -> Option<(&'static str, String)> {
    let words = names::words(name);
    let joined = format!("_{}_", words.join("_"));
    let about_it = words.last().is_some_and(|last| ABOUT.contains(&last.as_str()));
    let is_value = text.len() >= SHORTEST && !text.contains(char::is_whitespace) && !HIDDEN.is_match(text);
    let (_, kind) = NAMES.iter().find(|(known, _)| joined.contains(&format!("_{known}_")))?;
    (is_value && !about_it).then(|| (*kind, text.to_owned()))
}

fn by_form(text: &str) -> Option<(&'static str, String)> {
    FORMS.iter().find_map(|(kind, form)| {
        let seen = form.find(text)?.as_str();
        (!HIDDEN.is_match(seen)).then(|| (*kind, seen.to_owned()))
    })
}

/// A key that names a password, and one that names its length.
const NAMES: [(&str, &str); 21] = [
    ("password", "a password"),
    ("passwd", "a password"),
    ("passphrase", "a password"),
    ("secret", "a secret"),
    ("api_key", "a key"),
    ("apikey", "a key"),
    ("private_key", "a key"),
    ("access_token", "a token"),
    ("refresh_token", "a token"),
    ("id_token", "a token"),
    ("auth_token", "a token"),
    ("session_token", "a token"),
    ("bearer", "a token"),
    ("authorization", "a token"),
    ("cookie", "a token"),
    ("credential", "a secret"),
    ("credentials", "a secret"),
    ("connection_string", "a secret"),
    ("ssn", "a personal number"),
    ("iban", "a personal number"),
    ("card_number", "a personal number"),
];
const ABOUT: [&str; 19] = [
    "id", "ids", "name", "ref", "type", "hint", "count", "required", "policy", "arn", "url", "uri", "length",
    "expires", "expiry", "at", "set", "status", "kind",
];
const SHORTEST: usize = 6;
const MOST_SCALARS: usize = 500;

#[allow(clippy::expect_used)] // constant patterns, compiled by the tests below
static FORMS: LazyLock<[(&str, Regex); 5]> = LazyLock::new(|| {
    let form = |pattern: &str| Regex::new(pattern).expect("constant pattern");
    [
        (
            "a token",
            form(
                r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}|(?i)\bbearer [A-Za-z0-9._~+/-]{16,}",
            ),
        ),
        ("a key", form(r"-----BEGIN [A-Z ]*PRIVATE KEY-----|\bAKIA[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{35}\b")),
        (
            "a token",
            form(
                r"\bgh[pousr]_[A-Za-z0-9]{36}\b|\bgithub_pat_[A-Za-z0-9_]{22,}|\bxox[abprs]-[A-Za-z0-9-]{10,}|\bsk-[A-Za-z0-9_-]{20,}",
            ),
        ),
        ("a password", form(r"\b[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/@]+@")),
        ("an e-mail address", form(r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}\b")),
    ]
});
#[allow(clippy::expect_used)]
static HIDDEN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\*{3}|•{3}|\.{3}|x{6}|redacted|hidden|masked|omitted").expect("constant pattern")
});

#[cfg(test)]
mod tests {
    use base64::Engine;
    use serde_json::json;

    use super::{super::coding::engine, *};

    fn kinds(state: &Value) -> Vec<(String, &'static str)> {
        found(&state.to_string()).into_iter().map(|legible| (legible.field, legible.kind)).collect()
    }

    #[test]
    fn secrets_are_known_by_their_name_or_their_form() {
        let jwt = ["eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiJhbGljZSJ9", "c2lnbmF0dXJl"].join(".");
        for (state, field, kind) in [
            (json!({"db": {"password": "hunter2!"}}), "/db/password", "a password"),
            (json!({"upstreamAccessToken": "0123456789"}), "/upstreamAccessToken", "a token"),
            (json!({"clientSecret": "0123456789"}), "/clientSecret", "a secret"),
            (json!({"api-key": "0123456789"}), "/api-key", "a key"),
            (json!({"t": jwt}), "/t", "a token"),
            (json!({"aws": format!("AKIA{}", "A".repeat(16))}), "/aws", "a key"),
            (json!({"store": "postgres://app:s3cret@db/shop"}), "/store", "a password"),
            (json!({"notify": "carol@example.com"}), "/notify", "an e-mail address"),
        ] {
            assert!(kinds(&state).contains(&(field.to_owned(), kind)), "{state}: {:?}", kinds(&state));
        }
    }

    #[test]
    fn what_is_about_a_secret_is_none() {
        for state in [
            json!({"secret_name": "prod/database"}),
            json!({"passwordLength": "1234567"}),
            json!({"password": "********"}),
            json!({"api_key": "[redacted]"}),
            json!({"token_count": "123456", "next_page_token": "abcdef123"}),
            json!({"password": true, "secret": 1_234_567}),
            json!({"message": "the password is wrong", "authorization": "is needed first"}),
            json!({"nonce": "0123456789abcdef", "mac": "0123456789abcdef0123456789abcdef"}),
            json!({"principal": "alice", "secretary": "carola"}),
        ] {
            assert_eq!(kinds(&state), [], "{state}");
        }
    }

    #[test]
    fn whose_a_state_is_may_be_an_address() {
        let state = json!({"sub": "alice@example.com", "cc": "carol@example.com"}).to_string();
        let found: Vec<(String, bool)> =
            found(&state).into_iter().map(|legible| (legible.field, legible.names_caller)).collect();
        assert_eq!(found, [("/sub".to_owned(), true), ("/cc".to_owned(), false)]);
    }

    #[test]
    fn text_that_is_no_document_is_read_as_well() {
        let coded = engine(true, false).encode("step 2 for carol@example.com");
        assert_eq!(found(&format!("v1.{coded}.c2lnbmF0dXJl"))[0].kind, "an e-mail address");
        assert_eq!(found("archive|carol@example.com|3")[0].value, "carol@example.com");
        assert_eq!(found("0123456789abcdef"), []);
    }
}
