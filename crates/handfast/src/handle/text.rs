//! A handle as text: 32 random bytes in base64url, after the prefix of its type where it has one. Nothing else is one.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{
    policy::Prefix,
    record::Digest,
    secret::{self, SecretText},
};

/// A handle, shown once: when it is minted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handle(SecretText);

impl Handle {
    /// A name that nobody has yet. "Keep handles opaque": it says nothing but its type.
    pub(crate) fn random(prefix: Option<&Prefix>) -> Self {
        let body = URL_SAFE_NO_PAD.encode(*secret::random());
        Self(SecretText::new(match prefix {
            Some(prefix) => format!("{prefix}_{body}"),
            None => body,
        }))
    }

    /// One that this server has made before, from where it was kept.
    pub(crate) fn known(text: &str) -> Self {
        Self(SecretText::new(text))
    }

    /// The text itself, to be put into a tool's result.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    /// What stores and audit events know it by.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(self.expose())
    }
}

/// The digest of a presented text that has the form of a handle; `None` for everything else.
#[must_use]
pub fn parse(presented: &[u8], prefix: Option<&Prefix>) -> Option<Digest> {
    let body = match prefix {
        Some(prefix) => presented.strip_prefix(prefix.as_str().as_bytes())?.strip_prefix(b"_")?,
        None => presented,
    };
    // Lengths are compared before any work is done. The digest is over the text as it was presented: a second spelling
    // of the same bytes would be another handle, and there is none.
    secret::decode32(body)?;
    Some(Digest::of(std::str::from_utf8(presented).ok()?))
}

/// The form as a pattern of JSON Schema.
pub(crate) fn pattern(prefix: Option<&Prefix>) -> String {
    match prefix {
        Some(prefix) => format!("^{prefix}_[A-Za-z0-9_-]{{43}}$"),
        None => "^[A-Za-z0-9_-]{43}$".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_the_text_itself_is_the_handle() {
        let prefix = Prefix::new("bsk").expect("a prefix");
        let handle = Handle::random(Some(&prefix));
        let text = handle.expose();
        let read = |text: &str| parse(text.as_bytes(), Some(&prefix));

        assert_eq!(read(text), Some(handle.digest()));
        for nearly in [
            text[4..].to_owned(),
            format!("{text}="),
            format!(" {text}"),
            format!("{text}\n"),
            format!("\u{feff}{text}"),
            text.replacen("bsk_", "BSK_", 1),
            text.replacen("bsk_", "bsk", 1),
            text.replacen("bsk_", "ord_", 1),
            text[..text.len() - 1].to_owned(),
            format!("{text}A"),
            format!("bsk_{}", "+".repeat(43)),
            format!("bsk_{}", "é".repeat(21) + "A"),
        ] {
            assert_eq!(read(&nearly), None, "{nearly:?}");
        }
        assert_eq!(parse(text.as_bytes(), None), None, "a prefix that the type does not have");
    }

    #[test]
    fn no_two_handles_are_alike() {
        let made: std::collections::BTreeSet<String> =
            (0..1000).map(|_| Handle::random(None).expose().to_owned()).collect();

        assert_eq!(made.len(), 1000);
    }

    #[test]
    fn debug_does_not_show_it() {
        let handle = Handle::random(None);

        assert!(!format!("{handle:?}").contains(handle.expose()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(parse(&bytes, None).is_some(), secret::decode32(&bytes).is_some());
        }

        #[test]
        fn one_changed_character_makes_another_handle(at in 0_usize..43, to in "[A-Za-z0-9_-]") {
            let handle = Handle::random(None);
            let mut text = handle.expose().to_owned();
            text.replace_range(at..=at, &to);
            prop_assume!(text != handle.expose());

            prop_assert_ne!(parse(text.as_bytes(), None), Some(handle.digest()));
        }
    }
}
