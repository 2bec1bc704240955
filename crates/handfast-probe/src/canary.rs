//! Canaries: words that the probe plants and that nobody else would write. One for each object, so that an answer that
//! carries one shows *whose* object it came from.

use crate::{identity::Who, random};

/// A planted word. Servers cut labels, change their case and make slugs of them: the telling part comes first, and only
/// its letters and digits count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canary {
    /// `hf-a007b4e1-canary`: the short form with a dash in it, and a word for whoever finds it in a database.
    pub long: String,
    /// `hfa007b4e1`: ten letters and digits.
    pub short: String,
}

impl Canary {
    /// Whether a text carries it, in any case and with any separators.
    pub fn is_in(&self, text: &str) -> bool {
        bare(text).contains(&self.short)
    }
}

/// Letters and digits of a text, in lower case.
pub(crate) fn bare(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Makes the canaries of one run.
#[derive(Debug)]
pub struct Canaries {
    nonce: String,
    made: usize,
}

impl Canaries {
    /// A source with a nonce of its own.
    pub fn new() -> Self {
        Self { nonce: random::hex(2), made: 0 }
    }

    /// Whether a text holds any canary of this run.
    pub fn planted(&self, text: &str) -> bool {
        // `hf`, a letter, three digits, the nonce: four hexadecimal digits alone stand in many a handle.
        let bare = bare(text);
        bare.match_indices(&self.nonce)
            .any(|(at, _)| at >= DIGITS_BEFORE_NONCE && bare[at - DIGITS_BEFORE_NONCE..].starts_with(PREFIX))
    }

    /// Whether a text holds a canary that was made for this caller.
    pub fn planted_by(&self, who: Who, text: &str) -> bool {
        let (bare, letter) = (bare(text), who.letter());
        bare.match_indices(&self.nonce)
            .any(|(at, _)| at >= 6 && bare[at - 6..].starts_with(&format!("{PREFIX}{letter}")))
    }

    /// Whether a text is a canary of this run and hardly more: a label, not a slug that a server made of one.
    pub fn is_one(&self, text: &str) -> bool {
        self.planted(text) && bare(text).len() <= LONGEST
    }

    /// The canaries of this caller that stand in a text, each once.
    pub fn those_in(&self, text: &str, who: Who) -> Vec<Canary> {
        let bare = bare(text);
        let begin = |at: usize| at.checked_sub(DIGITS_BEFORE_NONCE).map(|from| &bare[from..at + self.nonce.len()]);
        let shorts = bare.match_indices(&self.nonce).filter_map(|(at, _)| begin(at));
        let mut found: Vec<Canary> = Vec::new();
        for short in
            shorts.filter(|short| short.strip_prefix(PREFIX).is_some_and(|rest| rest.starts_with(who.letter())))
        {
            let long = format!("{PREFIX}-{}-{WORD}", &short[PREFIX.len()..]);
            if !found.iter().any(|known| known.long == long) {
                found.push(Canary { long, short: short.to_owned() });
            }
        }
        found
    }

    /// A fresh canary for what this caller plants.
    pub fn fresh(&mut self, who: Who) -> Canary {
        self.made += 1;
        let (letter, nonce, number) = (who.letter(), &self.nonce, self.made % 1000);
        Canary {
            long: format!("{PREFIX}-{letter}{number:03}{nonce}-{WORD}"),
            short: format!("{PREFIX}{letter}{number:03}{nonce}"),
        }
    }
}

impl Default for Canaries {
    fn default() -> Self {
        Self::new()
    }
}

/// `hf`, a letter, three digits.
const DIGITS_BEFORE_NONCE: usize = 6;
/// Letters and digits of a long canary.
const LONGEST: usize = 16;
/// How every canary begins.
pub const PREFIX: &str = "hf";
/// How every long canary ends.
pub const WORD: &str = "canary";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canary_is_found_however_a_server_writes_it() {
        let canary = Canaries::new().fresh(Who::A);
        for text in [
            format!("<b>{}</b>", canary.long),
            canary.long.to_uppercase(),
            canary.long.replace('-', "_"),
            canary.long[..12].to_owned(),
            canary.short.clone(),
        ] {
            assert!(canary.is_in(&text), "{text}");
        }
        assert!(!canary.is_in(&canary.short[..9]));
    }

    #[test]
    fn the_canaries_in_a_text_are_those_of_one_caller() {
        let mut canaries = Canaries::new();
        let (a, other, b) = (canaries.fresh(Who::A), canaries.fresh(Who::A), canaries.fresh(Who::B));
        let text = format!("{} / {} / {} / {}", a.long.to_uppercase(), b.long, other.short, a.long);
        assert_eq!(canaries.those_in(&text, Who::A), [a, other]);
        assert_eq!(canaries.those_in(&text, Who::B), [b]);
        assert_eq!(canaries.those_in("hf-a001", Who::A), []);
    }

    #[test]
    fn a_label_is_told_from_a_slug_and_from_chance() {
        let mut canaries = Canaries::new();
        let canary = canaries.fresh(Who::B);
        assert!(canaries.is_one(&canary.long) && canaries.is_one(&canary.short));
        assert!(canaries.planted(&format!("{}-17", canary.long)) && !canaries.is_one(&format!("{}-17", canary.long)));
        assert!(!canaries.planted(&format!("ws-0f{}77", &canary.short[6..])), "a nonce alone is chance");
        assert!(canaries.planted_by(Who::B, &canary.long) && !canaries.planted_by(Who::A, &canary.long));
    }
}
