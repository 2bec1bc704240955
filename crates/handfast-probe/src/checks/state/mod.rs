//! `requestState`: what a server hands to a client between two rounds of one request.

pub(super) mod flow;
mod foreign_principal;
mod foreign_request;
mod loan;
pub(crate) mod origins;
mod outlives_expiry;
mod overbound;
mod readable;
mod replayed;
mod rounds;
mod spliced;
mod tampered;
mod view;

use crate::check::Check;

/// The checks of this family.
pub const CHECKS: &[&Check] = &[
    &tampered::CHECK,
    &foreign_principal::CHECK,
    &foreign_request::CHECK,
    &outlives_expiry::CHECK,
    &replayed::CHECK,
    &spliced::CHECK,
    &readable::CHECK,
    &overbound::CHECK,
];
