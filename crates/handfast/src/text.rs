//! Identifiers as types: each is parsed once, at the edge, and two of them cannot be confused. None may be empty,
//! because an empty identifier is no identifier, and none may hold control characters.

use thiserror::Error;

/// Why a text is not the identifier that it should be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what} {problem}")]
pub struct TextError {
    what: &'static str,
    problem: Problem,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
enum Problem {
    #[error("must not be empty")]
    Empty,
    #[error("has {0} bytes; at most {1} are allowed")]
    TooLong(usize, usize),
    #[error("has a control character at byte {0}")]
    Control(usize),
    #[error("may not contain {0:?}; allowed are printable ASCII characters but space, `\"` and `\\`")]
    NotInScope(char),
    #[error("must be lower-case letters, digits, `_` or `-`, and begin with a letter")]
    NotAName,
}

pub(crate) fn plain(what: &'static str, text: &str, most: usize) -> Result<(), TextError> {
    let fails = |problem| Err(TextError { what, problem });
    if text.chars().all(|character| character.is_whitespace() || invisible(character)) {
        return fails(Problem::Empty);
    }
    if text.len() > most {
        return fails(Problem::TooLong(text.len(), most));
    }
    match text.char_indices().find(|(_, character)| character.is_control()) {
        Some((at, _)) => fails(Problem::Control(at)),
        None => Ok(()),
    }
}

/// Whether nobody sees it: a name made of such characters alone is no name.
fn invisible(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// A scope of OAuth: RFC 6749, section 3.3, `scope-token`.
pub(crate) fn scope(what: &'static str, text: &str, most: usize) -> Result<(), TextError> {
    plain(what, text, most)?;
    let allowed = |character: char| matches!(character, '!' | '#'..='[' | ']'..='~');
    match text.chars().find(|character| !allowed(*character)) {
        Some(other) => Err(TextError { what, problem: Problem::NotInScope(other) }),
        None => Ok(()),
    }
}

/// A word that is written in policies, schemas and handles.
pub(crate) fn name(what: &'static str, text: &str, most: usize) -> Result<(), TextError> {
    plain(what, text, most)?;
    let begins = text.starts_with(|first: char| first.is_ascii_lowercase());
    let goes_on = text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'));
    if begins && goes_on { Ok(()) } else { Err(TextError { what, problem: Problem::NotAName }) }
}

/// One identifier: its name in errors, its syntax, its greatest length in bytes.
macro_rules! identifier {
    ($(#[$doc:meta])* $type:ident, $what:literal, $syntax:path, $most:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        pub struct $type(String);

        impl $type {
            /// Parses the text; an empty one, one that is too long and one with control characters are refused.
            ///
            /// # Errors
            /// Says what is wrong with the text, without repeating it.
            pub fn new(text: impl Into<String>) -> Result<Self, $crate::text::TextError> {
                let text = text.into();
                $syntax($what, &text, $most)?;
                Ok(Self(text))
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str(&self.0)
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::text::TextError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::new(text)
            }
        }
    };
}
pub(crate) use identifier;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_empty_or_blank_is_no_identifier() {
        for blank in ["", " ", "\t\n", "\u{a0}", "\u{200b}", "\u{feff} ", "\u{ad}\u{2060}"] {
            assert!(plain("it", blank, 9).is_err(), "{blank:?}");
        }
        assert!(plain("it", "a b", 9).is_ok());
    }

    #[test]
    fn lengths_are_counted_in_bytes() {
        assert!(plain("it", "ééé", 6).is_ok());
        assert!(plain("it", "ééé", 5).is_err());
    }

    #[test]
    fn control_characters_are_told_by_their_place() {
        let error = plain("a tenant", "ab\0c", 9).expect_err("refused");

        assert_eq!(error.to_string(), "a tenant has a control character at byte 2");
    }

    #[test]
    fn scopes_are_those_of_oauth() {
        for good in ["basket:read", "a.b/c", "!", "~", "[]"] {
            assert!(scope("a scope", good, 99).is_ok(), "{good}");
        }
        for bad in ["a b", "a\"", "a\\", "é", "a\u{7f}"] {
            assert!(scope("a scope", bad, 99).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn names_begin_with_a_letter() {
        for good in ["basket", "b2", "a_b-c"] {
            assert!(name("a name", good, 99).is_ok(), "{good}");
        }
        for bad in ["2b", "_a", "Basket", "a b", "a.b", "ä"] {
            assert!(name("a name", bad, 99).is_err(), "{bad}");
        }
    }
}
