//! As much of a message as has to be known: whether it begins a session, and which answer it waits for. Everything else in
//! it is the server's business.

use std::borrow::Cow;

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, Visitor},
};
use serde_json::Value;

/// A message, or several.
pub(super) enum Peeked {
    /// `initialize`, of this id.
    Initialize(Value),
    /// Any other, with the id that an error would have.
    Other(Value),
}

/// The members that matter. Each stands once, and no other is spelt like it: there are servers that read `METHOD` as
/// `method`, and of a message that two readers take for two nobody can say what it asks.
#[derive(Default)]
struct Head {
    id: Value,
    method: Option<String>,
    result: bool,
    error: bool,
}

const MEMBERS: [&str; 4] = ["id", "method", "result", "error"];

impl<'de> Deserialize<'de> for Head {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Head;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Head, A::Error> {
        let (mut head, mut seen) = (Head::default(), [false; MEMBERS.len()]);
        while let Some(name) = map.next_key::<Cow<'_, str>>()? {
            let Some(at) = MEMBERS.iter().position(|member| member.eq_ignore_ascii_case(&name)) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if name != MEMBERS[at] || std::mem::replace(&mut seen[at], true) {
                return Err(A::Error::custom("a member stands twice, or is spelt in another way"));
            }
            match at {
                0 => head.id = map.next_value()?,
                1 => head.method = Some(map.next_value()?),
                2 => head.result = map.next_value::<Option<IgnoredAny>>()?.is_some(),
                _ => head.error = map.next_value::<Option<IgnoredAny>>()?.is_some(),
            }
        }
        Ok(head)
    }
}

const INITIALIZE: &str = "initialize";

/// What this is; `None` where it is no message. Several at once (2025-03-26) may not begin a session: "The initialize
/// request MUST NOT be part of a JSON-RPC batch".
pub(super) fn peek(body: &[u8]) -> Option<Peeked> {
    let batch = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    if batch {
        let heads: Vec<Head> = serde_json::from_slice(body).ok()?;
        let begins = heads.iter().any(|head| head.method.as_deref() == Some(INITIALIZE));
        return (!begins && !heads.is_empty()).then_some(Peeked::Other(Value::Null));
    }
    let head: Head = serde_json::from_slice(body).ok()?;
    match head.method.as_deref() {
        Some(INITIALIZE) if !head.id.is_null() => Some(Peeked::Initialize(head.id)),
        Some(INITIALIZE) => None,
        _ => Some(Peeked::Other(head.id)),
    }
}

/// Whether `initialize` has succeeded, by the server's answer as JSON; `None` where that cannot be said.
pub(super) fn succeeded(answer: &[u8]) -> Option<bool> {
    let head: Head = serde_json::from_slice(answer).ok()?;
    (head.result || head.error).then_some(head.result && !head.error)
}

/// A stream of events as it comes in: each event is looked at once.
#[derive(Default)]
pub(super) struct Events {
    /// What belongs to an event that is not whole yet.
    rest: String,
    /// Bytes that may be half a character, or the first half of CR LF.
    half: Vec<u8>,
}

impl Events {
    /// Whether `initialize` has succeeded, by what the server has said so far; `None` where it has not said it.
    pub(super) fn more(&mut self, chunk: &[u8]) -> Option<bool> {
        self.half.extend_from_slice(chunk);
        let whole = self.half.iter().rposition(|byte| *byte == b'\n' || *byte == b'\r')?;
        // A CR at the very end may be the first half of CR LF.
        let whole = if self.half[whole] == b'\r' && whole + 1 == self.half.len() { whole } else { whole + 1 };
        let lines = String::from_utf8_lossy(&self.half[..whole]).replace("\r\n", "\n").replace('\r', "\n");
        self.half.drain(..whole);
        self.rest.push_str(&lines);
        let (events, rest) = self.rest.rsplit_once("\n\n")?;
        let data =
            |event: &str| event.lines().filter_map(|line| line.strip_prefix("data:")).collect::<Vec<_>>().join("\n");
        let verdict = events.split("\n\n").find_map(|event| succeeded(data(event).as_bytes()));
        self.rest = rest.to_owned();
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_message_alone_begins_a_session() {
        let begins = |body: &str| peek(body.as_bytes()).map(|peeked| matches!(peeked, Peeked::Initialize(_)));

        assert_eq!(begins(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#), Some(true));
        assert_eq!(begins(r#"{"id":"a","method":"\u0069nitialize"}"#), Some(true));
        assert_eq!(begins(r#"{"id":1,"method":"tools/call","params":{"method":"initialize"}}"#), Some(false));
        assert_eq!(begins(r#"{"method":"notifications/initialized"}"#), Some(false));
        assert_eq!(begins(r#"{"id":1,"result":{}}"#), Some(false));
        assert_eq!(begins(r#"[{"id":1,"method":"ping"},{"id":2,"method":"ping"}]"#), Some(false));
        for bad in [
            r#"{"id":1,"method":"initialize","method":"tools/call"}"#,
            r#"{"id":1,"method":"tools/call","method":"initialize"}"#,
            r#"{"id":1,"method":"tools/call","METHOD":"initialize"}"#,
            r#"{"id":1,"method":"tools/call","Method":"initialize"}"#,
            r#"{"id":1,"ID":2,"method":"initialize"}"#,
            r#"{"method":"initialize"}"#,
            r#"{"id":null,"method":"initialize"}"#,
            r#"[{"id":1,"method":"ping"},{"id":2,"method":"initialize"}]"#,
            r#"{"id":1,"method":7}"#,
            r#"{"id":1,"method":"ping"} {"id":1,"method":"initialize"}"#,
            "[]",
            "",
            "initialize",
            "\u{feff}{}",
        ] {
            assert_eq!(begins(bad), None, "{bad}");
        }
    }

    #[test]
    fn success_is_a_result_and_nothing_else() {
        for (answer, verdict) in [
            (r#"{"id":1,"result":{}}"#, Some(true)),
            (r#"{"id":1,"error":{"code":-32602}}"#, Some(false)),
            (r#"{"id":1,"result":{},"error":{}}"#, Some(false)),
            ("", None),
            (r#"{"id":1,"resu"#, None),
        ] {
            assert_eq!(succeeded(answer.as_bytes()), verdict, "{answer}");
        }
        for (answer, verdict) in [
            ("event: message\r\ndata: {\"id\":1,\"result\":{}}\r\n\r\n", Some(true)),
            ("id: 1\ndata:\n\ndata:{\"id\":1,\"result\":{}}\n\n", Some(true)),
            ("data: {\"method\":\"notifications/message\"}\n\ndata: {\"id\":1,\"error\":{}}\n\n", Some(false)),
            ("data: {\"id\":1,\ndata: \"result\":{}}\n\n", Some(true)),
            ("data: {\"id\":1,\"result\":{}}", None),
            ("data: {\"id\":1,\"result\":{}}\n", None),
            ("data: {\"method\":\"ping\",\"id\":9}\n\n", None),
            (": result\n\n", None),
        ] {
            assert_eq!(Events::default().more(answer.as_bytes()), verdict, "{answer}");
            let (mut events, mut seen) = (Events::default(), None);
            for byte in answer.as_bytes() {
                seen = seen.or(events.more(&[*byte]));
            }
            assert_eq!(seen, verdict, "byte by byte: {answer}");
        }
    }
}
