//! Four more spellings of a state that nothing protects. Each is read back by whoever can spell it.

use std::io::{Read, Write};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};

use crate::{
    guards::Guards,
    state::{self, BadState, Claims, Key, Retry},
};

/// A body and a tag; only the body is looked at.
struct IgnoresSignature;

impl Guards for IgnoresSignature {
    fn open(&self, presented: &str, _retry: &Retry<'_>) -> Result<Claims, BadState> {
        let (body, _tag) = presented.split_once('.').ok_or(BadState::Invalid)?;
        // FLAW: the tag is never verified.
        state::decoded(body)
    }
}

/// JSON text as it is.
struct RawJson;

impl Guards for RawJson {
    fn seal(&self, claims: &Claims, _key: &Key) -> String {
        // FLAW: no signature, not even a disguise.
        claims.to_value().to_string()
    }

    fn open(&self, presented: &str, _retry: &Retry<'_>) -> Result<Claims, BadState> {
        Claims::from_json(presented.as_bytes())
    }
}

/// A JSON Web Token that is decoded, not verified.
struct Jwt;

impl Guards for Jwt {
    fn seal(&self, claims: &Claims, key: &Key) -> String {
        let signed =
            format!("{}.{}", URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#), state::unsigned(claims));
        let tag = key.tag(signed.as_bytes());
        format!("{signed}.{tag}")
    }

    fn open(&self, presented: &str, _retry: &Retry<'_>) -> Result<Claims, BadState> {
        let parts: Vec<&str> = presented.split('.').collect();
        let [_header, body, _signature] = parts[..] else { return Err(BadState::Invalid) };
        // FLAW: `decode` where `verify` was meant.
        state::decoded(body)
    }
}

/// Compressed, which looks like noise and is none.
struct Zlib;

impl Guards for Zlib {
    fn seal(&self, claims: &Claims, _key: &Key) -> String {
        let mut packer = ZlibEncoder::new(Vec::new(), Compression::default());
        // FLAW: packed, not signed.
        let packed = packer.write_all(claims.to_value().to_string().as_bytes()).and_then(|()| packer.finish());
        URL_SAFE_NO_PAD.encode(packed.expect("a vector takes whatever is written"))
    }

    fn open(&self, presented: &str, _retry: &Retry<'_>) -> Result<Claims, BadState> {
        let packed = state::decode(presented)?;
        let mut text = Vec::new();
        ZlibDecoder::new(&packed[..]).take(UNPACKED_LIMIT).read_to_end(&mut text).map_err(|_| BadState::Invalid)?;
        Claims::from_json(&text)
    }
}

pub(super) fn ignores_signature() -> Box<dyn Guards> {
    Box::new(IgnoresSignature)
}

pub(super) fn raw_json() -> Box<dyn Guards> {
    Box::new(RawJson)
}

pub(super) fn jwt() -> Box<dyn Guards> {
    Box::new(Jwt)
}

pub(super) fn zlib() -> Box<dyn Guards> {
    Box::new(Zlib)
}

const UNPACKED_LIMIT: u64 = 65_536;
