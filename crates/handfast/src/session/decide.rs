//! The decision, pure: is the token for this server, what is asked, and whose session was shown.
//!
//! Two predicates, and both are required. "It does not authorize that caller to attach to an existing session": a token
//! that is good never makes up for a session that is not there.

/// What a request asks of its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Asked {
    /// To begin one: `initialize`.
    Begin,
    /// To use one: any other message, and the stream of the server's own messages.
    Use,
    /// To end one: `DELETE`.
    End,
}

/// Whose session was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shown {
    /// None.
    None,
    /// One that is not there: never made, ended, expired, evicted, lost.
    Unknown,
    /// One of another principal, tenant or client.
    Foreign,
    /// The caller's.
    Own,
}

/// What becomes of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Decision {
    /// 401: nothing else is looked at.
    Unauthorized,
    /// It goes on, and a new session is made when it has succeeded. What was shown is never taken over.
    Begin,
    /// 400: no session was shown, and none is made.
    Missing,
    /// 404: begin again. No session is made.
    NotFound,
    /// It goes on.
    Proceed,
    /// The session is ended, at once.
    End,
}

/// What becomes of a request.
#[must_use]
pub fn decide(audience_ok: bool, asked: Asked, shown: Shown) -> Decision {
    match (audience_ok, asked, shown) {
        (false, _, _) => Decision::Unauthorized,
        (true, Asked::Begin, _) => Decision::Begin,
        (true, Asked::Use | Asked::End, Shown::None) => Decision::Missing,
        (true, Asked::Use | Asked::End, Shown::Unknown | Shown::Foreign) => Decision::NotFound,
        (true, Asked::Use, Shown::Own) => Decision::Proceed,
        (true, Asked::End, Shown::Own) => Decision::End,
    }
}
