//! The bytes of an envelope, and their one spelling. `docs/envelope.md` says the same in words, for other languages.

use std::ops::Range;

use aws_lc_rs::aead::{Aad, NONCE_LEN, Nonce};
use base64_simd::URL_SAFE_NO_PAD;

use super::{SealError, StateDenial};
use crate::{
    clock::{Timestamp, from_micros},
    keys::{KeyId, KeyUse, Keys},
    secret::fill,
};

/// How every envelope begins, so that people and scanners recognise it.
const MARK: &str = "hf1.";
/// The version of the format, and the cipher: AES-256-GCM-SIV.
const FORMAT: [u8; 2] = [1, 1];
/// What every authentication tag covers besides the header, so that no key's output means anything elsewhere.
const LABEL: &[u8] = b"handfast request state";

const HEADER: usize = FORMAT.len() + 8;
const TAG: usize = 16;
/// The times, the round and the id, which come first inside.
const FIXED: usize = ID + 8 + 8 + 8 + 2;
const ID: usize = 16;

/// How many bytes an envelope has at most inside.
const MOST_INSIDE: usize = 64 * 1024;
/// How many keys of questions, and how many bytes each of them has at most.
const MOST_ASKED: usize = 64;
const LONGEST_ASKED: usize = 256;
/// How long the text of an envelope is at most. Nothing longer is looked at.
const LONGEST: usize = MARK.len() + (HEADER + NONCE_LEN + MOST_INSIDE + TAG).div_ceil(3) * 4;

/// What goes into an envelope, but the id, the binding and the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Terms<'c> {
    pub(super) issued: Timestamp,
    pub(super) expires: Timestamp,
    pub(super) deadline: Timestamp,
    pub(super) round: u16,
    pub(super) asked: &'c [&'c str],
}

/// Seals this under the key that seals: the text of the envelope.
pub(super) fn seal(
    terms: &Terms<'_>,
    binding: impl FnOnce(&mut Vec<u8>),
    state: &[u8],
    keys: &Keys,
) -> Result<String, SealError> {
    let (key_id, key) = keys.sealing();
    // The nonce and the id are drawn in one call: it is a third of the work.
    let mut random = [0; NONCE_LEN + ID];
    fill(&mut random);
    let (nonce, id) = random.split_first_chunk::<NONCE_LEN>().expect("as many as were drawn");
    let mut bytes = Vec::with_capacity(512 + state.len());
    bytes.extend_from_slice(&FORMAT);
    bytes.extend_from_slice(key_id.as_bytes());
    bytes.extend_from_slice(nonce);
    bytes.extend_from_slice(id);
    terms.write(binding, &mut bytes)?;
    bytes.extend_from_slice(state);
    if bytes.len() - HEADER - NONCE_LEN > MOST_INSIDE {
        return Err(SealError::TooLarge);
    }
    let (header, rest) = bytes.split_at_mut(HEADER);
    let tag = key
        .seal_in_place_separate_tag(Nonce::assume_unique_for_key(*nonce), associated(header), &mut rest[NONCE_LEN..])
        .expect("what is inside is far below what the cipher takes");
    bytes.extend_from_slice(tag.as_ref());
    let mut text = String::with_capacity(MARK.len() + bytes.len().div_ceil(3) * 4);
    text.push_str(MARK);
    URL_SAFE_NO_PAD.encode_append(bytes, &mut text);
    Ok(text)
}

/// An envelope that was found authentic, and its bytes.
pub(super) struct Authentic {
    bytes: Vec<u8>,
    end: usize,
}

/// The key id in the header of an envelope, without a look at anything else.
pub(super) fn key_of(text: &str) -> Result<KeyId, StateDenial> {
    let bytes = decode(text)?;
    Ok(KeyId::from_bytes(bytes[FORMAT.len()..HEADER].try_into().expect("8 bytes")))
}

/// Opens this text: its one spelling, its one key, every bit as it was sealed.
pub(super) fn open(text: &str, keys: &Keys) -> Result<Authentic, StateDenial> {
    let mut bytes = decode(text)?;
    let (header, rest) = bytes.split_at_mut(HEADER);
    // One key is tried, the one that the header names; and the header is under the tag.
    let id = KeyId::from_bytes(header[FORMAT.len()..].try_into().expect("8 bytes"));
    let key = match keys.state_key(id) {
        Some((KeyUse::Sealing | KeyUse::Opening, key)) => key,
        Some((KeyUse::Retired, _)) => return Err(StateDenial::RetiredKey),
        None => return Err(StateDenial::UnknownKey),
    };
    let (nonce, sealed) = rest.split_at_mut(NONCE_LEN);
    let nonce = Nonce::try_assume_unique_for_key(nonce).expect("12 bytes");
    let opened = key.open_in_place(nonce, associated(header), sealed).map_err(|_| StateDenial::Forged)?;
    let end = HEADER + NONCE_LEN + opened.len();
    Ok(Authentic { bytes, end })
}

