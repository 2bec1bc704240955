//! No store at all: a handle says nothing, so there is nothing that it could be bound to.

use crate::{caller::Principal, guards::Guards, workspaces::Workspace};

struct NoGuard;

impl Guards for NoGuard {
    fn remembers(&self) -> bool {
        // FLAW: what is minted is not kept,
        false
    }

    fn unknown(&self, caller: &Principal, presented: &str) -> Option<Workspace> {
        // FLAW: so whatever is presented opens an empty workspace of the caller's own.
        Some(Workspace::new(presented, "workspace", caller))
    }
}

pub(super) fn guards() -> Box<dyn Guards> {
    Box::new(NoGuard)
}
