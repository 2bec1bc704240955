//! The `requestState` of the honest server, and the pieces that flawed ones put together differently:
//! what it says (claims), how it is written, how it is read back, and what it must agree with.

use aws_lc_rs::{digest, hmac};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use handfast_wire::message::Object;
use serde_json::{Value, json};

use crate::{caller::Principal, workspaces};

/// How long a state lives, in seconds.
pub(crate) const STATE_LIFETIME: u64 = 300;

/// The key of one process, random at start.
pub(crate) struct Key(pub(crate) hmac::Key);

impl Key {
    pub(crate) fn random() -> Self {
        let mut bytes = [0_u8; 32];
        workspaces::fill(&mut bytes);
        Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes))
    }

    pub(crate) fn tag(&self, body: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(hmac::sign(&self.0, body))
    }

    pub(crate) fn verifies(&self, body: &[u8], tag: &[u8]) -> Result<(), BadState> {
        hmac::verify(&self.0, body, tag).map_err(|_| BadState::Invalid)
    }
}

/// What a state says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Claims {
    pub(crate) principal: String,
    pub(crate) workspace_id: String,
    pub(crate) items: u64,
    pub(crate) method: String,
    pub(crate) tool: String,
    pub(crate) arguments: String,
    pub(crate) round: u64,
    pub(crate) reason: Option<String>,
    pub(crate) exp: u64,
    /// Empty in a state that has none: then it cannot be told from others, and is never used up.
    pub(crate) nonce: String,
}

/// Why a state that came back is not used, and how that is said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum BadState {
    /// The honest answer: JSON-RPC -32602, "invalid requestState".
    Invalid,
    /// Said by a tool result with `isError`.
    Told(String),
    /// Not said at all: it is asked again.
    Ignored,
}

/// The retry that presents a state: everything that the state must agree with.
pub(crate) struct Retry<'a> {
    pub(crate) caller: &'a Principal,
    pub(crate) method: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a str,
    pub(crate) workspace_id: &'a str,
    pub(crate) items: u64,
    pub(crate) now: u64,
    pub(crate) key: &'a Key,
}

impl Retry<'_> {
    /// Spec, MRTR, "Server Requirements" 5: "rejecting state presented by a different principal", "after it lapses",
    /// "on a request that does not match".
    pub(crate) fn covers(&self, claims: &Claims) -> Result<(), BadState> {
        let same_principal = claims.principal == self.caller.as_str();
        let same_request =
            claims.method == self.method && claims.tool == self.tool && claims.arguments == self.arguments;
        let in_time = self.now < claims.exp;
        if same_principal && same_request && in_time { Ok(()) } else { Err(BadState::Invalid) }
    }
}

impl Claims {
    pub(crate) fn to_value(&self) -> Value {
        let mut object = Object::new();
        object.insert("principal".into(), self.principal.clone().into());
        object.insert("workspace_id".into(), self.workspace_id.clone().into());
        object.insert("items".into(), self.items.into());
        object.insert("method".into(), self.method.clone().into());
        object.insert("tool".into(), self.tool.clone().into());
        object.insert("arguments".into(), self.arguments.clone().into());
        if self.round > 1 {
            object.insert("round".into(), self.round.into());
        }
        if let Some(reason) = &self.reason {
            object.insert("reason".into(), reason.clone().into());
        }
        object.insert("exp".into(), self.exp.into());
        object.insert("nonce".into(), self.nonce.clone().into());
        Value::Object(object)
    }

    /// Reads the members that are there; those that steer the answer must be.
    pub(crate) fn from_value(value: &Value) -> Result<Self, BadState> {
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let number = |name: &str| value.get(name).and_then(Value::as_u64);
        Ok(Self {
            principal: text("principal").ok_or(BadState::Invalid)?,
            workspace_id: text("workspace_id").ok_or(BadState::Invalid)?,
            items: number("items").ok_or(BadState::Invalid)?,
            method: text("method").unwrap_or_default(),
            tool: text("tool").unwrap_or_default(),
            arguments: text("arguments").unwrap_or_default(),
            round: number("round").unwrap_or(1),
            reason: text("reason"),
            exp: number("exp").ok_or(BadState::Invalid)?,
            nonce: text("nonce").unwrap_or_default(),
        })
    }

    pub(crate) fn from_json(text: &[u8]) -> Result<Self, BadState> {
        Self::from_value(&serde_json::from_slice(text).map_err(|_| BadState::Invalid)?)
    }
}

/// base64url(JSON) and a dot and base64url(HMAC-SHA256 of the part before the dot).
pub(crate) fn signed(claims: &Claims, key: &Key) -> String {
    let body = unsigned(claims);
    let tag = key.tag(body.as_bytes());
    format!("{body}.{tag}")
}

/// Reads what [`signed`] wrote with the same key, and nothing else.
pub(crate) fn verified(presented: &str, key: &Key) -> Result<Claims, BadState> {
    let (body, tag) = presented.split_once('.').ok_or(BadState::Invalid)?;
    let tag = decode(tag)?;
    // "Servers MUST protect its integrity (e.g. HMAC or AEAD) and MUST reject state that fails verification."
    key.verifies(body.as_bytes(), &tag)?;
    decoded(body)
}

/// base64url(JSON), and that is all.
pub(crate) fn unsigned(claims: &Claims) -> String {
    URL_SAFE_NO_PAD.encode(claims.to_value().to_string())
}

/// A JSON Web Token, signed with HS256.
pub(crate) fn jwt(claims: &Claims, key: &Key) -> String {
    let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#), unsigned(claims));
    let tag = key.tag(signed.as_bytes());
    format!("{signed}.{tag}")
}

/// Reads base64url(JSON), whoever wrote it.
pub(crate) fn decoded(presented: &str) -> Result<Claims, BadState> {
    Claims::from_json(&decode(presented)?)
}

pub(crate) fn decode(text: &str) -> Result<Vec<u8>, BadState> {
    URL_SAFE_NO_PAD.decode(text).map_err(|_| BadState::Invalid)
}

/// What binds a state to the arguments of its request: their SHA-256, with the members sorted.
pub(crate) fn digest_of(arguments: &Value) -> String {
    sha256(&sorted(arguments).to_string())
}

/// base64url(SHA-256).
pub(crate) fn sha256(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(text))
}

/// SHA-256.
pub(crate) fn digest(text: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest::digest(&digest::SHA256, text.as_bytes()).as_ref());
    bytes
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut members: Vec<_> = object.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            Value::Object(members.into_iter().map(|(name, member)| (name.clone(), sorted(member))).collect())
        }
        Value::Array(items) => json!(items.iter().map(sorted).collect::<Vec<_>>()),
        scalar => scalar.clone(),
    }
}
