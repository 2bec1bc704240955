//! Lines of a server's output: however they are cut, noise among them, over-long ones dropped.

use handfast_wire::{
    message::Message,
    stdio::{Decoder, Line},
};
use proptest::prelude::*;

const LIMIT: usize = 256;

fn decode(bytes: &[u8]) -> Vec<Line> {
    let mut decoder = Decoder::new(LIMIT);
    let mut lines = decoder.push(bytes);
    lines.extend(decoder.finish());
    lines
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        (0_u32..100).prop_map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)),
        Just(r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#.to_owned()),
        "[ -~]{0,30}",
        "\\PC{0,20}",
        Just(String::new()),
        (200_usize..400).prop_map(|length| "x".repeat(length)),
    ]
}

fn output() -> impl Strategy<Value = Vec<u8>> {
    let end = prop_oneof![Just("\n"), Just("\r\n"), Just("\n\n")];
    let lines = prop::collection::vec((line(), end), 0..16);
    (lines, line()).prop_map(|(lines, rest)| {
        lines.into_iter().map(|(line, end)| line + end).chain([rest]).collect::<String>().into_bytes()
    })
}

proptest! {
    #[test]
    fn any_split_gives_the_same_lines(bytes in output(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();

        let mut decoder = Decoder::new(LIMIT);
        let mut lines: Vec<Line> = at.windows(2).flat_map(|pair| decoder.push(&bytes[pair[0]..pair[1]])).collect();
        lines.extend(decoder.finish());

        prop_assert_eq!(lines, decode(&bytes));
    }

    #[test]
    fn garbage_is_borne_and_noise_is_short(bytes in prop::collection::vec(any::<u8>(), 0..1024)) {
        for line in decode(&bytes) {
            if let Line::Noise(text) = line {
                prop_assert!(!text.is_empty() && text.chars().count() <= 200);
            }
        }
    }

    #[test]
    fn message_is_found_behind_any_noise(noise in "[ -~]{0,60}") {
        let output = format!("{noise}\n{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{}}}}\n");

        let lines = decode(output.as_bytes());

        prop_assert!(matches!(lines.last(), Some(Line::Message(Message::Response(_)))), "{:?}", lines);
    }
}

#[test]
fn empty_lines_are_not_lines() {
    assert_eq!(decode(b"\n\r\n  \n\t\n"), []);
}

#[test]
fn blanks_around_a_message_do_not_matter() {
    let lines = decode(b"  {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}} \r\n");

    assert!(matches!(lines[..], [Line::Message(Message::Response(_))]), "{lines:?}");
}

#[test]
fn last_line_needs_no_end_and_is_given_once() {
    let mut decoder = Decoder::new(LIMIT);

    assert_eq!(decoder.push(b"listening on"), []);
    assert_eq!(decoder.finish(), Some(Line::Noise("listening on".into())));
    assert_eq!(decoder.finish(), None);
}

#[test]
fn json_that_is_no_message_is_noise() {
    for line in ["7", "[]", "{}", "null", r#"{"jsonrpc":"1.0","id":1,"result":{}}"#] {
        assert_eq!(decode(line.as_bytes()), [Line::Noise(line.into())]);
    }
}

#[test]
fn noise_is_cut_between_characters() {
    let lines = Decoder::new(4096).push(("ä".repeat(300) + "\n").as_bytes());

    assert_eq!(lines, [Line::Noise("ä".repeat(200))]);
}

#[test]
fn line_at_the_limit_is_kept_and_one_byte_more_is_not() {
    let mut decoder = Decoder::new(8);

    assert_eq!(decoder.push(b"12345678\n"), [Line::Noise("12345678".into())]);
    assert_eq!(decoder.push(b"123456789\n"), [Line::TooLong]);
    assert_eq!(decoder.push(b"1234"), []);
    assert_eq!(decoder.push(b"56789"), []);
    assert_eq!(decoder.push(b"0\nok\n"), [Line::TooLong, Line::Noise("ok".into())]);
    assert_eq!(decoder.push(b"123456789"), []);
    assert_eq!(decoder.finish(), Some(Line::TooLong));
}
