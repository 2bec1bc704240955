//! Who calls: the owner A, the stranger B, and the two nobodies that show whether a server looks at credentials at all.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret, SecretString};

use crate::{forge, random};

/// One of the callers of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Who {
    /// The owner: mints what B will present.
    A,
    /// The stranger: another authenticated user.
    B,
    /// Sends no credential.
    Nobody,
    /// Sends a credential that nobody ever issued.
    Impostor,
    /// A with a token that was issued later.
    NewToken,
    /// The user A by another OAuth client.
    OtherClient,
    /// A user of another tenant.
    OtherTenant,
    /// A with a token that was issued for another server.
    WrongAudience,
    /// A with a token whose time is over.
    Expired,
    /// A guest, where a server knows guests.
    Anonymous,
    /// A with a token that was issued for the OAuth client itself.
    ClientIdAudience,
    /// A client with a token for no server in particular.
    NoAudience,
    /// One with a token for a server whose URI is a little longer.
    LongerAudience,
    /// One with a token for a place below this server's.
    LowerAudience,
    /// One with a token for this server's path in other case.
    CaseAudience,
    /// A with the good token in the query string instead of the header.
    InQuery,
    /// A with the good token under another signature.
    Resigned,
    /// A with the good token, of which it says that it has no signature.
    Unsigned,
    /// The same in another spelling.
    UnsignedOtherwise,
    /// A with the good token, without its signature.
    EmptySignature,
    /// A with the good token, of which it says that a key has signed it that there is not.
    UnknownKey,
}

impl Who {
    /// Those who come only where a profile names them.
    pub const NAMED: [Self; 11] = [
        Self::NewToken,
        Self::OtherClient,
        Self::OtherTenant,
        Self::WrongAudience,
        Self::Expired,
        Self::Anonymous,
        Self::ClientIdAudience,
        Self::NoAudience,
        Self::LongerAudience,
        Self::LowerAudience,
        Self::CaseAudience,
    ];

    /// Those whom a profile may name and no check tries yet.
    pub const UNUSED: [Self; 1] = [Self::Anonymous];

    /// Those whose token the probe makes of A's, where that one is signed.
    pub const FORGED: [Self; 5] =
        [Self::Resigned, Self::Unsigned, Self::UnsignedOtherwise, Self::EmptySignature, Self::UnknownKey];

    /// Those whose token is for an audience that is nearly right.
    pub const NEARLY: [Self; 4] = [Self::NoAudience, Self::LongerAudience, Self::LowerAudience, Self::CaseAudience];

    /// The audience that such a caller's token is for, where the server's is this; `None` for none, or where there is no
    /// such audience.
    pub fn audience(self, of_server: &str) -> Option<String> {
        let path = of_server.find("://").and_then(|at| of_server[at + 3..].find('/').map(|path| at + 3 + path));
        match self {
            Self::LongerAudience => Some(format!("{of_server}2")),
            Self::LowerAudience => Some(format!("{}/tools", of_server.trim_end_matches('/'))),
            Self::CaseAudience => {
                let (origin, path) = of_server.split_at(path?);
                Some(format!("{origin}{}", path.to_ascii_uppercase())).filter(|other| other != of_server)
            }
            _ => None,
        }
    }

    /// How reports name the caller.
    pub fn label(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
            Self::Nobody => "nobody",
            Self::Impostor => "an impostor",
            Self::NewToken => "A with a new token",
            Self::OtherClient => "A by another client",
            Self::OtherTenant => "another tenant",
            Self::WrongAudience => "A with a wrong audience",
            Self::Expired => "A with an expired token",
            Self::Anonymous => "anonymous",
            Self::ClientIdAudience => "A with a token for the client",
            Self::NoAudience => "a client without an audience",
            Self::LongerAudience => "a client for a longer audience",
            Self::LowerAudience => "a client for an audience below",
            Self::CaseAudience => "a client for an audience in other case",
            Self::InQuery => "A with the token in the query",
            Self::Resigned => "A with another signature",
            Self::Unsigned => "A without a signature",
            Self::UnsignedOtherwise => "A without a signature, spelt otherwise",
            Self::EmptySignature => "A with an empty signature",
            Self::UnknownKey => "A with an unknown key",
        }
    }

    /// The letter in a canary that this caller plants.
    pub fn letter(self) -> char {
        match self {
            Self::A => 'a',
            Self::B => 'b',
            Self::Nobody => 'n',
            Self::Impostor => 'x',
            Self::NewToken => 'r',
            Self::OtherClient => 'c',
            Self::OtherTenant => 't',
            Self::WrongAudience => 'w',
            Self::Expired => 'e',
            Self::Anonymous => 'g',
            Self::ClientIdAudience => 'i',
            Self::NoAudience => 'o',
            Self::LongerAudience => 'l',
            Self::LowerAudience => 'd',
            Self::CaseAudience => 'u',
            Self::InQuery => 'q',
            Self::Resigned => 's',
            Self::Unsigned => 'z',
            Self::UnsignedOtherwise => 'y',
            Self::EmptySignature => 'm',
            Self::UnknownKey => 'k',
        }
    }
}

