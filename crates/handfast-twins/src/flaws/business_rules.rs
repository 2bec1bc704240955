//! Every field that matters is compared with what the server knows; the state as such is not protected. What the
//! server does not know, it believes.

use crate::{
    guards::Guards,
    manner::Manner,
    state::{self, BadState, Claims, Key, Retry, STATE_LIFETIME},
};

struct BusinessRules;

impl Guards for BusinessRules {
    fn manner(&self) -> Manner {
        Manner { keeps_reason: true, ..Manner::PLAIN }
    }

    fn seal(&self, claims: &Claims, _key: &Key) -> String {
        // FLAW: no signature.
        state::unsigned(claims)
    }

    fn open(&self, presented: &str, retry: &Retry<'_>) -> Result<Claims, BadState> {
        let claims = state::decoded(presented)?;
        retry.covers(&claims)?;
        let true_to_facts = claims.workspace_id == retry.workspace_id && claims.items == retry.items;
        let sane_expiry = claims.exp <= retry.now + STATE_LIFETIME;
        if true_to_facts && sane_expiry && claims.round == 1 { Ok(claims) } else { Err(BadState::Invalid) }
    }
}

pub(super) fn guards() -> Box<dyn Guards> {
    Box::new(BusinessRules)
}
