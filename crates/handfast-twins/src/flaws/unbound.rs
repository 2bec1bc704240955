//! States that are signed, and good for somebody else, for another request, or for ever: what a check of their integrity
//! does not see. And one that does not wait to be asked.

use crate::{
    guards::Guards,
    state::{self, BadState, Claims, Key, Retry, STATE_LIFETIME},
};

/// Signed and short-lived, for whomever and whatever.
struct NoBinding;

impl Guards for NoBinding {
    fn open(&self, presented: &str, retry: &Retry<'_>) -> Result<Claims, BadState> {
        let claims = state::verified(presented, retry.key)?;
        // FLAW: neither the principal nor the request is compared.
        if retry.now < claims.exp { Ok(claims) } else { Err(BadState::Invalid) }
    }
}

/// Signed, short-lived, and the caller's own; for whatever they ask.
struct AnyRequest;

impl Guards for AnyRequest {
    fn open(&self, presented: &str, retry: &Retry<'_>) -> Result<Claims, BadState> {
        let claims = state::verified(presented, retry.key)?;
        let same_principal = claims.principal == retry.caller.as_str();
        // FLAW: the request that it was issued for is not compared.
        if same_principal && retry.now < claims.exp { Ok(claims) } else { Err(BadState::Invalid) }
    }
}

/// Signed and bound, for ever.
struct NoExpiry;

impl Guards for NoExpiry {
    fn open(&self, presented: &str, retry: &Retry<'_>) -> Result<Claims, BadState> {
        let claims = state::verified(presented, retry.key)?;
        // FLAW: the time at which it was to end is not looked at.
        retry.covers(&Claims { exp: u64::MAX, ..claims.clone() })?;
        Ok(claims)
    }
}

/// States that say that they end within a second; sound where that is looked at.
struct Brief {
    heeds_time: bool,
}

impl Guards for Brief {
    fn seal(&self, claims: &Claims, key: &Key) -> String {
        state::signed(&Claims { exp: claims.exp - STATE_LIFETIME + 1, ..claims.clone() }, key)
    }

    fn open(&self, presented: &str, retry: &Retry<'_>) -> Result<Claims, BadState> {
        let claims = state::verified(presented, retry.key)?;
        // Good to the end of the second that it names. FLAW: in the flawed one, for ever.
        let end = if self.heeds_time { claims.exp + 1 } else { u64::MAX };
        retry.covers(&Claims { exp: end, ..claims.clone() })?;
        Ok(claims)
    }
}

/// Signed, bound, short-lived, and good for as often as it is sent.
struct Replayable;

impl Guards for Replayable {
    fn once(&self, _first: bool) -> Result<(), BadState> {
        // FLAW: nobody remembers which states were used.
        Ok(())
    }
}

/// Good once, unless it comes twice at once.
struct WritesLate;

impl Guards for WritesLate {
    fn writes_at_once(&self) -> bool {
        // FLAW: between looking a use up and writing it down, the same state may come again.
        false
    }
}

/// Bound to the OAuth client, and all users come by the same one.
struct ClientOnly;

impl Guards for ClientOnly {
    fn seal(&self, claims: &Claims, key: &Key) -> String {
        let body = state::unsigned(claims);
        let tag = key.tag(format!("{CLIENT}.{body}").as_bytes());
        format!("{body}.{tag}")
    }

    fn open(&self, presented: &str, retry: &Retry<'_>) -> Result<Claims, BadState> {
        let (body, tag) = presented.split_once('.').ok_or(BadState::Invalid)?;
        // FLAW: under the tag stands the client and not the user.
        retry.key.verifies(format!("{CLIENT}.{body}").as_bytes(), &state::decode(tag)?)?;
        let claims = state::decoded(body)?;
        retry.covers(&Claims { principal: retry.caller.to_string(), ..claims.clone() })?;
        Ok(claims)
    }
}

/// Sound, but for whoever answers before being asked.
struct AnswersFirst;

impl Guards for AnswersFirst {
    fn waits_to_be_asked(&self) -> bool {
        // FLAW: answers that come with the first call are taken for answers to a question that was asked.
        false
    }
}

pub(super) fn no_binding() -> Box<dyn Guards> {
    Box::new(NoBinding)
}

pub(super) fn any_request() -> Box<dyn Guards> {
    Box::new(AnyRequest)
}

pub(super) fn no_expiry() -> Box<dyn Guards> {
    Box::new(NoExpiry)
}

pub(super) fn brief() -> Box<dyn Guards> {
    Box::new(Brief { heeds_time: true })
}

pub(super) fn brief_for_ever() -> Box<dyn Guards> {
    Box::new(Brief { heeds_time: false })
}

pub(super) fn replayable() -> Box<dyn Guards> {
    Box::new(Replayable)
}

pub(super) fn writes_late() -> Box<dyn Guards> {
    Box::new(WritesLate)
}

pub(super) fn client_only() -> Box<dyn Guards> {
    Box::new(ClientOnly)
}

pub(super) fn answers_first() -> Box<dyn Guards> {
    Box::new(AnswersFirst)
}

/// The one client of this server.
const CLIENT: &str = "desktop";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{caller::Principal, flaws::sound};

    /// The same request, of Alice, of Bob, and for something else of Alice's.
    fn opens(guards: &dyn Guards) -> [bool; 3] {
        let (key, alice, bob) = (Key::random(), Principal::new("alice"), Principal::new("bob"));
        let claims = Claims {
            principal: "alice".into(),
            workspace_id: "ws-1".into(),
            items: 1,
            method: "tools/call".into(),
            tool: "archive_workspace".into(),
            arguments: "digest".into(),
            round: 1,
            reason: None,
            exp: 100,
            nonce: String::new(),
        };
        let state = guards.seal(&claims, &key);
        [(&alice, "digest"), (&bob, "digest"), (&alice, "other")].map(|(caller, arguments)| {
            let retry = Retry {
                caller,
                method: "tools/call",
                tool: "archive_workspace",
                arguments,
                workspace_id: "ws-1",
                items: 1,
                now: 99,
                key: &key,
            };
            guards.open(&state, &retry).is_ok()
        })
    }

    #[test]
    fn a_client_is_no_user() {
        assert_eq!(opens(&*sound::plain()), [true, false, false]);
        assert_eq!(opens(&ClientOnly), [true, true, false]);
        assert_eq!(opens(&NoBinding), [true, true, true]);
        assert_eq!(opens(&AnyRequest), [true, false, true]);
        assert_eq!(opens(&NoExpiry), [true, false, false]);
    }
}