/// A credential, or the absence of one. Debug shows neither.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Whose it is.
    pub who: Who,
    credential: Option<SecretString>,
    /// Made up by the probe because the operator gave none.
    pub synthetic: bool,
}

impl Identity {
    /// What rides as bearer token, or as the principal over stdio.
    pub fn credential(&self) -> Option<&str> {
        self.credential.as_ref().map(ExposeSecret::expose_secret)
    }
}

/// The callers of a run.
#[derive(Debug, Clone)]
pub struct Identities {
    a: Identity,
    b: Identity,
    nobody: Identity,
    impostor: Identity,
    in_query: Identity,
    named: BTreeMap<Who, Identity>,
}

/// A and B cannot be told apart because the operator gave the same credential twice, or two tokens of one subject.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "identity A and identity B are the same user; a stranger is needed: give two credentials of two different users"
)]
pub struct SameIdentity;

impl Identities {
    /// The two given credentials; synthetic ones with a nonce where they are missing.
    ///
    /// # Errors
    /// [`SameIdentity`] when both are given and equal, or are JSON Web Tokens of one subject of one issuer.
    pub fn new(a: Option<SecretString>, b: Option<SecretString>) -> Result<Self, SameIdentity> {
        if let (Some(a), Some(b)) = (&a, &b)
            && (a.expose_secret() == b.expose_secret() || forge::of_one_subject(a.expose_secret(), b.expose_secret()))
        {
            return Err(SameIdentity);
        }
        let nonce = random::hex(6);
        let identity = |who: Who, given: Option<SecretString>| Identity {
            who,
            synthetic: given.is_none(),
            credential: Some(given.unwrap_or_else(|| format!("handfast-identity-{}-{nonce}", who.letter()).into())),
        };
        // The impostor's credential looks like A's, so that only issuing, not shape, can tell them apart.
        let of_a = a.as_ref().map(|a| a.expose_secret().to_owned()).unwrap_or_default();
        let of_b = b.as_ref().map(|b| b.expose_secret().to_owned()).unwrap_or_default();
        // What is the same in both tokens is the name of a place, and no signature.
        let is_signed = forge::signatures_differ(&of_a, &of_b);
        let resigned = [
            (Who::Resigned, forge::resigned(&of_a)),
            (Who::Unsigned, forge::unsigned(&of_a, "none")),
            (Who::UnsignedOtherwise, forge::unsigned(&of_a, "nOnE")),
            (Who::EmptySignature, forge::unsealed(&of_a)),
            (Who::UnknownKey, forge::with_unknown_key(&of_a)),
        ];
        let forged = a.as_ref().map(|a| SecretString::from(forge::scrambled(a.expose_secret())));
        let in_query = Identity { who: Who::InQuery, ..identity(Who::A, a.clone()) };
        let identities = Self {
            in_query,
            a: identity(Who::A, a),
            b: identity(Who::B, b),
            nobody: Identity { who: Who::Nobody, credential: None, synthetic: false },
            impostor: identity(Who::Impostor, forged),
            named: BTreeMap::new(),
        };
        let forged = resigned.into_iter().filter(|_| is_signed).filter_map(|(who, token)| Some((who, token?)));
        Ok(forged.fold(identities, |identities, (who, token)| identities.with(who, token.into())))
    }

    /// The same with one more caller, whom a profile names or the probe makes up.
    #[must_use]
    pub fn with(mut self, who: Who, credential: SecretString) -> Self {
        self.named.insert(who, Identity { who, credential: Some(credential), synthetic: false });
        self
    }

    /// Whether somebody gave a credential of this caller's. Whom nobody named sends none.
    pub fn has(&self, who: Who) -> bool {
        self.of(who).who == who
    }

    /// The identity of a caller.
    pub fn of(&self, who: Who) -> &Identity {
        match who {
            Who::A => &self.a,
            Who::B => &self.b,
            Who::Nobody => &self.nobody,
            Who::Impostor => &self.impostor,
            Who::InQuery => &self.in_query,
            named => self.named.get(&named).unwrap_or(&self.nobody),
        }
    }

    /// Whether the operator gave both credentials.
    pub fn given(&self) -> bool {
        !self.a.synthetic && !self.b.synthetic
    }
}
