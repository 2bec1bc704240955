//! One text for every JSON value, whoever wrote it: RFC 8785 (JSON Canonicalization Scheme), for a digest.
//!
//! In one respect it is stricter. RFC 8785 reads every number as a double, so that `9007199254740993` and
//! `9007199254740992` are the same; a state would then be good for either of two orders. An integer beyond 2^53 keeps its
//! digits here.

use aws_lc_rs::digest::{self, SHA256};
use serde_json::{Map, Number, Value};

/// SHA-256 of the canonical text of an object, without some of its members.
pub(super) fn digest(object: &Map<String, Value>, leaving_out: &[&str]) -> [u8; 32] {
    let mut out = Text(String::with_capacity(256));
    out.object(object, |name| leaving_out.contains(&name));
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest::digest(&SHA256, out.0.as_bytes()).as_ref());
    bytes
}

/// A canonical text as it is written. In one piece: a digest that is fed in small ones takes longer.
struct Text(String);

impl Text {
    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.write("null"),
            Value::Bool(true) => self.write("true"),
            Value::Bool(false) => self.write("false"),
            Value::Number(number) => self.number(number),
            Value::String(text) => self.string(text),
            Value::Array(items) => {
                self.write("[");
                for (at, item) in items.iter().enumerate() {
                    self.separate(at);
                    self.value(item);
                }
                self.write("]");
            }
            Value::Object(object) => self.object(object, |_| false),
        }
    }

    fn object(&mut self, object: &Map<String, Value>, left_out: impl Fn(&str) -> bool) {
        let mut members: Vec<(&String, &Value)> = object.iter().filter(|(name, _)| !left_out(name)).collect();
        // By UTF-16 code units (RFC 8785, section 3.2.3); of ASCII alone that is the order of the bytes.
        if members.iter().all(|(name, _)| name.is_ascii()) {
            members.sort_unstable_by_key(|(name, _)| *name);
        } else {
            members.sort_unstable_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
        }
        self.write("{");
        for (at, (name, value)) in members.into_iter().enumerate() {
            self.separate(at);
            self.string(name);
            self.write(":");
            self.value(value);
        }
        self.write("}");
    }

    fn number(&mut self, number: &Number) {
        const EXACT: u64 = 1 << 53;
        if let Some(integer) = number.as_u64().filter(|integer| *integer > EXACT) {
            return self.write(&integer.to_string());
        }
        if let Some(integer) = number.as_i64().filter(|integer| integer.unsigned_abs() > EXACT) {
            return self.write(&integer.to_string());
        }
        // Where somebody has taught `serde_json` to keep numbers as they are written, also an integer beyond 64 bits.
        let written = number.to_string();
        let digits = written.strip_prefix('-').unwrap_or(&written);
        if digits.len() > 16 && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return self.write(&written);
        }
        match number.as_f64() {
            Some(double) => self.write(ryu_js::Buffer::new().format(double)),
            // A number that no double can hold, where somebody has taught `serde_json` to keep those: its own digits.
            None => self.write(&number.to_string()),
        }
    }

    /// What `serde_json` escapes, and how, is what RFC 8785 (section 3.2.2.2) wants.
    fn string(&mut self, text: &str) {
        if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
            self.write("\"");
            self.write(text);
            self.write("\"");
        } else {
            self.write(&Value::from(text).to_string());
        }
    }

    fn separate(&mut self, at: usize) {
        if at > 0 {
            self.write(",");
        }
    }

    fn write(&mut self, text: &str) {
        self.0.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(json: &str) -> [u8; 32] {
        let Value::Object(object) = serde_json::from_str(json).expect("JSON") else { panic!("no object: {json}") };
        digest(&object, &[])
    }

    fn of_text(text: &str) -> [u8; 32] {
        digest::digest(&SHA256, text.as_bytes()).as_ref().try_into().expect("32 bytes")
    }

    /// The examples of RFC 8785: sections 3.2.2 and 3.2.3, and appendix B.
    #[test]
    fn as_the_rfc_writes_it() {
        let example = r#"{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}"#;
        let canonical = "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],\
             \"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}";
        assert_eq!(of(example), of_text(canonical));

        let names = r#"{"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh",
            "1": "One", "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control",
            "\u00f6": "Latin Small Letter O With Diaeresis"}"#;
        let sorted = "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\
             \"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\
             \"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}";
        assert_eq!(of(names), of_text(sorted));

        for (bits, text) in [
            (0x0000_0000_0000_0000_u64, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0xc340_0000_0000_0000, "-9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x41b3_de43_5555_5555, "333333333.3333333"),
        ] {
            let object = Map::from_iter([("n".to_owned(), Value::from(f64::from_bits(bits)))]);
            assert_eq!(digest(&object, &[]), of_text(&format!("{{\"n\":{text}}}")), "{bits:016x}");
        }
    }

    #[test]
    fn the_same_however_it_is_written() {
        for (one, other) in [
            (r#"{"a":1,"b":2}"#, r#"{ "b" : 2, "a" : 1 }"#),
            (r#"{"a":1}"#, r#"{"a":1.0}"#),
            (r#"{"a":100}"#, r#"{"a":1e2}"#),
            (r#"{"a":"\u00e9"}"#, r#"{"a":"é"}"#),
            (r#"{"a":"/"}"#, r#"{"a":"\/"}"#),
            (r#"{"a":{"c":1,"b":[{}]}}"#, r#"{"a":{"b":[{}],"c":1}}"#),
        ] {
            assert_eq!(of(one), of(other), "{one} {other}");
        }
    }

    #[test]
    fn and_another_where_it_says_something_else() {
        for (one, other) in [
            (r#"{"a":1}"#, r#"{"a":"1"}"#),
            (r#"{"a":1}"#, r#"{"a":1.0000000000000002}"#),
            (r#"{"a":9007199254740993}"#, r#"{"a":9007199254740992}"#),
            (r#"{"a":-9007199254740993}"#, r#"{"a":-9007199254740992}"#),
            (r#"{"a":18446744073709551615}"#, r#"{"a":18446744073709551614}"#),
            (r#"{"a":null}"#, "{}"),
            (r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#),
            (r#"{"a":[]}"#, r#"{"a":{}}"#),
            // Two ways to write é: a letter, and a letter with a mark. Nothing is normalised.
            ("{\"a\":\"\u{e9}\"}", "{\"a\":\"e\u{301}\"}"),
            (r#"{"a":"b\",\"c"}"#, r#"{"a":"b","c":""}"#),
        ] {
            assert_ne!(of(one), of(other), "{one} {other}");
        }
    }

    #[test]
    fn only_members_of_the_object_itself_are_left_out() {
        let object = serde_json::json!({"a": {"note": 1}, "note": 2}).as_object().cloned().expect("an object");

        assert_eq!(digest(&object, &["note"]), of(r#"{"a":{"note":1}}"#));
    }
}
