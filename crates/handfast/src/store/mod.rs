//! Where records are kept. A store stores and fetches; it decides nothing, but it tells the time: one clock judges for
//! all replicas that share a store.

#[cfg(any(test, feature = "test-support"))]
pub mod contract;
mod memory;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "postgres")]
mod postgres_pool;
#[cfg(feature = "postgres")]
mod postgres_readers;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod sql;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "sqlite")]
mod sqlite_writer;
mod sweep;
mod url;

use std::time::Duration;

use async_trait::async_trait;
use thiserror::Error;

pub use memory::MemoryStore;
#[cfg(feature = "postgres")]
pub use postgres::{PostgresOptions, PostgresStore};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore};
pub use sweep::Sweep;
pub use url::{OpenOptions, open};

use crate::{
    caller::{ClientId, Principal, Tenant},
    clock::{Timestamp, from_micros, later},
    keys::Keys,
    record::{Digest, Key, NewRecord, ObjectRef, ObjectType, ObjectVersion, PolicyVersion, Record, SubjectKey, Why},
};

/// Where records are kept. Every method ends within the store's own timeout, and no method has a default: what a store
/// forgets does not compile. `contract` (feature `test-support`) is the suite that says what each must do.
#[async_trait]
pub trait Store: Send + Sync {
    /// Keeps a new record, with the times of the store's clock. To create is not to save: a digest that is there is
    /// [`StoreError::Duplicate`], and nothing is changed.
    async fn insert(&self, new: &NewRecord) -> Result<Lifespan, StoreError>;

    /// The record of this key, dead or alive, and the time.
    async fn find(&self, key: &Key) -> Result<Option<Found>, StoreError>;

    /// Moves the end of a living record to this time, if that is later, and never beyond its `expires`; `false`, and no
    /// change, otherwise. What has ended or was revoked does not live again.
    async fn touch(&self, key: &Key, ends: Timestamp) -> Result<bool, StoreError>;

    /// Changes the object version of a living record that has this one; `false`, and no change, otherwise.
    async fn advance(&self, key: &Key, from: &ObjectVersion, to: &ObjectVersion) -> Result<bool, StoreError>;

    /// Revokes up to `limit` of the records selected that are not revoked, the first ones after this digest, and names
    /// them; none only if there are none after it. Once it has returned, every
    /// [`Store::find`] that begins later finds them revoked, in every process, also after a crash.
    async fn revoke(
        &self,
        which: &Selector,
        why: &Why,
        after: Option<Digest>,
        limit: u32,
    ) -> Result<Vec<Digest>, StoreError>;

    /// Up to `limit` of the records selected, dead or alive, in the order of their digests, after this digest.
    async fn list(&self, which: &Selector, after: Option<Digest>, limit: u32) -> Result<Listed, StoreError>;

    /// Marks something as used up, and says whether it was the first to do so: of many who do it at once, in whatever
    /// processes, one is. The mark stays until this time at least, also after a crash; after that time nobody is the first.
    async fn spend(&self, id: &SpendId, until: Timestamp) -> Result<bool, StoreError>;

    /// Removes up to `limit` records that have been dead for longer than this, and as many marks of what was used up
    /// whose time has been over for as long; says how many of both.
    async fn purge(&self, dead_for: Duration, limit: u32) -> Result<u64, StoreError>;

    /// Removes records at once, dead or alive, and says how many: their handles are unknown then.
    async fn erase(&self, digests: &[Digest]) -> Result<u64, StoreError>;
}

/// What can be used up: the random id of a state that may be used once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpendId(pub(crate) [u8; 16]);

impl SpendId {
    /// An id from its bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The 16 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// The longest timeout that is heeded; a longer one is taken as this.
pub const LONGEST_TIMEOUT: Duration = Duration::from_secs(3600);

/// What is said of tables that may not be touched.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
const OLDER: &str = "the store's tables are older than this program: start a server of this version on it once";

/// When a new record begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifespan {
    /// When it was made.
    pub created: Timestamp,
    /// When it ends in any case.
    pub expires: Timestamp,
}

/// A record, and the time by the store's clock, which in one process never goes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The record.
    pub record: Record,
    /// The time.
    pub now: Timestamp,
}

/// Records, and the time by the store's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The records.
    pub records: Vec<Record>,
    /// The time.
    pub now: Timestamp,
}

/// Which records: those that meet every criterion given. A store must heed all of them, so the list is exhaustive: one
/// that knows fewer does not compile.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector {
    /// The one with this digest.
    pub digest: Option<Digest>,
    /// Those of any of these subjects.
    pub subjects: Option<Vec<SubjectKey>>,
    /// Those of this tenant.
    pub tenant: Option<Tenant>,
    /// Those of this OAuth client.
    pub client: Option<ClientId>,
    /// Those to objects of this type, or to this one of them.
    pub object: Option<(ObjectType, Option<ObjectRef>)>,
    /// Those made under this version of the policy.
    pub policy: Option<PolicyVersion>,
    /// Those made before this time.
    pub minted_before: Option<Timestamp>,
}

