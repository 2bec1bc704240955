//! Server-Sent Events: however the bytes are cut, the events are the same.

use handfast_wire::sse::{Decoder, Event, TooLong, encode};
use proptest::prelude::*;

const LIMIT: usize = 4096;

fn decode(bytes: &[u8]) -> Vec<Event> {
    Decoder::new(LIMIT).push(bytes).expect("within the limit")
}

fn data(text: &str) -> Event {
    Event { data: text.to_owned(), ..Event::default() }
}

/// Lines as streams have them, and some that they should not have.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        "data: ?[ -~]{0,12}",
        "data:\\PC{0,6}",
        "(event|id|retry|dat|: comment|data|id: 1\u{0}2): ?[a-z]{0,4}",
        Just(String::new()),
        Just("\u{feff}data: marked".to_owned()),
    ]
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let end = prop_oneof![Just("\n"), Just("\r"), Just("\r\n")];
    prop::collection::vec((line(), end), 0..24)
        .prop_map(|lines| lines.into_iter().flat_map(|(line, end)| (line + end).into_bytes()).collect())
}

proptest! {
    #[test]
    fn any_split_gives_the_same_events(bytes in stream(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();

        let mut decoder = Decoder::new(LIMIT);
        let mut events = Vec::new();
        for pair in at.windows(2) {
            events.extend(decoder.push(&bytes[pair[0]..pair[1]]).expect("within the limit"));
        }

        prop_assert_eq!(events, decode(&bytes));
    }

    #[test]
    fn one_byte_at_a_time_gives_the_same_events(bytes in stream()) {
        let mut decoder = Decoder::new(LIMIT);
        let events: Vec<Event> =
            bytes.iter().flat_map(|byte| decoder.push(&[*byte]).expect("within the limit")).collect();

        prop_assert_eq!(events, decode(&bytes));
    }

    #[test]
    fn line_ends_are_interchangeable(lines in prop::collection::vec(line(), 0..12)) {
        let with = |end: &str| lines.iter().map(|line| line.clone() + end).collect::<String>();

        prop_assert_eq!(decode(with("\r").as_bytes()), decode(with("\n").as_bytes()));
        prop_assert_eq!(decode(with("\r\n").as_bytes()), decode(with("\n").as_bytes()));
    }

    #[test]
    fn what_is_encoded_decodes(
        name in prop::option::of("[a-z ]{0,8}"),
        id in prop::option::of("[0-9]{1,4}"),
        text in "[^\r]{0,64}",
    ) {
        let event = Event { name, data: text, id };

        prop_assert_eq!(decode(encode(&event).as_bytes()), vec![event]);
    }

    #[test]
    fn one_event_is_written_as_one(
        name in prop::option::of("[a:\r\n]{0,6}"),
        id in prop::option::of("[a:\r\n]{0,6}"),
        text in "(data: |[a:\r\n]){0,12}",
    ) {
        let event = Event { name, data: text, id };

        prop_assert_eq!(decode(encode(&event).as_bytes()).len(), 1);
    }

    #[test]
    fn garbage_is_borne(bytes in prop::collection::vec(any::<u8>(), 0..512), limit in 0_usize..64) {
        let _ = Decoder::new(limit).push(&bytes);
    }

    #[test]
    fn limit_holds_however_the_event_is_built(lines in 1_usize..40, length in 0_usize..40, limit in 1_usize..400) {
        let line = format!("data: {}\n", "x".repeat(length));
        let events = Decoder::new(limit).push((line.repeat(lines) + "\n").as_bytes());

        let whole = lines * length + (lines - 1);
        match events {
            Ok(events) => prop_assert!(events.iter().all(|event| event.data.len() <= limit) && whole <= limit),
            Err(error) => {
                // The field's name and its blank are counted with the line that they stand in.
                prop_assert!(whole + "data: ".len() > limit);
                prop_assert_eq!(error, TooLong { limit });
            }
        }
    }
}

#[test]
fn vectors() {
    // (stream, events)
    let cases: &[(&str, &[Event])] = &[
        ("", &[]),
        ("\n\n\n", &[]),
        ("data: one", &[]),
        ("data: one\n", &[]),
        ("data: one\n\n", &[data("one")]),
        ("data:one\n\n", &[data("one")]),
        ("data:  one\n\n", &[data(" one")]),
        ("data: one\ndata: two\n\n", &[data("one\ntwo")]),
        ("data: one\n\ndata: two\n\n", &[data("one"), data("two")]),
        ("data\n\n", &[data("")]),
        ("data:\n\n", &[data("")]),
        ("data\ndata\n\n", &[data("\n")]),
        (": comment\n\n", &[]),
        (":\n: again\ndata: one\n: between\ndata: two\n\n", &[data("one\ntwo")]),
        ("\u{feff}data: one\n\n", &[data("one")]),
        ("\n\u{feff}data: one\n\n", &[]),
        ("Data: one\n\n", &[]),
        (" data: one\n\n", &[]),
        ("data : one\n\n", &[]),
        ("nothing: one\nretry: 10\n\n", &[]),
        ("data: a: b\n\n", &[data("a: b")]),
        ("data: one\r\rdata: two\r\n\r\n", &[data("one"), data("two")]),
    ];
    for (stream, events) in cases {
        assert_eq!(decode(stream.as_bytes()), *events, "{stream:?}");
    }
}

#[test]
fn priming_event_is_an_event_without_data_and_what_follows_is_read() {
    let events = decode(b"id: 0\ndata: \n\ndata: {}\n\n");

    assert_eq!(events, [Event { id: Some("0".into()), ..Event::default() }, data("{}")]);
}

#[test]
fn name_and_id_belong_to_their_event_only() {
    let events = decode(b"event: message\nid: 7\ndata: one\n\ndata: two\n\n");

    assert_eq!(events[0], Event { name: Some("message".into()), data: "one".into(), id: Some("7".into()) });
    assert_eq!(events[1], data("two"));
}

#[test]
fn name_without_data_is_no_event_and_does_not_leak_into_the_next() {
    assert_eq!(decode(b"event: message\n\ndata: one\n\n"), [data("one")]);
}

#[test]
fn id_with_a_null_is_ignored() {
    assert_eq!(decode(b"id: 1\x002\ndata: one\n\n"), [data("one")]);
}

#[test]
fn bytes_that_are_no_utf8_are_replaced() {
    assert_eq!(decode(b"data: \xff\n\n"), [data("\u{fffd}")]);
}

#[test]
fn cr_and_lf_in_two_pieces_end_one_line() {
    let mut decoder = Decoder::new(LIMIT);

    assert_eq!(decoder.push(b"data: one\r"), Ok(vec![]));
    assert_eq!(decoder.push(b"\n"), Ok(vec![]));
    assert_eq!(decoder.push(b"\r"), Ok(vec![data("one")]));
    assert_eq!(decoder.push(b"\ndata: two\n\n"), Ok(vec![data("two")]));
}

#[test]
fn comments_for_ever_need_no_memory() {
    let mut decoder = Decoder::new(64);

    for _ in 0..10_000 {
        assert_eq!(decoder.push(b": still here\n\n"), Ok(vec![]));
    }
}

#[test]
fn line_at_the_limit_is_read_and_one_byte_more_is_not() {
    assert_eq!(Decoder::new(9).push(b"data: one\n\n"), Ok(vec![data("one")]));
    assert_eq!(Decoder::new(8).push(b"data: one\n\n"), Err(TooLong { limit: 8 }));
    assert_eq!(Decoder::new(8).push(b": comment"), Err(TooLong { limit: 8 }));
}
