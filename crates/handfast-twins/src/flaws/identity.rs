//! Callers that are not told apart: every later guard compares equal with equal.

use crate::{
    caller::{Principal, Shown},
    guards::Guards,
    manner::Manner,
};

/// Nobody is asked who they are.
struct IgnoresIdentity;

impl Guards for IgnoresIdentity {
    fn identify(&self, _shown: Shown<'_>) -> Option<Principal> {
        // FLAW: neither the token nor the principal is looked at.
        Some(Principal::local())
    }
}

/// A token is demanded, and any will do.
struct AnyToken;

impl Guards for AnyToken {
    fn manner(&self) -> Manner {
        Manner { shows_owner: false, ..Manner::PLAIN }
    }

    fn identify(&self, shown: Shown<'_>) -> Option<Principal> {
        match shown {
            Shown::Bearer(None) => None,
            // FLAW: that there is a token is checked; whose it is is not.
            _ => Some(Principal::new("user")),
        }
    }
}

pub(super) fn ignores_identity() -> Box<dyn Guards> {
    Box::new(IgnoresIdentity)
}

pub(super) fn any_token() -> Box<dyn Guards> {
    Box::new(AnyToken)
}
