//! As much of a message as has to be known: whether it begins a session, and which answer it waits for. Everything else in
//! it is the server's business.

use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

/// A message, or several.
pub(super) enum Peeked {
    /// `initialize`, of this id.
    Initialize(Value),
    /// Any other, with the id that an error would have.
    Other(Value),
}

/// Serde refuses a member that stands twice, so that no two readers take a message for two.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    id: Value,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    result: Option<IgnoredAny>,
    #[serde(default)]
    error: Option<IgnoredAny>,
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

/// Whether `initialize` has succeeded, by what the server answered so far: JSON, or the beginning of a stream of events;
/// `None` where that cannot be said yet.
pub(super) fn succeeded(answer: &[u8], stream: bool) -> Option<bool> {
    let says = |json: &[u8]| {
        let head: Head = serde_json::from_slice(json).ok()?;
        (head.result.is_some() || head.error.is_some()).then_some(head.result.is_some() && head.error.is_none())
    };
    if !stream {
        return says(answer);
    }
    // Lines end with CR, LF or both, and events with an empty line. What may be half a character is after the last event.
    let text = String::from_utf8_lossy(answer).replace("\r\n", "\n").replace('\r', "\n");
    let (whole, _) = text.rsplit_once("\n\n")?;
    let data = |event: &str| event.lines().filter_map(|line| line.strip_prefix("data:")).collect::<Vec<_>>().join("\n");
    whole.split("\n\n").find_map(|event| says(data(event).as_bytes()))
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
            assert_eq!(succeeded(answer.as_bytes(), false), verdict, "{answer}");
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
            assert_eq!(succeeded(answer.as_bytes(), true), verdict, "{answer}");
        }
    }
}
