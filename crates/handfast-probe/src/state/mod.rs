//! Reading a `requestState` that can be read, and putting one changed value back, with every other byte as issued.

mod coding;
pub mod envelope;
pub mod expiry;
pub mod fields;
pub mod legible;
pub mod seams;
mod splice;
pub mod tag;
