//! What one answer means. Decided here and nowhere else.
//!
//! A refusal is only what a server said in words of the protocol: a JSON-RPC error, `isError: true`, or HTTP 400, 401,
//! 403, 404, 410. Silence, a crash of the connection, 429 and 5xx are unclear, never refused.

use std::sync::LazyLock;

use handfast_wire::{
    meta,
    result::{self, InputRequired, ResultKind, Task},
};
use regex::Regex;
use serde_json::Value;

use crate::target::{Body, Fault, Reply, session::Verb};

/// What one answer means.
#[derive(Debug, Clone, PartialEq)]
pub enum Disposition {
    /// A complete result without `isError`.
    Accepted,
    /// The server said no.
    Refused(Refusal),
    /// The server wants input first.
    Asked(InputRequired),
    /// The server goes on in the background.
    Task(Task),
    /// Nothing can be concluded.
    Unclear(Unclear),
}

/// How and in which words the server said no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Which form the refusal took.
    pub by: RefusedBy,
    /// The server's words.
    pub text: String,
}

/// The form of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedBy {
    /// A JSON-RPC error with this code.
    RpcError(i64),
    /// A result with `isError: true`.
    ToolError,
    /// An HTTP status without a JSON-RPC body.
    Http(u16),
    /// Words of refusal in a result that is no error, where the honest answer has none.
    Words,
}

/// Why nothing can be concluded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unclear {
    /// No usable answer.
    Fault(Fault),
    /// 429, 5xx, a redirect, or another status that says neither yes nor no.
    Status(u16),
    /// A result type that the protocol does not have.
    ResultType(String),
    /// A result that is like no honest answer to the same call.
    Unlike(String),
}

impl std::fmt::Display for Unclear {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fault(fault) => write!(out, "{fault}"),
            Self::Status(429) => {
                write!(out, "HTTP 429: the server limits how often it is called; lift the limit for the run")
            }
            Self::Status(status) => write!(out, "HTTP {status}"),
            Self::ResultType(kind) => write!(out, "unknown resultType `{kind}`"),
            Self::Unlike(text) => write!(out, "an answer that is like no honest one: {text}"),
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.by {
            RefusedBy::RpcError(code) => write!(out, "JSON-RPC error {code}: {}", self.text),
            RefusedBy::ToolError => write!(out, "isError: {}", self.text),
            RefusedBy::Http(status) => write!(out, "HTTP {status}: {}", self.text),
            RefusedBy::Words => write!(out, "in a result that is no error: {}", self.text),
        }
    }
}

impl Disposition {
    /// One word for reports and for controls.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Refused(_) => "refused",
            Self::Asked(_) => "asked",
            Self::Task(_) => "task",
            Self::Unclear(_) => "unclear",
        }
    }
}

/// Decides what an answer means.
pub fn of(reply: &Reply) -> Disposition {
    if let Some(status) = reply.status.filter(|status| *status >= 500 || *status == 429 || (300..400).contains(status))
    {
        return Disposition::Unclear(Unclear::Status(status));
    }
    match &reply.body {
        Body::Result(result) => of_result(result),
        Body::Error(error) => {
            Disposition::Refused(Refusal { by: RefusedBy::RpcError(error.code), text: error.message.clone() })
        }
        Body::Bare(text) => match reply.status {
            Some(status @ (400 | 401 | 403 | 404 | 410)) => Disposition::Refused(Refusal {
                by: RefusedBy::Http(status),
                text: text.chars().take(WORDS_OF_A_PAGE).collect(),
            }),
            Some(status) => Disposition::Unclear(Unclear::Status(status)),
            None => Disposition::Unclear(Unclear::Fault(Fault::NotMcp("no answer".to_owned()))),
        },
        Body::Fault(fault) => Disposition::Unclear(Unclear::Fault(fault.clone())),
    }
}

