//! What travels between the two rounds of a tool, in the two ways of writing it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use rmcp::model::{RequestStateCodec, RequestStateError, SealOptions};
use serde::{Deserialize, Serialize};

/// What a tool has to remember while somebody is being asked.
#[derive(Serialize, Deserialize)]
pub struct Claims {
    pub principal: String,
    pub tool: String,
    pub amount: u64,
    pub expires: u64,
}

impl Claims {
    pub fn new(principal: &str, tool: &str, amount: u64) -> Self {
        Self { principal: principal.to_owned(), tool: tool.to_owned(), amount, expires: now() + 600 }
    }
}

/// Sealed by the SDK's codec, or base64url of JSON.
#[derive(Clone)]
pub enum Writing {
    Sealed(RequestStateCodec),
    Plain,
}

impl Writing {
    pub fn new(sound: bool) -> Result<Self, RequestStateError> {
        if !sound {
            return Ok(Self::Plain);
        }
        let key: [u8; 32] = rand::random();
        Ok(Self::Sealed(RequestStateCodec::try_new(key)?))
    }

    /// The state for the wire. `context` names the caller and the request; rmcp binds to nothing unless it is told to.
    pub fn write(&self, claims: &Claims, context: &[u8]) -> String {
        let json = serde_json::to_vec(claims).unwrap_or_default();
        match self {
            Self::Sealed(codec) => {
                // Without a ttl the codec's tokens are valid for ever.
                let options = SealOptions::new().associated_data(context).ttl(Duration::from_secs(300));
                codec.seal_with(&json, &options)
            }
            Self::Plain => URL_SAFE_NO_PAD.encode(json),
        }
    }

    /// The claims, or nothing. Why it was nothing is nobody's business outside.
    pub fn read(&self, presented: &str, context: &[u8]) -> Option<Claims> {
        let json = match self {
            Self::Sealed(codec) => codec.open_with(presented, context).ok()?,
            // FLAW: anybody can write base64. What does not decode is refused, everything else is believed.
            Self::Plain => URL_SAFE_NO_PAD.decode(presented).ok()?,
        };
        let claims: Claims = serde_json::from_slice(&json).ok()?;
        (claims.expires > now()).then_some(claims)
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
