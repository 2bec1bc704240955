//! Any bytes: read or refused, and what is read survives being written and read again.
#![no_main]

use handfast_wire::{
    message::{Message, parse},
    pointer, result,
};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let Ok(message) = parse(bytes) else { return };
    let value = match &message {
        Message::Request(request) => request.to_value(),
        Message::Notification(notification) => notification.to_value(),
        Message::Response(response) => response.to_value(),
    };
    assert_eq!(parse(value.to_string().as_bytes()).expect("what was read can be read again"), message);

    if let Message::Response(response) = &message
        && let Ok(answer) = &response.outcome
    {
        let _ = result::kind(answer);
        let _ = result::task(answer);
    }
    for (place, scalar) in pointer::scalars(&value, 64) {
        assert_eq!(value.pointer(&place), Some(scalar));
        let mut changed = value.clone();
        assert_eq!(pointer::replace(&mut changed, &place, Value::Null).as_ref(), Some(scalar));
        assert!(pointer::insert(&mut changed, &place, scalar.clone()));
        assert_eq!(changed, value);
    }
});
