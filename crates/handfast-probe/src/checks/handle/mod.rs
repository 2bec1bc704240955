//! Handles: identifiers that a tool mints and that come back as arguments.

mod adopted;
mod endings;
mod follows_session_header;
mod foreign_client;
mod foreign_principal;
mod foreign_tenant;
mod grid;
mod guessable;
pub(super) mod handles;
pub(super) mod identities;
pub(super) mod kinds;
mod loan;
mod lost;
mod oracle;
mod outlives_close;
mod outlives_expiry;
mod overbound;
mod repointed;
pub(super) mod showing;
mod tidy;

use crate::check::Check;
pub use grid::who_is_served;
pub use tidy::tidy;

/// The checks of this family.
pub const CHECKS: &[&Check] = &[
    &foreign_principal::CHECK,
    &foreign_client::CHECK,
    &foreign_tenant::CHECK,
    &guessable::CHECK,
    &overbound::CHECK,
    &lost::CHECK,
    &outlives_close::CHECK,
    &repointed::CHECK,
    &outlives_expiry::CHECK,
    &adopted::CHECK,
    &oracle::CHECK,
    &follows_session_header::CHECK,
];
