//! Why a request was refused: exactly inside, and outside by three numbers that tell nobody whose a session is.

use serde_json::{Value, json};
use thiserror::Error;

use super::Shown;
use crate::store::StoreError;

/// Why a request was refused, exactly. For the audit and for counters; never for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SessionDenial {
    /// Nobody is known to call, or their token is for another server.
    Unauthorized,
    /// No session was shown.
    Missing,
    /// What was shown has not the form of a session id, or is more than one.
    Malformed,
    /// There is no such session here, for this tenant.
    Unknown,
    /// It is over.
    Over,
    /// It is another principal's.
    ForeignPrincipal,
    /// It is another OAuth client's.
    ForeignClient,
    /// The server behind has lost it.
    Lost,
    /// The server behind has made another in its place, without being asked to: silent re-initialisation.
    Forked,
    /// The server behind has answered `initialize` with what cannot be read, or with what is no session id.
    Unusable,
    /// The caller has as many as one may have.
    TooMany,
    /// The store does not answer, or the audit cannot be kept.
    Unavailable,
}

impl SessionDenial {
    /// Its name in audit events. Names are forever.
    #[must_use]
    pub fn slug(self) -> &'static str {
        match self {
            Self::Unauthorized => "unauthorized",
            Self::Missing => "missing",
            Self::Malformed => "malformed",
            Self::Unknown => "unknown",
            Self::Over => "over",
            Self::ForeignPrincipal => "foreign-principal",
            Self::ForeignClient => "foreign-client",
            Self::Lost => "lost",
            Self::Forked => "forked",
            Self::Unusable => "unusable",
            Self::TooMany => "too-many",
            Self::Unavailable => "unavailable",
        }
    }

    /// Whose session it was that was shown, where this is known.
    pub(super) fn shown(self) -> Option<Shown> {
        match self {
            Self::Missing => Some(Shown::None),
            Self::ForeignPrincipal | Self::ForeignClient => Some(Shown::Foreign),
            Self::Malformed | Self::Unknown | Self::Over | Self::Lost | Self::Forked => Some(Shown::Unknown),
            Self::Unauthorized | Self::Unusable | Self::TooMany | Self::Unavailable => None,
        }
    }

    /// The HTTP status that a caller is told. "If the server terminates the session ... it MUST respond to requests
    /// containing that session ID with HTTP 404 Not Found"; and whose it is, or was, nobody else is told.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::Unauthorized => 401,
            Self::Missing => 400,
            Self::Malformed
            | Self::Unknown
            | Self::Over
            | Self::ForeignPrincipal
            | Self::ForeignClient
            | Self::Lost
            | Self::Forked => 404,
            Self::Unusable => 502,
            Self::TooMany => 429,
            Self::Unavailable => 503,
        }
    }

    /// The JSON-RPC error that a caller is told, for the request of this id.
    #[must_use]
    pub fn json(self, id: Value) -> Value {
        let (code, message) = match self.status() {
            401 => (-32001, "Unauthorized"),
            400 => (-32000, "Bad Request: Mcp-Session-Id header is required"),
            404 => (-32001, "Session not found"),
            429 => (-32000, "Too many sessions: end one, or wait until one has ended"),
            502 => (-32603, "The server behind gave no answer that could be read"),
            _ => (-32603, "The server cannot tell now; try again later"),
        };
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
    }
}

/// A request was refused.
#[derive(Debug, Error)]
#[error("the session is refused: {}", .denial.slug())]
pub struct SessionRefused {
    pub(super) denial: SessionDenial,
    source: Option<StoreError>,
}

impl SessionRefused {
    /// Exactly why.
    #[must_use]
    pub fn denial(&self) -> SessionDenial {
        self.denial
    }
}

impl From<SessionDenial> for SessionRefused {
    fn from(denial: SessionDenial) -> Self {
        Self { denial, source: None }
    }
}

impl From<StoreError> for SessionRefused {
    fn from(error: StoreError) -> Self {
        Self { denial: SessionDenial::Unavailable, source: Some(error) }
    }
}
