//! Secret text and secret keys: neither prints, neither lingers, and they are compared in constant time.

use std::fmt;

use aws_lc_rs::{constant_time, digest, hkdf, hmac};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use thiserror::Error;
use zeroize::Zeroizing;

/// Text that must not be seen: a handle, a subject, a token.
///
/// Debug shows a fingerprint, so that equal secrets can be matched up; there is no Display.
#[derive(Clone)]
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    /// Takes the text in.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The text itself, for the one place that needs it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl PartialEq for SecretText {
    fn eq(&self, other: &Self) -> bool {
        constant_time::verify_slices_are_equal(self.0.as_bytes(), other.0.as_bytes()).is_ok()
    }
}

impl Eq for SecretText {}

impl fmt::Debug for SecretText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest = digest::digest(&digest::SHA256, self.0.as_bytes());
        write!(out, "SecretText(sha256:{}..)", hex(&digest.as_ref()[..4]))
    }
}

/// Which key a record was made under. Derived from the key, so it cannot be configured wrongly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub(crate) [u8; 8]);

impl KeyId {
    /// A key id from its 8 bytes, as a store has kept them.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 8]) -> Self {
        Self(bytes)
    }

    /// The 8 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 8] {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&hex(&self.0))
    }
}

/// The operator's keys: the first is used for what is new, the others only to recognise what is older.
///
/// A subject key must outlive the handles that were made under it: who drops a key orphans them.
#[derive(Clone)]
pub struct Keys(Vec<Master>);

#[derive(Clone)]
struct Master {
    id: KeyId,
    subjects: hmac::Key,
    objects: hmac::Key,
}

/// Why keys could not be read. Never shows any of their text.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeysError {
    /// The file could not be read.
    #[error("cannot read the keys from {path}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The environment variable is not set, or is no text.
    #[error("the environment variable {0} holds no keys")]
    NoVariable(String),
    /// A line is not a key.
    #[error("line {line}: not a key; a key is `{KEY_MARK}` and 43 characters, as `handfast keys new` prints it")]
    NotAKey {
        /// Counted from 1.
        line: usize,
    },
    /// The same key stands in two lines.
    #[error("line {line}: this key is there already")]
    Twice {
        /// Counted from 1.
        line: usize,
    },
    /// There is no line with a key.
    #[error("there is no key; `handfast keys new` makes one")]
    Empty,
}

/// How a written key begins, so that people and scanners recognise it.
const KEY_MARK: &str = "hfk1_";

impl Keys {
    /// Reads keys, one on a line; empty lines and lines that begin with `#` are left out.
    ///
    /// # Errors
    /// Names the line that is no key.
    pub fn parse(text: &str) -> Result<Self, KeysError> {
        let mut keys: Vec<Master> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let (line, number) = (line.trim(), at + 1);
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bytes = line.strip_prefix(KEY_MARK).and_then(|body| decode32(body.as_bytes()));
            let master = Master::derive(&Zeroizing::new(bytes.ok_or(KeysError::NotAKey { line: number })?));
            if keys.iter().any(|known| known.id == master.id) {
                return Err(KeysError::Twice { line: number });
            }
            keys.push(master);
        }
        if keys.is_empty() { Err(KeysError::Empty) } else { Ok(Self(keys)) }
    }

    /// Reads keys from a file.
    ///
    /// # Errors
    /// The file cannot be read, or a line of it is no key.
    pub fn from_file(path: impl AsRef<std::path::Path>) -> Result<Self, KeysError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path)
            .map_err(|source| KeysError::Unreadable { path: path.display().to_string(), source })?;
        Self::parse(&Zeroizing::new(text))
    }

    /// Reads keys from an environment variable.
    ///
    /// # Errors
    /// The variable is not set, or a line of it is no key.
    pub fn from_env(variable: &str) -> Result<Self, KeysError> {
        let text = std::env::var(variable).map_err(|_| KeysError::NoVariable(variable.to_owned()))?;
        Self::parse(&Zeroizing::new(text))
    }

    /// A key that dies with this process: every handle minted under it is orphaned then.
    ///
    /// # Panics
    /// When the operating system gives no random bytes.
    #[must_use]
    pub fn dangerous_for_this_process_only() -> Self {
        Self(vec![Master::derive(&random())])
    }

    /// The text of a new key, as a line of a key file.
    ///
    /// # Panics
    /// When the operating system gives no random bytes.
    #[must_use]
    pub fn generate() -> SecretText {
        SecretText::new(format!("{KEY_MARK}{}", URL_SAFE_NO_PAD.encode(*random())))
    }

    /// The id of the key that new records are made under.
    #[must_use]
    pub fn current(&self) -> KeyId {
        self.0[0].id
    }

    /// The ids of all keys, the current one first.
    pub fn ids(&self) -> impl Iterator<Item = KeyId> {
        self.0.iter().map(|master| master.id)
    }

    /// HMAC-SHA256 over the parts, each preceded by its length, under the subject key of this id.
    pub(crate) fn subject_mac(&self, id: KeyId, parts: &[&[u8]]) -> Option<[u8; 32]> {
        self.0.iter().find(|master| master.id == id).map(|master| mac(&master.subjects, parts))
    }

    /// The same under the current object key: audit events name an object by it.
    pub(crate) fn object_mac(&self, parts: &[&[u8]]) -> [u8; 32] {
        mac(&self.0[0].objects, parts)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.ids().map(|id| id.to_string())).finish()
    }
}

