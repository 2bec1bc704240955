//! The encodings that a document travels in: base64, hex, percent, compression, CBOR, MessagePack, bytes around JSON; and the
//! way back.

use std::io::Read;

use base64::{
    Engine,
    alphabet::{STANDARD, URL_SAFE},
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use flate2::{
    Compression,
    read::{DeflateDecoder, GzDecoder, ZlibDecoder, ZlibEncoder},
};
use serde_json::Value;

/// One layer of encoding.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Coding {
    Base64 {
        url: bool,
        padded: bool,
    },
    Hex {
        upper: bool,
    },
    Percent,
    Zlib,
    Gzip,
    Deflate,
    /// Bytes before and after the document, kept as issued.
    Framed {
        before: Vec<u8>,
        after: Vec<u8>,
    },
}

/// The innermost layer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Document {
    Json(String),
    Cbor(Value),
    MessagePack(Value),
}

impl Coding {
    pub(super) fn encode(&self, bytes: Vec<u8>) -> Option<Vec<u8>> {
        Some(match self {
            Self::Base64 { url, padded } => engine(*url, *padded).encode(bytes).into_bytes(),
            Self::Hex { upper } => {
                let digit = |byte: &u8| if *upper { format!("{byte:02X}") } else { format!("{byte:02x}") };
                bytes.iter().map(digit).collect::<String>().into_bytes()
            }
            Self::Percent => percent_encode(&bytes).into_bytes(),
            Self::Zlib => compressed(ZlibEncoder::new(&bytes[..], Compression::default()))?,
            Self::Gzip => compressed(flate2::read::GzEncoder::new(&bytes[..], Compression::default()))?,
            Self::Deflate => compressed(flate2::read::DeflateEncoder::new(&bytes[..], Compression::default()))?,
            Self::Framed { before, after } => [before.as_slice(), &bytes, after].concat(),
        })
    }
}

pub(super) fn decode_text(text: &str, depth: usize) -> Option<(Vec<Coding>, Document)> {
    if depth > DEEPEST || text.is_empty() {
        return None;
    }
    if is_document(text) {
        return Some((Vec::new(), Document::Json(text.to_owned())));
    }
    let mut candidates: Vec<(Coding, Vec<u8>)> = Vec::new();
    if text.contains("%7B") || text.contains("%7b") {
        candidates.extend(percent_decode(text).map(|bytes| (Coding::Percent, bytes)));
    }
    candidates.extend(hex(text));
    candidates.extend(base64(text));
    candidates.into_iter().find_map(|(coding, bytes)| {
        let (mut codings, document) = decode_bytes(&bytes, depth + 1)?;
        codings.insert(0, coding);
        Some((codings, document))
    })
}

fn decode_bytes(bytes: &[u8], depth: usize) -> Option<(Vec<Coding>, Document)> {
    if depth > DEEPEST {
        return None;
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Some(found) = decode_text(text, depth)
    {
        return Some(found);
    }
    for (coding, unpacked) in
        [(Coding::Zlib, unpack(ZlibDecoder::new(bytes))), (Coding::Gzip, unpack(GzDecoder::new(bytes)))]
    {
        if let Some((mut codings, document)) = unpacked.and_then(|inner| decode_bytes(&inner, depth + 1)) {
            codings.insert(0, coding);
            return Some((codings, document));
        }
    }
    if let Some((codings, document)) = framed(bytes) {
        return Some((codings, document));
    }
    if let Some(value) = message_pack(bytes) {
        return Some((Vec::new(), Document::MessagePack(value)));
    }
    if let Ok(value) = ciborium::from_reader::<Value, _>(bytes) {
        let mut again = Vec::new();
        // Random bytes decode as something now and then; a document decodes as all of itself.
        if is_named(&value) && ciborium::into_writer(&value, &mut again).is_ok() && again.len() == bytes.len() {
            return Some((Vec::new(), Document::Cbor(value)));
        }
    }
    let (mut codings, document) =
        unpack(DeflateDecoder::new(bytes)).and_then(|inner| decode_bytes(&inner, depth + 1))?;
    codings.insert(0, Coding::Deflate);
    Some((codings, document))
}

/// JSON with a few bytes before it, or a MAC behind it.
fn framed(bytes: &[u8]) -> Option<(Vec<Coding>, Document)> {
    let start = bytes.iter().take(LONGEST_FRAME).position(|&byte| byte == b'{')?;
    let mut stream = serde_json::Deserializer::from_slice(&bytes[start..]).into_iter::<Value>();
    let value = stream.next()?.ok()?;
    let end = start + stream.byte_offset();
    let text = std::str::from_utf8(&bytes[start..end]).ok()?;
    let coding = Coding::Framed { before: bytes[..start].to_vec(), after: bytes[end..].to_vec() };
    (is_named(&value) && bytes.len() - end <= LONGEST_FRAME).then(|| (vec![coding], Document::Json(text.to_owned())))
}

fn message_pack(bytes: &[u8]) -> Option<Value> {
    let mut reader = bytes;
    let value: Value = rmp_serde::from_read(&mut reader).ok()?;
    (is_named(&value) && reader.is_empty()).then_some(value)
}

fn is_document(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
        && serde_json::from_str::<Value>(text).is_ok_and(|value| is_named(&value) || value.is_array())
}

fn is_named(value: &Value) -> bool {
    value.as_object().is_some_and(|members| !members.is_empty())
}

fn unpack(reader: impl Read) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    // A small text can unpack to gigabytes.
    reader.take(LARGEST as u64 + 1).read_to_end(&mut bytes).ok()?;
    (!bytes.is_empty() && bytes.len() <= LARGEST).then_some(bytes)
}

fn compressed(mut reader: impl Read) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

pub(super) fn engine(url: bool, padded: bool) -> GeneralPurpose {
    let config = GeneralPurposeConfig::new()
        .with_encode_padding(padded)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent);
    GeneralPurpose::new(if url { &URL_SAFE } else { &STANDARD }, config)
}

pub(super) fn base64(text: &str) -> Option<(Coding, Vec<u8>)> {
    if text.len() < SHORTEST_TEXT {
        return None;
    }
    let url = !text.contains(['+', '/']);
    let padded = text.ends_with('=') || (text.len().is_multiple_of(4) && !url);
    let bytes = engine(url, padded).decode(text).ok()?;
    Some((Coding::Base64 { url, padded }, bytes))
}

pub(super) fn hex(text: &str) -> Option<(Coding, Vec<u8>)> {
    if text.len() < SHORTEST_TEXT || !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit())
    {
        return None;
    }
    let upper = text.bytes().any(|byte| byte.is_ascii_uppercase());
    let bytes =
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16)).collect::<Result<_, _>>();
    Some((Coding::Hex { upper }, bytes.ok()?))
}

fn percent_decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first == b'%' {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    Some(bytes)
}

pub(super) fn percent_encode(bytes: &[u8]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    bytes.iter().map(|&byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Bytes that a state may have, packed and unpacked.
pub(super) const LARGEST: usize = 1 << 20;
const DEEPEST: usize = 4;
/// Shorter texts say nothing about their encoding.
pub(super) const SHORTEST_TEXT: usize = 4;
const LONGEST_FRAME: usize = 96;
