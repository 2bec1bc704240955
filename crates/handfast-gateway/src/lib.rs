//! A reverse proxy in front of an MCP server that nobody can change: its handles, states and sessions are worth nothing to
//! anybody but their owner, and an honest client and an honest server notice nothing.
//!
//! A request goes through these files, in this order: `admit` (bounds, headers that agree with the body), `reveal` (handles
//! and states of ours become those of the server behind), `upstream` (it is asked), `conceal` (its handles and states become
//! ours). Who calls is settled before all that, by the layers of [`handfast::http`].

mod admin;
mod admit;
mod conceal;
pub mod config;
mod events;
mod files;
mod gateway;
mod ids;
mod patience;
mod respond;
mod reveal;
mod rules;
mod run;
mod schemas;
mod serve;
mod spelled;
mod states;
mod tally;
mod template;
pub mod upstream;
mod who;

pub use gateway::{Gateway, Options, Setup};
pub use rules::{Defaults, Kind, Rules, RulesError};
pub use run::{NotStarted, Reloader, Running};
pub use serve::{Listening, serve};
pub use tally::describe_metrics;
pub use who::{App, Who};