impl Master {
    /// One key for each purpose, by HKDF with distinct labels.
    fn derive(master: &[u8; 32]) -> Self {
        let extracted = hkdf::Salt::new(hkdf::HKDF_SHA256, b"handfast").extract(master);
        let expand = |label: &[u8]| {
            let mut out = Zeroizing::new([0; 32]);
            let labels = [label];
            let okm = extracted.expand(&labels, hkdf::HKDF_SHA256).expect("32 bytes are within the bounds of HKDF");
            okm.fill(out.as_mut_slice()).expect("as many bytes as were asked for");
            out
        };
        let mut id = [0; 8];
        id.copy_from_slice(&expand(b"key id")[..8]);
        Self {
            id: KeyId(id),
            subjects: hmac::Key::new(hmac::HMAC_SHA256, expand(b"subject").as_slice()),
            objects: hmac::Key::new(hmac::HMAC_SHA256, expand(b"object").as_slice()),
        }
    }
}

fn mac(key: &hmac::Key, parts: &[&[u8]]) -> [u8; 32] {
    let mut context = hmac::Context::with_key(key);
    for part in parts {
        // With its length before it no part can run over into the next: ("ab", "c") is not ("a", "bc").
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    let mut out = [0; 32];
    out.copy_from_slice(context.sign().as_ref());
    out
}

/// 32 bytes in base64url without padding, in their one canonical spelling.
pub(crate) fn decode32(text: &[u8]) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    let exact = text.len() == 43 && URL_SAFE_NO_PAD.decode_slice(text, &mut bytes).ok()? == 32;
    exact.then_some(bytes)
}

/// 32 bytes from the operating system: the one source of randomness.
pub(crate) fn random() -> Zeroizing<[u8; 32]> {
    let mut bytes = Zeroizing::new([0; 32]);
    getrandom::fill(bytes.as_mut_slice()).expect("the operating system gives random bytes");
    bytes
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_secret() {
        let secret = SecretText::new("a very secret subject");
        let keys = Keys::generate();

        assert!(!format!("{secret:?}").contains("secret subject"));
        assert!(!format!("{:?}", Keys::parse(keys.expose()).expect("a key")).contains(&keys.expose()[5..]));
    }

    #[test]
    fn equal_secrets_have_equal_fingerprints() {
        let text = |text: &str| format!("{:?}", SecretText::new(text));

        assert_eq!(text("a"), text("a"));
        assert_ne!(text("a"), text("b"));
    }

    #[test]
    fn a_key_file_is_read_line_by_line() {
        let (new, old) = (Keys::generate(), Keys::generate());
        let keys = Keys::parse(&format!("# new\n{}\n\n{}\n", new.expose(), old.expose())).expect("two keys");

        assert_eq!(keys.ids().count(), 2);
        assert_eq!(keys.current(), Keys::parse(new.expose()).expect("one").current());
    }

    #[test]
    fn errors_name_the_line_and_show_nothing_of_it() {
        let good = Keys::generate();
        let cut = &good.expose()[..47];
        let error = Keys::parse(&format!("{}\n{cut}", good.expose())).expect_err("cut off");

        assert!(error.to_string().starts_with("line 2: not a key"), "{error}");
        assert!(!error.to_string().contains(&cut[5..]));
        assert!(matches!(Keys::parse("# none"), Err(KeysError::Empty)));
        let twice = format!("{0}\n{0}", good.expose());
        assert!(matches!(Keys::parse(&twice), Err(KeysError::Twice { line: 2 })));
    }

    #[test]
    fn parts_cannot_run_over_into_each_other() {
        let keys = Keys::dangerous_for_this_process_only();
        let mac = |parts: &[&[u8]]| keys.subject_mac(keys.current(), parts);

        assert_ne!(mac(&[b"ab", b"c"]), mac(&[b"a", b"bc"]));
        assert_ne!(mac(&[b"ab", b""]), mac(&[b"ab"]));
    }

    /// What stores hold was made by this: a change orphans every record. The values are from Python's `hmac` and
    /// `hashlib`, by RFC 5869.
    #[test]
    fn keys_are_derived_as_ever() {
        let keys = Keys::parse("hfk1_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8").expect("a key");

        assert_eq!(keys.current().to_string(), "f286902a90366e7b");
        let mac = keys.subject_mac(keys.current(), &[b"https://id.example", b"alice"]).expect("it is there");
        assert_eq!(hex(&mac), "ed5618a4ae7e102d76b25281a8321df7ec428ff581d5a9d3317b7f7c5c8d1543");
        assert_eq!(
            hex(&keys.object_mac(&[b"basket", b"b-1"])),
            "c08db5a45b9c004fa97680291e298b20e576b68dbb7cafa2ba7143938f7f4b4e"
        );
    }

    #[test]
    fn purposes_have_keys_of_their_own() {
        let keys = Keys::dangerous_for_this_process_only();

        assert_ne!(keys.subject_mac(keys.current(), &[b"a"]), Some(keys.object_mac(&[b"a"])));
    }

    #[test]
    fn one_text_has_one_spelling() {
        let text = URL_SAFE_NO_PAD.encode([0xff; 32]);
        let other = format!("{}9", &text[..42]);

        assert!(decode32(text.as_bytes()).is_some());
        assert_ne!(text, other);
        assert_eq!(decode32(other.as_bytes()), None, "the last character has bits to spare, which must be zero");
    }
}
