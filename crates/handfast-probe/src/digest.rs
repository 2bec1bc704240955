//! Digests that everybody can make: they have no key.

use aws_lc_rs::digest;
use md5::{Digest, Md5};

/// A way to shorten bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Md5,
    Sha1,
    Sha256,
    Sha512,
    Crc32,
}

impl Algorithm {
    /// How people write its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Md5 => "MD5",
            Self::Sha1 => "SHA-1",
            Self::Sha256 => "SHA-256",
            Self::Sha512 => "SHA-512",
            Self::Crc32 => "CRC-32",
        }
    }

    /// The digest of these bytes.
    pub(crate) fn of(self, bytes: &[u8]) -> Vec<u8> {
        let made = |algorithm| digest::digest(algorithm, bytes).as_ref().to_vec();
        match self {
            Self::Md5 => Md5::digest(bytes).to_vec(),
            Self::Sha1 => made(&digest::SHA1_FOR_LEGACY_USE_ONLY),
            Self::Sha256 => made(&digest::SHA256),
            Self::Sha512 => made(&digest::SHA512),
            Self::Crc32 => {
                let mut sum = flate2::Crc::new();
                sum.update(bytes);
                sum.sum().to_be_bytes().to_vec()
            }
        }
    }
}

/// Whether a value holds a good part of a digest of this text: what follows from what was sent, whoever may read it.
pub(crate) fn follows_from(value: &str, text: &str) -> bool {
    let value = value.to_ascii_lowercase();
    ALL.iter().any(|algorithm| {
        let digest = hex(&algorithm.of(text.as_bytes()));
        let starts = digest.len().min(LONGEST_START).saturating_sub(SHORTEST_PART);
        (0..=starts).any(|at| digest.get(at..at + SHORTEST_PART).is_some_and(|part| value.contains(part)))
    })
}

const ALL: [Algorithm; 5] = [Algorithm::Md5, Algorithm::Sha1, Algorithm::Sha256, Algorithm::Sha512, Algorithm::Crc32];
/// Six hexadecimal digits stand in a value by chance once in millions.
const SHORTEST_PART: usize = 6;
/// Whoever shortens a digest keeps its beginning, mostly.
const LONGEST_START: usize = 12;

/// In lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_from_a_text_is_known_by_its_digest() {
        let md5 = hex(&Algorithm::Md5.of(b"bsk-1"));
        for value in [md5.clone(), format!("req-{}", &md5[..8]), md5.to_uppercase()] {
            assert!(follows_from(&value, "bsk-1"), "{value}");
            assert!(!follows_from(&value, "bsk-2"), "{value}");
        }
        assert!(!follows_from("", "bsk-1") && !follows_from(&md5[..5], "bsk-1"));
    }

    #[test]
    fn digests_are_those_that_everybody_makes() {
        for (algorithm, of_one) in [
            (Algorithm::Md5, "c4ca4238a0b923820dcc509a6f75849b"),
            (Algorithm::Sha1, "356a192b7913b04c54574d18c28d46e6395428ab"),
            (Algorithm::Sha256, "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"),
            (Algorithm::Crc32, "83dcefb7"),
        ] {
            assert_eq!(hex(&algorithm.of(b"1")), of_one, "{}", algorithm.name());
        }
        assert!(hex(&Algorithm::Sha512.of(b"1")).starts_with("4dff4ea340f0a823f15d3f4f01ab62ea"));
    }
}
