//! `requestState`: what a server hands to a client between two rounds of one request.

mod tampered;

use crate::check::Check;

/// The checks of this family.
pub const CHECKS: &[&Check] = &[&tampered::CHECK];
