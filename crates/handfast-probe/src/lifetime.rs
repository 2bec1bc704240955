//! How long a handle lives, by the server's own words: in the description of the tool that mints it, or beside the handle.

use std::{sync::LazyLock, time::Duration};

use handfast_wire::pointer;
use regex::Regex;
use serde_json::Value;

use crate::discovery::{emitted::Spot, names};

/// The lifetime that a description states: "expires after 24 hours of inactivity", "lives for one hour".
pub fn in_text(text: &str) -> Option<Duration> {
    sentences(text).filter(|sentence| LIVING.is_match(sentence) && !OF_CALLS.is_match(sentence)).find_map(|sentence| {
        let found = DURATION.captures(sentence)?;
        let number = match found.get(1).or_else(|| found.get(3))?.as_str().to_ascii_lowercase().as_str() {
            "half a" | "half an" => 0.5,
            word => NUMBERS
                .iter()
                .position(|known| known.contains(&word))
                .map_or_else(|| word.parse::<f64>().ok(), |at| u32::try_from(at + 1).ok().map(f64::from))?,
        };
        let unit = found.get(2).or_else(|| found.get(4))?.as_str();
        seconds(number * unit_in_seconds(unit)?)
    })
}

/// Whether a description says anything at all of how long something is kept.
pub fn is_mentioned(text: &str) -> bool {
    in_text(text).is_some() || sentences(text).any(|sentence| KEEPING.is_match(sentence))
}

/// The lifetime that an answer states beside a handle, at this time in seconds since 1970: `expires_in`, `expires_at`. Beside
/// it stands what is in the same object as the handle, or in one around that: `cache.ttl` is of something else.
pub fn in_result(result: &Value, spot: &Spot, now: u64) -> Option<Duration> {
    let blocks = result.get("content").and_then(Value::as_array).into_iter().flatten();
    let texts = blocks.filter_map(|block| serde_json::from_str::<Value>(block.get("text")?.as_str()?.trim()).ok());
    result.get("structuredContent").cloned().into_iter().chain(texts).find_map(|data| {
        let members = pointer::scalars(&data, MOST_MEMBERS);
        let beside: Vec<_> = members.into_iter().filter(|(at, _)| spot.stands_within(parent(at))).collect();
        // A unit that stands by itself may be that of any number beside it.
        let has_unit = beside
            .iter()
            .any(|(at, value)| value.is_string() && names::words(&pointer::last(at)).contains(&"unit".to_owned()));
        beside
            .into_iter()
            .filter(|_| !has_unit)
            .find_map(|(at, value)| in_member(&names::words(&pointer::last(&at)), value, now))
    })
}

fn parent(at: &str) -> &str {
    at.rsplit_once('/').map_or("", |(parent, _)| parent)
}

fn in_member(name: &[String], value: &Value, now: u64) -> Option<Duration> {
    let has = |known: &[&str]| name.iter().any(|word| known.contains(&word.as_str()));
    // `upload_url_expires_in` is of a URL, and `ttl_fortnights` of a unit that is not known: no lifetime that can be waited for.
    if !name.iter().all(|word| OF_LIFETIMES.contains(&word.as_str()) || unit_in_seconds(word).is_some()) {
        return None;
    }
    let lasts = has(&["ttl", "ttlms", "lifetime"]) || (has(&["expires", "expire"]) && has(&["in"]));
    if lasts {
        let unit = match () {
            () if has(&["ttlms", "millis"]) => "ms",
            () => name.iter().map(String::as_str).find(|word| unit_in_seconds(word).is_some()).unwrap_or("s"),
        };
        return match value {
            Value::String(text) => in_text(&format!("lifetime {text}")),
            value => seconds(value.as_f64()? * unit_in_seconds(unit)?),
        };
    }
    let until = has(&["expires", "expiry", "expiration", "expire"]) || (has(&["valid"]) && has(&["until", "to"]));
    let at = until.then(|| match value {
        Value::String(text) => since_1970(text),
        value => {
            value.as_f64().filter(|at| *at > EARLIEST).map(|at| if at > EARLIEST * 1000.0 { at / 1000.0 } else { at })
        }
    })??;
    seconds(at - f64::from(u32::try_from(now).ok()?))
}

