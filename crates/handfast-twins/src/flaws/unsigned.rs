//! Six more spellings of a state that nothing protects. Each is read back by whoever can spell it.

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

/// A body and its SHA-256; everything else is looked at.
struct DigestTag;

impl Guards for DigestTag {
    fn seal(&self, claims: &Claims, _key: &Key) -> String {
        let body = state::unsigned(claims);
        // FLAW: a digest has no key. Whoever changes the body makes it anew.
        let tag = state::sha256(&body);
        format!("{body}.{tag}")
    }

    fn open(&self, presented: &str, retry: &Retry<'_>) -> Result<Claims, BadState> {
        let (body, tag) = presented.split_once('.').ok_or(BadState::Invalid)?;
        let claims = if state::sha256(body) == tag { state::decoded(body)? } else { return Err(BadState::Invalid) };
        retry.covers(&claims)?;
        Ok(claims)
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
        state::jwt(claims, key)
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

/// Five words in a row.
struct Pipe;

impl Guards for Pipe {
    fn seal(&self, claims: &Claims, _key: &Key) -> String {
        let Claims { principal, items, workspace_id, exp, .. } = claims;
        // FLAW: no signature, and nothing that makes it one of its kind.
        format!("archive|{principal}|{items}|{workspace_id}|{exp}")
    }

    fn open(&self, presented: &str, retry: &Retry<'_>) -> Result<Claims, BadState> {
        let parts: Vec<&str> = presented.split('|').collect();
        let ["archive", principal, items, workspace_id, exp] = parts[..] else { return Err(BadState::Invalid) };
        let number = |text: &str| text.parse().map_err(|_| BadState::Invalid);
        Ok(Claims {
            principal: principal.to_owned(),
            workspace_id: workspace_id.to_owned(),
            items: number(items)?,
            method: retry.method.to_owned(),
            tool: retry.tool.to_owned(),
            arguments: retry.arguments.to_owned(),
            round: 1,
            reason: None,
            exp: number(exp)?,
            nonce: String::new(),
        })
    }
}

pub(super) fn ignores_signature() -> Box<dyn Guards> {
    Box::new(IgnoresSignature)
}

pub(super) fn digest_tag() -> Box<dyn Guards> {
    Box::new(DigestTag)
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

pub(super) fn pipe() -> Box<dyn Guards> {
    Box::new(Pipe)
}

const UNPACKED_LIMIT: u64 = 65_536;
