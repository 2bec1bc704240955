//! Questions that a server asks before it acts, and what an answer to them is worth: whether it was asked for at all, whether
//! a no is heeded, and what a yes is a yes to.

mod answers_cross;
mod asks_undeclared;
mod decline_ignored;
mod scene;
mod skipped;

use crate::check::Check;

/// The checks of this family.
pub const CHECKS: &[&Check] =
    &[&skipped::CHECK, &decline_ignored::CHECK, &answers_cross::CHECK, &asks_undeclared::CHECK];
