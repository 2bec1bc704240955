//! A tag beside a document that is no signature: a digest of what everybody can read, made without a key. Whoever changes the
//! document makes the tag anew.

use base64::Engine;

use super::{
    coding::{Coding, engine},
    envelope::Envelope,
};
use crate::digest::{self, Algorithm};

/// How the tag of a state is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipe {
    algorithm: Algorithm,
    spelling: Spelling,
    /// Of what: the document, or one of the layers around it.
    layer: usize,
    place: Place,
    /// How much of the digest is written down.
    length: usize,
}

/// How the bytes of a digest are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spelling {
    Bytes,
    Hex,
    UpperHex,
    Base64 {
        url: bool,
        padded: bool,
    },
    /// A checksum as a number.
    Decimal,
}

/// Where the tag stands, and how many characters stand between it and the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Before(usize),
    Behind(usize),
    /// Among the bytes that were encoded.
    FramedBefore,
    FramedBehind,
}

impl Recipe {
    /// The recipe of a state's tag, where it needs no key.
    pub fn of(state: &str) -> Option<Self> {
        let envelope = Envelope::read(state)?;
        let layers = layers(&envelope, state)?;
        for place in [Place::FramedBehind, Place::FramedBefore]
            .into_iter()
            .chain(SEPARATORS.map(Place::Behind))
            .chain(SEPARATORS.map(Place::Before))
        {
            let Some(tag) = place.tag(&envelope).filter(|tag| tag.len() >= SHORTEST_CHECKSUM) else { continue };
            for (layer, bytes) in layers.iter().enumerate() {
                for algorithm in ALGORITHMS {
                    let made = algorithm.of(bytes);
                    let spelling =
                        place.spellings().iter().find(|spelling| is_start(&spelling.write(&made), &tag, algorithm));
                    if let Some(&spelling) = spelling {
                        return Some(Self { algorithm, spelling, layer, place, length: tag.len() });
                    }
                }
            }
        }
        None
    }

    /// What it is the digest by.
    pub fn name(&self) -> &'static str {
        self.algorithm.name()
    }

    /// A state that was altered, with its tag made anew.
    pub fn apply(&self, state: &str) -> Option<String> {
        let mut envelope = Envelope::read(state)?;
        let made = self.algorithm.of(layers(&envelope, state)?.get(self.layer)?);
        let mut tag = self.spelling.write(&made);
        if self.spelling != Spelling::Decimal {
            tag.truncate(self.length);
        }
        match self.place {
            Place::Behind(separator) => {
                let separator = envelope.suffix.get(..separator)?.to_owned();
                envelope.suffix = separator + std::str::from_utf8(&tag).ok()?;
            }
            Place::Before(separator) => {
                let end = envelope.prefix.len().checked_sub(separator)?;
                envelope.prefix = format!("{}{}", std::str::from_utf8(&tag).ok()?, envelope.prefix.get(end..)?);
            }
            Place::FramedBefore => *frame(&mut envelope)?.0 = tag,
            Place::FramedBehind => *frame(&mut envelope)?.1 = tag,
        }
        envelope.rebuilt(envelope.document.clone())
    }
}

/// The document, what each encoding makes of it, and that with what stands before it: what a tag may be of.
fn layers(envelope: &Envelope, state: &str) -> Option<Vec<Vec<u8>>> {
    let mut layers = envelope.layers(envelope.document.clone())?;
    // As issued: what was compressed by another hand looks different.
    let written = state.get(envelope.prefix.len()..state.len().checked_sub(envelope.suffix.len())?)?;
    *layers.last_mut()? = written.as_bytes().to_vec();
    layers.push(format!("{}{written}", envelope.prefix).into_bytes());
    Some(layers)
}

fn frame(envelope: &mut Envelope) -> Option<(&mut Vec<u8>, &mut Vec<u8>)> {
    envelope.codings.iter_mut().find_map(|coding| match coding {
        Coding::Framed { before, after } => Some((before, after)),
        _ => None,
    })
}

/// Whether a tag is how a digest begins. A checksum is short enough as it is.
fn is_start(written: &[u8], tag: &[u8], algorithm: Algorithm) -> bool {
    written == tag || (algorithm != Algorithm::Crc32 && tag.len() >= SHORTEST_DIGEST && written.starts_with(tag))
}

impl Place {
    fn tag(self, envelope: &Envelope) -> Option<Vec<u8>> {
        match self {
            Self::Behind(separator) => Some(envelope.suffix.get(separator..)?.as_bytes().to_vec()),
            Self::Before(separator) => {
                let end = envelope.prefix.len().checked_sub(separator)?;
                Some(envelope.prefix.get(..end)?.as_bytes().to_vec())
            }
            Self::FramedBefore => Some(frame(&mut envelope.clone())?.0.clone()),
            Self::FramedBehind => Some(frame(&mut envelope.clone())?.1.clone()),
        }
    }

