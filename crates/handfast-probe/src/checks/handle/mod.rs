//! Handles: identifiers that a tool mints and that come back as arguments.

mod foreign_principal;

use crate::check::Check;

/// The checks of this family.
pub const CHECKS: &[&Check] = &[&foreign_principal::CHECK];
