//! Handles: identifiers that a tool mints and that come back as arguments.

mod foreign_principal;
pub(super) mod handles;
pub(super) mod identities;
pub(super) mod kinds;

use crate::check::Check;

/// The checks of this family.
pub const CHECKS: &[&Check] = &[&foreign_principal::CHECK];
