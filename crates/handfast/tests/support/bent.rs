//! A store that is wrong in one respect.
#![allow(dead_code, reason = "no test needs all of it")]

use std::{sync::Arc, time::Duration};

use handfast::{
    Digest, Key, NewRecord, ObjectRef, ObjectVersion, Reason, Why, async_trait,
    clock::{Clock, ManualClock, Timestamp},
    store::{Found, Lifespan, Listed, Selector, SpendId, Store, StoreError},
};

/// What is wrong with it.
#[derive(Debug, Clone)]
pub(crate) enum Bend {
    /// It cannot move an end.
    CannotTouch,
    /// It says that it has removed records.
    KeepsWhatIsErased,
    /// It forgets what time it was when this clock is set back.
    TimeGoesBack(Arc<ManualClock>),
    /// It tells of every revocation another reason than it was given at first.
    ForgetsTheFirstReason,
    /// It does not answer.
    DoesNotAnswer,
    /// It says of every record that it leads here.
    LeadsTo(ObjectRef),
}

pub(crate) struct Bent(pub(crate) Arc<dyn Store>, pub(crate) Bend);

impl Bent {
    fn answers(&self) -> Result<(), StoreError> {
        if matches!(self.1, Bend::DoesNotAnswer) { Err(StoreError::Full) } else { Ok(()) }
    }
}

#[async_trait]
impl Store for Bent {
    async fn insert(&self, new: &NewRecord) -> Result<Lifespan, StoreError> {
        self.answers()?;
        self.0.insert(new).await
    }

    async fn find(&self, key: &Key) -> Result<Option<Found>, StoreError> {
        self.answers()?;
        let mut found = self.0.find(key).await?;
        if let (Bend::TimeGoesBack(clock), Some(found)) = (&self.1, &mut found) {
            found.now = clock.now();
        }
        if let (Bend::LeadsTo(place), Some(found)) = (&self.1, &mut found) {
            found.record.object.reference = place.clone();
        }
        Ok(found)
    }

    async fn touch(&self, key: &Key, ends: Timestamp) -> Result<bool, StoreError> {
        if matches!(self.1, Bend::CannotTouch) { Err(StoreError::Full) } else { self.0.touch(key, ends).await }
    }

    async fn advance(&self, key: &Key, from: &ObjectVersion, to: &ObjectVersion) -> Result<bool, StoreError> {
        self.0.advance(key, from, to).await
    }

    async fn revoke(
        &self,
        which: &Selector,
        why: &Why,
        after: Option<Digest>,
        limit: u32,
    ) -> Result<Vec<Digest>, StoreError> {
        self.0.revoke(which, why, after, limit).await
    }

    async fn list(&self, which: &Selector, after: Option<Digest>, limit: u32) -> Result<Listed, StoreError> {
        self.answers()?;
        let mut listed = self.0.list(which, after, limit).await?;
        if matches!(self.1, Bend::ForgetsTheFirstReason) {
            for revoked in listed.records.iter_mut().filter_map(|record| record.revoked.as_mut()) {
                revoked.why.reason = Reason::new("the last one").expect("a reason");
            }
        }
        Ok(listed)
    }

    async fn spend(&self, id: &SpendId, until: Timestamp) -> Result<bool, StoreError> {
        self.0.spend(id, until).await
    }

    async fn purge(&self, dead_for: Duration, limit: u32) -> Result<u64, StoreError> {
        self.0.purge(dead_for, limit).await
    }

    async fn erase(&self, digests: &[Digest]) -> Result<u64, StoreError> {
        if matches!(self.1, Bend::KeepsWhatIsErased) { Ok(digests.len() as u64) } else { self.0.erase(digests).await }
    }
}
