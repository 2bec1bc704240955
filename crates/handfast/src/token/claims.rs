//! What the claims of a token must say, whoever has vouched for them: the one place where a token becomes a caller.

use std::{collections::BTreeSet, fmt, sync::Arc, time::Duration};

use serde_json::{Map, Value};

use super::{TokenDenial, Verified};
use crate::{
    audience::same,
    caller::{Audience, Caller, ClientId, Issuer, Principal, ScopeSet, Tenant, TokenId},
    clock::{Clock, Horizon, SystemClock, Timestamp, earlier, from_micros, later},
};

/// By how much the clock of the issuer may differ at most.
const MOST_LEEWAY: Duration = Duration::from_secs(5 * 60);

/// What is expected of every token, by whichever way its claims are known to be the issuer's.
pub struct TokenRules {
    issuer: Issuer,
    audience: Audience,
    further: Vec<Audience>,
    tenant: Option<String>,
    leeway: Duration,
    clock: Arc<dyn Clock>,
    horizon: Horizon,
}

impl TokenRules {
    /// Tokens of this issuer, to the letter, for the server with this canonical URI.
    #[must_use]
    pub fn new(issuer: Issuer, audience: Audience) -> Self {
        let (leeway, clock) = (Duration::from_secs(30), Arc::new(SystemClock));
        Self { issuer, audience, further: Vec::new(), tenant: None, leeway, clock, horizon: Horizon::new() }
    }

    /// Also tokens for this audience: its exact text, for a server that has moved, or an issuer that has its own names for
    /// servers. Every token that is accepted for it is logged.
    #[must_use]
    pub fn also_for(mut self, audience: Audience) -> Self {
        self.further.push(audience);
        self
    }

    /// The claim that names the caller's tenant. A token without it is refused then. Unless it is named, users of two
    /// tenants with the same `sub` are one: name it wherever one issuer serves several tenants.
    #[must_use]
    pub fn tenant_claim(mut self, name: &str) -> Self {
        self.tenant = Some(name.to_owned());
        self
    }

    /// By how much the issuer's clock may differ: 30 seconds unless this says otherwise, at most 5 minutes.
    #[must_use]
    pub fn leeway(mut self, leeway: Duration) -> Self {
        self.leeway = leeway.min(MOST_LEEWAY);
        self
    }

    /// The clock that judges.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    pub(super) fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    /// The time. A clock that is set back revives no token that was seen expired.
    pub(super) fn now(&self) -> Timestamp {
        self.horizon.reach(self.clock.now())
    }

    /// The caller that authentic claims name.
    pub(super) fn caller(&self, claims: &Map<String, Value>) -> Result<Verified, TokenDenial> {
        if claims.get("iss").and_then(Value::as_str) != Some(self.issuer.as_str()) {
            tracing::debug!(target: "handfast", expected = self.issuer.as_str(), "a token is of another issuer");
            return Err(TokenDenial::Issuer);
        }
        if !self.is_for_us(claims.get("aud")) {
            tracing::debug!(target: "handfast", expected = self.audience.as_str(), "a token is for another audience");
            return Err(TokenDenial::Audience);
        }
        let now = self.now();
        let expires = time(claims.get("exp")).flatten().ok_or(TokenDenial::Expired)?;
        if later(expires, self.leeway) <= now {
            return Err(TokenDenial::Expired);
        }
        let begins = time(claims.get("nbf")).ok_or(TokenDenial::Claims)?;
        if begins.is_some_and(|begins| earlier(begins, self.leeway) > now) {
            return Err(TokenDenial::NotYetValid);
        }
        // "cnf" (RFC 7800): whoever has stolen such a token has not the key, and here nobody would notice.
        if claims.get("cnf").is_some_and(|confirmation| !confirmation.is_null()) {
            return Err(TokenDenial::Constrained);
        }
        let caller = self.named(claims).ok_or(TokenDenial::Claims)?;
        Ok(Verified { caller, expires })
    }

    /// Whether an audience of the token, or the only one, is this server.
    fn is_for_us(&self, claimed: Option<&Value>) -> bool {
        let claimed = match claimed {
            Some(Value::String(one)) => std::slice::from_ref(one).iter().map(String::as_str).collect(),
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if claimed.iter().any(|claimed| same(self.audience.as_str(), claimed)) {
            return true;
        }
        let further = self.further.iter().find(|further| claimed.contains(&further.as_str()));
        if let Some(further) = further {
            tracing::info!(target: "handfast", audience = further.as_str(), "a token for a further audience is accepted");
        }
        further.is_some()
    }

    fn named(&self, claims: &Map<String, Value>) -> Option<Caller> {
        let text = |name: &str| match claims.get(name) {
            None | Some(Value::Null) => Some(None),
            Some(value) => value.as_str().map(Some),
        };
        let principal = Principal::new(self.issuer.clone(), text("sub")??).ok()?;
        let mut caller = Caller::trusted(principal).for_audience(self.audience.clone());
        // RFC 9068 has `client_id`; `azp` is what OpenID providers call the same.
        if let Some(client) = text("client_id")?.or(text("azp")?) {
            caller = caller.by_client(ClientId::new(client).ok()?);
        }
        if let Some(id) = text("jti")? {
            caller = caller.with_token_id(TokenId::new(id).ok()?);
        }
        if let Some(scopes) = scopes(claims.get("scope").or(claims.get("scp")))? {
            caller = caller.with_scopes(scopes);
        }
        match &self.tenant {
            Some(name) => Some(caller.in_tenant(Tenant::new(text(name)??).ok()?)),
            None => Some(caller),
        }
    }
}

impl fmt::Debug for TokenRules {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (issuer, audience) = (&self.issuer, &self.audience);
        out.debug_struct("TokenRules").field("issuer", issuer).field("audience", audience).finish_non_exhaustive()
    }
}

/// A `NumericDate` (RFC 7519, section 2): seconds, which may have a fraction. `Some(None)` where there is none.
fn time(claim: Option<&Value>) -> Option<Option<Timestamp>> {
    let Some(claim) = claim.filter(|claim| !claim.is_null()) else { return Some(None) };
    let seconds = claim.as_f64().filter(|seconds| seconds.is_finite())?;
    // A conversion of floats saturates, and so do the times.
    #[expect(clippy::cast_possible_truncation, reason = "beyond the end of time is the end of time")]
    Some(Some(from_micros((seconds * 1e6) as i64)))
}

/// Words between spaces, or a list of them. One that stands twice is there.
fn scopes(claim: Option<&Value>) -> Option<Option<ScopeSet>> {
    let words: BTreeSet<&str> = match claim {
        None | Some(Value::Null) => return Some(None),
        Some(Value::String(text)) => text.split_ascii_whitespace().collect(),
        Some(Value::Array(all)) => all.iter().map(Value::as_str).collect::<Option<_>>()?,
        Some(_) => return None,
    };
    if words.is_empty() { Some(None) } else { ScopeSet::new(words).ok().map(Some) }
}
