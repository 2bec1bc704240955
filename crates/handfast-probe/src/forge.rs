//! Values that nobody issued: same shape, other content. Handles and states of the same alphabet and length, and single
//! characters flipped within their class, so that what is refused is refused for its content and not for its form.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Number, Value};

use crate::random;

/// A handle that was never minted, shaped like the given ones: common prefix, separators, length and alphabet stay.
/// `taken` are handles that exist; the result is none of them. `most` is the largest number that is taken at all.
pub fn handle(like: &Value, other: &Value, taken: &[Value], most: Option<u64>) -> Value {
    loop {
        let forged = match like {
            Value::Number(_) => Value::Number(Number::from(match most {
                // As far up as is allowed: counters begin at the other end.
                Some(most) if most < 2_000_000_000 => most - random::below((most / 4).max(1) as usize) as u64,
                _ => far_number(),
            })),
            Value::String(text) => Value::String(handle_text(text, other.as_str().unwrap_or(text))),
            other => other.clone(),
        };
        if forged != *like && !taken.contains(&forged) {
            return forged;
        }
    }
}

/// The number in a handle that is a number, or ends with a short one: `17`, `presentation_17`.
pub fn counted(handle: &Value) -> Option<u64> {
    match handle {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => {
            let digits = text.trim_start_matches(|c: char| !c.is_ascii_digit());
            (digits.len() <= LONGEST_COUNT && digits.bytes().all(|byte| byte.is_ascii_digit()))
                .then(|| digits.parse().ok())?
        }
        _ => None,
    }
}

/// Where two handles, the one minted soon after the other, look as if they were counted: the highest number among all that are
/// known.
pub fn highest_of_counter(earlier: &Value, later: &Value, known: &[Value]) -> Option<u64> {
    let (earlier, last) = (counted(earlier)?, counted(later)?);
    let near = last > earlier && last - earlier <= WIDEST_STEP;
    // Another kind of handle may be counted far ahead.
    let known = known.iter().filter(|known| known.is_number() == later.is_number()).filter_map(counted);
    near.then(|| known.filter(|known| known.abs_diff(last) <= WIDEST_STEP * WIDEST_STEP).fold(last, u64::max))
}

/// The first number above the highest that is not taken, in the form of such a handle; `None` where no more are allowed.
pub fn next_of_counter(like: &Value, highest: u64, taken: &[Value], most: Option<u64>) -> Option<Value> {
    let written = |number: u64| match like {
        Value::String(text) => {
            let head = text.trim_end_matches(|c: char| c.is_ascii_digit());
            Value::from(format!("{head}{number:0width$}", width = text.len() - head.len()))
        }
        _ => Value::from(number),
    };
    let free = (highest + 1..).map(|number| (number, written(number))).find(|(_, handle)| !taken.contains(handle))?;
    (most.is_none_or(|most| free.0 <= most)).then_some(free.1)
}

/// Whether handles look as if a part of each vouched for the rest, or for the whole: then one that nobody minted is malformed,
/// whatever it looks like.
pub fn looks_signed(one: &Value, other: &Value) -> bool {
    let (Some(one), Some(other)) = (one.as_str(), other.as_str()) else { return false };
    let common = one.bytes().zip(other.bytes()).take_while(|(one, two)| one == two).count();
    let kept = (0..common).rev().find(|&at| b"-_:./~#".contains(&one.as_bytes()[at])).map_or(0, |at| at + 1);
    if SEALED.iter().any(|start| one.starts_with(start) && other.starts_with(start)) {
        return true;
    }
    // What ends alike bears no signature, but the name of a place.
    matches!((seal(&one[kept..]), seal(&other[kept..])), (Some(one), Some(other)) if one != other)
}

/// What stands at the end of a text and may vouch for what stands before it.
fn seal(text: &str) -> Option<&str> {
    let is_seal = |(signed, seal): &(&str, &str)| {
        signed.bytes().any(|byte| byte.is_ascii_alphanumeric()) && seal.len() >= SHORTEST_SEAL
    };
    // Dashes and low lines stand in base64 as well.
    let in_hex = |(signed, seal): &(&str, &str)| is_hex(signed) && is_hex(seal) && seal.len() >= SHORTEST_SIGNATURE;
    let parts = text.rsplit_once(SEPARATORS).filter(is_seal);
    parts.or_else(|| text.rsplit_once(['-', '_']).filter(in_hex)).map(|(_, seal)| seal)
}

