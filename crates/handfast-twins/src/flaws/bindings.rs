//! Handles that are bound to less than all that their owner is, or to more.

use crate::{
    caller::Principal,
    guards::Guards,
    manner::{Handles, Manner},
    workspaces::{Door, Workspace},
};

/// Bound to the user, by whatever client.
struct AnyClient;

impl Guards for AnyClient {
    fn admits(&self, _door: Door, caller: &Principal, workspace: &Workspace) -> bool {
        // FLAW: the client is not compared.
        *caller == workspace.owner
    }
}

/// Bound within a tenant.
struct OtherTenants;

impl Guards for OtherTenants {
    fn admits(&self, door: Door, caller: &Principal, workspace: &Workspace) -> bool {
        // FLAW: only neighbours are looked at.
        caller.tenant() != workspace.owner.tenant() || workspace.admits(door, caller)
    }
}

/// Bound to the very token.
struct BindsToken;

impl Guards for BindsToken {
    fn admits(&self, door: Door, caller: &Principal, workspace: &Workspace) -> bool {
        // FLAW: whoever renews a token has lost what they had.
        caller.token() == workspace.owner.token() && workspace.admits(door, caller)
    }
}

/// Bound to the very connection.
struct BindsConnection;

impl Guards for BindsConnection {
    fn admits(&self, door: Door, caller: &Principal, workspace: &Workspace) -> bool {
        // FLAW: whoever connects again has lost what they had.
        caller.connection() == workspace.owner.connection() && workspace.admits(door, caller)
    }
}

/// Handles that count up, for whoever has them.
struct Counted;

impl Guards for Counted {
    fn manner(&self) -> Manner {
        Manner { handles: Handles::Numeric, ..Manner::PLAIN }
    }

    fn admits(&self, _door: Door, _caller: &Principal, _workspace: &Workspace) -> bool {
        // FLAW: the owner is not compared, and the next handle is the next number.
        true
    }
}

pub(super) fn any_client() -> Box<dyn Guards> {
    Box::new(AnyClient)
}

pub(super) fn other_tenants() -> Box<dyn Guards> {
    Box::new(OtherTenants)
}

pub(super) fn binds_token() -> Box<dyn Guards> {
    Box::new(BindsToken)
}

pub(super) fn binds_connection() -> Box<dyn Guards> {
    Box::new(BindsConnection)
}

pub(super) fn counted() -> Box<dyn Guards> {
    Box::new(Counted)
}
