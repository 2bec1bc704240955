//! What a store keeps of a handle, and by what it is found again. Plain data: nothing here decides anything.

use std::{fmt, time::Duration};

use aws_lc_rs::digest;

use crate::{
    caller::{ClientId, Principal, ScopeSet, Tenant},
    clock::{Timestamp, later},
    keys::{KeyId, Keys},
    secret::{hex, random},
    text::{self, identifier},
};

identifier! {
    /// What kind of object a handle names: `basket`.
    ObjectType, "an object type", text::name, 64
}
identifier! {
    /// Which object a handle names, in the words of the server that has it.
    ObjectRef, "an object reference", text::plain, 2048
}
identifier! {
    /// The version of an object that a handle was made for.
    ObjectVersion, "an object version", text::plain, 256
}
identifier! {
    /// The version of the policy that a handle was made under.
    PolicyVersion, "a policy version", text::plain, 128
}
identifier! {
    /// Why something was revoked, in an operator's words.
    Reason, "a reason", text::plain, 512
}
identifier! {
    /// What the operator can show for a revocation: a ticket, a log entry, the id of an event.
    Receipt, "a receipt", text::plain, 256
}

impl ObjectRef {
    /// A name that no object has had and none will have. A reference must never be used again: a handle to what is gone
    /// would lead to what came after it.
    ///
    /// # Panics
    /// When the operating system gives no random bytes.
    #[must_use]
    pub fn random() -> Self {
        Self(hex(&random()[..16]))
    }
}

impl ObjectVersion {
    /// The version of objects that have none: it never changes.
    #[must_use]
    pub fn unversioned() -> Self {
        Self("-".to_owned())
    }
}

/// SHA-256 of a handle's text: all that a store ever sees of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub(crate) [u8; 32]);

impl Digest {
    pub(crate) fn of(text: &str) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest::digest(&digest::SHA256, text.as_bytes()).as_ref());
        Self(bytes)
    }

    /// A digest from its 32 bytes; `None` where there are more or fewer.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// A digest from its 64 hexadecimal digits, as [`fmt::Display`] writes it.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let mut bytes = Vec::with_capacity(32);
        for pair in text.as_bytes().chunks(2) {
            let [high, low] = pair else { return None };
            bytes.push(u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()?);
        }
        Self::from_bytes(&bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// The text is not 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a digest is 64 hexadecimal digits")]
pub struct NotADigest;

impl std::str::FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        Self::from_hex(text).ok_or(NotADigest)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Digest({}..)", hex(&self.0[..4]))
    }
}

/// A principal as a store keeps it: a keyed digest, so that a stolen database names nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubjectKey {
    /// Under which key it was made.
    pub key: KeyId,
    /// HMAC-SHA256 over issuer and subject, each preceded by its length.
    pub mac: [u8; 32],
}

impl SubjectKey {
    /// The subject key of this principal under one of the keys; `None` when that key is not there.
    pub(crate) fn of(principal: &Principal, keys: &Keys, key: KeyId) -> Option<Self> {
        let parts = [principal.issuer().as_str().as_bytes(), principal.subject().expose().as_bytes()];
        keys.subject_mac(key, &parts).map(|mac| Self { key, mac })
    }
}

impl fmt::Display for SubjectKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.key, hex(&self.mac))
    }
}

/// Whom a handle belongs to. A part that the policy does not bind is `None`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Partition {
    /// The principal, as a keyed digest.
    pub subject: Option<SubjectKey>,
    /// The tenant.
    pub tenant: Option<Tenant>,
    /// The OAuth client.
    pub client: Option<ClientId>,
}

/// By what a record is found: a handle of another tenant is a miss, not a comparison.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The tenant; `None` where the policy does not bind it.
    pub tenant: Option<Tenant>,
    /// The digest of the handle.
    pub digest: Digest,
}

