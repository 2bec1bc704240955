//! What may stand in a report: no credential, and of a handle or state only so much that equal ones can be matched up.

use std::collections::{BTreeMap, HashMap};

use aws_lc_rs::digest::{SHA256, digest};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};
use handfast_wire::text::is_printable;
use serde_json::Value;

/// A shortened form of a value: its first characters and the start of its SHA-256.
pub fn fingerprint(value: &str) -> String {
    let head: String = value.chars().take(HEAD).collect();
    format!("{head}…#{}", short_digest(value))
}

fn short_digest(value: &str) -> String {
    digest(&SHA256, value.as_bytes()).as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// Replaces secrets in text that goes into a report.
#[derive(Debug, Default, Clone)]
pub struct Redactor {
    replacements: Vec<Replacement>,
    /// Where they stand, by how they begin in lower case: a run learns thousands, and every text is searched for all of them.
    by_start: HashMap<[u8; SHORTEST_SECRET], Vec<usize>>,
    /// The length of the longest, in bytes.
    longest: usize,
    /// Session ids, and what each is called.
    sessions: Vec<(String, String)>,
}

#[derive(Clone)]
struct Replacement {
    /// As it is looked for: in lower case, where any case will do.
    secret: String,
    shown: String,
    any_case: bool,
}

impl Replacement {
    fn is_at(&self, at: usize, text: &str, lower: &str) -> bool {
        let searched = if self.any_case { lower } else { text };
        searched.as_bytes()[at..].starts_with(self.secret.as_bytes())
    }
}

impl std::fmt::Debug for Replacement {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.shown)
    }
}

impl Redactor {
    /// A credential: never shown, not even in part.
    pub fn hide(&mut self, credential: &str, name: &str) {
        self.add_however_written(credential, &format!("[credential of {name}]"));
    }

    /// A handle or state: shown by its fingerprint, also without its prefix. Short ones stay: they hide nothing and would
    /// garble the rest.
    pub fn shorten(&mut self, value: &str) {
        if value.chars().count() < WORTH_SHORTENING {
            return;
        }
        let shown = fingerprint(value);
        self.add_however_written(value, &shown);
        // A UUID without its dashes, and base64 in its other alphabet.
        for other in [
            value.replace('-', ""),
            value.replace('-', "+").replace('_', "/"),
            value.replace('+', "-").replace('/', "_"),
        ] {
            if other != value && other.chars().count() >= WORTH_SHORTENING {
                self.add(&other, shown.clone());
            }
        }
        if let Some((_, rest)) =
            value.split_once(SEPARATORS).filter(|(_, rest)| rest.chars().count() >= WORTH_SHORTENING)
        {
            self.add(rest, shown);
        }
    }

    /// A session id: never shown, not even in part. Reports call it by the name that is returned.
    pub fn name_session(&mut self, id: &str) -> String {
        if let Some((_, shown)) = self.sessions.iter().find(|(known, _)| known == id) {
            return shown.clone();
        }
        let shown = format!("{SESSION}{}]", self.sessions.len() + 1);
        self.sessions.push((id.to_owned(), shown.clone()));
        // A short one hides nothing, and would garble the rest.
        if id.chars().count() >= SHORTEST_SESSION {
            self.add_however_written(id, &shown);
        }
        shown
    }

    /// A secret as it is, and as a server may write it that echoes it: in another case, in a URI, in JSON, in hexadecimal, in
    /// base64, alone or among other things.
    fn add_however_written(&mut self, secret: &str, shown: &str) {
        self.add(secret, shown.to_owned());
        if secret.chars().count() < SHORTEST_IN_ANY_CASE {
            return;
        }
        let percent: String = secret.bytes().map(percent_encoded).collect();
        let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        for other in [percent, secret.replace('/', "\\/"), hex].into_iter().chain(in_base64(secret)) {
            self.add(&other, shown.to_owned());
        }
    }

