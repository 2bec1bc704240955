//! MCP on the wire, as bytes and raw JSON.
//!
//! What lives here: JSON-RPC messages with every unknown field kept, the `_meta` keys of protocol revision
//! 2026-07-28, HTTP header values, Server-Sent Events, newline-delimited stdio, JSON Pointers, JSON text with the place of everything in it, which
//! characters only show themselves. What never does:
//! sockets, processes, policy. Everything that reads takes a bound, because all of it comes from somebody else.

pub mod headers;
pub mod message;
pub mod meta;
pub mod pointer;
pub mod result;
pub mod span;
pub mod sse;
pub mod stdio;
pub mod text;
