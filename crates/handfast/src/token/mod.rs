//! Access tokens of OAuth 2.1: is this one good, at this server, now, and whose is it?
//!
//! A server that takes tokens is a resource server (RFC 6750, RFC 9068). What makes a token good stands in one place
//! for both kinds, [`JwtVerifier`] and [`IntrospectionVerifier`]: this issuer, this server as its audience, in time, and
//! a subject. "MCP servers MUST validate that access tokens were issued specifically for them as the intended audience."
//!
//! What never lives here: HTTP. The layer that takes the token out of a request is in `http` (feature `http`).

mod claims;
mod fetch;
mod introspection;
mod jwks;
mod jwt;
mod metadata;
mod remembered;
mod strict;

use std::fmt;

use async_trait::async_trait;
use thiserror::Error;

pub use claims::TokenRules;
pub use fetch::FetchError;
pub use introspection::IntrospectionVerifier;
pub use jwks::Jwks;
pub use jwt::{Algorithm, JwtVerifier};
pub use metadata::{Challenge, NotAResource, ProtectedResource};
pub use remembered::Remembered;

use crate::{caller::Caller, clock::Timestamp};

/// How long a token is at most, in bytes. Nothing longer is looked at.
pub(crate) const LONGEST: usize = 16 * 1024;

/// Tells whether a token is good.
#[async_trait]
pub trait TokenVerifier: Send + Sync {
    /// Who shows this token, and until when it is good.
    ///
    /// # Errors
    /// Exactly why it is not. A client is told the same for all of them but [`TokenDenial::Unavailable`].
    async fn verify(&self, token: &str) -> Result<Verified, TokenDenial>;
}

/// What a good token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Whose it is.
    pub caller: Caller,
    /// When it ends, without leeway.
    pub expires: Timestamp,
}

/// Why a token is not good, for logs. It never shows any of the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
#[non_exhaustive]
pub enum TokenDenial {
    /// It is longer than 16 KiB.
    #[error("the token is too long")]
    TooLong,
    /// It has not the form of a token: not three parts, not base64url, not JSON, or a name twice.
    #[error("the token is malformed")]
    Malformed,
    /// Its algorithm is not one that the server was told to accept.
    #[error("the token's algorithm is not accepted")]
    Algorithm,
    /// It is a token of another kind: its `typ` says so.
    #[error("the token is of another type")]
    Type,
    /// It wants something understood (`crit`) that is not understood here.
    #[error("the token has a critical header")]
    Critical,
    /// The issuer has published no such key.
    #[error("the token's key is unknown")]
    UnknownKey,
    /// The signature is not the issuer's.
    #[error("the token's signature is wrong")]
    Signature,
    /// Somebody else has issued it.
    #[error("the token is of another issuer")]
    Issuer,
    /// It was issued for another server, or for none.
    #[error("the token is for another audience")]
    Audience,
    /// Its time is over, or it does not say when that is.
    #[error("the token has expired")]
    Expired,
    /// Its time has not come.
    #[error("the token is not valid yet")]
    NotYetValid,
    /// It does not say who it was issued to, or not as a caller can be.
    #[error("the token's claims name no caller")]
    Claims,
    /// It is good only with a proof that the caller has some key (DPoP, or a certificate), which is not looked at here.
    #[error("the token is bound to a key of its holder's")]
    Constrained,
    /// The issuer says that it is not, or no longer, good.
    #[error("the issuer says that the token is not active")]
    Inactive,
    /// The issuer could not be asked.
    #[error("the issuer cannot be asked")]
    Unavailable,
}

impl TokenDenial {
    /// Each of them, for counters that are there before the first event.
    #[cfg(feature = "metrics")]
    pub(crate) const ALL: [Self; 15] = [
        Self::TooLong,
        Self::Malformed,
        Self::Algorithm,
        Self::Type,
        Self::Critical,
        Self::UnknownKey,
        Self::Signature,
        Self::Issuer,
        Self::Audience,
        Self::Expired,
        Self::NotYetValid,
        Self::Claims,
        Self::Constrained,
        Self::Inactive,
        Self::Unavailable,
    ];

    /// Its name in events and counters.
    #[must_use]
    pub fn slug(self) -> &'static str {
        match self {
            Self::TooLong => "too-long",
            Self::Malformed => "malformed",
            Self::Algorithm => "algorithm",
            Self::Type => "type",
            Self::Critical => "critical",
            Self::UnknownKey => "unknown-key",
            Self::Signature => "signature",
            Self::Issuer => "issuer",
            Self::Audience => "audience",
            Self::Expired => "expired",
            Self::NotYetValid => "not-yet-valid",
            Self::Claims => "claims",
            Self::Constrained => "constrained",
            Self::Inactive => "inactive",
            Self::Unavailable => "unavailable",
        }
    }
}

impl fmt::Debug for dyn TokenVerifier {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("TokenVerifier")
    }
}
