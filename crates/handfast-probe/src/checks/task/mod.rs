//! Tasks: what a server does in the background and lets be asked for by an id (extension `io.modelcontextprotocol/tasks`).

mod foreign_principal;
mod grid;
mod guessable;
mod listed;
mod overbound;
mod scene;

use crate::check::Check;
pub use grid::who_is_served;

/// The checks of this family.
pub const CHECKS: &[&Check] = &[&foreign_principal::CHECK, &listed::CHECK, &guessable::CHECK, &overbound::CHECK];
