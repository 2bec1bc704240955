//! Verifies, on a real store and with credentials of its own, that handles are worth nothing to anybody but their owner.
//!
//! The verifier makes handles in a tenant that nobody else has, tries on them what an attacker would try, and reconciles
//! what it did with what the audit says. Its handles live for seconds, and it removes them. It purges nothing, and
//! every revocation of many is confined to its own tenant, so it can run on a store that is in use.

mod attacks;
mod lab;
mod lifecycle;
mod target;

use std::sync::Arc;

pub use lab::Lab;
pub use target::Target;

use crate::{clock::ManualClock, store::Store};

/// What is verified: two connections to one store, as two replicas would have them, and the clock by which both judge.
pub struct Replicas {
    /// One.
    pub one: Arc<dyn Store>,
    /// The other.
    pub other: Arc<dyn Store>,
    /// Their clock; it must stand at the present time, and is moved by seconds.
    pub clock: Arc<ManualClock>,
}

/// A property that was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Property {
    /// Its name. Names are forever.
    pub name: &'static str,
    /// What was seen, if it holds; what speaks against it, if it does not.
    pub outcome: Result<String, String>,
}

impl Property {
    /// Whether it holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.outcome.is_ok()
    }
}

/// Verifies every property, and tells each as soon as it is known.
pub async fn verify(lab: &Lab, mut tell: impl FnMut(&Property)) -> Vec<Property> {
    lab.set_clock().await;
    let mut all = Vec::new();
    macro_rules! properties {
        ($($name:literal: $verified:expr,)*) => {
            $(
                let property = Property { name: $name, outcome: $verified.await };
                tell(&property);
                all.push(property);
            )*
        };
    }
    properties! {
        "owner-accepted": attacks::owner_accepted(lab),
        "guessing-refused": attacks::guessing_refused(lab),
        "subject-bound": attacks::subject_bound(lab),
        "client-bound": attacks::client_bound(lab),
        "tenant-bound": attacks::tenant_bound(lab),
        "scope-not-escalated": attacks::scope_not_escalated(lab),
        "object-and-version-bound": attacks::object_and_version_bound(lab),
        "policy-version-bound": attacks::policy_version_bound(lab),
        "expiry-exact": lifecycle::expiry_exact(lab),
        "revocation-final": lifecycle::revocation_final(lab),
        "revocation-race": lifecycle::revocation_race(lab),
        "bulk-revocation-complete": lifecycle::bulk_revocation_complete(lab),
        "concurrent-use-consistent": lifecycle::concurrent_use_consistent(lab),
        "digest-unique": lifecycle::digest_unique(lab),
        "outage-fails-closed": lifecycle::outage_fails_closed(lab),
        "audit-reconciled": lab.audit_reconciled(),
        "nothing-left-behind": lab.nothing_left_behind(),
    }
    all
}