/// Decides what the answer to a request of this verb means. Only POST carries a message: GET is taken where a stream is
/// attached, DELETE where the status says so.
pub fn of_visit(verb: Verb, stream: bool, reply: &Reply) -> Disposition {
    match (verb, reply.status) {
        (Verb::Get, _) if stream && matches!(reply.body, Body::Bare(_)) => Disposition::Accepted,
        (Verb::Delete, Some(200 | 202 | 204)) => match &reply.body {
            // "Not supported", in so many words.
            Body::Error(_) => of(reply),
            // A page for people: whatever answers here does not know the protocol.
            Body::Bare(page) if page.trim_start().starts_with('<') => Disposition::Unclear(Unclear::Status(200)),
            _ => Disposition::Accepted,
        },
        _ => of(reply),
    }
}

/// Decides what a result means; also used for the result inside a finished task.
pub fn of_result(result: &Value) -> Disposition {
    match result::kind(result) {
        ResultKind::InputRequired(asked) => Disposition::Asked(asked),
        ResultKind::Task(task) => Disposition::Task(task),
        ResultKind::Unknown(kind) => Disposition::Unclear(Unclear::ResultType(kind)),
        ResultKind::Complete if result.get("isError").and_then(Value::as_bool) == Some(true) => {
            Disposition::Refused(Refusal { by: RefusedBy::ToolError, text: crate::marker::visible_text(result) })
        }
        ResultKind::Complete => Disposition::Accepted,
    }
}

impl Refusal {
    /// Whether the refusal reads like a program that fell over rather than one that decided: a parser's message, a
    /// trace, an internal error. Words about integrity win: they are what a decision would say.
    pub fn reads_like_a_crash(&self) -> bool {
        if INTEGRITY.is_match(&self.text) {
            return false;
        }
        self.by == RefusedBy::RpcError(meta::INTERNAL_ERROR) || CRASH.is_match(&self.text)
    }

    /// Whether the refusal speaks of load or limits: it says "not now", not "not you".
    pub fn reads_like_an_outage(&self) -> bool {
        OUTAGE.is_match(&self.text)
    }

    /// The refusal without what differs from call to call (handles, numbers, canaries), to compare two of them.
    pub fn normalised(&self, presented: &[String]) -> String {
        let mut text = self.text.clone();
        for value in presented.iter().filter(|value| !value.is_empty()) {
            text = text.replace(value.as_str(), "<presented>");
        }
        format!("{:?} {}", self.by, VARYING.replace_all(&text, "<value>"))
    }
}

/// What a page without JSON-RPC begins with says why.
const WORDS_OF_A_PAGE: usize = 400;

#[allow(clippy::expect_used)] // constant patterns, compiled by the tests below
static CRASH: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)traceback|stack ?trace|panicked|unhandled|internal (server )?error|segfault|null pointer|",
        r"unexpected (token|end|character|eof|byte)|expecting (value|property|',')|invalid (control character|literal|start byte|\\?escape)|",
        r"(json|unicode|utf-?8|base64|binascii|msgpack|cbor|zlib)[a-z. ]{0,12}(decode|parse|syntax)?[a-z ]{0,8}error|",
        r"codec can't decode|not valid json|malformed json|(key|type|value|attribute|index|syntax|reference|range)error\b|",
        r"cannot read propert|is not a function|is not defined|undefined is not|nonetype|",
        r"missing field|at line \d+|line \d+,? column \d+|at position \d+|in json at|incorrect (padding|header check)|",
        r"failed to (parse|decode|deserialize)|could not (parse|decode)|not decodable|undecodable|invalid base64|invalid character"
    ))
    .expect("constant pattern")
});
#[allow(clippy::expect_used)]
static OUTAGE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)rate.?limit|too many (requests|calls|attempts)|quota|throttl|try again|try later|temporarily|overload|\bbusy\b|unavailable|timed? ?out|maintenance")
        .expect("constant pattern")
});
#[allow(clippy::expect_used)]
static INTEGRITY: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)signature|integrity|tamper|\b(h?mac|digest|checksum)\b|authenticat|verif(y|ied|ication)|invalid ?(tag|token|state|request ?state)|unsealed|forged|expired",
    )
    .expect("constant pattern")
});
#[allow(clippy::expect_used)]
static VARYING: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[A-Za-z0-9_-]*\d[A-Za-z0-9_-]*").expect("constant pattern"));

