//! Precise inside, coarse outside, and one function between the two: [`Denial::outward`].

use std::fmt;

use serde_json::{Value, json};

use crate::{policy::Rules, record::ObjectType, store::StoreError};

/// Why a handle was refused, exactly. For the audit; never for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Denial {
    /// The caller lacks a principal, tenant or client that the policy binds.
    IdentityIncomplete,
    /// It does not have the form of a handle of this type.
    Malformed,
    /// The server asked for an object type or a scope that the policy does not know: its own mistake.
    UnknownScope,
    /// No such handle in this tenant: guessed, purged, of another tenant, or never minted.
    Unknown,
    /// It was made under a subject key that is not there any more, so nobody can be shown to own it.
    UnknownKey,
    /// It belongs to another principal.
    ForeignPrincipal,
    /// It belongs to another OAuth client.
    ForeignClient,
    /// It was revoked.
    Revoked,
    /// Its lifetime is over.
    Expired,
    /// It was not used for too long.
    Idle,
    /// It was made under another version of the policy.
    PolicyChanged,
    /// It names an object of another type.
    WrongObject,
    /// It does not have the scope that is needed.
    MissingScope,
    /// The object is gone.
    ObjectGone,
    /// The object has another version than the one that the handle was made for.
    StaleVersion,
    /// The object's own authorization said no.
    NotAuthorized,
    /// The store, the object's backend or the audit could not be reached.
    Unavailable,
}

impl Denial {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::IdentityIncomplete,
        Self::Malformed,
        Self::UnknownScope,
        Self::Unknown,
        Self::UnknownKey,
        Self::ForeignPrincipal,
        Self::ForeignClient,
        Self::Revoked,
        Self::Expired,
        Self::Idle,
        Self::PolicyChanged,
        Self::WrongObject,
        Self::MissingScope,
        Self::ObjectGone,
        Self::StaleVersion,
        Self::NotAuthorized,
        Self::Unavailable,
    ];

    /// Its name in audit events. Names are forever.
    #[must_use]
    pub fn slug(self) -> &'static str {
        match self {
            Self::IdentityIncomplete => "identity-incomplete",
            Self::Malformed => "malformed",
            Self::UnknownScope => "unknown-scope",
            Self::Unknown => "unknown",
            Self::UnknownKey => "unknown-key",
            Self::ForeignPrincipal => "foreign-principal",
            Self::ForeignClient => "foreign-client",
            Self::Revoked => "revoked",
            Self::Expired => "expired",
            Self::Idle => "idle",
            Self::PolicyChanged => "policy-changed",
            Self::WrongObject => "wrong-object",
            Self::MissingScope => "missing-scope",
            Self::ObjectGone => "object-gone",
            Self::StaleVersion => "stale-version",
            Self::NotAuthorized => "not-authorized",
            Self::Unavailable => "unavailable",
        }
    }

    /// What the caller may know of it: the only way from inside to outside.
    ///
    /// Whatever is decided before ownership is established, or against it, is one and the same answer. Only the
    /// rightful owner learns more.
    #[must_use]
    pub fn outward(self) -> Outward {
        match self {
            Self::IdentityIncomplete
            | Self::Malformed
            | Self::UnknownScope
            | Self::Unknown
            | Self::UnknownKey
            | Self::ForeignPrincipal
            | Self::ForeignClient => Outward::NoSuch,
            Self::Revoked => Outward::Revoked,
            Self::Expired | Self::Idle | Self::PolicyChanged | Self::ObjectGone => Outward::Expired,
            Self::WrongObject | Self::MissingScope | Self::NotAuthorized => Outward::NotAllowed,
            Self::StaleVersion => Outward::Changed,
            Self::Unavailable => Outward::Unavailable,
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.slug())
    }
}

/// What a caller is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outward {
    /// There is no such handle.
    NoSuch,
    /// It has expired.
    Expired,
    /// It was revoked.
    Revoked,
    /// It does not allow that.
    NotAllowed,
    /// The object has changed since.
    Changed,
    /// Not now; the same call may succeed later.
    Unavailable,
}

/// A refusal: [`fmt::Display`] and [`Refused::tool_result`] say what a caller may know, [`Refused::denial`] says why.
#[derive(Debug)]
pub struct Refused {
    denial: Denial,
    object: ObjectType,
    created_by: Option<String>,
    source: Option<StoreError>,
}

impl Refused {
    pub(crate) fn new(denial: Denial, object: &ObjectType, rules: Option<&Rules>) -> Self {
        let created_by = rules.map(|rules| rules.created_by.as_str().to_owned());
        Self { denial, object: object.clone(), created_by, source: None }
    }

    pub(crate) fn because(self, source: Option<StoreError>) -> Self {
        Self { source, ..self }
    }

    /// Why, exactly. Not for the caller.
    #[must_use]
    pub fn denial(&self) -> Denial {
        self.denial
    }

    /// What the caller may know.
    #[must_use]
    pub fn outward(&self) -> Outward {
        self.denial.outward()
    }

    /// The refusal as the result of a tool, with `isError: true`: never a protocol error, so that a model can recover.
    /// Whatever else your revision of the protocol wants in a result (`resultType`) is your server's to add.
    #[must_use]
    pub fn tool_result(&self) -> Value {
        json!({"content": [{"type": "text", "text": self.to_string()}], "isError": true})
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let object = &self.object;
        let instead = match &self.created_by {
            Some(tool) => format!("; make a new one with `{tool}`"),
            None => String::new(),
        };
        let otherwise = match &self.created_by {
            Some(tool) => format!(", and if that fails as well make a new one with `{tool}`"),
            None => String::new(),
        };
        match self.outward() {
            Outward::NoSuch => write!(out, "there is no such {object}{instead}"),
            Outward::Expired => write!(out, "this {object} has expired{instead}"),
            Outward::Revoked => write!(out, "access to this {object} was revoked{instead}"),
            Outward::NotAllowed => write!(out, "this handle does not allow that{instead}"),
            Outward::Changed => write!(out, "this {object} has changed meanwhile; try again{otherwise}"),
            Outward::Unavailable => write!(out, "this {object} cannot be reached at the moment; try again later"),
        }
    }
}

impl std::error::Error for Refused {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(denial: Denial) -> String {
        Refused::new(denial, &ObjectType::new("basket").expect("a type"), None).tool_result().to_string()
    }

    #[test]
    fn what_is_decided_before_ownership_is_one_answer_byte_for_byte() {
        for denial in [Denial::Malformed, Denial::ForeignPrincipal, Denial::ForeignClient, Denial::UnknownKey] {
            assert_eq!(told(denial), told(Denial::Unknown), "{denial}");
        }
    }

    #[test]
    fn names_are_different() {
        let mut slugs: Vec<&str> = Denial::ALL.iter().map(|denial| denial.slug()).collect();
        slugs.sort_unstable();
        slugs.dedup();

        assert_eq!(slugs.len(), Denial::ALL.len());
    }

    #[test]
    fn no_refusal_names_its_reason() {
        for denial in Denial::ALL {
            let quiet = !told(denial).contains("foreign") && !told(denial).contains("principal");
            assert!(quiet, "{denial}: {}", told(denial));
        }
    }
}
