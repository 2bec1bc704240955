//! Ids that say when they were made, with something drawn behind: UUIDs of versions 1, 6 and 7, ULID, KSUID, ObjectId,
//! snowflakes, plain times. The time is no secret, so it is no part of the choice.

use std::time::Duration;

/// How ids say when they were made.
struct Form {
    name: &'static str,
    /// How many there may be in a second where nothing else differs.
    ticks: f64,
    /// When, in seconds since 1970, and all that is not the time.
    read: fn(&str) -> Option<(f64, String)>,
}

/// Ids of one form.
#[derive(Debug, PartialEq)]
pub(super) struct Dated {
    pub(super) form: &'static str,
    pub(super) ticks: f64,
    /// What stands beside the time, of each.
    pub(super) rest: Vec<String>,
}

/// The form of these ids, if each says a time close to `now`, and none an earlier one than that before it.
pub(super) fn read(ids: &[String], now: Duration) -> Option<Dated> {
    let near = |at: f64| (at - now.as_secs_f64()).abs() < DAY;
    FORMS.iter().find_map(|form| {
        // `ws-01ARZ3…`: the id proper stands after the last sign between, or is all of it.
        let starts = |id: &str| {
            let after = |(at, c): (usize, char)| (!c.is_ascii_alphanumeric()).then(|| at + c.len_utf8());
            std::iter::once(0).chain(id.char_indices().filter_map(after)).take(MOST_STARTS).collect::<Vec<_>>()
        };
        let of_one = |id: &String| {
            starts(id).into_iter().find_map(|start| (form.read)(&id[start..]).filter(|(at, _)| near(*at)))
        };
        let read: Vec<(f64, String)> = ids.iter().map(of_one).collect::<Option<_>>()?;
        let in_order = read.windows(2).all(|pair| pair[0].0 <= pair[1].0);
        let rest = read.into_iter().map(|(_, rest)| rest).collect();
        in_order.then_some(Dated { form: form.name, ticks: form.ticks, rest })
    })
}

const FORMS: [Form; 11] = [
    Form {
        name: "a UUID of version 1",
        ticks: 1e7,
        read: |id| uuid(id, '1').and_then(|hex| gregorian(&hex, version_1)),
    },
    Form {
        name: "a UUID of version 6",
        ticks: 1e7,
        read: |id| uuid(id, '6').and_then(|hex| gregorian(&hex, version_6)),
    },
    Form { name: "a UUID of version 7", ticks: 1e3, read: version_7 },
    Form { name: "a ULID", ticks: 1e3, read: ulid },
    Form { name: "a KSUID", ticks: 1.0, read: ksuid },
    Form { name: "an ObjectId", ticks: 1.0, read: object_id },
    Form { name: "a time as PHP's `uniqid` writes it", ticks: 1e6, read: uniqid },
    Form { name: "a snowflake of Twitter's epoch", ticks: 1e3, read: |id| snowflake(id, 1_288_834_974.657) },
    Form { name: "a snowflake of Discord's epoch", ticks: 1e3, read: |id| snowflake(id, 1_420_070_400.0) },
    Form { name: "a time in milliseconds", ticks: 1e3, read: |id| digits(id, 13, 1e3) },
    Form { name: "a time in seconds", ticks: 1.0, read: |id| digits(id, 10, 1.0) },
];

fn hex(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

/// The 32 digits of a UUID of this version (RFC 9562).
fn uuid(id: &str, version: char) -> Option<String> {
    let groups: Vec<usize> = id.split('-').map(str::len).collect();
    let digits: String = id.chars().filter(|c| *c != '-').collect();
    let is_one = (groups == [8, 4, 4, 4, 12] || groups == [32])
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        && digits[12..].starts_with(version)
        && matches!(digits.as_bytes().get(16), Some(b'8' | b'9' | b'a' | b'b' | b'A' | b'B'));
    is_one.then_some(digits)
}

/// Ticks of 100 ns since 1582.
fn gregorian(digits: &str, ticks: fn(&str) -> Option<u64>) -> Option<(f64, String)> {
    let since = ticks(digits)?.checked_sub(GREGORIAN)?;
    Some((since as f64 / 1e7, digits[16..].to_owned()))
}

fn version_1(digits: &str) -> Option<u64> {
    Some(hex(&digits[13..16])? << 48 | hex(&digits[8..12])? << 32 | hex(&digits[..8])?)
}

fn version_6(digits: &str) -> Option<u64> {
    Some(hex(&digits[..12])? << 12 | hex(&digits[13..16])?)
}

fn version_7(id: &str) -> Option<(f64, String)> {
    let digits = uuid(id, '7')?;
    Some((hex(&digits[..12])? as f64 / 1e3, digits[13..].to_owned()))
}

fn ulid(id: &str) -> Option<(f64, String)> {
    let id = id.to_ascii_uppercase();
    let is_one = id.len() == 26 && id.bytes().all(|byte| CROCKFORD.contains(&byte));
    let value = |byte: u8| CROCKFORD.iter().position(|digit| *digit == byte).unwrap_or_default() as u64;
    is_one.then(|| (id.bytes().take(10).fold(0, |at, byte| at << 5 | value(byte)) as f64 / 1e3, id[10..].to_owned()))
}

fn ksuid(id: &str) -> Option<(f64, String)> {
    let is_one = id.len() == 27 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let mut bytes = [0_u8; 20];
    for byte in id.bytes().filter(|_| is_one) {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'A'..=b'Z' => byte - b'A' + 10,
            _ => byte - b'a' + 36,
        };
        let mut carry = u32::from(digit);
        for place in bytes.iter_mut().rev() {
            carry += u32::from(*place) * 62;
            *place = carry.to_le_bytes()[0];
            carry >>= 8;
        }
        if carry > 0 {
            return None;
        }
    }
    let [a, b, c, d, rest @ ..] = bytes;
    let rest = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    is_one.then(|| (f64::from(u32::from_be_bytes([a, b, c, d])) + KSUID_EPOCH, rest))
}

