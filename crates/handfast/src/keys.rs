//! The operator's keys: one file, from which a key for each purpose is derived. Which of them is used for what is new, and
//! which only opens what is older, stands beside each of them, so that keys can be exchanged while servers run.

use std::{
    fmt,
    io::Read,
    process::{Command, Stdio},
    sync::{Arc, mpsc},
    time::Duration,
};

use aws_lc_rs::{aead, hkdf, hmac};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::secret::{SecretText, decode32, hex, random};

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

/// The operator's keys: the one that is used for what is new, and those that only recognise what is older.
///
/// A line of a file of keys is a key, and may say after it what the key is for (see [`KeyUse`]). Where no line says
/// `sealing`, the first one does, as long as it says nothing else. All replicas of a server have the same keys; to
/// exchange them without refusing anybody, a new key is `opening` everywhere before it is `sealing` anywhere, and the
/// old one is `opening` for as long as something lives that was made under it.
///
/// A subject key must outlive the handles that were made under it: who drops a key orphans them. So a retired key still
/// recognises the owners of handles, and opens what a server has sealed in its own store; it opens no state any more.
#[derive(Clone)]
pub struct Keys(Vec<Master>);

/// What a key is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyUse {
    /// For what is new, and for what was made under it.
    Sealing,
    /// For what was made under it.
    Opening,
    /// For the handles and sessions that were made under it, and for no state.
    Retired,
}

impl KeyUse {
    const ALL: [Self; 3] = [Self::Sealing, Self::Opening, Self::Retired];

    /// The word for it in a file of keys.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Sealing => "sealing",
            Self::Opening => "opening",
            Self::Retired => "retired",
        }
    }
}

#[derive(Clone)]
struct Master {
    id: KeyId,
    used: KeyUse,
    /// Whether it dies with this process.
    #[cfg_attr(not(feature = "rmcp"), allow(dead_code, reason = "only servers over HTTP are warned of it"))]
    mortal: bool,
    subjects: hmac::Key,
    objects: hmac::Key,
    names: hmac::Key,
    states: Arc<aead::LessSafeKey>,
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
    /// The command that should print them did not.
    #[error("the command `{program}` gave no keys: {why}")]
    Command {
        /// The command.
        program: String,
        /// What happened.
        why: String,
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
    /// What stands after a key says nothing.
    #[error("line {line}: after a key may stand `sealing`, `opening` or `retired`, and nothing else")]
    NoUse {
        /// Counted from 1.
        line: usize,
    },
    /// Two keys are used for what is new.
    #[error("line {line}: another key is `sealing` already; one of them must be `opening`")]
    TwoSealing {
        /// Counted from 1.
        line: usize,
    },
    /// No key is used for what is new.
    #[error("no key is `sealing`")]
    NoneSealing,
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

/// How long a command may take, and how many bytes it may print.
const PATIENCE: Duration = Duration::from_secs(30);
const LONGEST_OUTPUT: u64 = 1 << 20;
const STEP: Duration = Duration::from_millis(10);

/// How a written key begins, so that people and scanners recognise it.
const KEY_MARK: &str = "hfk1_";

impl Keys {
    /// Reads keys, one on a line; empty lines and lines that begin with `#` are left out.
    ///
    /// # Errors
    /// Names the line that is no key.
    pub fn parse(text: &str) -> Result<Self, KeysError> {
        let mut keys: Vec<(Master, bool)> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let (line, number) = (line.trim(), at + 1);
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, word) =
                line.split_once(char::is_whitespace).map_or((line, None), |(key, word)| (key, Some(word)));
            let bytes = key.strip_prefix(KEY_MARK).and_then(|body| decode32(body.as_bytes()));
            let bytes = Zeroizing::new(bytes.ok_or(KeysError::NotAKey { line: number })?);
            let said = word.map(|word| KeyUse::ALL.into_iter().find(|used| used.word() == word.trim()));
            let used = said.unwrap_or(Some(KeyUse::Opening)).ok_or(KeysError::NoUse { line: number })?;
            let master = Master::derive(&bytes, used);
            if keys.iter().any(|(known, _)| known.id == master.id) {
                return Err(KeysError::Twice { line: number });
            }
            if used == KeyUse::Sealing && keys.iter().any(|(known, _)| known.used == KeyUse::Sealing) {
                return Err(KeysError::TwoSealing { line: number });
            }
            keys.push((master, word.is_some()));
        }
        Self::ordered(keys)
    }

