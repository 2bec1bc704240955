//! Who is calling: what an authentication has proven, and nothing that the client merely asserts.

use std::collections::BTreeSet;

use thiserror::Error;

use crate::{
    secret::SecretText,
    text::{self, TextError, identifier},
};

identifier! {
    /// Who vouches for a subject: the `iss` of a token.
    Issuer, "an issuer", text::plain, 512
}
identifier! {
    /// The tenant that the caller acts for.
    Tenant, "a tenant", text::plain, 256
}
identifier! {
    /// The OAuth client that the caller uses.
    ClientId, "a client id", text::plain, 512
}
identifier! {
    /// Whom a token was issued for: its `aud`.
    Audience, "an audience", text::plain, 512
}
identifier! {
    /// The `jti` of a token.
    TokenId, "a token id", text::plain, 256
}
identifier! {
    /// One permission, a `scope-token` of OAuth (RFC 6749, section 3.3).
    Scope, "a scope", text::scope, 128
}

/// A set of scopes with at least one member.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ScopeSet(BTreeSet<Scope>);

/// Why scopes do not make a set.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScopeError {
    /// Not one.
    #[error("at least one scope is needed")]
    Empty,
    /// The same one twice.
    #[error("the scope `{0}` is there twice")]
    Twice(Scope),
    /// One that is no scope.
    #[error(transparent)]
    Text(#[from] TextError),
}

impl ScopeSet {
    /// Parses scopes: at least one, each of them once.
    ///
    /// # Errors
    /// There is none, one is there twice, or one is no scope.
    pub fn new<T: Into<String>>(scopes: impl IntoIterator<Item = T>) -> Result<Self, ScopeError> {
        let mut set = BTreeSet::new();
        for text in scopes {
            let scope = Scope::new(text)?;
            if let Some(twice) = set.replace(scope) {
                return Err(ScopeError::Twice(twice));
            }
        }
        if set.is_empty() { Err(ScopeError::Empty) } else { Ok(Self(set)) }
    }

    /// Parses scopes written with spaces between them, as tokens and stores write them.
    ///
    /// # Errors
    /// As for [`ScopeSet::new`].
    pub fn parse(text: &str) -> Result<Self, ScopeError> {
        Self::new(text.split_ascii_whitespace())
    }

    /// Whether this scope is in the set.
    #[must_use]
    pub fn contains(&self, scope: &Scope) -> bool {
        self.0.contains(scope)
    }

    /// The scopes, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Scope> {
        self.0.iter()
    }

    /// The scopes with spaces between them.
    #[must_use]
    pub fn text(&self) -> String {
        let all: Vec<&str> = self.iter().map(Scope::as_str).collect();
        all.join(" ")
    }
}

/// A person or a service: a subject as one issuer knows it. Two issuers may each have an `alice`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    issuer: Issuer,
    subject: SecretText,
}

impl Principal {
    /// The subject (`sub`) as this issuer (`iss`) knows it: at most 512 bytes, without control characters.
    ///
    /// # Errors
    /// There is no subject: a client id alone would make all users of one OAuth client one person, and an empty
    /// string is no identity.
    pub fn new(issuer: Issuer, subject: &str) -> Result<Self, TextError> {
        text::plain("a subject", subject, 512)?;
        Ok(Self { issuer, subject: SecretText::new(subject) })
    }

    /// Who vouches for the subject.
    #[must_use]
    pub fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    /// The subject. It is not shown in logs; an audit event has a keyed digest of it.
    #[must_use]
    pub fn subject(&self) -> &SecretText {
        &self.subject
    }
}

/// The caller of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    principal: Option<Principal>,
    tenant: Option<Tenant>,
    client: Option<ClientId>,
    scopes: Option<ScopeSet>,
    audience: Option<Audience>,
    token: Option<TokenId>,
    trace: Option<TraceId>,
}

impl Caller {
    /// A caller whose identity the transport has proven: a verified token, a client certificate, the owner of a
    /// process on stdio.
    ///
    /// You vouch for it. Never take any of it from what a client asserts: an argument, `_meta`, a header that no proxy
    /// of yours has set.
    #[must_use]
    pub fn trusted(principal: Principal) -> Self {
        Self { principal: Some(principal), ..Self::anonymous() }
    }

    /// Nobody in particular, for servers without authorization. Only a policy that says `bearer` accepts it.
    #[must_use]
    pub fn anonymous() -> Self {
        Self { principal: None, tenant: None, client: None, scopes: None, audience: None, token: None, trace: None }
    }

    /// The tenant that the caller acts for, of those that the token allows.
    #[must_use]
    pub fn in_tenant(self, tenant: Tenant) -> Self {
        Self { tenant: Some(tenant), ..self }
    }

    /// The OAuth client that the token was issued to.
    #[must_use]
    pub fn by_client(self, client: ClientId) -> Self {
        Self { client: Some(client), ..self }
    }

    /// The scopes of the token, for an [`ObjectAuthority`](crate::ObjectAuthority) that decides by them.
    #[must_use]
    pub fn with_scopes(self, scopes: ScopeSet) -> Self {
        Self { scopes: Some(scopes), ..self }
    }

