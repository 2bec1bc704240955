//! The layers of a `requestState`: which segment of it, in which encoding, holds what document; and the way back.
//!
//! What stands around the document (a signature, a version tag, a JWT header, a MAC behind the JSON) stays as issued.

use serde_json::Value;

use super::{
    coding::{Coding, Document, LARGEST, SHORTEST_TEXT, base64, decode_text, hex},
    splice,
};

/// A state whose document can be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    pub(super) prefix: String,
    pub(super) suffix: String,
    pub(super) codings: Vec<Coding>,
    pub(super) document: Document,
}

impl Envelope {
    /// Reads a state, if it can be read at all.
    pub fn read(state: &str) -> Option<Self> {
        if state.len() > LARGEST {
            return None;
        }
        let whole = decode_text(state, 0).map(|(codings, document)| Self {
            prefix: String::new(),
            suffix: String::new(),
            codings,
            document,
        });
        // `--` is base64url as well: a document with "bytes behind it" may be one with a signature.
        let is_clean = |found: &Self| !found.codings.iter().any(|coding| matches!(coding, Coding::Framed { .. }));
        if whole.as_ref().is_some_and(is_clean) {
            return whole;
        }
        // `body.signature`, `v1.body.tag`, a JWT, Rails' `body--signature`: the largest segment with a document counts.
        let mut best: Option<Self> = None;
        for separator in SEPARATORS {
            let mut start = 0;
            for segment in state.split(separator) {
                if segment.len() < state.len()
                    && let Some((codings, document)) = decode_text(segment, 0)
                {
                    let found = Self {
                        prefix: state[..start].to_owned(),
                        suffix: state[start + segment.len()..].to_owned(),
                        codings,
                        document,
                    };
                    if best.as_ref().is_none_or(|best| found.weight() > best.weight()) {
                        best = Some(found);
                    }
                }
                start += segment.len() + separator.len();
            }
        }
        best.or(whole)
    }

    /// A JWT's header is a document too, and of less interest than what follows it.
    fn weight(&self) -> (bool, usize) {
        let value = self.value();
        let is_header = value.get("alg").is_some() && self.prefix.is_empty();
        (!is_header, value.to_string().len())
    }

    /// The document.
    pub fn value(&self) -> Value {
        match &self.document {
            Document::Json(text) => serde_json::from_str(text).unwrap_or_default(),
            Document::Cbor(value) | Document::MessagePack(value) => value.clone(),
        }
    }

    /// The state with the value at a pointer replaced; everything else as issued.
    pub fn with(&self, pointer: &str, new: &Value) -> Option<String> {
        self.rebuilt(match &self.document {
            Document::Json(text) => Document::Json(splice::replaced(text, pointer, new)?),
            Document::Cbor(value) => Document::Cbor(edited(value, pointer, new)?),
            Document::MessagePack(value) => Document::MessagePack(edited(value, pointer, new)?),
        })
    }

    /// The state with one member more at the top of its document.
    pub fn with_member(&self, name: &str, value: &Value) -> Option<String> {
        let added = |document: &Value| {
            let mut document = document.clone();
            document.as_object_mut()?.insert(name.to_owned(), value.clone());
            Some(document)
        };
        self.rebuilt(match &self.document {
            Document::Json(text) => Document::Json(splice::with_member(text, name, value)?),
            Document::Cbor(document) => Document::Cbor(added(document)?),
            Document::MessagePack(document) => Document::MessagePack(added(document)?),
        })
    }

    /// The state with one character changed in what may be its signature: the longest segment behind the document.
    pub fn with_altered_signature(&self) -> Option<String> {
        let (at, segment) = self.signature_segment()?;
        let offset = self.text_length()? + at + segment.len() / 2;
        let state = self.rebuilt(self.document.clone())?;
        (offset.saturating_sub(2)..offset + 2).find_map(|offset| crate::forge::flipped(&state, offset))
    }

    /// Whether a signature is there that a server could have verified: beside the document, or in a member named like one.
    pub fn is_signed(&self) -> bool {
        self.signature_segment().is_some() || self.is_framed() || self.has_member(SIGNATURE_WORDS, false)
    }

    fn is_framed(&self) -> bool {
        self.codings.iter().any(|coding| match coding {
            Coding::Framed { before, after } => before.len() >= SHORTEST_MAC || after.len() >= SHORTEST_MAC,
            _ => false,
        })
    }

    /// Whether anything stands beside the document that could authenticate it: a segment behind it, bytes around it, or a
    /// member that is named or looks like a MAC.
    pub fn may_be_authenticated(&self) -> bool {
        let beside = [&self.prefix, &self.suffix].into_iter().any(|part| part.len() >= SHORTEST_MAC);
        self.is_framed() || beside || self.has_member(MAC_WORDS, true)
    }

