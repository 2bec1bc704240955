//! A gateway, what stands behind it, and what is asked of it.
#![allow(dead_code, unused_imports, reason = "each test file uses its part of this")]

pub(crate) mod answers;
pub(crate) mod behind;
pub(crate) mod fake;
mod front;

pub(crate) use front::*;
