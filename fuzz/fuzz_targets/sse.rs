//! Any stream, cut anywhere: the same events, or the same refusal, and no event over the limit.
#![no_main]

use handfast_wire::sse::{Decoder, Event, encode};
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 1024;

fuzz_target!(|input: (u16, Vec<u8>)| {
    let (cut, bytes) = input;
    let whole = Decoder::new(LIMIT).push(&bytes);

    let (front, back) = bytes.split_at(usize::from(cut) % (bytes.len() + 1));
    let mut decoder = Decoder::new(LIMIT);
    let pieces = decoder.push(front).and_then(|mut events| {
        events.extend(decoder.push(back)?);
        Ok(events)
    });
    assert_eq!(pieces, whole);

    for event in whole.unwrap_or_default() {
        // Bytes that were no UTF-8 have been replaced, each by three.
        assert!(event.data.len() <= 3 * LIMIT);
        let again = Decoder::new(8 * LIMIT).push(encode(&event).as_bytes());
        assert_eq!(again, Ok(vec![Event { data: event.data.clone(), ..event }]));
    }
});
