//! The seam between the verifier and what it verifies, and the world that the handles are made for.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;

use crate::{
    audit::{Action, AuditError, AuditEvent, AuditSink},
    caller::Caller,
    handle::{Asked, BackendDown, Grant, Handles, Loaded, Need, NotAuthorized, ObjectAuthority},
    record::{Digest, Key, NewRecord, Object, ObjectRef, ObjectType, ObjectVersion, Why},
    refusal::Denial,
    store::{Found, Lifespan, Listed, Selector, SpendId, Store, StoreError},
};

/// What is verified: [`Handles`], or something that claims to do the same.
#[async_trait]
pub trait Target: Send + Sync {
    /// Makes a handle: its text.
    async fn mint(&self, caller: &Caller, grant: Grant) -> Result<String, Denial>;
    /// Checks one; the version of its object.
    async fn resolve(&self, caller: &Caller, presented: &str, need: &Need) -> Result<ObjectVersion, Denial>;
    /// Checks one, and moves the version of its object forward. A refusal says which of the two was refused.
    async fn advance(
        &self,
        caller: &Caller,
        presented: &str,
        need: &Need,
        to: ObjectVersion,
    ) -> Result<(), (Action, Denial)>;
    /// Revokes one at the wish of its owner.
    async fn revoke(&self, caller: &Caller, object: &ObjectType, presented: &str, why: Why) -> Result<(), Denial>;
    /// Revokes many; how many.
    async fn revoke_all(&self, which: &Selector, why: &Why) -> Result<u64, Denial>;
    /// Selects what belongs to the caller's principal.
    fn selector_of(&self, caller: &Caller) -> Selector;
}

#[async_trait]
impl<A: ObjectAuthority> Target for Handles<A> {
    async fn mint(&self, caller: &Caller, grant: Grant) -> Result<String, Denial> {
        let minted = Handles::mint(self, caller, grant).await.map_err(|error| error.denial())?;
        Ok(minted.handle().expose().to_owned())
    }

    async fn resolve(&self, caller: &Caller, presented: &str, need: &Need) -> Result<ObjectVersion, Denial> {
        let resolved = Handles::resolve(self, caller, presented, need).await.map_err(|refused| refused.denial())?;
        Ok(resolved.named().version.clone())
    }

    async fn advance(
        &self,
        caller: &Caller,
        presented: &str,
        need: &Need,
        to: ObjectVersion,
    ) -> Result<(), (Action, Denial)> {
        let resolved = Handles::resolve(self, caller, presented, need).await;
        let resolved = resolved.map_err(|refused| (Action::Resolve, refused.denial()))?;
        let advanced = Handles::advance(self, caller, resolved, to).await;
        advanced.map_err(|refused| (Action::Advance, refused.denial())).map(drop)
    }

    async fn revoke(&self, caller: &Caller, object: &ObjectType, presented: &str, why: Why) -> Result<(), Denial> {
        Handles::revoke(self, caller, object, presented, why).await.map_err(|refused| refused.denial()).map(drop)
    }

    async fn revoke_all(&self, which: &Selector, why: &Why) -> Result<u64, Denial> {
        Handles::revoke_all(self, which, why).await.map_err(|_| Denial::Unavailable)
    }

    fn selector_of(&self, caller: &Caller) -> Selector {
        caller.principal().map_or(Selector::default(), |principal| Handles::selector_of(self, principal))
    }
}

/// The objects of the verifier: references and versions, and how often they were fetched.
#[derive(Debug, Default)]
pub(super) struct World {
    versions: Mutex<BTreeMap<ObjectRef, ObjectVersion>>,
    loads: AtomicU64,
}

impl World {
    pub(super) fn set(&self, object: ObjectRef, version: Option<ObjectVersion>) {
        match version {
            Some(version) => self.versions().insert(object, version),
            None => self.versions().remove(&object),
        };
    }

    /// How often an object was fetched so far.
    pub(super) fn loads(&self) -> u64 {
        self.loads.load(Ordering::SeqCst)
    }

    fn versions(&self) -> MutexGuard<'_, BTreeMap<ObjectRef, ObjectVersion>> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ObjectAuthority for World {
    type Object = ();

    async fn load(&self, object: &Object) -> Result<Option<Loaded<()>>, BackendDown> {
        self.loads.fetch_add(1, Ordering::SeqCst);
        let version = self.versions().get(&object.reference).cloned();
        Ok(version.map(|version| Loaded { object: (), version }))
    }

    async fn authorize(&self, _: Asked<'_, ()>) -> Result<(), NotAuthorized> {
        Ok(())
    }
}

/// Keeps every event in memory.
#[derive(Debug, Default)]
pub(super) struct Watch(Mutex<Vec<AuditEvent>>);

impl Watch {
    pub(super) fn events(&self) -> Vec<AuditEvent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl AuditSink for Watch {
    fn record(&self, event: &AuditEvent) -> Result<(), AuditError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event.clone());
        Ok(())
    }
}

/// A store that can be cut off, as by an outage.
pub(super) struct Cut {
    pub(super) inner: std::sync::Arc<dyn Store>,
    pub(super) off: AtomicBool,
}

impl Cut {
    fn reach(&self) -> Result<&dyn Store, StoreError> {
        if self.off.load(Ordering::SeqCst) {
            return Err(StoreError::unavailable("cut off by the verifier"));
        }
        Ok(&*self.inner)
    }
}

#[async_trait]
impl Store for Cut {
    async fn insert(&self, new: &NewRecord) -> Result<Lifespan, StoreError> {
        self.reach()?.insert(new).await
    }

    async fn find(&self, key: &Key) -> Result<Option<Found>, StoreError> {
        self.reach()?.find(key).await
    }

    async fn touch(&self, key: &Key, ends: crate::clock::Timestamp) -> Result<bool, StoreError> {
        self.reach()?.touch(key, ends).await
    }

    async fn advance(&self, key: &Key, from: &ObjectVersion, to: &ObjectVersion) -> Result<bool, StoreError> {
        self.reach()?.advance(key, from, to).await
    }

    async fn revoke(
        &self,
        which: &Selector,
        why: &Why,
        after: Option<Digest>,
        limit: u32,
    ) -> Result<Vec<Digest>, StoreError> {
        self.reach()?.revoke(which, why, after, limit).await
    }

    async fn list(&self, which: &Selector, after: Option<Digest>, limit: u32) -> Result<Listed, StoreError> {
        self.reach()?.list(which, after, limit).await
    }

    async fn spend(&self, id: &SpendId, until: crate::clock::Timestamp) -> Result<bool, StoreError> {
        self.reach()?.spend(id, until).await
    }

    async fn purge(&self, dead_for: Duration, limit: u32) -> Result<u64, StoreError> {
        self.reach()?.purge(dead_for, limit).await
    }

    async fn erase(&self, digests: &[Digest]) -> Result<u64, StoreError> {
        self.reach()?.erase(digests).await
    }
}
