//! A reverse proxy in front of an MCP server that nobody can change: its handles, states and sessions are worth nothing to
//! anybody but their owner, and an honest client and an honest server notice nothing.

pub mod upstream;