    fn add(&mut self, secret: &str, shown: String) {
        let length = secret.chars().count();
        let any_case = length >= SHORTEST_IN_ANY_CASE;
        let lower = secret.to_ascii_lowercase();
        let Some(&start) = lower.as_bytes().first_chunk().filter(|_| length >= SHORTEST_SECRET) else { return };
        let secret = if any_case { lower } else { secret.to_owned() };
        let alike = self.by_start.entry(start).or_default();
        if alike.iter().any(|at| self.replacements[*at].secret == secret) {
            return;
        }
        alike.push(self.replacements.len());
        self.longest = self.longest.max(secret.len());
        self.replacements.push(Replacement { secret, shown, any_case });
    }

    /// The text without secrets.
    pub fn text(&self, text: &str) -> String {
        // Only ASCII letters change: every place in the one is the same place in the other.
        let lower = text.to_ascii_lowercase();
        let mut found: Vec<(usize, &Replacement)> = Vec::new();
        for (at, start) in lower.as_bytes().windows(SHORTEST_SECRET).enumerate() {
            let alike = self.by_start.get(start).into_iter().flatten().map(|known| &self.replacements[*known]);
            found.extend(alike.filter(|known| known.is_at(at, text, &lower)).map(|known| (at, known)));
        }
        // The longest first: a state may contain a handle.
        found.sort_by_key(|(at, known)| (std::cmp::Reverse(known.secret.len()), *at));
        let mut hidden: BTreeMap<usize, &Replacement> = BTreeMap::new();
        for (at, known) in found {
            let end = at + known.secret.len();
            let is_free = hidden.range(..end).next_back().is_none_or(|(start, last)| start + last.secret.len() <= at);
            if is_free {
                hidden.insert(at, known);
            }
        }
        let (mut clean, mut from) = (String::new(), 0);
        for (at, known) in hidden {
            clean.push_str(&text[from..at]);
            clean.push_str(&known.shown);
            from = at + known.secret.len();
        }
        clean.push_str(&text[from..]);
        clean
    }

    /// The text without secrets, at most `limit` characters of it.
    pub fn excerpt(&self, text: &str, limit: usize) -> String {
        // A long text is cut before it is searched, and what the cut may have split is dropped.
        let cut = text.floor_char_boundary(limit * 8 + 2 * self.longest);
        let mut clean = self.text(&text[..cut]);
        if cut < text.len() {
            clean.truncate(clean.floor_char_boundary(clean.len().saturating_sub(self.longest)));
            clean.push('…');
        }
        let printable: String =
            clean.chars().map(|c| if c == '\n' || is_printable(c) { c } else { '\u{fffd}' }).collect();
        match printable.char_indices().nth(limit) {
            None => printable,
            Some((end, _)) => format!("{}…", &printable[..end]),
        }
    }

    /// JSON without secrets, every string in it at most `limit` characters.
    pub fn json(&self, value: &Value, limit: usize) -> Value {
        match value {
            Value::String(text) => Value::String(self.excerpt(text, limit)),
            Value::Array(items) => Value::Array(items.iter().map(|item| self.json(item, limit)).collect()),
            Value::Object(members) => Value::Object(
                members.iter().map(|(name, member)| (self.text(name), self.json(member, limit))).collect(),
            ),
            other => other.clone(),
        }
    }
}

/// A text in base64, in both alphabets: alone, and after one or two other bytes, without the characters that hold something of
/// what stands beside it.
fn in_base64(secret: &str) -> Vec<String> {
    let mut written = vec![STANDARD_NO_PAD.encode(secret), URL_SAFE_NO_PAD.encode(secret)];
    for before in 0..3 {
        let padded = [&vec![0; before], secret.as_bytes()].concat();
        let (first, whole) = ([0, 2, 3][before], padded.len() * 8 / 6);
        for encoded in [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)] {
            written.push(encoded[first..whole].to_owned());
        }
    }
    written
}

fn percent_encoded(byte: u8) -> String {
    if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
        char::from(byte).to_string()
    } else {
        format!("%{byte:02X}")
    }
}