/// Seconds since 1970 of a time as RFC 3339 writes it.
fn since_1970(text: &str) -> Option<f64> {
    let found = TIME.captures(text.trim())?;
    let part = |at: usize| found.get(at)?.as_str().parse::<i64>().ok();
    let (year, month, day) = (part(1)?, part(2)?, part(3)?);
    // Years begin in March, so that the day that comes and goes is the last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - DAYS_TO_1970;
    let offset = match (found.get(7), part(8), part(9)) {
        (Some(sign), Some(hours), Some(minutes)) => {
            (hours * 60 + minutes) * 60 * if sign.as_str() == "-" { -1 } else { 1 }
        }
        _ => 0,
    };
    let at = days * 86_400 + part(4)? * 3600 + part(5)? * 60 + part(6)? - offset;
    i32::try_from(at).ok().map(f64::from)
}

fn seconds(number: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(number).ok().filter(|time| !time.is_zero())
}

fn unit_in_seconds(unit: &str) -> Option<f64> {
    let unit = unit.to_ascii_lowercase();
    Some(match unit.trim_end_matches('s') {
        "m" if unit == "ms" => 0.001,
        "milli" | "millisecond" => 0.001,
        "" | "sec" | "second" => 1.0,
        "m" | "min" | "minute" => 60.0,
        "h" | "hr" | "hour" => 3600.0,
        "d" | "day" => 86_400.0,
        "week" => 604_800.0,
        _ => return None,
    })
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split(['!', ';', '\n']).flat_map(|part| part.split(". "))
}

const NUMBERS: [&[&str]; 12] = [
    &["a", "an", "one"],
    &["two"],
    &["three"],
    &["four"],
    &["five"],
    &["six"],
    &["seven"],
    &["eight"],
    &["nine"],
    &["ten"],
    &["eleven"],
    &["twelve"],
];
/// The words of a member that tells the lifetime of what it stands beside.
const OF_LIFETIMES: [&str; 18] = [
    "ttl",
    "ttlms",
    "lifetime",
    "expires",
    "expire",
    "expiry",
    "expiration",
    "in",
    "at",
    "on",
    "time",
    "date",
    "valid",
    "until",
    "to",
    "millis",
    "handle",
    "utc",
];
const MOST_MEMBERS: usize = 500;
/// Seconds since 1970 in 2001: whatever is less is no time of day.
const EARLIEST: f64 = 1_000_000_000.0;
/// From the first of March of the year 0.
const DAYS_TO_1970: i64 = 719_468;

