//! Responses: whose answer comes back by which connection.

mod misrouted;

use crate::check::Check;

/// The checks of this family.
pub const CHECKS: &[&Check] = &[&misrouted::CHECK];