    fn has_member(&self, known: &[&str], or_opaque: bool) -> bool {
        let value = self.value();
        handfast_wire::pointer::scalars(&value, 500).into_iter().any(|(at, scalar)| {
            let name = handfast_wire::pointer::last(&at);
            let named = crate::discovery::names::words(&name).iter().any(|word| known.contains(&word.as_str()));
            let opaque = scalar.as_str().is_some_and(|text| {
                text.len() >= 20
                    && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_+/=".contains(&byte))
                    && text.bytes().any(|byte| byte.is_ascii_digit())
            });
            named || (or_opaque && opaque)
        })
    }

    fn signature_segment(&self) -> Option<(usize, &str)> {
        let mut start = 0;
        let mut best: Option<(usize, &str)> = None;
        for segment in self.suffix.split(['.', ':', '|', '~', '-']) {
            if segment.len() >= SHORTEST_MAC && best.is_none_or(|(_, best)| segment.len() > best.len()) {
                best = Some((start, segment));
            }
            start += segment.len() + 1;
        }
        best
    }

    fn text_length(&self) -> Option<usize> {
        Some(self.rebuilt(self.document.clone())?.len() - self.suffix.len())
    }

    /// The envelope in words: `base64url(JSON).suffix`.
    pub fn shown(&self) -> String {
        let document = match self.document {
            Document::Json(_) => "JSON",
            Document::Cbor(_) => "CBOR",
            Document::MessagePack(_) => "MessagePack",
        };
        let coded = self.codings.iter().rev().fold(document.to_owned(), |inner, coding| match coding {
            Coding::Base64 { url: true, .. } => format!("base64url({inner})"),
            Coding::Base64 { .. } => format!("base64({inner})"),
            Coding::Hex { .. } => format!("hex({inner})"),
            Coding::Percent => format!("percent({inner})"),
            Coding::Zlib => format!("zlib({inner})"),
            Coding::Gzip => format!("gzip({inner})"),
            Coding::Deflate => format!("deflate({inner})"),
            Coding::Framed { .. } => format!("bytes around {inner}"),
        });
        let before = if self.prefix.is_empty() { "" } else { "prefix." };
        let after = if self.suffix.is_empty() { "" } else { ".signature" };
        format!("{before}{coded}{after}")
    }

    pub(super) fn rebuilt(&self, document: Document) -> Option<String> {
        let bytes = self.layers(document)?.pop()?;
        Some(format!("{}{}{}", self.prefix, String::from_utf8(bytes).ok()?, self.suffix))
    }

    /// A document, and what each encoding in turn makes of it, the last as it is written.
    pub(super) fn layers(&self, document: Document) -> Option<Vec<Vec<u8>>> {
        let bytes = match document {
            Document::Json(text) => text.into_bytes(),
            Document::Cbor(value) => {
                let mut bytes = Vec::new();
                ciborium::into_writer(&value, &mut bytes).ok()?;
                bytes
            }
            Document::MessagePack(value) => rmp_serde::to_vec_named(&value).ok()?,
        };
        let mut layers = vec![bytes];
        for coding in self.codings.iter().rev() {
            layers.push(coding.encode(layers.last()?.clone())?);
        }
        Some(layers)
    }
}

fn edited(value: &Value, pointer: &str, new: &Value) -> Option<Value> {
    let mut value = value.clone();
    handfast_wire::pointer::replace(&mut value, pointer, new.clone())?;
    Some(value)
}

/// A state that is no document, with a name inside it replaced by another: in its text, or in the bytes
/// that a segment of it encodes.
pub fn renamed(state: &str, name: &str, other: &str) -> Option<String> {
    if name.len() < SHORTEST_TEXT {
        return None;
    }
    if state.contains(name) {
        return Some(state.replace(name, other));
    }
    let mut start = 0;
    for segment in state.split(['.', ':', '|', '~']) {
        if let Some((coding, bytes)) = hex(segment).or_else(|| base64(segment)) {
            let at = bytes.windows(name.len()).position(|window| window == name.as_bytes());
            if let Some(at) = at {
                let changed = [&bytes[..at], other.as_bytes(), &bytes[at + name.len()..]].concat();
                let encoded = String::from_utf8(coding.encode(changed)?).ok()?;
                return Some(format!("{}{encoded}{}", &state[..start], &state[start + segment.len()..]));
            }
        }
        start += segment.len() + 1;
    }
    None
}

pub(super) const SHORTEST_MAC: usize = 8;
const SEPARATORS: [&str; 5] = [".", "--", ":", "|", "~"];
pub(super) const SIGNATURE_WORDS: &[&str] = &["mac", "hmac", "sig", "signature", "seal"];
const MAC_WORDS: &[&str] = &["mac", "hmac", "sig", "signature", "tag", "digest", "checksum", "hash", "seal"];

#[cfg(test)]
mod tests {
    use base64::Engine;
    use serde_json::json;

    use super::{
        super::coding::{engine, percent_encode},
        *,
    };

    fn url64(bytes: impl AsRef<[u8]>) -> String {
        engine(true, false).encode(bytes)
    }

