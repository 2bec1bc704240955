//! Handles: minted for a caller, resolved for the same caller, revoked for good.
//!
//! A handle is a name, not a capability. Whoever presents one is asked who they are, every time, before anything else
//! happens: no cache of decisions stands before the store, so after [`Handles::revoke`] has returned no
//! [`Handles::resolve`] that begins later succeeds, on any replica.

pub(crate) mod decide;
mod mint;
mod resolve;
mod revoke;
pub(crate) mod text;
mod witness;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use thiserror::Error;

pub use mint::{Grant, MintError, Minted};
pub use resolve::{Need, Resolved};
pub use revoke::Revoked;
pub use text::Handle;
pub(crate) use witness::Witness;

use crate::{
    audit::{Action, AuditEvent, AuditSink},
    caller::{Caller, Scope},
    keys::{KeyId, Keys},
    policy::{Policy, Rules},
    record::{Object, ObjectType, ObjectVersion, Partition, SubjectKey},
    refusal::Denial,
    store::Store,
};

/// The server's own say over the objects behind its handles, and the way to them.
///
/// A handle says that its caller was allowed once. Whether they still are, and whether the object is still the one that
/// the handle was made for, only the server knows.
#[async_trait]
pub trait ObjectAuthority: Send + Sync {
    /// The object as the server has it.
    type Object: Send + Sync;

    /// Fetches the object and its version; `None` when it is gone.
    ///
    /// Called only after the handle's owner, expiry, revocation, policy and scope have passed.
    ///
    /// # Errors
    /// The backend cannot be reached.
    async fn load(&self, object: &Object) -> Result<Option<Loaded<Self::Object>>, BackendDown>;

    /// Whether this caller may have a handle to the object, or use it for this scope.
    ///
    /// # Errors
    /// Says no, or that it cannot say: both refuse.
    async fn authorize(&self, asked: Asked<'_, Self::Object>) -> Result<(), NotAuthorized>;
}

#[async_trait]
impl<A: ObjectAuthority> ObjectAuthority for Arc<A> {
    type Object = A::Object;

    async fn load(&self, object: &Object) -> Result<Option<Loaded<A::Object>>, BackendDown> {
        (**self).load(object).await
    }

    async fn authorize(&self, asked: Asked<'_, A::Object>) -> Result<(), NotAuthorized> {
        (**self).authorize(asked).await
    }
}

/// An object and the version that it has now.
#[derive(Debug, Clone)]
pub struct Loaded<T> {
    /// The object.
    pub object: T,
    /// Its version.
    pub version: ObjectVersion,
}

/// What an [`ObjectAuthority`] is asked.
#[derive(Debug)]
#[non_exhaustive]
pub enum Asked<'a, T> {
    /// May this caller have a handle to this object with these scopes?
    Mint {
        /// Who asks.
        caller: &'a Caller,
        /// For what.
        grant: &'a Grant,
    },
    /// May this caller use this object for this scope?
    Resolve {
        /// Who asks.
        caller: &'a Caller,
        /// The object as loaded.
        object: &'a T,
        /// For what.
        scope: &'a Scope,
    },
}

/// The backend of an object cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the object's backend cannot be reached")]
pub struct BackendDown;

/// An [`ObjectAuthority`] did not say yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NotAuthorized {
    /// It said no.
    #[error("not authorized")]
    Refused,
    /// It could not say.
    #[error("the authorization of the object cannot be reached")]
    Down,
}

/// What [`Handles`] are made of.
pub struct Setup<A> {
    /// Where records are kept.
    pub store: Arc<dyn Store>,
    /// What is allowed.
    pub policy: Policy,
    /// The keys under which subjects are kept.
    pub keys: Keys,
    /// The server's own say.
    pub authority: A,
    /// Where events go.
    pub audit: Arc<dyn AuditSink>,
}

/// Mints, resolves and revokes handles. One for a server; share it behind an [`Arc`].
pub struct Handles<A> {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) policy: Policy,
    pub(crate) keys: Keys,
    authority: A,
    audit: Arc<dyn AuditSink>,
}

/// How long a dead handle is remembered unless [`Handles::purge`] is told otherwise: so long its owner learns
/// that it has expired or was revoked; later it is unknown.
pub const TOMBSTONE: Duration = Duration::from_secs(24 * 3600);

impl<A> Handles<A> {
    /// Handles over this store, under this policy.
    pub fn new(setup: Setup<A>) -> Self {
        let Setup { store, policy, keys, authority, audit } = setup;
        Self { store, policy, keys, authority, audit }
    }

    /// The policy in force.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The caller's principal under one of the keys; `None` for an anonymous caller.
    pub(crate) fn subject(&self, caller: &Caller, key: KeyId) -> Result<Option<SubjectKey>, Denial> {
        let under = |principal| SubjectKey::of(principal, &self.keys, key).ok_or(Denial::UnknownKey);
        caller.principal().map(under).transpose()
    }

    /// An event about a call of this caller, to be completed as more is known.
    pub(crate) fn event(&self, action: Action, caller: &Caller, object: &ObjectType) -> Witness<'_> {
        let event = AuditEvent {
            object_type: Some(object.clone()),
            subject: self.subject(caller, self.keys.current()).unwrap_or_default(),
            tenant: caller.tenant().cloned(),
            client: caller.client().cloned(),
            trace: caller.trace().cloned(),
            ..AuditEvent::new(action, self.policy.version())
        };
        Witness::of(event, &*self.audit)
    }

    fn object_digest(&self, object: &Object) -> [u8; 32] {
        self.keys.object_mac(&[object.kind.as_str().as_bytes(), object.reference.as_str().as_bytes()])
    }
}

/// The parts of the caller that the rules bind, as they are kept; an error where one of them is missing.
///
/// A null partition key would put everybody without one into one partition.
pub(crate) fn partition(caller: &Caller, subject: Option<SubjectKey>, rules: &Rules) -> Result<Partition, Denial> {
    let (bound, tenant, client) = (rules.bound, caller.tenant(), caller.client());
    let missing = subject.is_none() || bound.tenant && tenant.is_none() || bound.client && client.is_none();
    if missing && !rules.bearer {
        return Err(Denial::IdentityIncomplete);
    }
    Ok(Partition {
        subject: subject.filter(|_| bound.principal),
        tenant: tenant.filter(|_| bound.tenant).cloned(),
        client: client.filter(|_| bound.client).cloned(),
    })
}