fn decode(text: &str) -> Result<Vec<u8>, StateDenial> {
    if text.len() > LONGEST {
        return Err(StateDenial::TooLong);
    }
    let body = text.strip_prefix(MARK).ok_or(StateDenial::Malformed)?;
    // It takes no padding, and no bits beyond the last byte: an envelope has one spelling.
    let bytes = URL_SAFE_NO_PAD.decode_to_vec(body).map_err(|_| StateDenial::Malformed)?;
    if bytes.len() < HEADER + NONCE_LEN + FIXED + TAG {
        return Err(StateDenial::Malformed);
    }
    if bytes[..FORMAT.len()] != FORMAT { Err(StateDenial::UnknownFormat) } else { Ok(bytes) }
}

fn associated(header: &[u8]) -> Aad<[u8; LABEL.len() + HEADER]> {
    let mut data = [0; LABEL.len() + HEADER];
    data[..LABEL.len()].copy_from_slice(LABEL);
    data[LABEL.len()..].copy_from_slice(header);
    Aad::from(data)
}

/// What an authentic envelope has inside.
pub(super) struct Contents<'c> {
    pub(super) id: [u8; ID],
    pub(super) issued: Timestamp,
    pub(super) expires: Timestamp,
    pub(super) deadline: Timestamp,
    pub(super) round: u16,
    pub(super) binding: &'c [u8],
    pub(super) asked: &'c [u8],
    pub(super) state: &'c [u8],
}

impl Authentic {
    /// What is inside.
    pub(super) fn contents(&self) -> Result<Contents<'_>, StateDenial> {
        // Whoever has the key has written it, so this does not fail.
        Contents::read(&self.bytes[HEADER + NONCE_LEN..self.end]).ok_or(StateDenial::Malformed)
    }

    /// All of it, and where in it the keys of the questions stand and then the state, which are so long and stand last.
    pub(super) fn into_parts(self, asked: usize, state: usize) -> (Vec<u8>, Range<usize>, Range<usize>) {
        let begins = self.end - state;
        (self.bytes, begins - asked..begins, begins..self.end)
    }
}

impl Terms<'_> {
    fn write(&self, binding: impl FnOnce(&mut Vec<u8>), out: &mut Vec<u8>) -> Result<(), SealError> {
        for time in [self.issued, self.expires, self.deadline] {
            out.extend_from_slice(&time.as_microsecond().to_be_bytes());
        }
        out.extend_from_slice(&self.round.to_be_bytes());
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        binding(out);
        let length = u32::try_from(out.len() - at - 4).map_err(|_| SealError::TooLarge)?;
        out[at..at + 4].copy_from_slice(&length.to_be_bytes());
        if self.asked.len() > MOST_ASKED || self.asked.iter().any(|key| key.len() > LONGEST_ASKED) {
            return Err(SealError::TooManyQuestions);
        }
        out.push(u8::try_from(self.asked.len()).map_err(|_| SealError::TooManyQuestions)?);
        for key in self.asked {
            block(out, key.as_bytes());
        }
        Ok(())
    }
}

impl<'c> Contents<'c> {
    fn read(bytes: &'c [u8]) -> Option<Self> {
        let mut rest = bytes;
        let id = *chunk(&mut rest)?;
        let mut time = || chunk(&mut rest).map(|bytes| from_micros(i64::from_be_bytes(*bytes)));
        let (issued, expires, deadline) = (time()?, time()?, time()?);
        let round = u16::from_be_bytes(*chunk(&mut rest)?);
        let binding = read_block(&mut rest)?;
        let [count] = *chunk(&mut rest)?;
        let from = rest;
        for _ in 0..count {
            std::str::from_utf8(read_block(&mut rest)?).ok()?;
        }
        let asked = &from[..from.len() - rest.len()];
        Some(Self { id, issued, expires, deadline, round, binding, asked, state: rest })
    }
}

/// The keys of the questions, as they stand in [`Contents::asked`].
pub(super) fn asked(mut rest: &[u8]) -> impl Iterator<Item = &str> {
    // They have been read before, so they are text.
    std::iter::from_fn(move || std::str::from_utf8(read_block(&mut rest)?).ok())
}

fn block(out: &mut Vec<u8>, bytes: &[u8]) {
    // Never longer: what is inside has its bound far below, and is refused beyond it.
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(bytes);
}

fn read_block<'c>(rest: &mut &'c [u8]) -> Option<&'c [u8]> {
    let length = usize::try_from(u32::from_be_bytes(*chunk(rest)?)).ok()?;
    let (block, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(block)
}

fn chunk<'c, const N: usize>(rest: &mut &'c [u8]) -> Option<&'c [u8; N]> {
    let (chunk, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(chunk)
}
