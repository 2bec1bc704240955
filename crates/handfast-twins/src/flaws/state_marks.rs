//! States that say more than they should: which token was shown, and what nobody else may read.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::json;

use crate::{
    caller::Principal,
    guards::Guards,
    state::{self, BadState, Claims, Key, Retry},
    workspaces,
};

/// Bound to the caller, and to the very token.
struct BindsToken;

impl Guards for BindsToken {
    fn nonce(&self, caller: &Principal) -> String {
        format!("{}{}", mark_of(caller), &workspaces::random_hex()[..RANDOM])
    }

    fn open(&self, presented: &str, retry: &Retry<'_>) -> Result<Claims, BadState> {
        let claims = state::verified(presented, retry.key)?;
        retry.covers(&claims)?;
        // FLAW: whoever renewed the token in between is taken for somebody else.
        if claims.nonce.starts_with(&mark_of(retry.caller)) { Ok(claims) } else { Err(BadState::Invalid) }
    }
}

fn mark_of(caller: &Principal) -> String {
    state::digest(caller.token()).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// Signed and bound, and an open book.
struct SecretInState;

impl Guards for SecretInState {
    fn seal(&self, claims: &Claims, key: &Key) -> String {
        let mut value = claims.to_value();
        // FLAW: a signature keeps nobody from reading.
        value["upstream"] = json!({"access_token": "up-5f1c0a9be2d4", "billed_to": "billing@workspaces.invalid"});
        let body = URL_SAFE_NO_PAD.encode(value.to_string());
        format!("{body}.{}", key.tag(body.as_bytes()))
    }
}

pub(super) fn binds_token() -> Box<dyn Guards> {
    Box::new(BindsToken)
}

pub(super) fn secret_in_state() -> Box<dyn Guards> {
    Box::new(SecretInState)
}

const RANDOM: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renewed_token_is_another_one() {
        let nonce = BindsToken.nonce(&Principal::new("alice"));
        assert!(nonce.starts_with(&mark_of(&Principal::new("alice"))) && nonce.len() == 16);
        assert_ne!(mark_of(&Principal::new("alice")), mark_of(&Principal::new("renewed-alice")));
    }
}
