//! How an id may be read before it is looked at for a series: as it stands, or as base64 of something.

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use handfast_wire::text::is_printable;

/// One way to read an id; `None` where it cannot be read so.
pub(super) struct View {
    /// What is said of ids in which a series is seen so.
    pub(super) how: &'static str,
    pub(super) read: fn(&str) -> Option<String>,
}

/// The plainest first.
pub(super) const VIEWS: [View; 4] = [
    View { how: "", read: |id| Some(id.to_owned()) },
    View { how: ", read as base64 of a text", read: text_in_base64 },
    View { how: ", read as base64 of a number", read: number_in_base64 },
    View { how: ", read as a number in base 36", read: number_in_base36 },
];

fn text_in_base64(id: &str) -> Option<String> {
    String::from_utf8(bytes_of(id)?).ok().filter(|text| text.chars().all(is_printable))
}

fn number_in_base64(id: &str) -> Option<String> {
    let bytes = bytes_of(id)?;
    (bytes.len() <= WIDEST).then(|| bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn number_in_base36(id: &str) -> Option<String> {
    let is_one = id.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase());
    let number = is_one.then(|| u128::from_str_radix(id, 36).ok()).flatten()?;
    Some(format!("{number:032x}"))
}

fn bytes_of(id: &str) -> Option<Vec<u8>> {
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let alphabets = [&alphabet::URL_SAFE, &alphabet::STANDARD];
    let decoded = alphabets.into_iter().find_map(|alphabet| GeneralPurpose::new(alphabet, config).decode(id).ok());
    decoded.filter(|bytes| !bytes.is_empty())
}

/// In how many bits of a choice these ids seem to be drawn, at most: the characters that differ, each of the smallest usual
/// alphabet that holds them all.
pub(super) fn bits(ids: &[String]) -> f64 {
    let Some(first) = ids.first() else { return 0.0 };
    let common = |other: &String| first.bytes().zip(other.bytes()).take_while(|(one, two)| one == two).count();
    let kept = ids.iter().skip(1).map(common).min().unwrap_or(0);
    let drawn = || ids.iter().flat_map(move |id| id.bytes().skip(kept)).filter(u8::is_ascii_alphanumeric);
    let size = match () {
        () if drawn().all(|byte| byte.is_ascii_digit()) => 10.0,
        () if drawn().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) => 16.0,
        () if !drawn().any(|byte| byte.is_ascii_uppercase()) => 36.0,
        () => 64.0_f64,
    };
    let longest = ids.iter().map(|id| id.len().saturating_sub(kept)).max().unwrap_or(0);
    size.log2() * f64::from(u32::try_from(longest).unwrap_or(u32::MAX))
}

/// Bytes that a number may have.
const WIDEST: usize = 16;

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

    use super::*;

    #[test]
    fn what_is_inside_base64_is_read() {
        assert_eq!(text_in_base64(&STANDARD.encode("session-12")).as_deref(), Some("session-12"));
        assert_eq!(text_in_base64(&URL_SAFE_NO_PAD.encode("session-12")).as_deref(), Some("session-12"));
        assert_eq!(number_in_base64(&URL_SAFE_NO_PAD.encode([0, 0, 1, 2])).as_deref(), Some("00000102"));
        assert_eq!(number_in_base64(&URL_SAFE_NO_PAD.encode([7; 17])), None);
        for other in ["", "!", "a"] {
            assert!(text_in_base64(other).is_none() && number_in_base64(other).is_none(), "{other}");
        }
    }

    #[test]
    fn a_number_in_base_36_is_read() {
        assert_eq!(number_in_base36("10").as_deref(), Some("00000000000000000000000000000024"));
        for other in ["", "A1", "a-1", "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"] {
            assert_eq!(number_in_base36(other), None, "{other}");
        }
    }

    #[test]
    fn the_choice_is_bounded_by_what_differs() {
        let ids = |all: &[&str]| bits(&all.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>()).round();
        assert_eq!(ids(&["s-0417", "s-9122", "s-3300"]), 13.0);
        assert_eq!(ids(&["9f3c11aa90b14c2e", "01b2c3d4e5f60718"]), 64.0);
        assert!(ids(&["123e4567-e89b-42d3-a456-426614174000", "00000000-0000-4000-8000-000000000000"]) > 120.0);
        assert_eq!(ids(&[]), 0.0);
    }
}
