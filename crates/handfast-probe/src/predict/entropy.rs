//! Of how many ids one is drawn, at most. A bound from above: what looks arbitrary may still be made by a rule.

use std::collections::BTreeSet;

/// The bits of a choice from which these ids can have been drawn, at most, with 95 of 100 confidence.
///
/// A place at which they differ counts as many bits as the smallest usual alphabet that holds all that differs. A place at
/// which all are the same is not drawn, as far as a sample can tell: a value that came up every time of `n` has a chance of
/// at least `0.05^(1/n)`, which is that many bits and no more.
pub(crate) fn bits(ids: &[String]) -> f64 {
    let longest = ids.iter().map(String::len).max().unwrap_or(0);
    let count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
    if longest == 0 || count < 2 {
        return 0.0;
    }
    let place = |at: usize| ids.iter().map(|id| id.as_bytes().get(at).copied()).collect::<BTreeSet<_>>();
    let places: Vec<BTreeSet<Option<u8>>> = (0..longest).map(place).collect();
    let is_sign = |seen: &BTreeSet<Option<u8>>| seen.iter().flatten().any(u8::is_ascii_alphanumeric);
    let (drawn, fixed): (Vec<_>, Vec<_>) = places.iter().filter(|seen| is_sign(seen)).partition(|seen| seen.len() > 1);
    let all = || drawn.iter().flat_map(|seen| seen.iter().flatten().copied());
    let size = match () {
        () if all().all(|byte| !byte.is_ascii_alphabetic()) => 10.0,
        () if all().all(|byte| !byte.is_ascii_alphanumeric() || byte.is_ascii_hexdigit()) => 16.0,
        () if !all().any(|byte| byte.is_ascii_uppercase()) || !all().any(|byte| byte.is_ascii_lowercase()) => 36.0,
        () => 64.0_f64,
    };
    let of_one = -0.05_f64.log2() / f64::from(count);
    let number = |places: &[_]| f64::from(u32::try_from(places.len()).unwrap_or(u32::MAX));
    size.log2() * number(&drawn) + of_one * number(&fixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ids: &[&str]) -> f64 {
        bits(&ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn the_choice_is_bounded_by_what_differs() {
        let digits: Vec<String> = (0..24).map(|at| format!("s-{:04}", at * 397 % 10_000)).collect();
        assert!((13.0..14.0).contains(&bits(&digits)), "{}", bits(&digits));
        let random: Vec<String> = (0..24).map(|_| crate::random::hex(16)).collect();
        assert!((127.9..128.1).contains(&bits(&random)), "{}", bits(&random));
        assert_eq!(of(&[]), 0.0);
        assert_eq!(of(&["one"]), 0.0);
    }

    #[test]
    fn what_never_changes_is_no_choice_worth_speaking_of() {
        let same: Vec<String> = (0..24).map(|_| "abcdef".to_owned()).collect();
        assert!(bits(&same) < 1.2, "{}", bits(&same));
        let uuid = ["123e4567-e89b-42d3-a456-426614174000", "00000000-0000-4000-8000-000000000000"];
        assert!(of(&uuid) > 90.0);
    }

    #[test]
    fn signs_between_are_none() {
        assert_eq!(of(&["----", "----"]), 0.0);
    }
}
