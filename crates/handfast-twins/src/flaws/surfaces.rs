//! A state that is sound where one looks first, and unsigned in a second place.

use crate::{
    guards::Guards,
    manner::{Asks, Manner},
    state::{self, BadState, Claims, Key, Retry},
};

/// Signs the first round, and thinks that was it.
struct TwoRoundsFlawed;

impl Guards for TwoRoundsFlawed {
    fn manner(&self) -> Manner {
        Manner { asks: Asks::ConfirmThenReason, ..Manner::PLAIN }
    }

    fn seal(&self, claims: &Claims, key: &Key) -> String {
        // FLAW: only the first round's state is signed.
        if claims.round == 1 { state::signed(claims, key) } else { state::unsigned(claims) }
    }

    fn open(&self, presented: &str, retry: &Retry<'_>) -> Result<Claims, BadState> {
        if presented.contains('.') {
            let claims = state::verified(presented, retry.key)?;
            retry.covers(&claims)?;
            return Ok(claims);
        }
        // FLAW: the second round's state is believed.
        state::decoded(presented).and_then(|claims| if claims.round > 1 { Ok(claims) } else { Err(BadState::Invalid) })
    }
}

/// Signs for one method and not for another.
struct UnsignedFor {
    method: &'static str,
    manner: Manner,
}

impl Guards for UnsignedFor {
    fn manner(&self) -> Manner {
        self.manner
    }

    fn seal(&self, claims: &Claims, key: &Key) -> String {
        // FLAW: this method's state is not signed.
        if claims.method == self.method { state::unsigned(claims) } else { state::signed(claims, key) }
    }

    fn open(&self, presented: &str, retry: &Retry<'_>) -> Result<Claims, BadState> {
        if retry.method == self.method {
            // FLAW: and it is believed.
            return state::decoded(presented);
        }
        let claims = state::verified(presented, retry.key)?;
        retry.covers(&claims)?;
        Ok(claims)
    }
}

pub(super) fn two_rounds_flawed() -> Box<dyn Guards> {
    Box::new(TwoRoundsFlawed)
}

pub(super) fn prompt_state() -> Box<dyn Guards> {
    let manner = Manner { prompt_asks: true, ..Manner::PLAIN };
    Box::new(UnsignedFor { method: "prompts/get", manner })
}

pub(super) fn resource_state() -> Box<dyn Guards> {
    let manner = Manner { resource_asks: true, ..Manner::PLAIN };
    Box::new(UnsignedFor { method: "resources/read", manner })
}
