//! Access tokens: which of them a server takes, and what it says where it takes none.

mod absent;
mod challenge_missing;
mod forged;
mod in_query;
mod said;
mod scene;
mod worthless;

use crate::check::Check;

/// The checks of this family.
pub const CHECKS: &[&Check] = &[
    &worthless::FOREIGN_AUDIENCE,
    &worthless::CLIENT_AUDIENCE,
    &worthless::EXPIRED,
    &absent::NONE,
    &absent::STRONGER,
    &forged::CHECK,
    &in_query::CHECK,
    &challenge_missing::CHECK,
];
