//! Workspaces that can be closed, and handles that live for two seconds: what is over must be over.

use super::sound::Sound;
use crate::{
    clock::Clock,
    guards::Guards,
    manner::{Further, Handles, Lifetime, Manner},
    workspaces::Workspace,
};

const CLOSING: Manner = Manner { further: Further::Closing, ..Manner::PLAIN };

/// Says that it closes, and closes nothing.
struct ClosesNothing;

impl Guards for ClosesNothing {
    fn manner(&self) -> Manner {
        CLOSING
    }

    fn closes(&self) -> bool {
        // FLAW: the workspace stays where it is, and its handle opens it.
        false
    }
}

/// Numbers as handles, and those of what was closed are given out again.
struct ReusesNumbers;

impl Guards for ReusesNumbers {
    fn manner(&self) -> Manner {
        Manner { handles: Handles::Numeric, ..CLOSING }
    }

    fn reuses_numbers(&self) -> bool {
        // FLAW: whoever still has the number of what was closed now has that of something else.
        true
    }
}

/// Handles that live for two seconds without being used.
struct ShortLived {
    clock: Clock,
    ends: bool,
}

impl Guards for ShortLived {
    fn manner(&self) -> Manner {
        Manner { lifetime: Lifetime::TwoSeconds, ..Manner::PLAIN }
    }

    fn lapsed(&self, workspace: &Workspace) -> bool {
        // FLAW: in the flawed one, nobody looks at the clock.
        let idle = self.clock.milliseconds().saturating_sub(workspace.touched);
        workspace.lapsed() || (self.ends && idle >= TWO_SECONDS)
    }
}

pub(super) fn closing() -> Box<dyn Guards> {
    Box::new(Sound(CLOSING))
}

pub(super) fn closes_nothing() -> Box<dyn Guards> {
    Box::new(ClosesNothing)
}

pub(super) fn reuses_numbers() -> Box<dyn Guards> {
    Box::new(ReusesNumbers)
}

pub(super) fn short_lived() -> Box<dyn Guards> {
    Box::new(ShortLived { clock: Clock::default(), ends: true })
}

pub(super) fn outlives_expiry() -> Box<dyn Guards> {
    Box::new(ShortLived { clock: Clock::default(), ends: false })
}

/// In milliseconds.
const TWO_SECONDS: u64 = 2000;
