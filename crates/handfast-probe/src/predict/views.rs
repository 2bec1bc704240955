//! How an id may be read before it is looked at for a series: as it stands, or as base64 of something.

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use handfast_wire::text::is_printable;

use super::digests;

/// One way to read an id; `None` where it cannot be read so.
pub(super) struct View {
    /// What is said of ids in which a series is seen so.
    pub(super) how: &'static str,
    pub(super) read: fn(&str) -> Option<String>,
}

/// The plainest first.
pub(super) const VIEWS: [View; 7] = [
    View { how: "", read: |id| Some(id.to_owned()) },
    View { how: ", read as base64 of a text", read: text_in_base64 },
    View { how: ", read as base64 of a number", read: number_in_base64 },
    View { how: ", read as a number in base 36", read: |id| of_its_end(id, number_in_base36) },
    View { how: ", read as a number in base 62", read: |id| of_its_end(id, |end| number_in(end, UPPER_FIRST)) },
    View { how: ", read as a number in base 62", read: |id| of_its_end(id, |end| number_in(end, LOWER_FIRST)) },
    View { how: ", read as a digest of a small number", read: digests::small_number },
];

/// `bsk_0k3f` is a name and a number.
fn of_its_end(id: &str, read: impl Fn(&str) -> Option<String>) -> Option<String> {
    let start = id
        .rfind(|c: char| !c.is_ascii_alphanumeric())
        .map_or(0, |at| at + id[at..].chars().next().map_or(1, char::len_utf8));
    Some(format!("{}{}", &id[..start], read(&id[start..])?))
}

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

fn number_in(id: &str, alphabet: &str) -> Option<String> {
    let digit = |c: char| alphabet.find(c).and_then(|at| u128::try_from(at).ok());
    let number = id.chars().try_fold(0_u128, |number, c| number.checked_mul(62)?.checked_add(digit(c)?))?;
    (!id.is_empty()).then(|| format!("{number:032x}"))
}

const UPPER_FIRST: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const LOWER_FIRST: &str = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

fn bytes_of(id: &str) -> Option<Vec<u8>> {
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let alphabets = [&alphabet::URL_SAFE, &alphabet::STANDARD];
    let decoded = alphabets.into_iter().find_map(|alphabet| GeneralPurpose::new(alphabet, config).decode(id).ok());
    decoded.filter(|bytes| !bytes.is_empty())
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
    fn a_number_in_base_62_is_read_in_both_orders() {
        assert_eq!(number_in("1A", UPPER_FIRST).as_deref(), Some("00000000000000000000000000000048"));
        assert_eq!(number_in("1a", LOWER_FIRST).as_deref(), Some("00000000000000000000000000000048"));
        for other in ["", "a-1", "zzzzzzzzzzzzzzzzzzzzzzzz"] {
            assert_eq!(number_in(other, UPPER_FIRST), None, "{other}");
        }
    }

    #[test]
    fn a_number_behind_a_name_is_read() {
        let read = |id| of_its_end(id, number_in_base36);
        assert_eq!(read("bsk_10").as_deref(), Some("bsk_00000000000000000000000000000024"));
        assert_eq!(read("10"), number_in_base36("10"));
        for other in ["", "bsk_", "bsk_é", "bsk_A1"] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn a_number_in_base_36_is_read() {
        assert_eq!(number_in_base36("10").as_deref(), Some("00000000000000000000000000000024"));
        for other in ["", "A1", "a-1", "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"] {
            assert_eq!(number_in_base36(other), None, "{other}");
        }
    }
}
