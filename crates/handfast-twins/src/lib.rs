//! Deliberately flawed MCP servers, and the sound one that they are twins of.
//!
//! One honest server of revision 2026-07-28 with its guards in one trait. Whose a handle is and how long it lives, they
//! ask the library `handfast`. A flaw is that server with ONE guard left out, marked `// FLAW:` at the line where it is
//! missing; an oddity is that server with another manner of speaking.
//! All of it listens on loopback only and is started only by name. Nothing here deletes, sends or spends anything.
//! What never lives here: judgement. Whether a twin is flawed is for the probe to find out.

mod answer;
mod ask;
mod caller;
mod clock;
mod conform;
mod flaws;
mod gate;
mod guards;
mod http;
pub mod issuer;
mod late;
mod legacy;
mod manner;
mod mirrors;
pub mod odd;
mod pages;
mod prompts;
mod question;
mod serve;
mod server;
mod sessions;
mod signed;
mod state;
mod stdio;
mod surface;
mod tally;
mod tasks;
mod tickets;
mod tools;
mod waiting;
mod workspaces;

pub use flaws::{Twin, all, find};
pub use http::Answers;
pub use serve::{Served, serve_http};
pub use stdio::serve_stdio;