    fn samples() -> Vec<(String, &'static str)> {
        let json = r#"{"principal":"alice","amount": 10.0,"deep":{"exp":1}}"#;
        let zlib = Coding::Zlib.encode(json.as_bytes().to_vec()).expect("zlib");
        let mut cbor = Vec::new();
        ciborium::into_writer(&json!({"principal": "alice", "amount": 10}), &mut cbor).expect("cbor");
        let packed = rmp_serde::to_vec_named(&json!({"principal": "alice", "amount": 10})).expect("msgpack");
        let with_mac = [json.as_bytes(), &[0xA5; 32]].concat();
        let with_expiry = [&[0u8; 8], json.as_bytes()].concat();
        let jwt = format!("{}.{}.{}", url64(r#"{"alg":"HS256","typ":"JWT"}"#), url64(json), url64([7; 32]));
        vec![
            (json.to_owned(), "JSON"),
            (url64(json), "base64url(JSON)"),
            (engine(false, true).encode(r#"{"principal":"alice?>","amount":10}"#), "base64(JSON)"),
            (format!("{}.{}", url64(json), url64([7; 32])), "base64url(JSON).signature"),
            (format!("v1.{}.{}", url64(json), url64([7; 32])), "prefix.base64url(JSON).signature"),
            (format!("{}--{}", url64(json), "0123456789abcdef"), "base64url(JSON).signature"),
            (jwt, "prefix.base64url(JSON).signature"),
            (url64(zlib), "base64url(zlib(JSON))"),
            (url64(cbor), "base64url(CBOR)"),
            (url64(packed), "base64url(MessagePack)"),
            (url64(with_mac), "base64url(bytes around JSON)"),
            (format!("rs1.{}.{}", url64(with_expiry), url64([7; 32])), "prefix.base64url(bytes around JSON).signature"),
            (url64(url64(json)), "base64url(base64url(JSON))"),
            (json.bytes().map(|byte| format!("{byte:02x}")).collect(), "hex(JSON)"),
            (percent_encode(json.as_bytes()), "percent(JSON)"),
        ]
    }

    #[test]
    fn every_envelope_is_read_and_rebuilt_with_one_change() {
        for (state, shown) in samples() {
            let envelope = Envelope::read(&state).unwrap_or_else(|| panic!("{shown}: not read"));
            assert_eq!(envelope.shown(), shown, "{state}");
            assert!(envelope.value()["principal"].as_str().is_some_and(|name| name.starts_with("alice")), "{shown}");
            let changed =
                envelope.with("/principal", &json!("mallory")).unwrap_or_else(|| panic!("{shown}: not changed"));
            let again = Envelope::read(&changed).unwrap_or_else(|| panic!("{shown}: not read again"));
            let mut expected = envelope.value();
            expected["principal"] = json!("mallory");
            assert_eq!(
                (again.value(), again.prefix, again.suffix),
                (expected, envelope.prefix.clone(), envelope.suffix.clone())
            );
            let more =
                envelope.with_member("extra", &json!(1)).and_then(|state| Envelope::read(&state)).expect("one more");
            assert_eq!(more.value()["extra"], json!(1), "{shown}");
        }
    }

    #[test]
    fn unchanged_means_byte_for_byte() {
        for (state, shown) in samples().into_iter().filter(|(_, shown)| !shown.contains("zlib")) {
            let envelope = Envelope::read(&state).expect("read");
            assert_eq!(envelope.rebuilt(envelope.document.clone()).as_ref(), Some(&state), "{shown}");
        }
    }

    #[test]
    fn a_signature_is_seen_and_altered_alone() {
        let state = format!("{}.{}", url64(r#"{"a":1}"#), url64([7; 32]));
        let envelope = Envelope::read(&state).expect("read");
        assert!(envelope.may_be_authenticated());
        let altered = envelope.with_altered_signature().expect("altered");
        let (body, _) = state.split_once('.').expect("two parts");
        assert!(altered.starts_with(body) && altered != state && altered.len() == state.len());
        assert!(!Envelope::read(&url64(r#"{"a":1}"#)).expect("read").may_be_authenticated());
        assert!(Envelope::read(r#"{"a":1,"mac":"x"}"#).expect("read").may_be_authenticated());
    }

    #[test]
    fn a_name_is_replaced_inside_what_cannot_be_read() {
        assert_eq!(renamed("archive|alice|3", "alice", "mallo").as_deref(), Some("archive|mallo|3"));
        let bytes = [&[0x0a, 5], &b"alice"[..], &[0x10, 3]].concat();
        let changed = renamed(&url64(bytes), "alice", "mallo").expect("renamed");
        assert_eq!(changed, url64([&[0x0a, 5], &b"mallo"[..], &[0x10, 3]].concat()));
        assert_eq!(renamed("archive|bob|3", "alice", "mallo"), None);
    }

    #[test]
    fn ciphertext_is_not_mistaken_for_a_document() {
        for round in 0..2000 {
            let bytes: Vec<u8> = (0..24 + round % 80).map(|_| crate::random::below(256) as u8).collect();
            assert_eq!(Envelope::read(&url64(&bytes)), None, "{bytes:?}");
        }
        assert_eq!(Envelope::read("approval_17"), None);
        assert_eq!(Envelope::read(&crate::random::hex(40)), None);
    }
}
