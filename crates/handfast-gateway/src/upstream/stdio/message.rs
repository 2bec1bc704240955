//! Messages as text: read just far enough to know whose they are. Only ids and tokens are ever written anew; every other
//! byte stays as it was.

use std::{borrow::Cow, ops::Range};

use handfast_wire::{meta, span::spliced};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

/// A message, on one line.
pub(super) struct Message<'t> {
    text: &'t str,
    pub(super) kind: Kind,
    /// The id as it is written.
    pub(super) id: Option<&'t str>,
    method: Option<Cow<'t, str>>,
    params: Params<'t>,
    meta: Meta<'t>,
    error: Option<&'t RawValue>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Request,
    Notification,
    Response,
}

#[derive(Deserialize)]
struct Members<'t> {
    jsonrpc: Cow<'t, str>,
    #[serde(borrow)]
    id: Option<&'t RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'t, str>>,
    #[serde(borrow)]
    params: Option<&'t RawValue>,
    #[serde(borrow)]
    result: Option<&'t RawValue>,
    #[serde(borrow)]
    error: Option<&'t RawValue>,
}

/// Of parameters, and of a result.
#[derive(Default, Deserialize)]
struct Params<'t> {
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'t RawValue>,
    #[serde(borrow, rename = "requestId")]
    request: Option<&'t RawValue>,
    #[serde(borrow, rename = "progressToken")]
    token: Option<&'t RawValue>,
}

#[derive(Default, Deserialize)]
struct Meta<'t> {
    #[serde(borrow, rename = "progressToken")]
    token: Option<&'t RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/subscriptionId")]
    subscription: Option<&'t RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<&'t RawValue>,
}

#[derive(Default, Deserialize)]
struct Coded {
    code: Option<i64>,
}

