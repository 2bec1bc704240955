//! Points in time as servers write them: seconds or thousandths since 1970, as a number or in digits, a date of ISO 8601, the
//! date of an HTTP answer.

use std::{sync::LazyLock, time::Duration};

use regex::Regex;
use serde_json::Value;

/// The point in time that a value names, since 1970; `None` for a number that is too small or too large for this century.
pub(crate) fn named(value: &Value) -> Option<Duration> {
    match value {
        Value::Number(number) => numbered(number.as_f64()?),
        Value::String(text) => text.trim().parse().ok().and_then(numbered).or_else(|| iso(text.trim())),
        _ => None,
    }
}

fn numbered(number: f64) -> Option<Duration> {
    match number {
        seconds if (1e9..1e10).contains(&seconds) => Duration::try_from_secs_f64(seconds).ok(),
        thousandths if (1e12..1e13).contains(&thousandths) => Duration::try_from_secs_f64(thousandths / 1e3).ok(),
        _ => None,
    }
}

fn iso(text: &str) -> Option<Duration> {
    let parts = ISO.captures(text)?;
    let number = |at: usize| parts.get(at).and_then(|part| part.as_str().parse::<i64>().ok());
    let zone = match (parts.get(7).map_or("Z", |zone| zone.as_str()), number(8), number(9)) {
        ("Z" | "z", ..) => 0,
        (zone, Some(hours), Some(minutes)) => (hours * 60 + minutes) * 60 * if zone.starts_with('-') { -1 } else { 1 },
        _ => return None,
    };
    let [year, month, day, hour, minute, second] = [1, 2, 3, 4, 5, 6].map(number);
    since_1970([year?, month?, day?, hour?, minute?, second?]).and_then(|seconds| from_seconds(seconds - zone))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) fn http(text: &str) -> Option<Duration> {
    let parts = HTTP.captures(text.trim())?;
    let number = |at: usize| parts.get(at).and_then(|part| part.as_str().parse::<i64>().ok());
    let month = MONTHS.iter().position(|month| *month == &parts[2])? as i64 + 1;
    let [day, year, hour, minute, second] = [1, 3, 4, 5, 6].map(number);
    since_1970([year?, month, day?, hour?, minute?, second?]).and_then(from_seconds)
}

/// Days are counted from March, so that the odd one comes last.
fn since_1970([year, month, day, hour, minute, second]: [i64; 6]) -> Option<i64> {
    let fits = (1970..3000).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second);
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leaps = year / 4 - year / 100 + year / 400;
    let days = year * 365 + leaps + (month * 153 + 2) / 5 + day - 1 - DAYS_BEFORE_1970;
    fits.then_some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

fn from_seconds(seconds: i64) -> Option<Duration> {
    u64::try_from(seconds).ok().map(Duration::from_secs)
}

/// From the first of March of the year 0 to the first of January 1970.
const DAYS_BEFORE_1970: i64 = 719_468;
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

#[allow(clippy::expect_used)] // constant patterns, compiled by the tests below
static ISO: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.\d+)?(Z|z|[+-](\d{2}):?(\d{2}))?$")
        .expect("constant pattern")
});
#[allow(clippy::expect_used)]
static HTTP: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[A-Z][a-z]{2}, (\d{2}) ([A-Z][a-z]{2}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) GMT$")
        .expect("constant pattern")
});

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_time_in_many_ways() {
        let at = Some(Duration::from_secs(1_796_040_000));
        for value in [
            json!(1_796_040_000),
            json!(1_796_040_000_000_i64),
            json!("1796040000"),
            json!(1_796_040_000.0),
            json!("2026-11-30T12:00:00Z"),
            json!("2026-11-30T12:00:00"),
            json!("2026-11-30 12:00:00.000000+00:00"),
            json!("2026-11-30T13:30:00+01:30"),
            json!("2026-11-30T07:00:00-0500"),
        ] {
            assert_eq!(named(&value), at, "{value}");
        }
        assert_eq!(http("Mon, 30 Nov 2026 12:00:00 GMT"), at);
        assert_eq!(http("Thu, 29 Feb 2024 00:00:00 GMT"), Some(Duration::from_secs(1_709_164_800)));
        assert_eq!(named(&json!("2000-03-01T00:00:00Z")), Some(Duration::from_secs(951_868_800)));
    }

    #[test]
    fn what_is_no_time_is_none() {
        for value in [
            json!(300),
            json!(10_000),
            json!("300"),
            json!(true),
            json!("soon"),
            json!("2026-13-30T12:00:00Z"),
            json!("2026-11-30"),
            json!(1e300),
            json!(-1_796_040_000),
        ] {
            assert_eq!(named(&value), None, "{value}");
        }
        assert_eq!(http("yesterday"), None);
    }
}
