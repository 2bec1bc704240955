//! Any bytes as a presented handle, and any text as what operators and clients write: read or refused.
#![no_main]

use handfast::{Keys, Policy, ScopeSet, TraceId, parse_handle};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let prefix = "bsk".parse().ok();
    for prefix in [None, prefix.as_ref()] {
        if parse_handle(bytes, prefix).is_some() {
            assert_eq!(bytes.len(), if prefix.is_some() { 47 } else { 43 });
        }
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(scopes) = ScopeSet::parse(text) {
        assert_eq!(ScopeSet::parse(&scopes.text()), Ok(scopes));
    }
    if let Err(error) = Policy::from_toml(text) {
        assert!(!error.to_string().contains('\n'));
    }
    let _ = (Keys::parse(text), TraceId::parse(text));
});
