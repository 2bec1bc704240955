//! The entries of the OWASP lists that findings are filed under. Other tools number lists of their own under the same
//! names, so an id never goes out without its title.

use serde::Serialize;

/// One entry of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Owasp {
    /// Its number, with the year of the list.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
}

const fn entry(id: &'static str, title: &'static str) -> Owasp {
    Owasp { id, title }
}

/// MCP Top 10: credentials in the wrong hands.
pub const MCP01: Owasp = entry("MCP01:2025", "Token Mismanagement & Secret Exposure");
/// MCP Top 10: who calls, and what is theirs, is not checked.
pub const MCP07: Owasp = entry("MCP07:2025", "Insufficient Authentication & Authorization");
/// MCP Top 10: what is meant for one reaches another.
pub const MCP10: Owasp = entry("MCP10:2025", "Context Injection & Over-Sharing");
/// Agentic Applications: a tool does what it should not.
pub const ASI02: Owasp = entry("ASI02:2026", "Tool Misuse and Exploitation");
/// Agentic Applications: one acts as another.
pub const ASI03: Owasp = entry("ASI03:2026", "Identity and Privilege Abuse");
/// Agentic Applications: somebody plants what others build on.
pub const ASI06: Owasp = entry("ASI06:2026", "Memory & Context Poisoning");
/// Agentic Applications: messages are taken from elsewhere, or once more.
pub const ASI07: Owasp = entry("ASI07:2026", "Insecure Inter-Agent Communication");
/// API Security: objects by their ids, whoever asks.
pub const API1: Owasp = entry("API1:2023", "Broken Object Level Authorization");
/// API Security: sessions and tokens.
pub const API2: Owasp = entry("API2:2023", "Broken Authentication");
/// API Security: how things are set up.
pub const API8: Owasp = entry("API8:2023", "Security Misconfiguration");
