//! Until when a readable state says that it is good.

use std::time::Duration;

use super::fields;
use crate::{dates, discovery::names};

/// The field that says so, and the time since 1970; the latest of several, because any of them may be another thing's.
pub fn stated(state: &str) -> Option<(String, Duration)> {
    let times = fields::all(state).into_iter().filter(|field| is_expiry(&field.name));
    let times = times.filter_map(|field| Some((field.path.join(" > "), dates::named(&field.value)?)));
    times.max_by_key(|(_, at)| *at)
}

fn is_expiry(name: &str) -> bool {
    let words = names::words(name);
    let holds = |known: &str| words.iter().any(|word| word == known);
    ENDS.into_iter().any(holds) || (holds("not") && holds("after"))
}

const ENDS: [&str; 10] =
    ["exp", "expiry", "expire", "expires", "expiration", "deadline", "until", "validuntil", "notafter", "expiresat"];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_expiry_is_known_by_its_name_and_is_a_time() {
        for (state, field) in [
            (json!({"exp": 1_796_040_000, "iat": 1_796_039_700}), "/exp"),
            (json!({"expiresAt": "2026-11-30T12:00:00Z"}), "/expiresAt"),
            (json!({"a": {"expires_at_ms": 1_796_040_000_000_i64}}), "/a/expires_at_ms"),
            (json!({"notAfter": 1_796_040_000}), "/notAfter"),
            (json!({"session": {"expires": 1_796_030_000}, "exp": 1_796_040_000}), "/exp"),
        ] {
            let expected = (field.to_owned(), Duration::from_secs(1_796_040_000));
            assert_eq!(stated(&state.to_string()), Some(expected), "{state}");
        }
        for state in [json!({"iat": 1_796_040_000}), json!({"exp": 300}), json!({"expected": 1_796_040_000})] {
            assert_eq!(stated(&state.to_string()), None, "{state}");
        }
        assert_eq!(stated("no document"), None);
    }
}
