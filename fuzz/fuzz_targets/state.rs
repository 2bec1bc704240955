//! Any text as a presented state, and any JSON as the arguments it is bound to: refused, or what was sealed.
#![no_main]

use std::sync::LazyLock;

use handfast::{
    Audience, Caller, Keys,
    seal::{RequestDigest, Sealer, StateContext},
};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

static SEALER: LazyLock<Sealer> = LazyLock::new(|| {
    Sealer::new(Keys::dangerous_for_this_process_only(), "urn:server".parse::<Audience>().expect("an audience"))
});

fuzz_target!(|bytes: &[u8]| {
    let caller = Caller::anonymous();
    let arguments = match serde_json::from_slice(bytes) {
        Ok(Value::Object(arguments)) => Some(arguments),
        _ => None,
    };
    let request = RequestDigest::tool("checkout", arguments.as_ref());
    let context = StateContext { caller: &caller, request: &request };
    if let Ok(text) = std::str::from_utf8(bytes) {
        assert!(SEALER.open(text, &context).is_err(), "nobody guesses a state");
        assert!(SEALER.open(&format!("hf1.{text}"), &context).is_err());
    }
    if bytes.len() < 60_000 {
        let sealed = SEALER.seal(bytes, &["a"], &context).expect("sealed");
        assert_eq!(SEALER.open(sealed.expose(), &context).expect("opened").replayable().bytes(), bytes);
        // As it would be written by somebody else, it is the same request.
        if let Some(arguments) = &arguments {
            let again: Value = serde_json::from_str(&Value::Object(arguments.clone()).to_string()).expect("JSON");
            assert_eq!(RequestDigest::tool("checkout", again.as_object()), request);
        }
    }
});
