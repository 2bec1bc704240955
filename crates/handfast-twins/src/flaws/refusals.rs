//! A bad state, met in other ways than by -32602: some of them sound, some that only look like a refusal.

use handfast_wire::message::Object;
use serde_json::Value;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{
    caller::Principal,
    guards::Guards,
    manner::Manner,
    state::{self, BadState, Claims, Key, Retry},
    workspaces::{Door, Workspace},
};

/// Sound: refuses inside the tool result.
struct ToolErrorRefusals(Manner);

impl Guards for ToolErrorRefusals {
    fn manner(&self) -> Manner {
        self.0
    }

    fn open(&self, presented: &str, retry: &Retry<'_>) -> Result<Claims, BadState> {
        let refused = |_| BadState::Told("invalid requestState".into());
        let claims = state::verified(presented, retry.key).map_err(refused)?;
        retry.covers(&claims).map_err(refused)?;
        Ok(claims)
    }

    fn once(&self, first: bool) -> Result<(), BadState> {
        if first { Ok(()) } else { Err(BadState::Told("invalid requestState".into())) }
    }
}

/// Flawed, and says no to what it cannot read as if that were no error.
struct PoliteFlawed;

impl Guards for PoliteFlawed {
    fn manner(&self) -> Manner {
        Manner { polite: true, ..Manner::PLAIN }
    }

    fn admits(&self, _door: Door, _caller: &Principal, _workspace: &Workspace) -> bool {
        // FLAW: the owner is recorded and never compared.
        true
    }

    fn seal(&self, claims: &Claims, _key: &Key) -> String {
        // FLAW: no signature.
        state::unsigned(claims)
    }

    fn open(&self, presented: &str, _retry: &Retry<'_>) -> Result<Claims, BadState> {
        state::decoded(presented).map_err(|_| BadState::Told("invalid requestState".into()))
    }
}

/// Breaks on every change, by accident: a checksum that anybody can compute, and a parser that gives up.
struct CrashesOnForgery;

impl Guards for CrashesOnForgery {
    fn seal(&self, claims: &Claims, _key: &Key) -> String {
        let mut object = Object::new();
        // FLAW: a checksum has no key. It finds accidents, not intent.
        object.insert("checksum".into(), checksum(&claims.to_value()).into());
        if let Value::Object(members) = claims.to_value() {
            object.extend(members);
        }
        URL_SAFE_NO_PAD.encode(Value::Object(object).to_string())
    }

    fn open(&self, presented: &str, _retry: &Retry<'_>) -> Result<Claims, BadState> {
        let crashed = |_| BadState::Told("Unexpected token } in JSON at position 12".into());
        let text = state::decode(presented).map_err(crashed)?;
        let mut value: Value = serde_json::from_slice(&text).map_err(|_| crashed(BadState::Invalid))?;
        let stated = value.as_object_mut().and_then(|members| members.shift_remove("checksum"));
        if stated != Some(checksum(&value).into()) {
            return Err(crashed(BadState::Invalid));
        }
        Claims::from_value(&value).map_err(crashed)
    }
}

/// Unsigned; what does not parse is answered with the parser's own words.
struct BreaksOnFlip;

impl Guards for BreaksOnFlip {
    fn seal(&self, claims: &Claims, _key: &Key) -> String {
        // FLAW: no signature.
        state::unsigned(claims)
    }

    fn open(&self, presented: &str, _retry: &Retry<'_>) -> Result<Claims, BadState> {
        let text = state::decode(presented).map_err(|_| BadState::Told("invalid character in base64 input".into()))?;
        let value = serde_json::from_slice(&text)
            .map_err(|error| BadState::Told(format!("SyntaxError: Unexpected token in JSON: {error}")))?;
        Claims::from_value(&value).map_err(|_| BadState::Told("TypeError: cannot read properties of undefined".into()))
    }
}

/// Verifies everything, and says nothing when it does not like what it sees: it asks again.
struct AsksAgain;

impl Guards for AsksAgain {
    fn open(&self, presented: &str, retry: &Retry<'_>) -> Result<Claims, BadState> {
        let claims = state::verified(presented, retry.key).map_err(|_| BadState::Ignored)?;
        retry.covers(&claims).map_err(|_| BadState::Ignored)?;
        Ok(claims)
    }

    fn once(&self, first: bool) -> Result<(), BadState> {
        if first { Ok(()) } else { Err(BadState::Ignored) }
    }
}

/// Takes the state back and never reads it: all that it needs it knows.
struct IgnoresState;

impl Guards for IgnoresState {
    fn open(&self, _presented: &str, retry: &Retry<'_>) -> Result<Claims, BadState> {
        // Nothing is rejected, and nothing of it is used: "Integrity protection MAY be omitted only when tampering can
        // cause nothing worse than request failure."
        Ok(Claims {
            principal: retry.caller.to_string(),
            workspace_id: retry.workspace_id.to_owned(),
            items: retry.items,
            method: retry.method.to_owned(),
            tool: retry.tool.to_owned(),
            arguments: retry.arguments.to_owned(),
            round: 1,
            reason: None,
            exp: retry.now,
            nonce: String::new(),
        })
    }
}

fn checksum(value: &Value) -> u32 {
    let mut sum = flate2::Crc::new();
    sum.update(value.to_string().as_bytes());
    sum.sum()
}

pub(super) fn tool_error_refusals() -> Box<dyn Guards> {
    Box::new(ToolErrorRefusals(Manner::PLAIN))
}

pub(super) fn polite() -> Box<dyn Guards> {
    Box::new(ToolErrorRefusals(Manner { polite: true, ..Manner::PLAIN }))
}

pub(super) fn polite_flawed() -> Box<dyn Guards> {
    Box::new(PoliteFlawed)
}

pub(super) fn crashes_on_forgery() -> Box<dyn Guards> {
    Box::new(CrashesOnForgery)
}

pub(super) fn breaks_on_flip() -> Box<dyn Guards> {
    Box::new(BreaksOnFlip)
}

pub(super) fn asks_again() -> Box<dyn Guards> {
    Box::new(AsksAgain)
}

pub(super) fn ignores_state() -> Box<dyn Guards> {
    Box::new(IgnoresState)
}