#[cfg(test)]
mod tests {
    use handfast_wire::message::RpcError;
    use serde_json::json;

    use super::*;

    fn http(status: u16, body: Body) -> Disposition {
        of(&Reply::new(Some(status), body))
    }

    #[test]
    fn only_words_of_the_protocol_refuse() {
        let bare = || Body::Bare("no".to_owned());
        for status in [400, 401, 403, 404, 410] {
            assert_eq!(http(status, bare()).word(), "refused", "{status}");
        }
        for status in [202, 301, 405, 409, 418, 429, 500, 502, 503] {
            assert_eq!(http(status, bare()).word(), "unclear", "{status}");
        }
        let error = || Body::Error(RpcError { code: -32602, message: "no".to_owned(), data: None });
        assert_eq!(http(200, error()).word(), "refused");
        assert_eq!(http(500, error()).word(), "unclear", "a 5xx is an outage, whatever its body says");
        assert_eq!(http(200, Body::Fault(Fault::Closed("x".into()))).word(), "unclear");
    }

    #[test]
    fn an_error_result_is_a_refusal_and_a_question_is_neither() {
        let result = |value| of(&Reply::new(None, Body::Result(value))).word();
        assert_eq!(result(json!({"content": []})), "accepted");
        assert_eq!(result(json!({"resultType": "complete", "isError": false})), "accepted");
        assert_eq!(result(json!({"isError": true, "content": [{"type": "text", "text": "no"}]})), "refused");
        assert_eq!(result(json!({"resultType": "input_required", "requestState": "x"})), "asked");
        assert_eq!(result(json!({"resultType": "task", "taskId": "t", "status": "working"})), "task");
        assert_eq!(result(json!({"resultType": "maybe"})), "unclear");
    }

    #[test]
    fn a_crash_is_told_from_a_decision() {
        let tool = |text: &str| Refusal { by: RefusedBy::ToolError, text: text.to_owned() };
        for crash in [
            "Expecting value: line 1 column 1 (char 0)",
            "Unexpected token 'x', \"xyz\" is not valid JSON",
            "Traceback (most recent call last):",
            "'utf-8' codec can't decode byte 0x9c in position 3: invalid start byte",
            "KeyError: 'principal'",
            "Error -3 while decompressing data: incorrect header check",
            "thread 'main' panicked at src/main.rs",
            "missing field `principal` at line 1 column 44",
            "requestState is not decodable",
        ] {
            assert!(tool(crash).reads_like_a_crash(), "{crash}");
        }
        for decision in [
            "invalid requestState",
            "Invalid or expired requestState",
            "requestState failed integrity verification",
            "signature mismatch",
            "unknown workspace handle",
            "the state was issued to somebody else",
            "cryptography.exceptions.InvalidTag",
        ] {
            assert!(!tool(decision).reads_like_a_crash(), "{decision}");
        }
        let internal = Refusal { by: RefusedBy::RpcError(-32603), text: "oops".to_owned() };
        assert!(internal.reads_like_a_crash());
    }

    #[test]
    fn not_now_is_told_from_not_you() {
        let tool = |text: &str| Refusal { by: RefusedBy::ToolError, text: text.to_owned() };
        for outage in ["Rate limit exceeded, try again in 3 s", "too many requests", "service temporarily unavailable"]
        {
            assert!(tool(outage).reads_like_an_outage(), "{outage}");
        }
        for decision in ["unknown workspace", "not your workspace", "invalid requestState"] {
            assert!(!tool(decision).reads_like_an_outage(), "{decision}");
        }
    }

    #[test]
    fn refusals_are_compared_without_what_varies() {
        let refusal = |text: &str| Refusal { by: RefusedBy::ToolError, text: text.to_owned() };
        let one = refusal("unknown workspace ws-91ab").normalised(&["ws-91ab".to_owned()]);
        let two = refusal("unknown workspace ws-77cd").normalised(&["ws-77cd".to_owned()]);
        assert_eq!(one, two);
        assert_ne!(one, refusal("workspace ws-77cd belongs to another user").normalised(&["ws-77cd".to_owned()]));
    }
}
