//! Why a state was refused: exactly inside, and one and the same answer outside.

use std::fmt;

use serde_json::{Value, json};

use crate::store::StoreError;

/// Why a state was refused, exactly. For the audit; never for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum StateDenial {
    /// It is longer than any envelope.
    TooLong,
    /// It has not the form of an envelope, or not its one spelling.
    Malformed,
    /// It was sealed in another version of the format, or by another cipher.
    UnknownFormat,
    /// It was sealed under a key that is not there.
    UnknownKey,
    /// It was sealed under a key that opens nothing any more.
    RetiredKey,
    /// Not one bit of it may differ from what was sealed, and one does.
    Forged,
    /// It was sealed by another server.
    ForeignAudience,
    /// It was sealed for another principal.
    ForeignPrincipal,
    /// It was sealed for another tenant.
    ForeignTenant,
    /// It was sealed for another OAuth client.
    ForeignClient,
    /// It was sealed for another tool, prompt or resource.
    OtherRequest,
    /// It was sealed for other arguments.
    OtherArguments,
    /// It was sealed in the future: by a clock that is ahead of this one by more than is allowed.
    NotYetValid,
    /// Its time is over.
    Expired,
    /// It was used up.
    Spent,
    /// The store that knows what was used up did not answer.
    Unavailable,
}

impl StateDenial {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::TooLong,
        Self::Malformed,
        Self::UnknownFormat,
        Self::UnknownKey,
        Self::RetiredKey,
        Self::Forged,
        Self::ForeignAudience,
        Self::ForeignPrincipal,
        Self::ForeignTenant,
        Self::ForeignClient,
        Self::OtherRequest,
        Self::OtherArguments,
        Self::NotYetValid,
        Self::Expired,
        Self::Spent,
        Self::Unavailable,
    ];

    /// Its name in audit events. Names are forever.
    #[must_use]
    pub fn slug(self) -> &'static str {
        match self {
            Self::TooLong => "too-long",
            Self::Malformed => "malformed",
            Self::UnknownFormat => "unknown-format",
            Self::UnknownKey => "unknown-key",
            Self::RetiredKey => "retired-key",
            Self::Forged => "forged",
            Self::ForeignAudience => "foreign-audience",
            Self::ForeignPrincipal => "foreign-principal",
            Self::ForeignTenant => "foreign-tenant",
            Self::ForeignClient => "foreign-client",
            Self::OtherRequest => "other-request",
            Self::OtherArguments => "other-arguments",
            Self::NotYetValid => "not-yet-valid",
            Self::Expired => "expired",
            Self::Spent => "spent",
            Self::Unavailable => "unavailable",
        }
    }
}

impl fmt::Display for StateDenial {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.slug())
    }
}

/// A state that was refused: [`fmt::Display`] and [`StateRefused::error`] say what a caller may know, which is always the
/// same; [`StateRefused::denial`] says why.
#[derive(Debug)]
pub struct StateRefused {
    denial: StateDenial,
    source: Option<StoreError>,
}

impl StateRefused {
    /// The code of the protocol's error: invalid params.
    pub const CODE: i32 = -32602;
    /// The words of the protocol's error.
    pub const MESSAGE: &'static str = "Invalid or expired requestState";

    pub(super) fn unavailable(source: StoreError) -> Self {
        Self { denial: StateDenial::Unavailable, source: Some(source) }
    }

    /// Why, exactly. Not for the caller.
    #[must_use]
    pub fn denial(&self) -> StateDenial {
        self.denial
    }

    /// The `error` of a JSON-RPC response.
    #[must_use]
    pub fn error(&self) -> Value {
        json!({"code": Self::CODE, "message": Self::MESSAGE})
    }
}

impl From<StateDenial> for StateRefused {
    fn from(denial: StateDenial) -> Self {
        Self { denial, source: None }
    }
}

impl fmt::Display for StateRefused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(Self::MESSAGE)
    }
}

impl std::error::Error for StateRefused {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_different_and_answers_are_not() {
        let mut slugs: Vec<&str> = StateDenial::ALL.iter().map(|denial| denial.slug()).collect();
        slugs.sort_unstable();
        slugs.dedup();
        assert_eq!(slugs.len(), StateDenial::ALL.len());

        for denial in StateDenial::ALL {
            let refused = StateRefused::from(denial);
            assert_eq!(refused.to_string(), "Invalid or expired requestState");
            assert_eq!(refused.error(), json!({"code": -32602, "message": "Invalid or expired requestState"}));
        }
    }
}