impl Selector {
    /// Every record there is.
    #[must_use]
    pub fn everything() -> Self {
        Self::default()
    }

    /// The record of one handle.
    #[must_use]
    pub fn handle(digest: Digest) -> Self {
        Self { digest: Some(digest), ..Self::default() }
    }

    /// What belongs to a principal, under each of these keys.
    #[must_use]
    pub fn subject(principal: &Principal, keys: &Keys) -> Self {
        let subjects = keys.ids().filter_map(|id| SubjectKey::of(principal, keys, id)).collect();
        Self { subjects: Some(subjects), ..Self::default() }
    }

    /// Of these, the record of one handle.
    #[must_use]
    pub fn and_handle(self, digest: Digest) -> Self {
        Self { digest: Some(digest), ..self }
    }

    /// Of these, those of this tenant.
    #[must_use]
    pub fn and_tenant(self, tenant: Tenant) -> Self {
        Self { tenant: Some(tenant), ..self }
    }

    /// Of these, those of this OAuth client.
    #[must_use]
    pub fn and_client(self, client: ClientId) -> Self {
        Self { client: Some(client), ..self }
    }

    /// Of these, those to objects of this type; to this one of them, where it is given.
    #[must_use]
    pub fn and_object(self, kind: ObjectType, reference: Option<ObjectRef>) -> Self {
        Self { object: Some((kind, reference)), ..self }
    }

    /// Of these, those made under this version of the policy.
    #[must_use]
    pub fn and_policy(self, policy: PolicyVersion) -> Self {
        Self { policy: Some(policy), ..self }
    }

    /// Of these, those made before this time.
    #[must_use]
    pub fn and_minted_before(self, time: Timestamp) -> Self {
        // Stores keep whole microseconds: a time within one is after its beginning.
        let whole = from_micros(time.as_microsecond());
        let time = if whole < time { later(whole, Duration::from_micros(1)) } else { whole };
        Self { minted_before: Some(time), ..self }
    }

    /// Whether this record is one of them.
    #[must_use]
    pub fn selects(&self, record: &Record) -> bool {
        fn meets<T>(wanted: Option<&T>, test: impl FnOnce(&T) -> bool) -> bool {
            wanted.is_none_or(test)
        }
        let Self { digest, subjects, tenant, client, object, policy, minted_before } = self;
        meets(digest.as_ref(), |digest| *digest == record.digest)
            && meets(subjects.as_ref(), |subjects| record.partition.subject.is_some_and(|own| subjects.contains(&own)))
            && meets(tenant.as_ref(), |tenant| record.partition.tenant.as_ref() == Some(tenant))
            && meets(client.as_ref(), |client| record.partition.client.as_ref() == Some(client))
            && meets(object.as_ref(), |(kind, reference)| {
                let one = meets(reference.as_ref(), |reference| *reference == record.object.reference);
                *kind == record.object.kind && one
            })
            && meets(policy.as_ref(), |policy| *policy == record.policy)
            && meets(minted_before.as_ref(), |time| record.created < *time)
    }

    /// Whether nothing restricts it.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}

/// Why a store did not answer. All of them fail closed: a handle that cannot be checked is refused.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is a record of this digest already.
    #[error("there is a record of this digest already")]
    Duplicate,
    /// It cannot be reached, or did not answer in time. Worth another try, later.
    #[error("the store is unavailable")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It has no room left.
    #[error("the store is full: make room on its disk, or raise its limit")]
    Full,
    /// It cannot be written to.
    #[error("the store cannot be written to: its database is read-only")]
    ReadOnly,
    /// Its database does not let this user do that.
    #[error(
        "the database does not let this user do that: GRANT SELECT, INSERT, UPDATE, DELETE ON handfast_handles and \
         handfast_spent, and SELECT ON handfast_migrations"
    )]
    Forbidden,
    /// There are records that it shows and does not let be changed.
    #[error(
        "there are records that the database does not let be revoked: look for a trigger or a row policy on \
         handfast_handles"
    )]
    Unchangeable,
    /// It holds what this program cannot read, and would not have written.
    #[error("the store holds a record that cannot be read: {0}")]
    Corrupt(String),
    /// It cannot be opened as it was asked to.
    #[error("{0}")]
    Setup(String),
}

impl StoreError {
    /// The tables are not those that migrations make: somebody has changed them.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    fn foreign(told: impl std::fmt::Display) -> Self {
        Self::Setup(format!("the store's tables are not as this program makes them: {told}"))
    }

    pub(crate) fn unavailable(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Unavailable(source.into())
    }
}
