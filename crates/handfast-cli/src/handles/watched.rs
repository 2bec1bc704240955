//! A store that is watched while a verification runs: a property that fails because the store does not answer says
//! nothing about handles.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use handfast::{
    Digest, Key, NewRecord, ObjectVersion, Why, async_trait,
    clock::Timestamp,
    store::{Found, Lifespan, Listed, Selector, SpendId, Store, StoreError},
};

/// What the store said last when it did not do what it was asked.
#[derive(Clone, Default)]
pub(super) struct Trouble(Arc<Mutex<Option<StoreError>>>);

impl Trouble {
    /// Takes it: what comes later has reasons of its own.
    pub(super) fn take(&self) -> Option<StoreError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn note<T>(&self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        answer.map_err(|error| match error {
            // That a digest is there already is an answer, and so is that a record cannot be revoked.
            StoreError::Duplicate | StoreError::Unchangeable => error,
            error => {
                let told = StoreError::Setup(error.to_string());
                *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                told
            }
        })
    }
}

/// A store, and where its trouble is noted.
pub(super) struct Watched {
    pub(super) inner: Arc<dyn Store>,
    pub(super) trouble: Trouble,
}

#[async_trait]
impl Store for Watched {
    async fn insert(&self, new: &NewRecord) -> Result<Lifespan, StoreError> {
        self.trouble.note(self.inner.insert(new).await)
    }

    async fn find(&self, key: &Key) -> Result<Option<Found>, StoreError> {
        self.trouble.note(self.inner.find(key).await)
    }

    async fn touch(&self, key: &Key, ends: Timestamp) -> Result<bool, StoreError> {
        self.trouble.note(self.inner.touch(key, ends).await)
    }

    async fn advance(&self, key: &Key, from: &ObjectVersion, to: &ObjectVersion) -> Result<bool, StoreError> {
        self.trouble.note(self.inner.advance(key, from, to).await)
    }

    async fn revoke(
        &self,
        which: &Selector,
        why: &Why,
        after: Option<Digest>,
        limit: u32,
    ) -> Result<Vec<Digest>, StoreError> {
        self.trouble.note(self.inner.revoke(which, why, after, limit).await)
    }

    async fn list(&self, which: &Selector, after: Option<Digest>, limit: u32) -> Result<Listed, StoreError> {
        self.trouble.note(self.inner.list(which, after, limit).await)
    }

    async fn spend(&self, id: &SpendId, until: Timestamp) -> Result<bool, StoreError> {
        self.trouble.note(self.inner.spend(id, until).await)
    }

    async fn purge(&self, dead_for: Duration, limit: u32) -> Result<u64, StoreError> {
        self.trouble.note(self.inner.purge(dead_for, limit).await)
    }

    async fn erase(&self, digests: &[Digest]) -> Result<u64, StoreError> {
        self.trouble.note(self.inner.erase(digests).await)
    }
}
