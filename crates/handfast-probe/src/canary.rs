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
        let bare: String = text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
        bare.contains(&self.short)
    }
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
        text.to_ascii_lowercase().contains(&self.nonce)
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

/// How every canary begins.
pub const PREFIX: &str = "hf";
/// How every long canary ends.
pub const WORD: &str = "canary";
