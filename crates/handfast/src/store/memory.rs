//! Records in memory: the reference that the other stores are held to, and the store of tests.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;

use super::{Found, Lifespan, Listed, Selector, SpendId, Store, StoreError};
use crate::{
    clock::{Clock, Horizon, Timestamp, earlier},
    record::{Digest, Key, NewRecord, ObjectVersion, Record, Revocation, Why},
};

/// Records in memory. They end with the process.
pub struct MemoryStore {
    records: Mutex<BTreeMap<Digest, Record>>,
    spent: Mutex<BTreeMap<SpendId, Timestamp>>,
    clock: Arc<dyn Clock>,
    horizon: Horizon,
}

impl MemoryStore {
    /// An empty store with this clock.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { records: Mutex::default(), spent: Mutex::default(), clock, horizon: Horizon::new() }
    }

    fn now(&self) -> Timestamp {
        self.horizon.reach(self.clock.now())
    }

    fn spent(&self) -> MutexGuard<'_, BTreeMap<SpendId, Timestamp>> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn records(&self) -> MutexGuard<'_, BTreeMap<Digest, Record>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn insert(&self, new: &NewRecord) -> Result<Lifespan, StoreError> {
        let record = new.minted_at(self.now());
        let lifespan = Lifespan { created: record.created, expires: record.expires };
        match self.records().entry(new.digest) {
            Entry::Occupied(_) => Err(StoreError::Duplicate),
            Entry::Vacant(free) => {
                free.insert(record);
                Ok(lifespan)
            }
        }
    }

    async fn find(&self, key: &Key) -> Result<Option<Found>, StoreError> {
        let record = self.records().get(&key.digest).filter(|record| record.partition.tenant == key.tenant).cloned();
        Ok(record.map(|record| Found { record, now: self.now() }))
    }

    async fn touch(&self, key: &Key, ends: Timestamp) -> Result<bool, StoreError> {
        let now = self.now();
        let mut records = self.records();
        let record = living(&mut records, key).filter(|record| now < record.ends && record.ends < ends);
        let moved = record.map(|record| record.ends = ends.min(record.expires));
        Ok(moved.is_some())
    }

    async fn advance(&self, key: &Key, from: &ObjectVersion, to: &ObjectVersion) -> Result<bool, StoreError> {
        let now = self.now();
        let mut records = self.records();
        let Some(record) = living(&mut records, key).filter(|record| now < record.ends) else { return Ok(false) };
        let same = record.object.version == *from;
        if same {
            record.object.version = to.clone();
        }
        Ok(same)
    }

    async fn revoke(
        &self,
        which: &Selector,
        why: &Why,
        after: Option<Digest>,
        limit: u32,
    ) -> Result<Vec<Digest>, StoreError> {
        let at = self.now();
        let mut records = self.records();
        let further = records.values_mut().filter(|record| after.is_none_or(|after| record.digest > after));
        let chosen = further.filter(|record| record.revoked.is_none() && which.selects(record));
        let revoke = |record: &mut Record| {
            record.revoked = Some(Revocation { at, why: why.clone() });
            record.digest
        };
        Ok(chosen.take(limit as usize).map(revoke).collect())
    }

    async fn list(&self, which: &Selector, after: Option<Digest>, limit: u32) -> Result<Listed, StoreError> {
        let now = self.now();
        let records = self.records();
        let further = records.values().filter(|record| after.is_none_or(|after| record.digest > after));
        let records = further.filter(|record| which.selects(record)).take(limit as usize).cloned().collect();
        Ok(Listed { records, now })
    }

    async fn spend(&self, id: &SpendId, until: Timestamp) -> Result<bool, StoreError> {
        let now = self.now();
        match self.spent().entry(*id) {
            Entry::Occupied(_) => Ok(false),
            Entry::Vacant(_) if until <= now => Ok(false),
            Entry::Vacant(free) => {
                free.insert(until);
                Ok(true)
            }
        }
    }

    async fn purge(&self, dead_for: Duration, limit: u32) -> Result<u64, StoreError> {
        let now = self.now();
        let cutoff = earlier(now, dead_for);
        let mut records = self.records();
        let dead = records.values().filter(|record| record.dead_since(now).is_some_and(|since| since < cutoff));
        let dead: Vec<Digest> = dead.take(limit as usize).map(|record| record.digest).collect();
        dead.iter().for_each(|digest| drop(records.remove(digest)));
        let mut spent = self.spent();
        let over: Vec<SpendId> = spent.iter().filter(|(_, until)| **until < cutoff).map(|(id, _)| *id).collect();
        let over = over.iter().take(limit as usize).map(|id| spent.remove(id)).count();
        Ok((dead.len() + over) as u64)
    }

    async fn erase(&self, digests: &[Digest]) -> Result<u64, StoreError> {
        let mut records = self.records();
        Ok(digests.iter().filter(|digest| records.remove(digest).is_some()).count() as u64)
    }
}

fn living<'r>(records: &'r mut BTreeMap<Digest, Record>, key: &Key) -> Option<&'r mut Record> {
    let record = records.get_mut(&key.digest)?;
    (record.partition.tenant == key.tenant && record.revoked.is_none()).then_some(record)
}