/// A number that a counter will not have reached, within 31 bits.
fn far_number() -> u64 {
    100_000_000 + random::below(1_900_000_000) as u64
}

fn handle_text(text: &str, other: &str) -> String {
    let kept = constant_prefix(text, other);
    let tail = &text[kept..];
    if tail.chars().filter(char::is_ascii_alphanumeric).count() < SMALLEST_SPACE {
        // `presentation_1`: any other short number may be somebody's. A long one is nobody's.
        return format!("{}{}", &text[..kept], far_number());
    }
    let mut forged = text[..kept].to_owned();
    let uuid = is_uuid(tail);
    let hex = is_hex(tail);
    for (at, character) in tail.char_indices() {
        // "UUID version bits kept": the version digit and the variant digit say what kind of UUID it is.
        forged.push(if uuid && (at == 14 || at == 19) { character } else { same_class(character, hex) });
    }
    forged
}

/// Bytes of the prefix that two handles share up to a separator, where it is made of letters: `ws-`, `urn:basket:`.
fn constant_prefix(text: &str, other: &str) -> usize {
    let common = text.bytes().zip(other.bytes()).take_while(|(one, two)| one == two).count();
    let limit = if text == other { text.len() } else { common };
    let separators = (0..limit).rev().filter(|&at| b"-_:./~#".contains(&text.as_bytes()[at]));
    let lettered = |end: usize| text[..end].bytes().all(|byte| !byte.is_ascii_digit());
    separators.map(|at| at + 1).find(|&end| text.is_char_boundary(end) && lettered(end)).unwrap_or(0)
}

/// Text of the same shape with every letter and digit drawn anew, for credentials that nobody issued.
pub fn scrambled(text: &str) -> String {
    text.chars().map(|character| same_class(character, false)).collect()
}

/// A signed text (`value.signature`, as JSON Web Tokens are) with everything as it was issued but one character of the
/// signature: whoever does not verify it takes it for the same. `None` where no signature is seen.
pub fn resigned(text: &str) -> Option<String> {
    let (signed, signature) = text.rsplit_once('.').filter(|(_, signature)| signature.len() >= SHORTEST_SIGNATURE)?;
    // Not the last character, which may hold unused bits.
    let offsets = signed.len() + 1 + signature.len() / 2..text.len();
    offsets.into_iter().find_map(|at| flipped(text, at))
}

/// Whether the last parts of two signed texts differ: where they are the same, that is no signature, but the name of a place.
pub fn signatures_differ(one: &str, other: &str) -> bool {
    let last = |text: &str| text.rsplit_once('.').map(|(_, last)| last.to_owned());
    last(one) != last(other)
}

/// A JSON Web Token with a header that says that there is no signature (`none`, in this spelling), and none. `None` for any
/// other text.
pub fn unsigned(token: &str, none: &str) -> Option<String> {
    let (_, claims, _) = jwt(token)?;
    Some(format!("{}.{claims}.", URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"{none}","typ":"JWT"}}"#))))
}

/// A JSON Web Token as it was issued, but for its signature, which is empty.
pub fn unsealed(token: &str) -> Option<String> {
    let (signed, _) = jwt(token).and_then(|_| token.rsplit_once('.'))?;
    Some(format!("{signed}."))
}

/// A JSON Web Token of which the header names a key that there is not: the signature does not fit any more, and whoever takes
/// a key that is not found for one that need not be asked does not see it.
pub fn with_unknown_key(token: &str) -> Option<String> {
    let (mut header, claims, signature) = jwt(token)?;
    header.as_object_mut()?.insert("kid".to_owned(), UNKNOWN_KEY.into());
    Some(format!("{}.{claims}.{signature}", URL_SAFE_NO_PAD.encode(header.to_string())))
}

/// Whether both are JSON Web Tokens whose issuer names one and the same subject.
pub fn of_one_subject(one: &str, other: &str) -> bool {
    let subject = |token| -> Option<(Value, Value)> {
        let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(jwt(token)?.1).ok()?).ok()?;
        Some((claims.get("iss")?.clone(), claims.get("sub")?.clone()))
    };
    subject(one).is_some_and(|subject_of_one| Some(subject_of_one) == subject(other))
}

/// The header, the claims and the signature of a JSON Web Token; the last two as they are written.
fn jwt(token: &str) -> Option<(Value, &str, &str)> {
    let mut parts = token.split('.');
    let (header, claims, signature) = (parts.next()?, parts.next()?, parts.next()?);
    let header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).ok()?).ok()?;
    (header.get("alg").is_some_and(Value::is_string) && parts.next().is_none()).then_some((header, claims, signature))
}

