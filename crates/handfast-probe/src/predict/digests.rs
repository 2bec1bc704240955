//! Ids that are digests of something small: of what the caller said, or of a counter. They look arbitrary, and whoever
//! knows the rule makes them, too.

use std::{collections::HashMap, sync::LazyLock};

use super::Id;
use crate::digest::{self, Algorithm};

/// How programs shorten a text to an id.
const ALGORITHMS: [Algorithm; 3] = [Algorithm::Md5, Algorithm::Sha1, Algorithm::Sha256];

/// The digest in lower-case hexadecimal.
pub(super) fn hex(algorithm: Algorithm, text: &str) -> String {
    digest::hex(&algorithm.of(text.as_bytes()))
}

/// The algorithm by which all of these are digests of something that was said to get them.
pub(super) fn of_what_was_said(sample: &[Id]) -> Option<Algorithm> {
    let [first, rest @ ..] = sample else { return None };
    let algorithm = algorithm_of(first)?;
    rest.iter().all(|id| algorithm_of(id) == Some(algorithm)).then_some(algorithm)
}

/// The algorithm by which this is a digest, perhaps a shortened one, of something that was said to get it.
pub(super) fn algorithm_of(id: &Id) -> Option<Algorithm> {
    let digits = longest_hex(&id.text)?;
    let is_of = |algorithm: &Algorithm| id.sent.iter().any(|said| hex(*algorithm, said).starts_with(&digits));
    ALGORITHMS.into_iter().find(is_of)
}

/// The small number of which an id is a digest, as text.
pub(super) fn small_number(id: &str) -> Option<String> {
    let digits = longest_hex(id)?;
    let (number, whole) = NUMBERS.get(digits.get(..SHORTEST)?)?;
    whole.starts_with(&digits).then(|| number.to_string())
}

/// The longest run of hexadecimal digits, in lower case, if it is long enough to be a digest.
fn longest_hex(id: &str) -> Option<String> {
    let runs = id.split(|c: char| !c.is_ascii_hexdigit());
    runs.max_by_key(|run| run.len()).filter(|run| run.len() >= SHORTEST).map(str::to_ascii_lowercase)
}

/// The digests of the numbers that a young server counts to, by their first digits.
static NUMBERS: LazyLock<HashMap<String, (u32, String)>> = LazyLock::new(|| {
    let all = ALGORITHMS.into_iter().flat_map(|algorithm| (0..COUNTED).map(move |number| (algorithm, number)));
    let digests = all.map(|(algorithm, number)| (number, hex(algorithm, &number.to_string())));
    digests.map(|(number, whole)| (whole[..SHORTEST].to_owned(), (number, whole))).collect()
});

/// Digits that are not alike by chance.
const SHORTEST: usize = 12;
const COUNTED: u32 = 20_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_number_is_found_behind_its_digest_also_a_shortened_one() {
        for algorithm in ALGORITHMS {
            let whole = hex(algorithm, "417");
            assert_eq!(small_number(&whole).as_deref(), Some("417"), "{}", algorithm.name());
            assert_eq!(small_number(&format!("ws-{}", &whole[..16].to_uppercase())).as_deref(), Some("417"));
            let nearly = format!("{}0{}", &whole[..14], &whole[15..]);
            assert!(nearly == whole || small_number(&nearly).is_none());
        }
        for other in ["", "417", "0123456789abcdef", "ws-1"] {
            assert_eq!(small_number(other), None, "{other}");
        }
    }

    #[test]
    fn what_was_said_is_found_behind_its_digest() {
        let id = |said: &str, text: String| Id { text, sent: vec!["other".to_owned(), said.to_owned()] };
        let all = [id("a", hex(Algorithm::Sha1, "a")), id("b", hex(Algorithm::Sha1, "b"))];
        assert_eq!(of_what_was_said(&all), Some(Algorithm::Sha1));
        let mixed = [id("a", hex(Algorithm::Sha1, "a")), id("b", hex(Algorithm::Md5, "b"))];
        assert_eq!(of_what_was_said(&mixed), None);
        assert_eq!(of_what_was_said(&[id("a", hex(Algorithm::Md5, "c"))]), None);
        assert_eq!(of_what_was_said(&[]), None);
    }
}
