//! Cursors: where a list that comes in pages goes on. The specification lays no duty on servers; what is found here is advice.

mod foreign_list;
mod foreign_principal;
mod scene;
mod tampered;

use crate::check::Check;

/// The checks of this family.
pub const CHECKS: &[&Check] = &[&tampered::CHECK, &foreign_principal::CHECK, &foreign_list::CHECK];