fn object_id(id: &str) -> Option<(f64, String)> {
    let is_one = id.len() == 24 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    Some((hex(id.get(..8).filter(|_| is_one)?)? as f64, id[8..].to_owned()))
}

fn uniqid(id: &str) -> Option<(f64, String)> {
    let is_one = id.len() == 13 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let millionths = hex(id.get(8..).filter(|_| is_one)?).filter(|millionths| *millionths < 1_000_000)?;
    Some((hex(&id[..8])? as f64 + millionths as f64 / 1e6, String::new()))
}

fn snowflake(id: &str, epoch: f64) -> Option<(f64, String)> {
    let is_one = (17..=20).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = id.parse().ok().filter(|_| is_one)?;
    Some(((number >> 22) as f64 / 1e3 + epoch, format!("{:06x}", number & 0x3f_ffff)))
}

/// As many digits and no more, and whatever follows.
fn digits(id: &str, count: usize, ticks: f64) -> Option<(f64, String)> {
    let end = id.find(|c: char| !c.is_ascii_digit()).unwrap_or(id.len());
    let at: u64 = id[..end].parse().ok().filter(|_| end == count)?;
    Some((at as f64 / ticks, id[end..].to_owned()))
}

const DAY: f64 = 86_400.0;
const MOST_STARTS: usize = 8;
/// From 1582-10-15 to 1970-01-01, in ticks of 100 ns.
const GREGORIAN: u64 = 0x01b2_1dd2_1381_4000;
const KSUID_EPOCH: f64 = 1_400_000_000.0;
const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the specifications of each form, with the times that those say.
    #[test]
    fn each_form_is_read_as_its_specification_says() {
        for (id, at, form, rest) in [
            // RFC 9562, appendix A: 2022-02-22T19:22:22Z.
            ("C232AB00-9414-11EC-B3C8-9F6BDECED846", 1_645_557_742.0, "a UUID of version 1", "B3C89F6BDECED846"),
            ("1EC9414C-232A-6B00-B3C8-9F6BDECED846", 1_645_557_742.0, "a UUID of version 6", "B3C89F6BDECED846"),
            ("017F22E2-79B0-7CC3-98C4-DC0C0C07398F", 1_645_557_742.0, "a UUID of version 7", "CC398C4DC0C0C07398F"),
            // The README of ULID; the test of its first library.
            ("01ARYZ6S41TSV4RRFFQ69G5FAV", 1_469_918_176.385, "a ULID", "TSV4RRFFQ69G5FAV"),
            // The README of KSUID: raw 0669F7EF B5A1CD34B5F99D1154FB6853345C9735.
            ("0ujtsYcgvSTl8PAuAdqWYSMnLOv", 1_507_608_047.0, "a KSUID", "b5a1cd34b5f99d1154fb6853345c9735"),
            // The manual of MongoDB: 2012-10-17T20:46:22Z.
            ("507f191e810c19729de860ea", 1_350_506_782.0, "an ObjectId", "810c19729de860ea"),
            // The documentation of Discord's API: 2016-04-30T11:18:25.796Z.
            ("175928847299117063", 1_462_015_105.796, "a snowflake of Discord's epoch", "020007"),
            ("1645557742000-x7", 1_645_557_742.0, "a time in milliseconds", "-x7"),
            ("sess_1645557742", 1_645_557_742.0, "a time in seconds", ""),
            ("5d5c1b3f0a1b2", 1_566_317_375.041394, "a time as PHP's `uniqid` writes it", ""),
        ] {
            let found = read(&[id.to_owned()], Duration::from_secs_f64(at)).unwrap_or_else(|| panic!("{id} is read"));
            assert_eq!((found.form, found.rest[0].as_str()), (form, rest), "{id}");
            let exact = FORMS
                .iter()
                .find(|known| known.name == form)
                .and_then(|known| (known.read)(id.trim_start_matches("sess_")));
            assert!((exact.expect("read").0 - at).abs() < 0.001, "{id}");
            // The same bytes at another time say nothing.
            assert_eq!(read(&[id.to_owned()], Duration::from_secs_f64(at + 2.0 * DAY)), None, "{id}");
        }
    }

    #[test]
    fn what_says_no_time_or_goes_back_is_none() {
        let now = Duration::from_secs(1_645_557_742);
        let [one, two] = ["017F22E2-79B0-7CC3-98C4-DC0C0C07398F", "017F22E2-79B1-7CC3-98C4-DC0C0C07398F"];
        assert!(read(&[one, two].map(str::to_owned), now).is_some());
        assert_eq!(read(&[two, one].map(str::to_owned), now), None);
        for other in
            ["", "é", "ws-", "c232ab00-9414-41ec-b3c8-9f6bdeced846", "zzzzzzzzzzzzzzzzzzzzzzzzzzz", "16455577420001"]
        {
            assert_eq!(read(&[other.to_owned()], now), None, "{other}");
        }
    }
}
