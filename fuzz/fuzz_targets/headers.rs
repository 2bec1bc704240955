//! Any text: legal in a header once it is encoded, itself once it is decoded.
#![no_main]

use handfast_wire::headers::{decode, encode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let encoded = encode(text);
    assert!(!encoded.is_empty() && encoded.trim() == encoded);
    assert!(encoded.bytes().all(|byte| (0x20..=0x7e).contains(&byte)));
    assert_eq!(decode(&encoded).as_deref(), Ok(text));

    let _ = decode(text);
});
