//! What a caller sent, as a server may say it again: decoded, in another case, with other separators, cut short. Nothing of
//! that is news, and a canary that stands in it testifies to nothing.

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use crate::canary::{self, Canary};

/// Whether a canary stands in anything that was sent, however that is read.
pub fn carries(sent: &[String], canary: &Canary) -> bool {
    sent.iter().any(|text| readings(text).iter().any(|reading| canary.is_in(reading)))
}

/// Whether a value is nothing but a part of what was sent, however that is read and written.
pub fn repeats(sent: &[String], value: &str) -> bool {
    let bare = canary::bare(value);
    let holds = |text: &String| {
        text.contains(value) || (bare.len() >= SHORTEST_VALUE && canary::bare(text).contains(bare.as_str()))
    };
    sent.iter().any(|text| readings(text).iter().any(holds))
}

/// A text as it is, and what comes out where it is decoded, once or several times over.
fn readings(text: &str) -> Vec<String> {
    let mut found = vec![text.to_owned()];
    let mut next = 0;
    while let Some(text) = found.get(next).filter(|text| text.len() <= LONGEST).cloned() {
        next += 1;
        for reading in decoded(&text) {
            if found.len() < MOST_READINGS && !found.contains(&reading) {
                found.push(reading);
            }
        }
    }
    found
}

fn decoded(text: &str) -> Vec<String> {
    let mut bytes: Vec<Vec<u8>> = text.contains('%').then(|| percent_decoded(text)).into_iter().collect();
    // A prefix may belong to the same alphabet: one of the four beginnings is the right one.
    for run in runs(text, |c| c.is_ascii_alphanumeric() || "+/-_".contains(c), SHORTEST_BASE64) {
        let plain: String = run.replace('-', "+").replace('_', "/");
        bytes.extend((0..4).filter_map(|from| {
            let part = &plain[from..];
            let whole = part.len() - usize::from(part.len() % 4 == 1);
            BASE64.decode(&part[..whole]).ok()
        }));
    }
    for run in runs(text, |c| c.is_ascii_hexdigit(), SHORTEST_HEX) {
        bytes.extend((0..2).map(|from| from_hex(&run.as_bytes()[from..])));
    }
    bytes.iter().filter(|bytes| holds_words(bytes)).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
}

/// The longest parts of a text that are of these characters only.
fn runs(text: &str, of: impl Fn(char) -> bool, shortest: usize) -> impl Iterator<Item = &str> {
    text.split(move |c| !of(c)).filter(move |run| run.len() >= shortest)
}

/// What is no encoding decodes to noise.
fn holds_words(bytes: &[u8]) -> bool {
    bytes.split(|byte| !(b' '..=b'~').contains(byte)).any(|run| run.len() >= SHORTEST_VALUE)
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let (bytes, mut plain, mut at) = (text.as_bytes(), Vec::new(), 0);
    while at < bytes.len() {
        let byte = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%').and_then(hex_byte);
        plain.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    plain
}

fn from_hex(digits: &[u8]) -> Vec<u8> {
    digits.chunks_exact(2).filter_map(hex_byte).collect()
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    let digits = digits.iter().all(u8::is_ascii_hexdigit).then_some(digits)?;
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Reads what is written with or without padding, and whatever the last bits are.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
const MOST_READINGS: usize = 64;
const LONGEST: usize = 64 * 1024;
const SHORTEST_BASE64: usize = 12;
const SHORTEST_HEX: usize = 16;
/// What is shorter stands in many texts by chance.
const SHORTEST_VALUE: usize = 6;

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

    use super::*;

    fn canary() -> Canary {
        Canary { long: "hf-a0010011-canary".to_owned(), short: "hfa0010011".to_owned() }
    }

    #[test]
    fn a_canary_is_seen_in_whatever_was_sent() {
        let long = canary().long;
        let hex: String = long.bytes().map(|byte| format!("{byte:02x}")).collect();
        for sent in [
            long.clone(),
            format!("{}-3", long.to_uppercase()),
            "page://hf%2Da0010011%2520canary".to_owned(),
            "hf.%20a0010011.%20canary%20no%203".to_owned(),
            "page://hf.%2520a0010011.%2520canary".to_owned(),
            STANDARD.encode(&long),
            URL_SAFE_NO_PAD.encode(format!(r#"{{"after":"{long}"}}"#)),
            format!("c_{}.9f3a", URL_SAFE_NO_PAD.encode(&long)),
            format!("cursor-{}", URL_SAFE_NO_PAD.encode(URL_SAFE_NO_PAD.encode(&long))),
            format!("n{hex}"),
        ] {
            assert!(carries(std::slice::from_ref(&sent), &canary()), "{sent}");
        }
    }

    #[test]
    fn nothing_is_seen_in_what_does_not_hold_it() {
        for sent in
            ["", "%", "%zz", "bsk-1a2b3c4d5e6f7a8b", "hf-a0010012-canary", &STANDARD.encode("hf-b0010011-canary")]
        {
            assert!(!carries(&[sent.to_owned()], &canary()), "{sent}");
        }
        assert!(!carries(&["hf-a00".to_owned(), "10011".to_owned()], &canary()), "two halves are none");
    }

    #[test]
    fn a_value_is_an_echo_however_it_is_written() {
        let sent = [URL_SAFE_NO_PAD.encode("Quarterly Report 2026"), "basket-17".to_owned()];
        for echo in ["Quarterly Report 2026", "quarterly-report-2026", "BASKET_17", "port 2026"] {
            assert!(repeats(&sent, echo), "{echo}");
        }
        for news in ["annual-report-2026", "basket-18", "b-1-7-9"] {
            assert!(!repeats(&sent, news), "{news}");
        }
    }
}
