//! One value of a JSON text replaced in place: every byte outside it stays as issued, so that a refusal is about the
//! change and not about spacing, number forms or the order of members.

use std::ops::Range;

use handfast_wire::pointer;
use serde_json::Value;

/// The bytes that hold the value at a pointer. The text must be valid JSON.
pub(super) fn span(text: &str, wanted: &str) -> Option<Range<usize>> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
    let mut scanner = Scanner { bytes: text.as_bytes(), at: 0 };
    scanner.find(wanted, &mut String::new())
}

/// The text with the value at a pointer replaced.
pub(super) fn replaced(text: &str, wanted: &str, new: &Value) -> Option<String> {
    let range = span(text, wanted)?;
    Some(format!("{}{new}{}", &text[..range.start], &text[range.end..]))
}

/// The text of an object with one more member at its end.
pub(super) fn with_member(text: &str, name: &str, value: &Value) -> Option<String> {
    let whole = span(text, "")?;
    let body = text[whole.clone()].strip_suffix('}')?;
    let comma = if body.trim_end().ends_with('{') { "" } else { "," };
    let name = Value::from(name);
    Some(format!("{}{body}{comma}{name}:{value}}}{}", &text[..whole.start], &text[whole.end..]))
}

/// Walks JSON that is known to be valid.
struct Scanner<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl Scanner<'_> {
    fn find(&mut self, wanted: &str, here: &mut String) -> Option<Range<usize>> {
        self.blanks();
        let start = self.at;
        if here == wanted {
            self.skip();
            return Some(start..self.at);
        }
        let is_above = wanted.strip_prefix(here.as_str()).is_some_and(|rest| rest.starts_with('/'));
        if !is_above {
            self.skip();
            return None;
        }
        match self.peek() {
            b'{' => self.members(|scanner, name| scanner.below(wanted, here, &pointer::escape(&name))),
            b'[' => self.items(|scanner, index| scanner.below(wanted, here, &index.to_string())),
            _ => {
                self.skip();
                None
            }
        }
    }

    fn below(&mut self, wanted: &str, here: &mut String, segment: &str) -> Option<Range<usize>> {
        let length = here.len();
        here.push('/');
        here.push_str(segment);
        let found = self.find(wanted, here);
        here.truncate(length);
        found
    }

    /// Of members with the same name the last one counts, as it does for most readers.
    fn members(&mut self, mut visit: impl FnMut(&mut Self, String) -> Option<Range<usize>>) -> Option<Range<usize>> {
        let mut found = None;
        self.at += 1;
        loop {
            self.blanks();
            match self.peek() {
                b'}' => {
                    self.at += 1;
                    return found;
                }
                b',' => self.at += 1,
                _ => {
                    let start = self.at;
                    self.skip();
                    let name = serde_json::from_slice::<String>(&self.bytes[start..self.at]).unwrap_or_default();
                    self.blanks();
                    self.at += 1; // the colon
                    found = visit(self, name).or(found);
                }
            }
        }
    }

    fn items(&mut self, mut visit: impl FnMut(&mut Self, usize) -> Option<Range<usize>>) -> Option<Range<usize>> {
        let (mut found, mut index) = (None, 0);
        self.at += 1;
        loop {
            self.blanks();
            match self.peek() {
                b']' => {
                    self.at += 1;
                    return found;
                }
                b',' => {
                    self.at += 1;
                    index += 1;
                }
                _ => found = visit(self, index).or(found),
            }
        }
    }

    /// Past one whole value.
    fn skip(&mut self) {
        match self.peek() {
            b'"' => {
                self.at += 1;
                while self.peek() != b'"' {
                    self.at += if self.peek() == b'\\' { 2 } else { 1 };
                }
                self.at += 1;
            }
            b'{' => {
                self.members(|scanner, _| {
                    scanner.blanks();
                    scanner.skip();
                    None
                });
            }
            b'[' => {
                self.items(|scanner, _| {
                    scanner.skip();
                    None
                });
            }
            _ => {
                while !matches!(self.peek(), b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r' | END) {
                    self.at += 1;
                }
            }
        }
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    /// The next byte; a quote at the end, so that no loop runs past it.
    fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(END)
    }
}

/// A byte that ends every loop above and never stands in valid JSON outside of strings.
const END: u8 = 0;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_value_changes() {
        let text = r#" {"a" : [1.50, {"b\/c":"x\"y"}],"n":1e2 } "#;
        assert_eq!(
            replaced(text, "/a/1/b~1c", &json!("z")).as_deref(),
            Some(r#" {"a" : [1.50, {"b\/c":"z"}],"n":1e2 } "#)
        );
        assert_eq!(replaced(text, "/n", &json!(7)).as_deref(), Some(r#" {"a" : [1.50, {"b\/c":"x\"y"}],"n":7 } "#));
        assert_eq!(replaced(text, "/missing", &json!(7)), None);
        assert_eq!(with_member(r#"{"a":1}"#, "x", &json!(true)).as_deref(), Some(r#"{"a":1,"x":true}"#));
        assert_eq!(with_member("{ }", "x", &json!(1)).as_deref(), Some(r#"{ "x":1}"#));
        assert_eq!(replaced(r#"{"a":1,"a":2}"#, "/a", &json!(3)).as_deref(), Some(r#"{"a":1,"a":3}"#));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "\\PC{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec(("\\PC{0,6}", inner), 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn splicing_equals_replacing(root in any_json(), pretty in any::<bool>()) {
            let text = if pretty { serde_json::to_string_pretty(&root) } else { serde_json::to_string(&root) }.expect("JSON");
            for (at, _) in pointer::scalars(&root, 50) {
                let spliced = replaced(&text, &at, &json!("<new>")).expect("a pointer of this document");
                let mut expected = root.clone();
                pointer::replace(&mut expected, &at, json!("<new>"));
                prop_assert_eq!(serde_json::from_str::<Value>(&spliced).expect("still JSON"), expected);
            }
        }
    }
}
