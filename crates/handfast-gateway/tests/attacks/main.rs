//! What has gone wrong elsewhere, tried on the gateway over real HTTP: each attack beside what is allowed, and beside what
//! is nearly it. The server behind keeps what it receives: what is refused does not reach it.

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod bodies;
mod handles;
mod headers;
mod sessions;
mod states;
mod tokens;