/// A state that nobody issued: separators, padding and a short leading tag (`v1.`) stay, the rest is drawn anew.
pub fn state(like: &str) -> String {
    if like.trim_start().starts_with(['{', '[']) {
        return scrambled(like);
    }
    // `approval_17` names something: a forged name keeps its form.
    let named = constant_prefix(like, like);
    if named > 0 && like.len() <= LONGEST_NAME && !like.contains('.') {
        return handle_text(like, like);
    }
    let hex = like.split('.').all(is_hex);
    let tag = like.find('.').filter(|&at| at <= LONGEST_TAG).map_or(0, |at| at + 1);
    let draw = |character: char| match character {
        c if !c.is_ascii_alphanumeric() => c,
        c if hex => same_class(c, true),
        _ => char::from(BASE62[random::below(BASE62.len())]),
    };
    loop {
        let drawn: String = like[tag..].chars().map(draw).collect();
        if drawn != like[tag..] || !like[tag..].chars().any(|c| c.is_ascii_alphanumeric()) {
            return format!("{}{drawn}", &like[..tag]);
        }
    }
}

/// The state with the character at this byte offset changed to its neighbour in the same class: `a` to `b`, `4` to `5`.
/// `None` where that character is no letter or digit, or holds unused bits of a base64 text.
pub fn flipped(state: &str, offset: usize) -> Option<String> {
    let character = *state.as_bytes().get(offset)?;
    if !character.is_ascii_alphanumeric() || ends_a_segment(state, offset) {
        return None;
    }
    let hex = is_hex(segment_around(state, offset));
    // The lowest bit of the digit's value: in an encoded stream cipher that is the lowest bit of a character.
    let neighbour = match character {
        b'0'..=b'9' => b'0' + ((character - b'0') ^ 1),
        b'a'..=b'f' if hex => b'a' + ((character - b'a') ^ 1),
        b'a'..=b'z' => b'a' + ((character - b'a') ^ 1),
        _ => b'A' + ((character - b'A') ^ 1),
    };
    let mut bytes = state.as_bytes().to_vec();
    bytes[offset] = neighbour;
    String::from_utf8(bytes).ok()
}

/// Offsets worth flipping: spread over the longest segment, where the content is, at least at 30, 50, 70, 88 and 96 %.
pub fn flip_offsets(state: &str) -> Vec<usize> {
    let longest = segments(state).max_by_key(|range| range.len()).unwrap_or(0..state.len());
    let mut offsets = Vec::new();
    for percent in [30, 50, 70, 88, 96, 12, 40, 60, 80, 20] {
        let wanted = longest.start + longest.len() * percent / 100;
        // The odd half of a byte in hexadecimal holds its low bits; and not every character can be flipped.
        let near = (wanted | 1..longest.end).chain(longest.start..wanted).find(|&at| flipped(state, at).is_some());
        if let Some(offset) = near.filter(|offset| !offsets.contains(offset)) {
            offsets.push(offset);
        }
    }
    offsets
}

/// Offsets in the other segments. A flip there that changes nothing says nothing: it may be a hint that nobody has to protect.
pub fn minor_flip_offsets(state: &str) -> Vec<usize> {
    let longest = segments(state).max_by_key(|range| range.len()).unwrap_or(0..0);
    let others = segments(state).filter(|range| *range != longest && range.len() >= 3);
    others
        .filter_map(|range| (range.start + range.len() / 2..range.end).find(|&at| flipped(state, at).is_some()))
        .take(6)
        .collect()
}

fn segments(state: &str) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
    let mut start = 0;
    state.split(SEPARATORS).map(move |segment| {
        let range = start..start + segment.len();
        start = range.end + 1;
        range
    })
}

fn segment_around(state: &str, offset: usize) -> &str {
    segments(state).find(|range| range.contains(&offset)).map_or(state, |range| &state[range])
}

/// Whether this is the last character of a segment: in unpadded base64 it may hold bits that nobody reads.
fn ends_a_segment(state: &str, offset: usize) -> bool {
    state[offset..].chars().nth(1).is_none_or(|next| SEPARATORS.contains(&next) || next == '=')
}

