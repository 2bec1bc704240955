//! Any output, cut anywhere: the same lines, and no line that is empty or too long to show.
#![no_main]

use handfast_wire::stdio::{Decoder, Line};
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 1024;

fuzz_target!(|input: (u16, Vec<u8>)| {
    let (cut, bytes) = input;
    let mut decoder = Decoder::new(LIMIT);
    let mut whole = decoder.push(&bytes);
    whole.extend(decoder.finish());

    let (front, back) = bytes.split_at(usize::from(cut) % (bytes.len() + 1));
    let mut decoder = Decoder::new(LIMIT);
    let mut pieces = decoder.push(front);
    pieces.extend(decoder.push(back));
    pieces.extend(decoder.finish());
    assert_eq!(pieces, whole);

    for line in whole {
        if let Line::Noise(text) = line {
            assert!(!text.is_empty() && text.chars().count() <= 200);
        }
    }
});
