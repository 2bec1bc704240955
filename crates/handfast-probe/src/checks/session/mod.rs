//! Sessions of 2025-11-25 and older: an id in a header, and whatever the server remembers under it.

mod adopted;
mod disclosed;
mod endings;
mod foreign_principal;
mod grid;
mod guessable;
mod missing_accepted;
mod outlives_delete;
mod outlives_token;
mod overbound;
mod refused_yet_minted;
mod revived;
mod scene;
mod unknown_not_404;

use crate::check::Check;
pub use grid::who_is_served;

/// The checks of this family.
pub const CHECKS: &[&Check] = &[
    &foreign_principal::CHECK,
    &revived::CHECK,
    &adopted::CHECK,
    &refused_yet_minted::CHECK,
    &missing_accepted::CHECK,
    &outlives_delete::CHECK,
    &outlives_token::CHECK,
    &overbound::CHECK,
    &guessable::CHECK,
    &disclosed::CHECK,
    &unknown_not_404::CHECK,
];
