//! The verifier, on real stores that are sound and on what is broken in one respect.

#[path = "support/bent.rs"]
mod bent;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use handfast::{
    Action, Caller, Denial, Grant, Need, ObjectType, ObjectVersion, Why,
    clock::{Clock, ManualClock, SystemClock},
    store::{MemoryStore, Selector, Store},
    verify::{Lab, Property, Replicas, Target, verify},
};

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(SystemClock.now()))
}

fn in_memory() -> Replicas {
    let clock = clock();
    let one: Arc<dyn Store> = Arc::new(MemoryStore::new(clock.clone()));
    Replicas { other: one.clone(), one, clock }
}

fn failed(properties: &[Property]) -> Vec<String> {
    let failed = properties.iter().filter(|property| !property.holds());
    failed.map(|property| format!("{}: {}", property.name, property.outcome.clone().expect_err("failed"))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_property_holds_in_memory() {
    let properties = verify(&Lab::new(in_memory()), |_| {}).await;

    assert_eq!(failed(&properties), [""; 0]);
    assert_eq!(properties.len(), 17);
}

/// What is broken, and the property that must say so. Each is a target that is sound in every other respect.
const SABOTAGES: [(Sabotage, &str); 22] = [
    (Sabotage::Accepts(Denial::Unknown), "guessing-refused"),
    (Sabotage::Accepts(Denial::Malformed), "guessing-refused"),
    (Sabotage::Accepts(Denial::Unknown), "tenant-bound"),
    (Sabotage::Accepts(Denial::ForeignPrincipal), "subject-bound"),
    (Sabotage::Accepts(Denial::ForeignClient), "client-bound"),
    (Sabotage::Accepts(Denial::IdentityIncomplete), "tenant-bound"),
    (Sabotage::Accepts(Denial::UnknownScope), "scope-not-escalated"),
    (Sabotage::Accepts(Denial::MissingScope), "scope-not-escalated"),
    (Sabotage::Accepts(Denial::WrongObject), "object-and-version-bound"),
    (Sabotage::Accepts(Denial::StaleVersion), "object-and-version-bound"),
    (Sabotage::Accepts(Denial::ObjectGone), "object-and-version-bound"),
    (Sabotage::Accepts(Denial::PolicyChanged), "policy-version-bound"),
    (Sabotage::Accepts(Denial::Idle), "expiry-exact"),
    (Sabotage::Accepts(Denial::Expired), "expiry-exact"),
    (Sabotage::Accepts(Denial::Revoked), "revocation-final"),
    (Sabotage::Accepts(Denial::Revoked), "revocation-race"),
    (Sabotage::Accepts(Denial::Unavailable), "outage-fails-closed"),
    (Sabotage::RefusesEverybody, "owner-accepted"),
    (Sabotage::ForgetsToRevoke, "bulk-revocation-complete"),
    (Sabotage::AdvancesTwice, "concurrent-use-consistent"),
    (Sabotage::FetchesBeforeItRefuses, "subject-bound: another subject was refused, but the object was fetched"),
    (Sabotage::WritesHandlesDown, "audit-reconciled: an event tells a handle"),
];

#[derive(Debug, Clone, Copy)]
enum Sabotage {
    /// What should be refused for this reason is accepted.
    Accepts(Denial),
    RefusesEverybody,
    /// It says that it has revoked in bulk.
    ForgetsToRevoke,
    /// It says of every change that it was the first.
    AdvancesTwice,
    /// It uses every handle once more than it was asked to.
    UsesTwice,
    /// Before it refuses somebody, the object is fetched, as it would be for whoever was accepted last.
    FetchesBeforeItRefuses,
    /// The receipt of a revocation is the handle.
    WritesHandlesDown,
}

struct Sabotaged {
    target: Arc<dyn Target>,
    sabotage: Sabotage,
    accepted: Mutex<Option<(Caller, String, Need)>>,
}

impl Sabotaged {
    fn over(target: Arc<dyn Target>, sabotage: Sabotage) -> Arc<dyn Target> {
        Arc::new(Self { target, sabotage, accepted: Mutex::default() })
    }

    async fn fetch(&self) {
        let accepted = self.accepted.lock().expect("not poisoned").clone();
        if let Some((caller, handle, need)) = accepted {
            let _ = self.target.resolve(&caller, &handle, &need).await;
        }
    }
}

#[async_trait]
impl Target for Sabotaged {
    async fn mint(&self, caller: &Caller, grant: Grant) -> Result<String, Denial> {
        self.target.mint(caller, grant).await
    }

    async fn resolve(&self, caller: &Caller, presented: &str, need: &Need) -> Result<ObjectVersion, Denial> {
        let answer = self.target.resolve(caller, presented, need).await;
        match (self.sabotage, answer) {
            (Sabotage::RefusesEverybody, _) => Err(Denial::Unknown),
            (Sabotage::Accepts(wrongly), Err(denial)) if denial == wrongly => Ok("1".parse().expect("a version")),
            (Sabotage::UsesTwice, _) => self.target.resolve(caller, presented, need).await,
            (Sabotage::FetchesBeforeItRefuses, Ok(version)) => {
                let accepted = (caller.clone(), presented.to_owned(), need.clone());
                *self.accepted.lock().expect("not poisoned") = Some(accepted);
                Ok(version)
            }
            (Sabotage::FetchesBeforeItRefuses, Err(denial)) => {
                self.fetch().await;
                Err(denial)
            }
            (_, answer) => answer,
        }
    }

    async fn advance(
        &self,
        caller: &Caller,
        presented: &str,
        need: &Need,
        to: ObjectVersion,
    ) -> Result<(), (Action, Denial)> {
        let answer = self.target.advance(caller, presented, need, to).await;
        if matches!(self.sabotage, Sabotage::AdvancesTwice) { Ok(()) } else { answer }
    }

    async fn revoke(&self, caller: &Caller, object: &ObjectType, presented: &str, why: Why) -> Result<(), Denial> {
        let receipt = match self.sabotage {
            Sabotage::WritesHandlesDown => presented.parse().expect("a receipt"),
            _ => why.receipt,
        };
        self.target.revoke(caller, object, presented, Why { receipt, ..why }).await
    }

    async fn revoke_all(&self, which: &Selector, why: &Why) -> Result<u64, Denial> {
        if matches!(self.sabotage, Sabotage::ForgetsToRevoke) {
            Ok(1)
        } else {
            self.target.revoke_all(which, why).await
        }
    }

    fn selector_of(&self, caller: &Caller) -> Selector {
        self.target.selector_of(caller)
    }
}

async fn with(sabotage: Sabotage) -> Vec<Property> {
    verify(&Lab::sabotaged(in_memory(), |target| Sabotaged::over(target, sabotage)), |_| {}).await
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_broken_is_found_by_its_property() {
    for (sabotage, property) in SABOTAGES {
        let failed = failed(&with(sabotage).await);

        let told = failed.iter().any(|line| line.starts_with(property));
        assert!(told, "{sabotage:?} should fail {property}, but failed {failed:#?}");
    }
}

/// One of two replicas is wrong, whichever it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_fault_of_one_replica_alone_is_found() {
    for faulty in 0..2 {
        let made = std::cell::Cell::new(0);
        let lab = Lab::sabotaged(in_memory(), |target| {
            made.set(made.get() + 1);
            if made.get() - 1 != faulty {
                return target;
            }
            Sabotaged::over(target, Sabotage::Accepts(Denial::ForeignPrincipal))
        });
        let failed = failed(&verify(&lab, |_| {}).await);

        assert!(failed.iter().any(|line| line.starts_with("subject-bound")), "replica {faulty}: {failed:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_wrong_in_one_respect_is_found() {
    use bent::{Bend, Bent};
    let clock = clock();
    for (bend, told) in [
        (Bend::KeepsWhatIsErased, "nothing-left-behind: 10 records"),
        (Bend::TimeGoesBack(clock.clone()), "expiry-exact: "),
        (Bend::ForgetsTheFirstReason, "revocation-final: the first reason did not stay"),
    ] {
        let store: Arc<dyn Store> = Arc::new(Bent(Arc::new(MemoryStore::new(clock.clone())), bend));
        let lab = Lab::new(Replicas { one: store.clone(), other: store, clock: clock.clone() });

        let failed = failed(&verify(&lab, |_| {}).await);

        assert_eq!(failed.len(), 1, "{failed:#?}");
        assert!(failed[0].starts_with(told), "{failed:#?}");
    }
}

/// The case that looks right in every other respect: one client of a user is as good as another.
#[tokio::test(flavor = "multi_thread")]
async fn a_resolve_that_ignores_the_client_fails_that_property_and_the_audit_alone() {
    let failed = failed(&with(Sabotage::Accepts(Denial::ForeignClient)).await);

    assert_eq!(failed.len(), 2, "{failed:#?}");
    assert_eq!(failed[0], "client-bound: another client of the same user was accepted");
    assert!(failed[1].starts_with("audit-reconciled: 1 calls without an event"), "{failed:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_without_a_call_is_found() {
    let failed = failed(&with(Sabotage::UsesTwice).await);

    assert!(failed.iter().any(|line| line.starts_with("audit-reconciled: ")), "{failed:#?}");
}

#[cfg(feature = "sqlite")]
mod sqlite {
    use std::path::Path;

    use handfast::store::{SqliteOptions, SqliteStore};

    use super::*;

    fn replicas(path: &Path) -> Replicas {
        let clock = clock();
        let open = || -> Arc<dyn Store> {
            let options = SqliteOptions { clock: clock.clone(), ..SqliteOptions::default() };
            Arc::new(SqliteStore::open(path, options).expect("opened"))
        };
        Replicas { one: open(), other: open(), clock }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn every_property_holds() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("handles.db");

        let properties = verify(&Lab::new(replicas(&path)), |_| {}).await;

        assert_eq!(failed(&properties), [""; 0]);
    }

    /// Somebody has rebuilt the table, and forgot that the digest is its key.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_missing_unique_index_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("handles.db");
        drop(replicas(&path));
        let connection = rusqlite::Connection::open(&path).expect("opened");
        connection
            .execute_batch("CREATE TABLE t AS SELECT * FROM handfast_handles; DROP TABLE handfast_handles; ALTER TABLE t RENAME TO handfast_handles")
            .expect("rebuilt");

        let properties = verify(&Lab::new(replicas(&path)), |_| {}).await;

        assert_eq!(
            failed(&properties),
            ["digest-unique: of two inserts of one digest at once 2 succeeded: is it a primary key?"]
        );
    }
}

#[cfg(feature = "postgres")]
mod postgres {
    use handfast::store::{PostgresOptions, PostgresStore};
    use handfast_testbed::Cluster;

    use super::*;

    async fn replicas(url: &str) -> Replicas {
        let clock = clock();
        let open = async || {
            let options = PostgresOptions { clock: Some(clock.clone()), ..PostgresOptions::default() };
            let store: Arc<dyn Store> = Arc::new(PostgresStore::connect(url, options).await.expect("connected"));
            store
        };
        Replicas { one: open().await, other: open().await, clock }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn every_property_holds() {
        let properties = verify(&Lab::new(replicas(&Cluster::shared().database()).await), |_| {}).await;

        assert_eq!(failed(&properties), [""; 0]);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_missing_primary_key_is_found() {
        let cluster = Cluster::shared();
        let url = cluster.database();
        drop(replicas(&url).await);
        cluster.sql(&url, "ALTER TABLE handfast_handles DROP CONSTRAINT handfast_handles_pkey");

        let properties = verify(&Lab::new(replicas(&url).await), |_| {}).await;

        assert_eq!(
            failed(&properties),
            ["digest-unique: of two inserts of one digest at once 2 succeeded: is it a primary key?"]
        );
    }
}
