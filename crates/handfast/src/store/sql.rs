//! What the two SQL stores share: the columns of a record, and a selector as conditions.

use std::time::Duration;

use super::{Selector, StoreError};
use crate::{
    caller::ScopeSet,
    clock::Timestamp,
    keys::KeyId,
    record::{Digest, Object, Partition, Record, Revocation, SubjectKey, Why},
    text::TextError,
};

/// The columns of a record, in the order of [`Columns`].
pub(super) const COLUMNS: &str = "digest, subject_key_id, subject_key, tenant, client, object_type, object_ref, \
     object_version, scopes, policy_version, created_at, expires_at, idle_micros, ends_at, revoked_at, \
     revocation_reason, revocation_receipt";

/// A row as a database has it.
pub(super) struct Columns<'r> {
    pub(super) digest: &'r [u8],
    pub(super) subject_key_id: Option<&'r [u8]>,
    pub(super) subject_key: Option<&'r [u8]>,
    pub(super) tenant: Option<&'r str>,
    pub(super) client: Option<&'r str>,
    pub(super) object_type: &'r str,
    pub(super) object_ref: &'r str,
    pub(super) object_version: &'r str,
    pub(super) scopes: &'r str,
    pub(super) policy_version: &'r str,
    pub(super) created_at: Timestamp,
    pub(super) expires_at: Timestamp,
    pub(super) idle_micros: Option<i64>,
    pub(super) ends_at: Timestamp,
    pub(super) revoked_at: Option<Timestamp>,
    pub(super) reason: Option<&'r str>,
    pub(super) receipt: Option<&'r str>,
}

impl Columns<'_> {
    /// The record that the row is. Whatever it could not have been written as is an error, which names the row: nothing
    /// is guessed.
    pub(super) fn record(self) -> Result<Record, StoreError> {
        let digest = self.digest;
        self.parsed().map_err(|problem| match Digest::from_bytes(digest) {
            Some(digest) => StoreError::Corrupt(format!("{problem} (digest {digest})")),
            None => StoreError::Corrupt(problem),
        })
    }

    fn parsed(self) -> Result<Record, String> {
        let text = |error: TextError| error.to_string();
        let subject = match (self.subject_key_id, self.subject_key) {
            (None, None) => None,
            (Some(id), Some(mac)) => Some(SubjectKey {
                key: KeyId(id.try_into().map_err(|_| "a key id without 8 bytes")?),
                mac: mac.try_into().map_err(|_| "a subject key without 32 bytes")?,
            }),
            _ => return Err("a subject key without its key id, or the other way round".into()),
        };
        let revoked = match (self.revoked_at, self.reason, self.receipt) {
            (None, None, None) => None,
            (Some(at), Some(reason), Some(receipt)) => Some(Revocation {
                at,
                why: Why { reason: reason.parse().map_err(text)?, receipt: receipt.parse().map_err(text)? },
            }),
            _ => return Err("a revocation without its time, reason or receipt".into()),
        };
        let idle = self.idle_micros.map(|micros| u64::try_from(micros).map(Duration::from_micros));
        Ok(Record {
            digest: Digest::from_bytes(self.digest).ok_or("a digest without 32 bytes")?,
            partition: Partition {
                subject,
                tenant: self.tenant.map(str::parse).transpose().map_err(text)?,
                client: self.client.map(str::parse).transpose().map_err(text)?,
            },
            object: Object {
                kind: self.object_type.parse().map_err(text)?,
                reference: self.object_ref.parse().map_err(text)?,
                version: self.object_version.parse().map_err(text)?,
            },
            scopes: ScopeSet::parse(self.scopes).map_err(|error| error.to_string())?,
            policy: self.policy_version.parse().map_err(text)?,
            created: self.created_at,
            expires: self.expires_at,
            idle: idle.transpose().map_err(|_| "an idle window below zero")?,
            ends: self.ends_at,
            revoked,
        })
    }
}

/// A value of a condition.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'v> {
    Bytes(&'v [u8]),
    Text(&'v str),
    Time(Timestamp),
}

/// Conditions joined by AND, with their values in order.
pub(super) struct Conditions<'v> {
    pub(super) sql: String,
    pub(super) values: Vec<Value<'v>>,
    /// Parameters that stand before these in the statement.
    before: usize,
}

impl<'v> Conditions<'v> {
    /// The selector as conditions, with placeholders after the `before` that the statement has already. Both databases
    /// read `$1`; SQLite numbers them as they appear, so a statement must use them in order.
    pub(super) fn of(which: &'v Selector, before: usize) -> Self {
        let mut all = Self { sql: "true".to_owned(), values: Vec::new(), before };
        if let Some(digest) = &which.digest {
            all.equal("digest", Value::Bytes(digest.as_bytes()));
        }
        if let Some(subjects) = &which.subjects {
            let mut either = Vec::new();
            for subject in subjects {
                let id = all.place(Value::Bytes(&subject.key.0));
                let mac = all.place(Value::Bytes(&subject.mac));
                either.push(format!("subject_key_id = {id} AND subject_key = {mac}"));
            }
            let either = if either.is_empty() { "false".to_owned() } else { either.join(" OR ") };
            all.sql.push_str(&format!(" AND ({either})"));
        }
        if let Some(tenant) = &which.tenant {
            all.equal("tenant", Value::Text(tenant.as_str()));
        }
        if let Some(client) = &which.client {
            all.equal("client", Value::Text(client.as_str()));
        }
        if let Some((kind, reference)) = &which.object {
            all.equal("object_type", Value::Text(kind.as_str()));
            if let Some(reference) = reference {
                all.equal("object_ref", Value::Text(reference.as_str()));
            }
        }
        if let Some(policy) = &which.policy {
            all.equal("policy_version", Value::Text(policy.as_str()));
        }
        if let Some(time) = which.minted_before {
            let place = all.place(Value::Time(time));
            all.sql.push_str(&format!(" AND created_at < {place}"));
        }
        all
    }

    /// Selects, of what meets them, the digests of what is not revoked: the first ones after the parameter `after`.
    pub(super) fn unrevoked(&self, after: &str, limit: u32) -> String {
        format!(
            "SELECT digest FROM handfast_handles WHERE digest > {after} AND {} AND revoked_at IS NULL ORDER BY digest \
             LIMIT {limit}",
            self.sql
        )
    }

    fn equal(&mut self, column: &str, value: Value<'v>) {
        let place = self.place(value);
        self.sql.push_str(&format!(" AND {column} = {place}"));
    }

    fn place(&mut self, value: Value<'v>) -> String {
        self.values.push(value);
        format!("${}", self.before + self.values.len())
    }
}

/// A duration in microseconds, as a database keeps it.
pub(super) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// Refuses a schema that is newer than this program.
pub(super) fn known(version: u32, newest: u32) -> Result<(), StoreError> {
    if version <= newest {
        return Ok(());
    }
    Err(StoreError::Setup(format!(
        "the store has schema version {version}; this program knows versions up to {newest}: use a newer handfast"
    )))
}