const HEAD: usize = 6;
/// How the names of sessions begin.
const SESSION: &str = "[session ";
/// Anything shorter may be an HTTP status.
const SHORTEST_SESSION: usize = 6;
/// Anything shorter is in every text.
const SHORTEST_SECRET: usize = 3;
const WORTH_SHORTENING: usize = 12;
/// Anything shorter may well be another word in another case.
const SHORTEST_IN_ANY_CASE: usize = 6;
/// What a prefix may end with, as in `bsk_`, `urn:`, `ws-`.
const SEPARATORS: [char; 7] = ['-', '_', ':', '.', '/', '~', '#'];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_hidden_however_a_server_writes_it() {
        let secret = "aa+bb/cc9f31c07d55Xy==";
        let mut redactor = Redactor::default();
        redactor.hide(secret, "A");
        for echoed in [
            secret.to_owned(),
            "aa%2Bbb%2Fcc9f31c07d55Xy%3D%3D".to_owned(),
            secret.replace('/', "\\/"),
            secret.to_uppercase(),
            secret.to_lowercase(),
            "Aa+bb/Cc9f31C07d55xy==".to_owned(),
            "aa%2bbb%2fcc9f31c07d55Xy%3d%3d".to_owned(),
            STANDARD_NO_PAD.encode(secret),
            URL_SAFE_NO_PAD.encode(secret),
            STANDARD_NO_PAD.encode(format!("Bearer {secret} or so")),
            STANDARD_NO_PAD.encode(format!("a:{secret}")),
            STANDARD_NO_PAD.encode(format!("{{\"t\":\"{secret}\"}}")),
            secret.bytes().map(|byte| format!("{byte:02X}")).collect(),
        ] {
            let shown = redactor.text(&format!("you sent {echoed}."));
            assert!(shown.contains("[credential of A]") && !shown.to_lowercase().contains("9f31c07d55"), "{shown}");
        }
    }

    #[test]
    fn the_longest_of_several_is_what_is_hidden() {
        let mut redactor = Redactor::default();
        redactor.hide("alice", "A");
        redactor.shorten("alice-0123456789abcdef");
        redactor.shorten("0123456789ab");
        redactor.hide("xyZ", "B");
        let (whole, part) = (fingerprint("alice-0123456789abcdef"), fingerprint("0123456789ab"));
        let said = "\u{e4}alice-0123456789ABCDEF, 0123456789ab, alice, xyZ, xyz: \u{20ac}";
        let shown = format!("\u{e4}{whole}, {part}, [credential of A], [credential of B], xyz: \u{20ac}");
        assert_eq!(redactor.text(said), shown);
        assert_eq!(redactor.text("al"), "al");
    }

    #[test]
    fn a_short_credential_is_hidden_as_well() {
        let mut redactor = Redactor::default();
        redactor.hide("tok-bob", "B");
        let said = format!("tok-bob TOK-BOB {} 746f6b2d626f62", STANDARD_NO_PAD.encode("tok-bob"));
        assert_eq!(redactor.text(&said), ["[credential of B]"; 4].join(" "));
    }

    #[test]
    fn a_handle_is_shortened_without_its_prefix_too() {
        let mut redactor = Redactor::default();
        redactor.shorten("bsk_0123456789abcdef");
        redactor.shorten("ws-17-of-shop");
        let shown = fingerprint("bsk_0123456789abcdef");
        assert_eq!(redactor.text("no 0123456789abcdef, no BSK_0123456789ABCDEF"), format!("no {shown}, no {shown}"));
        assert_eq!(redactor.text("17-of-shop"), "17-of-shop", "what is left is short");
        redactor.shorten("123e4567-e89b-42d3-a456-426614174000");
        redactor.shorten("aB3_dE6-gH9_jK2-");
        let said = redactor.text("no 123e4567e89b42d3a456426614174000, no aB3/dE6+gH9/jK2+");
        assert!(!said.contains("42d3") && !said.contains("dE6"), "{said}");
    }

    #[test]
    fn a_short_session_id_has_a_name_and_garbles_nothing() {
        let mut redactor = Redactor::default();
        assert_eq!(redactor.name_session("404"), "[session 1]");
        assert_eq!(redactor.name_session("0a1b2c3d"), "[session 2]");
        assert_eq!(redactor.name_session("404"), "[session 1]");
        assert_eq!(redactor.text("HTTP 404: no session 0a1b2c3d"), "HTTP 404: no session [session 2]");
    }
}