impl<'t> Message<'t> {
    /// Reads a message; `None` where the text is none. The text has no line end in it.
    pub(super) fn read(text: &'t str) -> Option<Self> {
        let members: Members<'t> = object(text)?;
        let id = members.id.map(RawValue::get);
        let outcomes = usize::from(members.result.is_some()) + usize::from(members.error.is_some());
        let kind = match (&members.method, id, outcomes) {
            (Some(_), Some(_), 0) => Kind::Request,
            (Some(_), None, 0) => Kind::Notification,
            (None, Some(_), 1) => Kind::Response,
            _ => return None,
        };
        let is_id = |id: &str| id.starts_with('"') || id.parse::<i64>().is_ok() || number(id).is_some();
        let sound = members.jsonrpc == "2.0" && id.is_none_or(is_id);
        let params: Params<'t> = match (members.params, members.result) {
            (Some(params), _) => object(params.get())?,
            // Whatever a result is, its request is answered.
            (None, Some(result)) => object(result.get()).unwrap_or_default(),
            (None, None) => Params::default(),
        };
        let meta = match params.meta {
            Some(meta) if kind == Kind::Response => object(meta.get()).unwrap_or_default(),
            Some(meta) => object(meta.get())?,
            None => Meta::default(),
        };
        sound.then_some(Self { text, kind, id, method: members.method, params, meta, error: members.error })
    }

    pub(super) fn is(&self, method: &str) -> bool {
        self.method.as_deref() == Some(method)
    }

    /// Whether it says itself that it belongs to the revision without sessions.
    pub(super) fn is_modern(&self) -> bool {
        self.meta.version.is_some()
    }

    /// The token for progress that a request brings.
    pub(super) fn token(&self) -> Option<&'t str> {
        self.meta.token.map(RawValue::get)
    }

    /// The request that `notifications/cancelled` is about.
    pub(super) fn cancelled(&self) -> Option<&'t str> {
        self.is(CANCELLED).then_some(self.params.request?.get())
    }

    /// The request that progress is told of, or the subscription that something is told for: the number that we gave it.
    pub(super) fn belongs(&self) -> Option<u64> {
        match self.params.token {
            Some(token) if self.is(PROGRESS) => number(token.get()),
            // There are servers that write every id as text there.
            _ => number(self.meta.subscription?.get().trim_matches('"')),
        }
    }

    /// Whether it names a request or subscription, known or not.
    pub(super) fn is_addressed(&self) -> bool {
        self.is(PROGRESS) || self.meta.subscription.is_some()
    }

    /// Whether it is an error, and which.
    pub(super) fn error(&self) -> Option<i64> {
        let error: Coded = object(self.error?.get()).unwrap_or_default();
        Some(error.code.unwrap_or(meta::INTERNAL_ERROR))
    }

    /// The request with this number for an id, and for a token where it has one.
    pub(super) fn numbered(&self, number: u64) -> String {
        self.with(&[(self.id, &number.to_string()), (self.token(), &number.to_string())])
    }

    /// `notifications/cancelled` about this number.
    pub(super) fn cancelling(&self, number: u64) -> String {
        self.with(&[(self.cancelled(), &number.to_string())])
    }

    /// What was said for a request, with the id and the token that its client gave it.
    pub(super) fn restored(&self, number: u64, id: &str, token: Option<&str>) -> String {
        let own = |written: &&str| written.trim_matches('"') == number.to_string();
        let subscription = self.meta.subscription.map(RawValue::get).filter(own);
        let as_text = subscription.is_some_and(|written| written.starts_with('"')) && !id.starts_with('"');
        let subscribed = if as_text { format!("\"{id}\"") } else { id.to_owned() };
        let answered = (self.kind == Kind::Response).then_some(self.id).flatten();
        let progress = self.is(PROGRESS).then_some(self.params.token).flatten().map(RawValue::get).filter(own);
        self.with(&[(answered, id), (progress, token.unwrap_or(id)), (subscription, &subscribed)])
    }

    /// The text with these parts of it written anew.
    fn with(&self, parts: &[(Option<&'t str>, &str)]) -> String {
        let changes = parts.iter().filter_map(|(part, new)| Some((self.place((*part)?), (*new).to_owned())));
        spliced(self.text, changes.collect())
    }

    /// Where a part of the text stands in it: all parts are borrowed from there.
    fn place(&self, part: &str) -> Range<usize> {
        let start = part.as_ptr() as usize - self.text.as_ptr() as usize;
        start..start + part.len()
    }
}

/// Reads an object, and nothing that merely could be read as one.
fn object<'t, T: Deserialize<'t>>(text: &'t str) -> Option<T> {
    text.trim_ascii_start().starts_with('{').then(|| serde_json::from_str(text).ok())?
}

/// One of our own ids.
pub(super) fn number(written: &str) -> Option<u64> {
    written.parse().ok()
}

/// On one line: JSON has line ends between its tokens only, where a space is as good.
pub(super) fn one_line(text: &str) -> String {
    text.trim_ascii().replace(['\n', '\r'], " ")
}

/// On one line for whoever takes more than a line feed for the end of one: half a message would be another message, which
/// nobody has looked at. JSON has these characters within strings only.
pub(super) fn one_line_for_all(text: &str) -> Option<String> {
    let text = one_line(text);
    if !text.contains(LINE_ENDS) {
        return Some(text);
    }
    let _: IgnoredAny = serde_json::from_str(&text).ok()?;
    Some(LINE_ENDS.iter().fold(text, |text, end| text.replace(*end, &format!("\\u{:04x}", u32::from(*end)))))
}

/// Next line, line separator, paragraph separator.
const LINE_ENDS: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];
pub(super) const CANCELLED: &str = "notifications/cancelled";
pub(super) const PROGRESS: &str = "notifications/progress";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_id_and_the_token_are_written_anew() {
        let text = r#"{ "b":1.0e2, "params":{"n":123456789012345678901234567890,"_meta":{"progress\u0054oken":"é","x":"7"}},"id" : "7", "method":"tools/call","jsonrpc":"2.0"}"#;
        let message = Message::read(text).expect("a message");

        assert_eq!(
            message.numbered(41),
            r#"{ "b":1.0e2, "params":{"n":123456789012345678901234567890,"_meta":{"progress\u0054oken":41,"x":"7"}},"id" : 41, "method":"tools/call","jsonrpc":"2.0"}"#
        );
    }

    #[test]
    fn an_answer_gets_the_id_of_its_client_back() {
        let text =
            r#"{"result":{"id":41,"_meta":{"io.modelcontextprotocol/subscriptionId":41}},"id":41,"jsonrpc":"2.0"}"#;
        let message = Message::read(text).expect("a message");

        assert_eq!(
            message.restored(41, "\"a\"", None),
            r#"{"result":{"id":41,"_meta":{"io.modelcontextprotocol/subscriptionId":"a"}},"id":"a","jsonrpc":"2.0"}"#
        );
    }

    #[test]
    fn a_subscription_that_is_written_as_text_stays_text() {
        let text =
            r#"{"method":"x","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"41"}},"jsonrpc":"2.0"}"#;
        let message = Message::read(text).expect("a message");

        assert_eq!(message.belongs(), Some(41));
        assert_eq!(message.restored(41, "7", None), text.replace("41", "7"));
        assert_eq!(message.restored(41, "\"a\"", None), text.replace("41", "a"));
        assert_eq!(message.restored(42, "7", None), text, "another's");
    }

    #[test]
    fn there_is_no_line_end_for_anybody() {
        let line = |text: &str| one_line_for_all(text);

        assert_eq!(line("{\"a\":\r\n1}\n").as_deref(), Some("{\"a\":  1}"));
        assert_eq!(line("[\"\u{2028}\u{2029}\u{85}\"]").as_deref(), Some(r#"["\u2028\u2029\u0085"]"#));
        assert_eq!(line("[\"\\\u{2028}\"]"), None, "no JSON, and it does not become any");
    }

    #[test]
    fn what_is_no_message_is_not_taken_for_one() {
        for bad in [
            "",
            "7",
            "[]",
            "ready",
            r#"{"jsonrpc":"2.0"}"#,
            r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
            r#"{"id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":{},"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[]}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{},"_meta":{}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}} x"#,
        ] {
            assert!(Message::read(bad).is_none(), "{bad}");
        }
    }
}