/// The object that a handle names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Object {
    /// Its type.
    pub kind: ObjectType,
    /// Which one.
    pub reference: ObjectRef,
    /// Its version.
    pub version: ObjectVersion,
}

/// What is inserted: everything but the times, which the store's own clock sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRecord {
    /// The digest of the handle.
    pub digest: Digest,
    /// Whom it belongs to.
    pub partition: Partition,
    /// What it names.
    pub object: Object,
    /// What it allows.
    pub scopes: ScopeSet,
    /// The policy that it was made under.
    pub policy: PolicyVersion,
    /// How long it lives in any case.
    pub lifetime: Duration,
    /// How long it lives unused.
    pub idle: Option<Duration>,
}

impl NewRecord {
    /// The record that it becomes when it is inserted at this time.
    #[must_use]
    pub fn minted_at(&self, now: Timestamp) -> Record {
        let expires = later(now, self.lifetime);
        Record {
            digest: self.digest,
            partition: self.partition.clone(),
            object: self.object.clone(),
            scopes: self.scopes.clone(),
            policy: self.policy.clone(),
            created: now,
            expires,
            idle: self.idle,
            ends: self.idle.map_or(expires, |idle| later(now, idle).min(expires)),
            revoked: None,
        }
    }
}

/// What a store keeps of one handle.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Record {
    /// The digest of the handle.
    pub digest: Digest,
    /// Whom it belongs to.
    pub partition: Partition,
    /// What it names.
    pub object: Object,
    /// What it allows.
    pub scopes: ScopeSet,
    /// The policy that it was made under.
    pub policy: PolicyVersion,
    /// When it was made.
    pub created: Timestamp,
    /// When it ends in any case.
    pub expires: Timestamp,
    /// How long it lives unused.
    pub idle: Option<Duration>,
    /// When it ends unless it is used before: never later than `expires`.
    pub ends: Timestamp,
    /// When and why it was revoked. The first revocation stays.
    pub revoked: Option<Revocation>,
}

impl Record {
    /// By what it is found.
    #[must_use]
    pub fn key(&self) -> Key {
        Key { tenant: self.partition.tenant.clone(), digest: self.digest }
    }

    /// When it ends if it is used now; `None` where it does not end sooner than that. It never ends sooner than its idle
    /// window after its last use. So that not every use is a write, each write gives a sixteenth of the window more: at
    /// most one write for each sixteenth, and an end at most that much later.
    pub(crate) fn slid(&self, now: Timestamp) -> Option<Timestamp> {
        let idle = self.idle?;
        let wanted = later(now, idle).min(self.expires);
        (self.ends < wanted).then(|| later(now, idle + idle / 16).min(self.expires))
    }

    /// Since when it has been dead at this time; `None` while it lives.
    #[must_use]
    pub fn dead_since(&self, now: Timestamp) -> Option<Timestamp> {
        let ended = (self.ends <= now).then_some(self.ends);
        match (&self.revoked, ended) {
            (Some(revoked), Some(ended)) => Some(revoked.at.min(ended)),
            (Some(revoked), None) => Some(revoked.at),
            (None, ended) => ended,
        }
    }
}

/// When and why a handle was revoked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Revocation {
    /// When.
    pub at: Timestamp,
    /// Why, and what the operator can show for it.
    pub why: Why,
}

/// Why something is revoked, and what the operator can show for it. Both are required.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Why {
    /// Why.
    pub reason: Reason,
    /// What the operator can show for it.
    pub receipt: Receipt,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_as_it_is_written() {
        let digest = Digest::of("a handle");

        assert_eq!(Digest::from_hex(&digest.to_string()), Some(digest));
        for bad in ["", "00", &"0".repeat(63), &"0".repeat(65), &"0".repeat(66), &"g".repeat(64), &"é".repeat(32)] {
            assert_eq!(Digest::from_hex(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_digest_is_sha_256() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

        assert_eq!(Digest::of("").to_string(), empty);
    }
}