    /// The sealing key first: one that says so, or else the first that says nothing.
    fn ordered(mut keys: Vec<(Master, bool)>) -> Result<Self, KeysError> {
        let says = keys.iter().position(|(key, _)| key.used == KeyUse::Sealing);
        let first = says.or_else(|| keys.iter().position(|(_, said)| !said));
        let Some(first) = first else {
            return Err(if keys.is_empty() { KeysError::Empty } else { KeysError::NoneSealing });
        };
        let (sealing, _) = keys.remove(first);
        let sealing = Master { used: KeyUse::Sealing, ..sealing };
        Ok(Self(std::iter::once(sealing).chain(keys.into_iter().map(|(key, _)| key)).collect()))
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

    /// Reads keys from what a command prints: a secret manager's, for example. It has 30 seconds to print, as many
    /// to end after that, and reads nothing.
    ///
    /// # Errors
    /// It cannot be run, fails, takes too long, or a line of what it prints is no key. None of that is shown.
    pub fn from_command(program: &str, arguments: &[&str]) -> Result<Self, KeysError> {
        let failed = |why: String| KeysError::Command { program: program.to_owned(), why };
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let output = child.stdout.take().ok_or_else(|| failed("it prints nothing".into()))?;
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            let mut text = Zeroizing::new(String::new());
            let read = output.take(LONGEST_OUTPUT).read_to_string(&mut text);
            // Whoever asked may have given up.
            let _ = tell.send(read.map(|_| text));
        });
        let Ok(text) = told.recv_timeout(PATIENCE) else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(failed(format!("it took longer than {} seconds", PATIENCE.as_secs())));
        };
        // It has said all that it has to say; it may not go on for ever.
        let mut left = PATIENCE.as_millis() / STEP.as_millis();
        let status = loop {
            match child.try_wait().map_err(|error| failed(error.to_string()))? {
                Some(status) => break status,
                None if left == 0 => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(failed(format!("it did not end within {} seconds", PATIENCE.as_secs())));
                }
                None => {
                    left -= 1;
                    std::thread::sleep(STEP);
                }
            }
        };
        if !status.success() {
            return Err(failed(format!("it ended with {status}")));
        }
        Self::parse(&text.map_err(|error| failed(error.to_string()))?)
    }

    /// A key that dies with this process: every handle minted under it is orphaned then, and every state refused.
    ///
    /// # Panics
    /// When the operating system gives no random bytes.
    #[must_use]
    pub fn dangerous_for_this_process_only() -> Self {
        Self(vec![Master { mortal: true, ..Master::derive(&random(), KeyUse::Sealing) }])
    }

    /// Whether they die with this process.
    #[cfg(feature = "rmcp")]
    pub(crate) fn are_for_this_process_only(&self) -> bool {
        self.0.iter().any(|master| master.mortal)
    }

    /// The same keys, of which the retired ones open as well: for what lies in the store, where whoever has a key alone
    /// writes nothing, and which lasts for as long as handles do.
    pub(crate) fn opening_all(&self) -> Self {
        let opening = |used| if used == KeyUse::Retired { KeyUse::Opening } else { used };
        Self(self.0.iter().map(|master| Master { used: opening(master.used), ..master.clone() }).collect())
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

    /// The ids of all keys with what each is used for, the sealing one first.
    pub fn uses(&self) -> impl Iterator<Item = (KeyId, KeyUse)> {
        self.0.iter().map(|master| (master.id, master.used))
    }

    /// The key that seals states.
    pub(crate) fn sealing(&self) -> (KeyId, &aead::LessSafeKey) {
        (self.0[0].id, &self.0[0].states)
    }

    /// The state key of this id, whatever it is used for.
    pub(crate) fn state_key(&self, id: KeyId) -> Option<(KeyUse, &aead::LessSafeKey)> {
        self.0.iter().find(|master| master.id == id).map(|master| (master.used, &*master.states))
    }

    /// HMAC-SHA256 over the parts, each preceded by its length, under the subject key of this id.
    pub(crate) fn subject_mac(&self, id: KeyId, parts: &[&[u8]]) -> Option<[u8; 32]> {
        self.0.iter().find(|master| master.id == id).map(|master| mac(&master.subjects, parts))
    }

    /// The same under the name key of this id: what a server behind calls something is found again by it.
    pub(crate) fn name_mac(&self, id: KeyId, parts: &[&[u8]]) -> Option<[u8; 32]> {
        self.0.iter().find(|master| master.id == id).map(|master| mac(&master.names, parts))
    }

    /// The same under the current object key: audit events name an object by it.
    pub(crate) fn object_mac(&self, parts: &[&[u8]]) -> [u8; 32] {
        mac(&self.0[0].objects, parts)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let uses = self.uses().map(|(id, used)| format!("{id} {}", used.word()));
        out.debug_list().entries(uses).finish()
    }
}

