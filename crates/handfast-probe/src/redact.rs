//! What may stand in a report: no credential, and of a handle or state only so much that equal ones can be matched up.

use aws_lc_rs::digest::{SHA256, digest};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
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
    /// Session ids, and what each is called.
    sessions: Vec<(String, String)>,
}

#[derive(Clone)]
struct Replacement {
    secret: String,
    shown: String,
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

    /// A handle or state: shown by its fingerprint. Short ones stay: they hide nothing and would garble the rest.
    pub fn shorten(&mut self, value: &str) {
        if value.chars().count() >= WORTH_SHORTENING {
            self.add_however_written(value, &fingerprint(value));
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

    /// A secret as it is, and as a server may write it that echoes it: in a URI, in JSON, in one case, in base64.
    fn add_however_written(&mut self, secret: &str, shown: &str) {
        self.add(secret, shown.to_owned());
        if secret.chars().count() < WORTH_SHORTENING {
            return;
        }
        let percent: String = secret.bytes().map(percent_encoded).collect();
        let base64 = [STANDARD.encode(secret), URL_SAFE_NO_PAD.encode(secret)];
        let others = [percent, secret.replace('/', "\\/"), secret.to_ascii_uppercase(), secret.to_ascii_lowercase()];
        for other in others.into_iter().chain(base64) {
            self.add(other.trim_end_matches('='), shown.to_owned());
        }
    }

    fn add(&mut self, secret: &str, shown: String) {
        if secret.chars().count() < SHORTEST_SECRET || self.replacements.iter().any(|known| known.secret == secret) {
            return;
        }
        self.replacements.push(Replacement { secret: secret.to_owned(), shown });
        // The longest first: a state may contain a handle.
        self.replacements.sort_by_key(|known| std::cmp::Reverse(known.secret.len()));
    }

    /// The text without secrets.
    pub fn text(&self, text: &str) -> String {
        let mut clean = text.to_owned();
        for known in &self.replacements {
            if clean.contains(&known.secret) {
                clean = clean.replace(&known.secret, &known.shown);
            }
        }
        clean
    }

    /// The text without secrets, at most `limit` characters of it.
    pub fn excerpt(&self, text: &str, limit: usize) -> String {
        // A long text is cut before it is searched, and what the cut may have split is dropped.
        let longest = self.replacements.first().map_or(0, |known| known.secret.len());
        let cut = text.floor_char_boundary(limit * 8 + 2 * longest);
        let mut clean = self.text(&text[..cut]);
        if cut < text.len() {
            clean.truncate(clean.floor_char_boundary(clean.len().saturating_sub(longest)));
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
            STANDARD.encode(secret),
            URL_SAFE_NO_PAD.encode(secret),
        ] {
            let shown = redactor.text(&format!("you sent {echoed}."));
            assert!(shown.contains("[credential of A]") && !shown.to_lowercase().contains("9f31c07d55"), "{shown}");
        }
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
