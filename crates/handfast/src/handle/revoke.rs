//! Revoking, one or many, and removing what has been dead for long.

use std::time::Duration;

use super::{Handles, ObjectAuthority, decide::owned, resolve::No, text, witness::Witness};
use crate::{
    audit::{Action, AuditEvent},
    caller::Caller,
    clock::Timestamp,
    record::{ObjectType, Revocation, Why},
    refusal::{Denial, Refused},
    store::{Found, Selector, StoreError, Sweep},
};

/// What a revocation did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revoked {
    /// When the handle was revoked: by the first revocation, which stays.
    pub at: Timestamp,
    /// Why, by the first revocation.
    pub why: Why,
}

/// How many records one statement of a purge touches, so that traffic goes on meanwhile.
const BATCH: u32 = 1000;

impl<A: ObjectAuthority> Handles<A> {
    /// Revokes a handle at the wish of its owner. To revoke twice is no error, and the first reason stays.
    ///
    /// # Errors
    /// A refusal, the same as of [`Handles::resolve`]: nobody but the owner can revoke a handle, or learns of it.
    pub async fn revoke(
        &self,
        caller: &Caller,
        object: &ObjectType,
        presented: &str,
        why: Why,
    ) -> Result<Revoked, Refused> {
        let mut event = self.event(Action::Revoke, caller, object);
        event.revocation = Some((why.reason.clone(), why.receipt.clone()));
        let answer = self.try_revoke(caller, object, presented, &why, &mut event).await;
        self.answered(answer, event, object)
    }

    async fn try_revoke(
        &self,
        caller: &Caller,
        object: &ObjectType,
        presented: &str,
        why: &Why,
        event: &mut AuditEvent,
    ) -> Result<Revoked, No> {
        let rules = self.policy.rules(object).ok_or(Denial::UnknownScope)?;
        let digest = text::parse(presented.as_bytes(), rules.prefix.as_ref()).ok_or(Denial::Malformed)?;
        event.handle = Some(digest);
        let (Found { record, .. }, partition) = self.found(caller, digest, rules, event).await?;
        owned(&record, &partition, rules)?;
        if record.revoked.is_none() {
            self.store.revoke(&Selector::handle(digest), why, None, 1).await?;
        }
        // Read back, so that what is told is what the store has: somebody else may have been first.
        let (Found { record, .. }, _) = self.found(caller, digest, rules, event).await?;
        let Revocation { at, why } = record.revoked.ok_or(Denial::Unavailable)?;
        Ok(Revoked { at, why })
    }

    /// Revokes everything that the selector selects, and says how many that were. The server's power, or an
    /// operator's, for a logout, a changed role, a deleted object: no caller may choose the selector.
    ///
    /// Handles that are minted meanwhile may stay: first end what mints them, then revoke.
    ///
    /// # Errors
    /// The store cannot be reached, or the event cannot be kept; some may have been revoked by then. Try again: what is
    /// revoked stays so.
    pub async fn revoke_all(&self, which: &Selector, why: &Why) -> Result<u64, StoreError> {
        let mut event = AuditEvent::new(Action::Revoke, self.policy.version());
        event.revocation = Some((why.reason.clone(), why.receipt.clone()));
        let mut closing = Witness::of(AuditEvent { count: Some(0), ..event.clone() }, &*self.audit);
        let revoked = async {
            let (mut count, mut sweep) = (0, Sweep::begin(&*self.store, which, why).await?);
            loop {
                let digests = sweep.next().await?;
                if digests.is_empty() {
                    return Ok(count);
                }
                count += digests.len() as u64;
                closing.count = Some(count);
                // Each event is tried, also after one that could not be kept.
                let mut kept = Ok(());
                for digest in &digests {
                    event.handle = Some(*digest);
                    kept = kept.and(self.audit.record(&event));
                }
                kept.map_err(StoreError::unavailable)?;
            }
        };
        let revoked = revoked.await;
        closing.keep(revoked.is_err().then_some(Denial::Unavailable)).map_err(StoreError::unavailable)?;
        revoked
    }

    /// Selects what belongs to a principal, under every key that there is.
    #[must_use]
    pub fn selector_of(&self, principal: &crate::caller::Principal) -> Selector {
        Selector::subject(principal, &self.keys)
    }

    /// Removes the records of handles that have been dead for longer than this, and says how many. From then on such a
    /// handle is unknown, to its owner as well. In small batches, while traffic runs.
    ///
    /// # Errors
    /// The store cannot be reached; some may have been removed by then.
    pub async fn purge(&self, dead_for: Duration) -> Result<u64, StoreError> {
        let mut count = 0;
        let purged = loop {
            match self.store.purge(dead_for, BATCH).await {
                Ok(removed) => {
                    count += removed;
                    if removed < u64::from(BATCH) {
                        break Ok(count);
                    }
                }
                Err(error) => break Err(error),
            }
        };
        let mut event = AuditEvent::new(Action::Purge, self.policy.version());
        event.count = Some(count);
        event.denial = purged.is_err().then_some(Denial::Unavailable);
        self.audit.record(&event).map_err(StoreError::unavailable)?;
        purged
    }
}