    /// The audience of the token.
    #[must_use]
    pub fn for_audience(self, audience: Audience) -> Self {
        Self { audience: Some(audience), ..self }
    }

    /// The id of the token.
    #[must_use]
    pub fn with_token_id(self, token: TokenId) -> Self {
        Self { token: Some(token), ..self }
    }

    /// The trace that the request belongs to, for the audit: `traceparent` of the request's `_meta`.
    /// It comes from the client and is only noted, never believed; what is no `traceparent` is left out.
    #[must_use]
    pub fn traced(self, traceparent: Option<&str>) -> Self {
        Self { trace: traceparent.and_then(TraceId::parse), ..self }
    }

    /// The principal; `None` for an anonymous caller.
    #[must_use]
    pub fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    /// The tenant.
    #[must_use]
    pub fn tenant(&self) -> Option<&Tenant> {
        self.tenant.as_ref()
    }

    /// The OAuth client.
    #[must_use]
    pub fn client(&self) -> Option<&ClientId> {
        self.client.as_ref()
    }

    /// The scopes of the token.
    #[must_use]
    pub fn scopes(&self) -> Option<&ScopeSet> {
        self.scopes.as_ref()
    }

    /// The audience of the token.
    #[must_use]
    pub fn audience(&self) -> Option<&Audience> {
        self.audience.as_ref()
    }

    /// The id of the token.
    #[must_use]
    pub fn token_id(&self) -> Option<&TokenId> {
        self.token.as_ref()
    }

    /// The trace that the request belongs to.
    #[must_use]
    pub fn trace(&self) -> Option<&TraceId> {
        self.trace.as_ref()
    }
}

/// The trace id of a `traceparent` (W3C Trace Context): 32 hexadecimal digits, not all of them zero.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TraceId(String);

impl TraceId {
    /// The trace id within a `traceparent`; `None` where the text is none.
    #[must_use]
    pub fn parse(traceparent: &str) -> Option<Self> {
        let mut parts = traceparent.split('-');
        let (version, trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let hex = |text: &str, digits: usize| {
            text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let zero = |text: &str| text.bytes().all(|byte| byte == b'0');
        // Version 00 has exactly four parts, later ones may have more, and ff is forbidden.
        let versioned = hex(version, 2) && version != "ff" && (version != "00" || parts.next().is_none());
        let sound = versioned && hex(trace, 32) && !zero(trace) && hex(parent, 16) && !zero(parent) && hex(flags, 2);
        sound.then(|| Self(trace.to_owned()))
    }

    /// The 32 digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_a_principal_without_a_subject() {
        let issuer = Issuer::new("https://id.example").expect("an issuer");

        assert!(Principal::new(issuer.clone(), "").is_err());
        assert!(Principal::new(issuer.clone(), "  ").is_err());
        assert!(Principal::new(issuer, "alice").is_ok());
        assert!(Issuer::new("").is_err());
    }

    #[test]
    fn an_issuer_is_part_of_who_it_is() {
        let principal = |issuer: &str| Principal::new(Issuer::new(issuer).expect("an issuer"), "alice").expect("one");

        assert_eq!(principal("https://a.example"), principal("https://a.example"));
        assert_ne!(principal("https://a.example"), principal("https://b.example"));
    }

    #[test]
    fn debug_does_not_name_the_subject() {
        let issuer = Issuer::new("https://id.example").expect("an issuer");
        let caller = Caller::trusted(Principal::new(issuer, "alice@example.com").expect("a principal"));

        assert!(!format!("{caller:?}").contains("alice"));
    }

    #[test]
    fn scopes_are_at_least_one_and_each_once() {
        assert_eq!(ScopeSet::new(Vec::<String>::new()), Err(ScopeError::Empty));
        assert_eq!(ScopeSet::parse("  "), Err(ScopeError::Empty));
        assert!(matches!(ScopeSet::new(["a", "b", "a"]), Err(ScopeError::Twice(_))));
        assert!(matches!(ScopeSet::new(["a b"]), Err(ScopeError::Text(_))));
        assert_eq!(ScopeSet::new(["b", "a"]).expect("two").text(), "a b");
    }

    #[test]
    fn a_trace_is_taken_from_a_traceparent_and_nothing_else() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let digits = "0af7651916cd43dd8448eb211c80319c";

        assert_eq!(TraceId::parse(good).expect("a trace").as_str(), digits);
        assert!(TraceId::parse(&good.replacen("00", "cc", 1).to_owned()).is_some(), "a later version");
        for bad in [
            "",
            digits,
            &good.to_uppercase(),
            &good.replace(digits, &"0".repeat(32)),
            &good.replace("b7ad6b7169203331", &"0".repeat(16)),
            &good.replacen("00", "ff", 1),
            &format!("{good}-more"),
            &good[..good.len() - 1],
            "00-\n-x-01",
        ] {
            assert_eq!(TraceId::parse(bad), None, "{bad}");
        }
    }
}
