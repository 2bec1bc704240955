//! Secret text, which neither prints nor lingers and is compared in constant time; and the one source of randomness.

use std::fmt;

use aws_lc_rs::{constant_time, digest};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use zeroize::Zeroizing;

/// Text that must not be seen: a handle, a subject, a token.
///
/// Debug shows a fingerprint, so that equal secrets can be matched up; there is no Display.
#[derive(Clone)]
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    /// Takes the text in.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The text itself, for the one place that needs it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl PartialEq for SecretText {
    fn eq(&self, other: &Self) -> bool {
        constant_time::verify_slices_are_equal(self.0.as_bytes(), other.0.as_bytes()).is_ok()
    }
}

impl Eq for SecretText {}

impl fmt::Debug for SecretText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest = digest::digest(&digest::SHA256, self.0.as_bytes());
        write!(out, "SecretText(sha256:{}..)", hex(&digest.as_ref()[..4]))
    }
}

/// 32 bytes in base64url without padding, in their one canonical spelling.
pub(crate) fn decode32(text: &[u8]) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    let exact = text.len() == 43 && URL_SAFE_NO_PAD.decode_slice(text, &mut bytes).ok()? == 32;
    exact.then_some(bytes)
}

/// 32 bytes from the operating system.
pub(crate) fn random() -> Zeroizing<[u8; 32]> {
    let mut bytes = Zeroizing::new([0; 32]);
    fill(bytes.as_mut_slice());
    bytes
}

/// Fills this with bytes from the operating system: the one source of randomness.
pub(crate) fn fill(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the operating system gives random bytes");
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_secret() {
        assert!(!format!("{:?}", SecretText::new("a very secret subject")).contains("secret subject"));
    }

    #[test]
    fn equal_secrets_have_equal_fingerprints() {
        let text = |text: &str| format!("{:?}", SecretText::new(text));

        assert_eq!(text("a"), text("a"));
        assert_ne!(text("a"), text("b"));
    }

    #[test]
    fn one_text_has_one_spelling() {
        let text = URL_SAFE_NO_PAD.encode([0xff; 32]);
        let other = format!("{}9", &text[..42]);

        assert!(decode32(text.as_bytes()).is_some());
        assert_ne!(text, other);
        assert_eq!(decode32(other.as_bytes()), None, "the last character has bits to spare, which must be zero");
    }
}
