//! The judge. Tells whether an MCP server, which it has never seen, binds handles to principals and keeps `requestState`
//! intact: two identities, one mutation, controls that could have said no, and the server's own words as evidence.
//!
//! A run ([`runner::Run`]) connects ([`target`]), lists ([`surface`]), finds handles ([`discovery`]) and carries out the
//! checks ([`checks`]), each of which makes calls through a [`trial::Trial`] and concludes by the rules of [`verdict`]. Formats
//! ([`mod@format`]) see only the [`report::Report`].

pub mod access;
pub mod answers;
pub mod arguments;
pub mod canary;
pub mod check;
pub mod checks;
pub mod clock;
pub mod counts;
pub mod coverage;
pub mod credential;
pub mod cvss;
mod dates;
mod digest;
pub mod discovery;
pub mod disposition;
pub mod echo;
pub mod effect;
pub mod errand;
pub mod evidence;
pub mod forge;
pub mod format;
pub mod harm;
pub mod identity;
pub mod lifetime;
pub mod likeness;
pub mod marker;
pub mod owasp;
pub mod plan;
mod predict;
pub mod profile;
mod random;
mod reason;
pub mod redact;
mod repeat;
pub mod report;
pub mod runner;
pub mod state;
pub mod surface;
pub mod target;
pub mod trial;
pub mod verdict;
