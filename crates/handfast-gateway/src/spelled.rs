//! A name of the server behind, however it is spelled in a text: as it is, in JSON's escapes, percent-encoded, or several of
//! these on top of one another. What stands around it is not touched.

use std::{borrow::Cow, collections::BTreeMap, ops::Range};

use aho_corasick::{AhoCorasick, MatchKind};

use crate::reveal::Known;

/// Finds names in texts: of two that begin at one place the longer one.
pub(crate) struct Finder<'k> {
    words: AhoCorasick,
    /// What each word is.
    is: Vec<Word<'k>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word<'k> {
    /// A name of theirs, with the handle that stands for it.
    Name(&'k str),
    /// A handle of ours: whatever seems to stand in it stands there by chance.
    Handle,
    /// A state of theirs, for which nothing stands.
    State,
}

impl<'k> Finder<'k> {
    /// For these names and states, as far as they are telling; `None` where none is.
    pub(crate) fn of(known: &'k Known, states: &[&str]) -> Option<Self> {
        let telling = |word: &&str| is_telling(word);
        let mut words: Vec<(&str, Word<'k>)> = Vec::new();
        for (outer, name) in known.iter().filter(|(_, name)| is_telling(&name.inner)) {
            words.push((&name.inner, Word::Name(outer)));
        }
        words.extend(states.iter().copied().filter(telling).map(|state| (state, Word::State)));
        if words.is_empty() {
            return None;
        }
        words.extend(known.iter().map(|(outer, _)| (outer, Word::Handle)));
        let (texts, is): (Vec<&str>, Vec<Word<'k>>) = words.into_iter().unzip();
        let words = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(texts).ok()?;
        Some(Self { words, is })
    }

    /// Where in a text names stand, and the handle for each.
    pub(crate) fn places(&self, text: &str) -> Vec<(Range<usize>, &'k str)> {
        let (mut found, mut bytes): (BTreeMap<usize, (usize, &'k str)>, _) =
            (BTreeMap::new(), Cow::Borrowed(text.as_bytes()));
        let mut at: Option<Vec<usize>> = None;
        for _ in 0..MOST_SPELLINGS {
            for hit in self.words.find_iter(&*bytes) {
                let Word::Name(outer) = self.is[hit.pattern().as_usize()] else { continue };
                let source = |place: usize| at.as_ref().map_or(place, |at| at[place]);
                let (start, end) = (source(hit.start()), source(hit.end()));
                let before = found.range(..end).next_back();
                if before.is_none_or(|(_, (end, _))| *end <= start) {
                    found.insert(start, (end, outer));
                }
            }
            let Some((next, from)) = decoded(&bytes, true) else { break };
            at = Some(match at {
                Some(at) => from.into_iter().map(|place| at[place]).collect(),
                None => from,
            });
            bytes = Cow::Owned(next);
        }
        found.into_iter().map(|(start, (end, outer))| (start..end, outer)).collect()
    }

    /// Whether a name or a state stands in a text.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        let mut bytes = Cow::Borrowed(text.as_bytes());
        for _ in 0..MOST_SPELLINGS {
            if self.words.find_iter(&*bytes).any(|hit| self.is[hit.pattern().as_usize()] != Word::Handle) {
                return true;
            }
            let Some((next, _)) = decoded(&bytes, true) else { return false };
            bytes = Cow::Owned(next);
        }
        // Nobody writes like that who does not hide something.
        true
    }
}

/// Where each byte of a JSON string's value, and its end, stands between the quotes: one more than it has bytes.
pub(crate) fn unescaped(quoted: &str) -> Vec<usize> {
    decoded(quoted.as_bytes(), false).map_or_else(|| (0..=quoted.len()).collect(), |(_, at)| at)
}

/// Bytes with one layer of JSON's escapes and, where it is asked for, of percent-encoding taken away, and where each byte
/// was; `None` where there is nothing to take away.
fn decoded(bytes: &[u8], percent: bool) -> Option<(Vec<u8>, Vec<usize>)> {
    if !bytes.iter().any(|byte| *byte == b'\\' || percent && *byte == b'%') {
        return None;
    }
    let (mut out, mut at, mut from, mut changed) = (Vec::with_capacity(bytes.len()), Vec::new(), 0, false);
    while from < bytes.len() {
        let rest = &bytes[from..];
        let mut utf8 = [0; 4];
        let (read, length) = match rest {
            [b'\\', b'u', ..] => match unicode(rest) {
                Some((read, length)) => (read.encode_utf8(&mut utf8).as_bytes(), length),
                None => (&rest[..1], 1),
            },
            [b'\\', escape, ..] => match ESCAPES.iter().find(|(escaped, _)| escaped == escape) {
                Some((_, read)) => (std::slice::from_ref(read), 2),
                None => (&rest[..1], 1),
            },
            [b'%', ..] if percent => match hex(rest.get(1..3)) {
                Some(byte) => {
                    utf8[0] = u8::try_from(byte).unwrap_or_default();
                    (&utf8[..1], 3)
                }
                None => (&rest[..1], 1),
            },
            _ => (&rest[..1], 1),
        };
        changed |= length > 1;
        out.extend_from_slice(read);
        at.extend(std::iter::repeat_n(from, read.len()));
        from += length;
    }
    at.push(bytes.len());
    changed.then_some((out, at))
}

/// The character of `\uXXXX`, or of two of them, and how long that is.
fn unicode(rest: &[u8]) -> Option<(char, usize)> {
    let first = hex(rest.get(2..6))?;
    if let Some(read) = char::from_u32(first) {
        return Some((read, 6));
    }
    let second = hex(rest.get(8..12)).filter(|_| rest.get(6..8) == Some(br"\u"))?;
    let is_pair = (0xd800..0xdc00).contains(&first) && (0xdc00..0xe000).contains(&second);
    let both = 0x10000 + ((first & 0x3ff) << 10) + (second & 0x3ff);
    char::from_u32(both).filter(|_| is_pair).map(|read| (read, 12))
}

fn hex(digits: Option<&[u8]>) -> Option<u32> {
    let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Whether a name is long and odd enough to be nothing else where it is found: a `17` is in many sentences.
pub(crate) fn is_telling(inner: &str) -> bool {
    let odd = inner.bytes().any(|byte| byte.is_ascii_digit());
    inner.len() >= 16 || inner.len() >= 6 && odd && inner.bytes().any(|byte| !byte.is_ascii_digit())
}

const ESCAPES: [(u8, u8); 8] =
    [(b'"', b'"'), (b'\\', b'\\'), (b'/', b'/'), (b'b', 8), (b'f', 12), (b'n', b'\n'), (b'r', b'\r'), (b't', b'\t')];

/// How many layers of escapes are looked through.
const MOST_SPELLINGS: usize = 12;

#[cfg(test)]
mod tests {
    use handfast::names::Form;

    use super::{Finder, unescaped};
    use crate::reveal::{Known, Name};

    fn known(names: &[(&str, &str)]) -> Known {
        let mut known = Known::default();
        for (outer, inner) in names {
            let name = Name { kind: "task".parse().expect("a kind"), inner: (*inner).to_owned(), form: Form::Text };
            known.insert((*outer).to_owned(), name);
        }
        known
    }

    #[test]
    fn a_handle_of_ours_is_no_name_of_theirs_whatever_it_begins_with() {
        let known = known(&[("task_12Zx", "task_1"), ("task_9Qk", "task_12")]);
        let finder = Finder::of(&known, &[]).expect("names");

        assert!(!finder.is_in("task_12Zx and task_9Qk"));
        assert!(finder.is_in("task_12Zy") && finder.is_in("task_1") && finder.is_in("task%5f1"));
        assert_eq!(
            finder.places("task_12Zx task_1 task_12 task_13"),
            [(10..16, "task_12Zx"), (17..24, "task_9Qk"), (25..31, "task_12Zx")]
        );
    }

    #[test]
    fn a_name_is_replaced_with_all_that_spells_it() {
        let known = known(&[("H", "ws-é-10001"), ("I", "short"), ("J", "123456789")]);
        let finder = Finder::of(&known, &["a state of theirs"]).expect("names");
        for (text, told) in [
            ("a ws-é-10001b", "a Hb"),
            (r"\u0077s-\u00e9-10001", "H"),
            ("ws-%C3%A9-10001%20", "H%20"),
            (r"%5cu0077s-é-10001\\", r"H\\"),
            (r"\ud800\u0077s-é-10001", r"\ud800H"),
            ("%7 %zz ws-é-1000%", "%7 %zz ws-é-1000%"),
            ("short 123456789", "short 123456789"),
            ("a state of theirs", "a state of theirs"),
        ] {
            let changes = finder.places(text).into_iter().map(|(place, outer)| (place, outer.to_owned())).collect();
            assert_eq!(handfast_wire::span::spliced(text, changes), told);
        }
        assert!(finder.is_in("a%20state of theirs") && !finder.is_in("a state of ours"));
        // Whoever writes like that hides something.
        assert!(finder.is_in(&format!("%{}41", "25".repeat(20))));
    }

    #[test]
    fn it_is_known_where_a_character_was() {
        assert_eq!(unescaped(r"a\né\ud83d\ude00%41"), [0, 1, 3, 4, 5, 5, 5, 5, 17, 18, 19, 20]);
        assert_eq!(unescaped("ab"), [0, 1, 2]);
    }
}