fn same_class(character: char, hex: bool) -> char {
    let from = |set: &[u8]| char::from(set[random::below(set.len())]);
    match character {
        '0'..='9' if hex => from(b"0123456789"),
        'a'..='f' if hex => from(b"abcdef"),
        'A'..='F' if hex => from(b"ABCDEF"),
        '0'..='9' => from(&BASE62[..10]),
        'a'..='z' => from(&BASE62[10..36]),
        'A'..='Z' => from(&BASE62[36..]),
        other => other,
    }
}

/// Whether a text is hexadecimal in one case, dashes apart.
fn is_hex(text: &str) -> bool {
    let body = || text.bytes().filter(|byte| *byte != b'-');
    !text.is_empty()
        && (body().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
            || body().all(|byte| byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte)))
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

const BASE62: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const SEPARATORS: [char; 4] = ['.', ':', '|', '~'];
const UNKNOWN_KEY: &str = "handfast-no-such-key";
/// Shorter ones are none.
const SHORTEST_SIGNATURE: usize = 16;
const SMALLEST_SPACE: usize = 6;
/// Digits of a number that was counted, and not drawn.
const LONGEST_COUNT: usize = 9;
/// How far apart two numbers of one counter may be while others use it too.
const WIDEST_STEP: u64 = 16;
/// A truncated signature.
const SHORTEST_SEAL: usize = 8;
/// How tokens begin that are encrypted, or signed as a whole: Fernet, and JSON in base64.
const SEALED: [&str; 2] = ["gAAAA", "eyJ"];
const LONGEST_TAG: usize = 4;
const LONGEST_NAME: usize = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn forged(like: &str, other: &str) -> String {
        let value = handle(&Value::from(like), &Value::from(other), &[], None);
        value.as_str().unwrap_or_default().to_owned()
    }

    #[test]
    fn a_forged_handle_keeps_prefix_length_and_alphabet() {
        let made = forged("ws-0a1b2c3d4e5f", "ws-ffeeddccbbaa");
        assert!(made.starts_with("ws-") && made.len() == 15 && is_hex(&made[3..]), "{made}");
        let uuid = forged("123e4567-e89b-42d3-a456-426614174000", "00000000-0000-4000-8000-000000000000");
        assert!(is_uuid(&uuid) && uuid.as_bytes()[14] == b'4' && uuid.as_bytes()[19] == b'a', "{uuid}");
    }

    #[test]
    fn a_short_counter_is_forged_far_away() {
        let made = forged("presentation_1", "presentation_2");
        assert!(made.starts_with("presentation_") && made.len() > 20, "{made}");
        let number = handle(&Value::from(17), &Value::from(18), &[], None);
        assert!(number.as_u64().is_some_and(|number| (100_000_000..2_000_000_000).contains(&number)));
        let bounded = handle(&Value::from(17), &Value::from(18), &[], Some(100_000));
        assert!(bounded.as_u64().is_some_and(|number| (75_000..=100_000).contains(&number)), "{bounded}");
    }

    #[test]
    fn what_is_counted_goes_on_by_one() {
        let [one, two, far] = [Value::from(17), Value::from(19), Value::from(48_213)];
        assert_eq!(highest_of_counter(&one, &two, &[Value::from(21), Value::from("bsk_90"), far.clone()]), Some(21));
        assert_eq!(highest_of_counter(&one, &far, &[]), None, "drawn, and not counted");
        assert_eq!(highest_of_counter(&two, &one, &[]), None);
        assert_eq!(next_of_counter(&two, 21, &[Value::from(22)], None), Some(Value::from(23)));
        assert_eq!(next_of_counter(&two, 21, &[], Some(21)), None);
        let texts = [Value::from("note_0017"), Value::from("note_0018")];
        assert_eq!(highest_of_counter(&texts[0], &texts[1], &[]), Some(18));
        assert_eq!(next_of_counter(&texts[1], 18, &[], None), Some(Value::from("note_0019")));
        for other in [Value::from("bsk_1a2b"), Value::from("note"), Value::from("note_0123456789"), Value::Null] {
            assert_eq!(counted(&other), None, "{other}");
        }
    }

    #[test]
    fn a_handle_that_vouches_for_itself_is_told_from_one_that_is_drawn() {
        let signed = |one: &str, other: &str| looks_signed(&one.into(), &other.into());
        for (one, other) in [
            ("0a1b2c.0123456789abcdef", "3d4e5f.fedcba9876543210"),
            ("bsk_17.0123456789abcdef", "bsk_18.fedcba9876543210"),
            ("17-0123456789abcdef0123", "18-fedcba98765432100123"),
            ("gAAAAABm1xyz", "gAAAAABm2abc"),
            ("eyJpZCI6MX0.c2ln", "eyJpZCI6Mn0.c2lo"),
        ] {
            assert!(signed(one, other), "{one}");
        }
        for (one, other) in [
            ("bsk_0123456789abcdef", "bsk_fedcba9876543210"),
            ("urn:basket:0123456789abcdef", "urn:basket:fedcba9876543210"),
            ("v1.0123456789abcdef", "v1.fedcba9876543210"),
            ("123e4567-e89b-42d3-a456-426614174000", "00000000-0000-4000-8000-000000000000"),
            ("10f7.node-one", "10f8.node-one"),
            ("note_17", "note_18"),
        ] {
            assert!(!signed(one, other), "{one}");
        }
        assert!(!looks_signed(&Value::from(1), &Value::from(2)));
    }

    #[test]
    fn a_forged_reference_keeps_its_form() {
        let made = state("approval_17");
        assert!(
            made.starts_with("approval_") && made["approval_".len()..].bytes().all(|byte| byte.is_ascii_digit()),
            "{made}"
        );
    }

    #[test]
    fn a_flip_stays_in_its_class_and_off_unused_bits() {
        assert_eq!(flipped("ab.c4", 3).as_deref(), Some("ab.d4"));
        assert_eq!(flipped("a4b", 1).as_deref(), Some("a5b"));
        assert_eq!(flipped("ab.c4", 1), None, "the last character of a segment may be padding bits");
        assert_eq!(flipped("ab=", 1), None);
        assert_eq!(flipped("a-b", 1), None);
    }

    #[test]
    fn a_token_loses_its_signature_and_nothing_else() {
        let token = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.QUJDREVGR0hJSktMTU5PUA";
        let other = resigned(token).expect("it is signed");
        let (start, end) = (token.rfind('.').expect("a dot"), token.len() - 1);
        assert!(other.len() == token.len() && other[..start] == token[..start] && other[end..] == token[end..]);
        assert_eq!(other.bytes().zip(token.bytes()).filter(|(one, two)| one != two).count(), 1);
        let bare = unsigned(token, "none").expect("it is a JWT");
        assert!(bare.ends_with(".eyJzdWIiOiJhbGljZSJ9.") && bare.starts_with("eyJhbGciOiJub25lIi"), "{bare}");
        for plain in ["", "alice", "a.b.c", "1.2", "10f7.node-1", "eyJhbGciOjF9.e30.QUJD", "x.eyJzdWIiOiJhbGljZSJ9"] {
            assert!(
                unsigned(plain, "none").is_none() && unsealed(plain).is_none() && with_unknown_key(plain).is_none(),
                "{plain}"
            );
        }
        for plain in ["", "alice", "a.b", "10f7.node-1", "0123456789abcdef0123456789abcdef"] {
            assert_eq!(resigned(plain), None, "{plain}");
        }
        assert!(resigned("s.0123456789abcdef0123456789abcdef").is_some());
        assert_eq!(unsealed(token).as_deref(), Some("eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9."));
        let other_key = with_unknown_key(token).expect("it is a JWT");
        assert!(other_key.ends_with(".eyJzdWIiOiJhbGljZSJ9.QUJDREVGR0hJSktMTU5PUA") && other_key != token);
        assert!(signatures_differ("a.1", "a.2") && !signatures_differ("a.node-7", "b.node-7"));
    }

    proptest! {
        #[test]
        fn every_offset_flips_exactly_one_character(state in "[A-Za-z0-9_.-]{1,200}") {
            for offset in flip_offsets(&state) {
                let changed = flipped(&state, offset).expect("an offset that was offered");
                let differing = state.bytes().zip(changed.bytes()).filter(|(one, two)| one != two).count();
                prop_assert_eq!((differing, changed.len()), (1, state.len()));
            }
        }

        #[test]
        fn a_random_state_keeps_length_and_separators(like in "[A-Za-z0-9.=]{1,200}") {
            let random = state(&like);
            prop_assert_eq!(random.len(), like.len());
            for (one, two) in like.chars().zip(random.chars()) {
                prop_assert_eq!(one.is_ascii_alphanumeric(), two.is_ascii_alphanumeric());
            }
        }

        #[test]
        fn forging_never_panics_and_never_repeats(like in "\\PC{1,60}", other in "\\PC{1,60}") {
            let value = handle(&Value::from(like.clone()), &Value::from(other), &[], None);
            prop_assert_ne!(value, Value::from(like));
        }
    }
}
