//! Ambient state: what a server keeps for its caller without any handle on the wire.

mod shared;

use crate::check::Check;

/// The checks of this family.
pub const CHECKS: &[&Check] = &[&shared::CHECK];
