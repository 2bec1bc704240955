//! A question that a twin asks, and what becomes of the retry.
#![allow(dead_code, reason = "no test needs all of it")]

use std::io::{Read, Write};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};
use serde_json::{Value, json};

use crate::support::{Client, is_accepted};

/// What became of a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Accepted,
    /// A JSON-RPC error.
    Refused,
    /// A tool result with `isError`.
    Told,
    /// Such a result that reads like a crash.
    Crashed,
    AskedAgain,
}

pub(crate) use Fate::{Accepted, AskedAgain, Crashed, Refused, Told};

pub(crate) fn fate(message: &Value) -> Fate {
    let result = &message["result"];
    if is_accepted(message) {
        Accepted
    } else if result["resultType"] == "input_required" {
        AskedAgain
    } else if message["error"].is_object() {
        assert_eq!(message["error"]["code"], -32602, "{message}");
        Refused
    } else if ["token", "TypeError", "invalid character"].iter().any(|word| message.to_string().contains(word)) {
        Crashed
    } else {
        Told
    }
}

/// A workspace of a caller, and the retry of archiving it.
pub(crate) struct Round<'a> {
    pub(crate) client: &'a Client,
    pub(crate) arguments: Value,
    pub(crate) asked: Value,
}

pub(crate) async fn ask<'a>(client: &'a Client, argument: &str) -> Round<'a> {
    let handle = client.open("one").await;
    let arguments = json!({argument: handle});
    let answer = client.tool("archive_workspace", arguments.clone()).await;
    let asked = answer["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{arguments}: {answer}");
    Round { client, arguments, asked }
}

impl Round<'_> {
    pub(crate) fn state(&self) -> String {
        self.asked["requestState"].as_str().expect("a state").to_owned()
    }

    pub(crate) async fn retry(&self, state: &str) -> Value {
        let more = json!({"requestState": state, "inputResponses": answers(&self.asked)});
        self.client.call("archive_workspace", self.arguments.clone(), more).await
    }
}

/// The right answers to whatever was asked.
pub(crate) fn answers(asked: &Value) -> Value {
    let requests = asked["inputRequests"].as_object().expect("requests");
    let answer = |request: &Value| match (request["method"].as_str(), &request["params"]) {
        (Some("sampling/createMessage"), _) => {
            json!({"role": "assistant", "content": {"type": "text", "text": "fine"}, "model": "none"})
        }
        (Some("roots/list"), _) => json!({"roots": [{"uri": "file:///srv"}]}),
        (_, params) if params["mode"] == "url" => json!({"action": "accept"}),
        (_, params) if params["schema"].is_object() => json!(true),
        (_, params) if params["requestedSchema"]["properties"]["reason"].is_object() => {
            json!({"action": "accept", "content": {"reason": "because"}})
        }
        (_, params) if params["requestedSchema"]["properties"]["workspace"].is_object() => {
            let named = &params["requestedSchema"]["properties"]["workspace"]["enum"][0];
            json!({"action": "accept", "content": {"workspace": named}})
        }
        _ => json!({"action": "accept", "content": {"confirm": true}}),
    };
    Value::Object(requests.iter().map(|(key, request)| (key.clone(), answer(request))).collect())
}

/// Puts JSON back into what surrounded it.
pub(crate) type Wrap = Box<dyn Fn(&Value) -> String>;

/// The JSON in a state and what surrounds it; `None` where there is none to be read.
pub(crate) fn opened(state: &str) -> Option<(Value, Wrap)> {
    if let Ok(value) = serde_json::from_str(state) {
        return Some((value, Box::new(Value::to_string)));
    }
    let parts: Vec<String> = state.split('.').map(str::to_owned).collect();
    let place = if parts.len() == 3 { 1 } else { 0 };
    let bytes = URL_SAFE_NO_PAD.decode(&parts[place]).ok()?;
    if let Ok(value) = serde_json::from_slice(&bytes) {
        let wrap = move |value: &Value| {
            let mut parts = parts.clone();
            parts[place] = URL_SAFE_NO_PAD.encode(value.to_string());
            parts.join(".")
        };
        return Some((value, Box::new(wrap)));
    }
    let mut text = String::new();
    ZlibDecoder::new(&bytes[..]).read_to_string(&mut text).ok()?;
    let wrap = |value: &Value| {
        let mut packer = ZlibEncoder::new(Vec::new(), Compression::default());
        packer.write_all(value.to_string().as_bytes()).expect("a vector takes it");
        URL_SAFE_NO_PAD.encode(packer.finish().expect("a vector takes it"))
    };
    Some((serde_json::from_str(&text).ok()?, Box::new(wrap)))
}

pub(crate) fn changed(state: &str, name: &str, new: Value) -> Option<String> {
    let (mut value, wrap) = opened(state)?;
    value[name] = new;
    Some(wrap(&value))
}

/// As long, of the same classes of characters, and with the same separators.
pub(crate) fn random(state: &str) -> String {
    let mut seed = 12345_u32;
    let mut next = |bound: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        u8::try_from((seed >> 16) % bound).expect("a small bound")
    };
    let hex = state.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut replace = |letter: char| match letter {
        '0'..='9' | 'a'..='f' if hex => char::from(b"0123456789abcdef"[usize::from(next(16))]),
        '0'..='9' => char::from(b'0' + next(10)),
        'a'..='z' => char::from(b'a' + next(26)),
        'A'..='Z' => char::from(b'A' + next(26)),
        other => other,
    };
    state.chars().map(&mut replace).collect()
}
