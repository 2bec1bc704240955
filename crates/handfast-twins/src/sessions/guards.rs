//! The guards of the honest server with sessions. A flaw overrides one of them; whatever it leaves alone stays sound.

use crate::{caller::Principal, workspaces};

/// Everything that a server with sessions has to check, each with its sound answer.
pub(crate) trait SessionGuards: Send + Sync {
    /// Whether a token is still good. Asked at every request; `opening` where it is `initialize`.
    fn is_good(&self, token: &str, _opening: bool) -> bool {
        !token.starts_with(EXPIRED) && !token.starts_with(ELSEWHERE)
    }

    /// The id of a new session. `made` counts them, `is_live` tells which ids are taken.
    fn new_id(&self, _made: u64, _is_live: &dyn Fn(&str) -> bool) -> String {
        // "The session ID SHOULD be globally unique and cryptographically secure."
        workspaces::random_hex()
    }

    /// Whether `initialize` opens its session under the id that the client came with.
    fn takes_presented_id(&self) -> bool {
        false
    }

    /// What of an id is looked up.
    fn known_as<'i>(&self, presented: &'i str) -> &'i str {
        presented
    }

    /// What becomes of a request whose id the server does not know.
    fn on_unknown(&self) -> Unknown {
        // "The server MUST respond to requests containing that session ID with HTTP 404 Not Found."
        Unknown::Refused(404)
    }

    /// Whether a session serves its owner only, by this verb, for this tool.
    fn minds_owner(&self, _verb: &str, _tool: Option<&str>) -> bool {
        // "MCP Servers MUST NOT use sessions for authentication."
        true
    }

    /// Whether a session is this caller's.
    fn is_owner(&self, owner: &Principal, caller: &Principal) -> bool {
        owner == caller
    }

    /// Whether a token is wanted with every request, also within a session.
    fn minds_missing_token(&self) -> bool {
        // "MCP servers that implement authorization MUST verify all inbound requests."
        true
    }

    /// How somebody else's session is refused: like one that does not exist.
    fn foreign_status(&self) -> u16 {
        404
    }

    /// What becomes of a request without an id, where `live` sessions are open.
    fn on_missing(&self, _live: usize) -> Missing {
        Missing::Refused
    }

    /// Whether DELETE ends a session.
    fn ends(&self) -> bool {
        true
    }

    /// Whether a refusal hands out the id of a session that it opened on the way.
    fn mints_on_refusal(&self) -> bool {
        false
    }

    /// Whether `/health` tells which sessions are open.
    fn tells_sessions(&self) -> bool {
        false
    }

    /// Whether who opens a session loses the one before. Not a guard.
    fn keeps_one_each(&self) -> bool {
        false
    }

    /// How many processes, each with a memory of its own, take requests in turn. Not a guard.
    fn replicas(&self) -> usize {
        1
    }
}

/// What becomes of a request with an unknown id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// It is refused with this status.
    Refused(u16),
    /// It is refused, and kept as a session from then on.
    RefusedAndKept,
    /// A session is made for this one request.
    Revived,
    /// A session is made, and kept under the id that was presented.
    Adopted,
}

/// What becomes of a request without an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// It is refused.
    Refused,
    /// It is carried out in a session of its own.
    Served,
    /// It is carried out in the session that is open.
    TheOpenOne,
}

/// How a token begins whose time is over. What follows is whose it was.
pub(crate) const EXPIRED: &str = "expired-";
/// How one begins that was issued for another server.
pub(crate) const ELSEWHERE: &str = "elsewhere-";