impl Master {
    /// One key for each purpose, by HKDF with distinct labels.
    fn derive(master: &[u8; 32], used: KeyUse) -> Self {
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
            used,
            mortal: false,
            subjects: hmac::Key::new(hmac::HMAC_SHA256, expand(b"subject").as_slice()),
            objects: hmac::Key::new(hmac::HMAC_SHA256, expand(b"object").as_slice()),
            names: hmac::Key::new(hmac::HMAC_SHA256, expand(b"name").as_slice()),
            states: Arc::new(aead::LessSafeKey::new(state_key(&expand(b"request state")))),
        }
    }
}

fn state_key(bytes: &[u8; 32]) -> aead::UnboundKey {
    aead::UnboundKey::new(&aead::AES_256_GCM_SIV, bytes).expect("a key of this cipher has 32 bytes")
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

#[cfg(test)]
mod tests {
    use super::*;

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

    #[cfg(unix)]
    #[test]
    fn a_command_prints_them() {
        let key = Keys::generate();
        let shell = |script: &str| Keys::from_command("sh", &["-c", script]);

        let keys = shell(&format!("echo '# ours'; echo {}", key.expose())).expect("a key");
        assert_eq!(keys.current(), Keys::parse(key.expose()).expect("a key").current());
        for (script, told) in [
            ("exit 3", "the command `sh` gave no keys: it ended with exit status: 3"),
            ("echo hunter2", "line 1: not a key"),
            ("true", "there is no key"),
        ] {
            let error = shell(script).expect_err("refused").to_string();
            assert!(error.starts_with(told) && !error.contains("hunter2"), "{error}");
        }
        assert!(Keys::from_command("/no/such/command", &[]).is_err());
    }

    #[test]
    fn debug_shows_no_key() {
        let key = Keys::generate();

        assert!(!format!("{:?}", Keys::parse(key.expose()).expect("a key")).contains(&key.expose()[5..]));
    }

    #[test]
    fn what_a_key_is_used_for_stands_after_it() {
        let [a, b, c] = [Keys::generate(), Keys::generate(), Keys::generate()];
        let id = |key: &SecretText| Keys::parse(key.expose()).expect("a key").current();
        let uses = |words: [&str; 3]| {
            let [one, two, three] = words;
            let text = format!("{} {one}\n{}\t{two}\n{}  {three} ", a.expose(), b.expose(), c.expose());
            Keys::parse(&text).map(|keys| keys.uses().collect::<Vec<_>>())
        };
        use KeyUse::{Opening, Retired, Sealing};
        let ids = [id(&a), id(&b), id(&c)];
        for (words, first, used) in [
            (["", "", ""], [0, 1, 2], [Sealing, Opening, Opening]),
            (["opening", "", "retired"], [1, 0, 2], [Sealing, Opening, Retired]),
            (["", "sealing", ""], [1, 0, 2], [Sealing, Opening, Opening]),
            (["opening", "retired", "sealing"], [2, 0, 1], [Sealing, Opening, Retired]),
        ] {
            let expected: Vec<_> = first.map(|at: usize| ids[at]).into_iter().zip(used).collect();
            assert_eq!(uses(words).expect("three keys"), expected, "{words:?}");
        }
        assert!(matches!(uses(["sealing", "opening", "sealing"]), Err(KeysError::TwoSealing { line: 3 })));
        assert!(matches!(uses(["opening", "opening", "retired"]), Err(KeysError::NoneSealing)));
        assert!(matches!(uses(["", "Sealing", ""]), Err(KeysError::NoUse { line: 2 })));
        assert!(matches!(uses(["sealing now", "", ""]), Err(KeysError::NoUse { line: 1 })));
    }
}