#[allow(clippy::expect_used)] // constant patterns, compiled by the tests below
static DURATION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)\b(?:(\d+(?:\.\d+)?|half an?|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)",
        r"[\s-]+(milliseconds?|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?|weeks?|ms)|",
        // Only digits stand right before their unit: `as` is no second.
        r"(\d+(?:\.\d+)?)(ms|s|m|h|d|secs?|mins?|hrs?|hours?|seconds?|minutes?|days?))\b"
    ))
    .expect("constant pattern")
});
#[allow(clippy::expect_used)]
static LIVING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(expir\w*|lives|live for|lifetime|valid|ttl|time.to.live|retention|(kept|keeps?|retained)\W+(\w+\W+){0,4}?(for|up to|at least|about|\d+)|lasts?|good for|goes away|inactiv\w*|idle|unused|being used|closed automatically|removed automatically|deleted automatically)\b")
        .expect("constant pattern")
});
#[allow(clippy::expect_used)]
static OF_CALLS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(requests?|calls?|rate|limits?|timeouts?|queries|query|commands?|per|every|each|intervals?|in sync|sync\w*|replicas?|cach\w+|refresh\w*|links?|urls?|at least|minimum|locks?|undo|redo|editors?|typing|indicators?|connections?|disconnect\w*|previews?|drafts?|notifications?|codes?|passwords?|otps?|backups?|logs?|history)\b")
        .expect("constant pattern")
});
#[allow(clippy::expect_used)]
static KEEPING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(expir\w*|lifetime|ttl|time.to.live|retained|retention|(kept|lives?) (until|for|as long)|until (it is |you )?(close|end|delet|releas|remov)\w*|for ?ever|never (end|expire|delete|remove)\w*|permanent\w*|inactiv\w*)\b")
        .expect("constant pattern")
});
#[allow(clippy::expect_used)]
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|([+-])(\d\d):?(\d\d))?$")
        .expect("constant pattern")
});

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_lifetime_is_read_from_words() {
        for (text, lifetime) in [
            ("Opens a workspace. The handle lives for one hour.", 3600.0),
            ("baskets expire after 24 hours of inactivity", 86_400.0),
            ("Valid for 30s", 30.0),
            ("The handle lives for two seconds without being used.", 2.0),
            ("lifetime: half an hour", 1800.0),
            ("Kept for 1.5 hours. Then it is gone.", 5400.0),
            ("the lease lasts 500 ms", 0.5),
        ] {
            assert_eq!(in_text(text), Some(Duration::from_secs_f64(lifetime)), "{text}");
        }
    }

    #[test]
    fn what_is_no_lifetime_is_none() {
        for text in [
            "Opens a workspace with two notes.",
            "At most 5 requests per 60 seconds are valid.",
            "Calls time out after 30 seconds.",
            "A live view of 3 days.",
            "All replicas are kept in sync every 2 seconds.",
            "Copies are kept up to date each 5 minutes.",
            "The upload link expires in 3 seconds.",
            "Edit locks expire after 2 seconds.",
            "It is kept for at least 2 seconds.",
            "Undo is good for 2 seconds.",
            "Typing indicators expire after 5 seconds; rooms stay.",
            "Keeps two notes; 30 days of them are shown.",
            "It lives as long as this process.",
            "",
        ] {
            assert_eq!(in_text(text), None, "{text}");
        }
    }

    #[test]
    fn that_something_is_kept_may_be_said_without_a_number() {
        for text in [
            "Kept until you close it.",
            "It lives as long as this process.",
            "Baskets expire.",
            "Never deleted.",
            "lives for one hour",
        ] {
            assert!(is_mentioned(text), "{text}");
        }
        for text in ["Opens a workspace and returns its handle.", "Removes a note", "Waits until the page is loaded."] {
            assert!(!is_mentioned(text), "{text}");
        }
    }

    #[test]
    fn a_lifetime_is_read_beside_a_handle() {
        let now = 1_800_000_000;
        for (member, value, lifetime) in [
            ("expires_in", json!(90), 90),
            ("ttlMs", json!(5000), 5),
            ("lifetime", json!("2 minutes"), 120),
            ("ttl_days", json!(1), 86_400),
            ("ttl_min", json!(2), 120),
            ("expires_in_hours", json!(2), 7200),
            ("expires_at", json!(1_800_000_060), 60),
            ("expiresAt", json!(1_800_000_060_000_u64), 60),
            ("valid_until", json!("2027-01-15T08:01:00Z"), 60),
            ("expires_at", json!("2027-01-15T09:01:00.5+01:00"), 60),
        ] {
            let result = json!({"structuredContent": {"id": "x", member: value}});
            let beside = Spot::Structured("/id".to_owned());
            assert_eq!(in_result(&result, &beside, now), Some(Duration::from_secs(lifetime)), "{member}");
            // One object further out is still of the handle; one beside it is of something else.
            let around = json!({"structuredContent": {"basket": {"id": "x"}, member: value}});
            let inside = Spot::Structured("/basket/id".to_owned());
            assert_eq!(in_result(&around, &inside, now), Some(Duration::from_secs(lifetime)), "{member}");
            let other = json!({"structuredContent": {"id": "x", "cache": {member: value}}});
            assert_eq!(in_result(&other, &beside, now), None, "{member}");
        }
        for result in [
            json!({"structuredContent": {"expires": false, "created_at": 1_800_000_060}}),
            json!({"structuredContent": {"cache_ttl": 2, "upload_url_expires_in": 2, "ttl_fortnights": 2}}),
            json!({"structuredContent": {"expires_in": 2, "expires_in_unit": "days"}}),
            json!({"structuredContent": {"expires_at": "2027-01-15T07:00:00Z"}}),
            json!({"ttlMs": 300, "content": []}),
        ] {
            assert_eq!(in_result(&result, &Spot::Structured("/id".to_owned()), now), None, "{result}");
        }
    }
}