    fn spellings(self) -> &'static [Spelling] {
        match self {
            Self::FramedBefore | Self::FramedBehind => &[Spelling::Bytes],
            _ => &IN_TEXT,
        }
    }
}

impl Spelling {
    fn write(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Bytes => bytes.to_vec(),
            Self::Hex => digest::hex(bytes).into_bytes(),
            Self::UpperHex => digest::hex(bytes).to_uppercase().into_bytes(),
            Self::Base64 { url, padded } => engine(url, padded).encode(bytes).into_bytes(),
            Self::Decimal => {
                // More than eight bytes make no number that anybody writes.
                let number = bytes.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
                number.to_string().into_bytes()
            }
        }
    }
}

const ALGORITHMS: [Algorithm; 5] =
    [Algorithm::Sha256, Algorithm::Crc32, Algorithm::Md5, Algorithm::Sha1, Algorithm::Sha512];
const IN_TEXT: [Spelling; 7] = [
    Spelling::Hex,
    Spelling::UpperHex,
    Spelling::Base64 { url: true, padded: false },
    Spelling::Base64 { url: true, padded: true },
    Spelling::Base64 { url: false, padded: true },
    Spelling::Base64 { url: false, padded: false },
    Spelling::Decimal,
];
/// `.` and `--`.
const SEPARATORS: [usize; 2] = [1, 2];
const SHORTEST_CHECKSUM: usize = 4;
const SHORTEST_DIGEST: usize = 8;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const JSON: &str = r#"{"user":"alice","amount":25}"#;

    fn url64(bytes: impl AsRef<[u8]>) -> String {
        engine(true, false).encode(bytes)
    }

    /// The same state, of this document.
    type Issue = fn(&str) -> String;

    const KEYLESS: [(&str, Issue); 10] = [
        ("SHA-256", |json| format!("{}.{}", url64(json), digest::hex(&Algorithm::Sha256.of(json.as_bytes())))),
        ("SHA-256", |json| format!("{}.{}", url64(json), url64(Algorithm::Sha256.of(url64(json).as_bytes())))),
        ("SHA-256", |json| {
            format!("v1.{}.{}", url64(json), url64(Algorithm::Sha256.of(format!("v1.{}", url64(json)).as_bytes())))
        }),
        ("SHA-1", |json| format!("{}--{}", url64(json), digest::hex(&Algorithm::Sha1.of(url64(json).as_bytes())))),
        ("MD5", |json| format!("{}:{}", digest::hex(&Algorithm::Md5.of(json.as_bytes())), url64(json))),
        ("SHA-512", |json| format!("{}.{}", url64(json), &digest::hex(&Algorithm::Sha512.of(json.as_bytes()))[..16])),
        ("CRC-32", |json| format!("{}.{}", url64(json), digest::hex(&Algorithm::Crc32.of(json.as_bytes())))),
        ("CRC-32", |json| {
            let sum = Algorithm::Crc32.of(json.as_bytes()).try_into().map_or(0, u32::from_be_bytes);
            format!("{}.{sum}", url64(json))
        }),
        ("SHA-256", |json| url64([json.as_bytes(), &Algorithm::Sha256.of(json.as_bytes())].concat())),
        ("MD5", |json| url64([&Algorithm::Md5.of(json.as_bytes()), json.as_bytes()].concat())),
    ];

    #[test]
    fn a_tag_without_a_key_is_recognised_and_made_anew() {
        for (at, (name, issue)) in KEYLESS.into_iter().enumerate() {
            let state = issue(JSON);
            let recipe = Recipe::of(&state).unwrap_or_else(|| panic!("{at}: {state}"));
            assert_eq!(recipe.name(), name, "{at}");
            let altered =
                Envelope::read(&state).and_then(|envelope| envelope.with("/amount", &json!(26))).expect("altered");
            assert_eq!(recipe.apply(&altered), Some(issue(&JSON.replace("25", "26"))), "{at}");
        }
    }

    #[test]
    fn a_tag_that_nobody_else_can_make_is_none() {
        let key = [7; 32];
        let keyed = Algorithm::Sha256.of(&[&key, JSON.as_bytes()].concat());
        for state in [
            JSON.to_owned(),
            url64(JSON),
            format!("{}.{}", url64(JSON), url64(&keyed)),
            format!("{}.{}", url64(JSON), digest::hex(&keyed)),
            format!("{}.v1", url64(JSON)),
            url64([JSON.as_bytes(), &keyed].concat()),
        ] {
            assert_eq!(Recipe::of(&state), None, "{state}");
        }
    }
}
