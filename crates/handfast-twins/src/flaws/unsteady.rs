//! Servers whose answer depends on what was asked before: handles that are spent by use, a guard that comes and goes.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{
    caller::Principal,
    guards::Guards,
    workspaces::{Door, Workspace},
};

/// A handle reads once.
struct OneShot {
    compares_owner: bool,
}

impl Guards for OneShot {
    fn spends(&self, door: Door) -> bool {
        door == Door::Read
    }

    fn admits(&self, door: Door, caller: &Principal, workspace: &Workspace) -> bool {
        // FLAW: in the flawed one, the owner is not compared.
        !self.compares_owner || workspace.admits(door, caller)
    }
}

/// As if two replicas took turns, and one of them had lost its guard.
#[derive(Default)]
struct Flaky {
    foreign_uses: AtomicU64,
}

impl Guards for Flaky {
    fn admits(&self, door: Door, caller: &Principal, workspace: &Workspace) -> bool {
        // FLAW: every other time, the owner is not compared.
        workspace.admits(door, caller) || self.foreign_uses.fetch_add(1, Ordering::Relaxed).is_multiple_of(2)
    }
}

pub(super) fn one_shot() -> Box<dyn Guards> {
    Box::new(OneShot { compares_owner: true })
}

pub(super) fn one_shot_flawed() -> Box<dyn Guards> {
    Box::new(OneShot { compares_owner: false })
}

pub(super) fn flaky() -> Box<dyn Guards> {
    Box::<Flaky>::default()
}
