//! The catalogue.

pub mod handle;
pub mod session;
pub mod state;
pub mod token;

use crate::check::Check;

/// Every check, family by family.
pub fn all() -> impl Iterator<Item = &'static Check> {
    handle::CHECKS.iter().chain(state::CHECKS).chain(session::CHECKS).chain(token::CHECKS).copied()
}

/// The check with this id.
pub fn find(id: &str) -> Option<&'static Check> {
    all().find(|check| check.id == id)
}
