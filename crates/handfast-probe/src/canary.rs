//! Canaries: words that the probe plants and that nobody else would write. One for each object, so that an answer that
//! carries one shows *whose* object it came from.

use crate::{identity::Who, random};

/// A planted word, in a long form and a short one for arguments of limited length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canary {
    /// `hf-canary-a-<nonce>-<number>`.
    pub long: String,
    /// `hfa<nonce><number>`, letters and digits only.
    pub short: String,
}

impl Canary {
    /// Whether a text carries it in either form, in any case and with any separators: servers make slugs of labels.
    pub fn is_in(&self, text: &str) -> bool {
        let text = bare(text);
        text.contains(&bare(&self.long)) || text.contains(&self.short)
    }
}

fn bare(text: &str) -> String {
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
        Self { nonce: random::hex(4), made: 0 }
    }

    /// Whether a text holds any canary of this run.
    pub fn planted(&self, text: &str) -> bool {
        text.contains(&self.nonce)
    }

    /// A fresh canary for what this caller plants.
    pub fn fresh(&mut self, who: Who) -> Canary {
        self.made += 1;
        let (letter, nonce, number) = (who.letter(), &self.nonce, self.made);
        Canary {
            long: format!("{PREFIX}-{WORD}-{letter}-{nonce}-{number:03}"),
            short: format!("{PREFIX}{letter}{nonce}{number:03}"),
        }
    }
}

impl Default for Canaries {
    fn default() -> Self {
        Self::new()
    }
}

/// First part of every canary.
pub const PREFIX: &str = "hf";
/// Second part of every long canary.
pub const WORD: &str = "canary";
