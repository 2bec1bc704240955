//! Questions that are asked, and answers that are not looked at.

use crate::{
    flaws::sound::Sound,
    guards::Guards,
    manner::{Asks, Manner},
};

/// Whoever does not untick the box agrees.
struct IgnoresDecline;

impl Guards for IgnoresDecline {
    fn heeds(&self, why: &str) -> bool {
        // FLAW: the action is not looked at, only what the form says; and what was declined comes without a form.
        why == "not confirmed"
    }
}

/// Wants to hear a name, any name.
struct AnyName;

impl Guards for AnyName {
    fn manner(&self) -> Manner {
        NAMED
    }

    fn compares_name(&self) -> bool {
        // FLAW: the name in the answer is not held against what is to be done.
        false
    }
}

/// Asks whoever comes.
struct AsksUndeclared;

impl Guards for AsksUndeclared {
    fn minds_capabilities(&self) -> bool {
        // FLAW: what the client declared is not looked at.
        false
    }
}

pub(super) fn names_object() -> Box<dyn Guards> {
    Box::new(Sound(NAMED))
}

pub(super) fn any_name() -> Box<dyn Guards> {
    Box::new(AnyName)
}

pub(super) fn ignores_decline() -> Box<dyn Guards> {
    Box::new(IgnoresDecline)
}

pub(super) fn asks_undeclared() -> Box<dyn Guards> {
    Box::new(AsksUndeclared)
}

const NAMED: Manner = Manner { asks: Asks::Name, ..Manner::PLAIN };
