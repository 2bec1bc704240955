//! A client of a few lines: raw HTTP/1.1 by hand, so that a test can send whatever it likes.
#![allow(dead_code, reason = "each test file uses its part of this")]

use handfast_twins::{Answers, Served, Twin, all, find, serve_http};
use handfast_wire::{headers, meta, sse};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// An HTTP answer, read whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The one JSON-RPC message in it, however it is framed.
    pub(crate) fn message(&self) -> Value {
        if self.header("content-type") == Some("text/event-stream") {
            let events = sse::Decoder::new(1 << 20).push(&self.body).expect("a short stream");
            let data = events.iter().map(|event| event.data.as_str()).find(|data| !data.is_empty());
            return serde_json::from_str(data.expect("an event with data")).expect("JSON in the event");
        }
        serde_json::from_slice(&self.body).expect("a JSON body")
    }

    pub(crate) fn code(&self) -> i64 {
        self.message()["error"]["code"].as_i64().unwrap_or(0)
    }
}

/// Sends one request head and body as they are.
pub(crate) async fn send(url: &str, method: &str, headers: &[(String, String)], body: &[u8]) -> Answer {
    let (authority, path) =
        url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("a plain http url");
    let mut socket = TcpStream::connect(authority).await.expect("the twin listens");
    let mut head = format!("{method} /{path} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n");
    head.push_str(&format!("content-length: {}\r\n", body.len()));
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    socket.write_all(format!("{head}\r\n").as_bytes()).await.expect("the head is sent");
    // A server may refuse before it has read all of it.
    let _ = socket.write_all(body).await;
    let mut bytes = Vec::new();
    let _ = socket.read_to_end(&mut bytes).await;
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Answer {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a whole head");
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    Answer { status: status.expect("a status"), headers, body: bytes[end + 4..].to_vec() }
}

/// One caller of one server.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) url: String,
    pub(crate) token: String,
    pub(crate) capabilities: Value,
}

impl Client {
    pub(crate) fn new(url: String, token: &str) -> Self {
        Self { url, token: token.to_owned(), capabilities: meta::every_capability() }
    }

    /// A conforming request; what comes back is up to the caller.
    pub(crate) async fn request(&self, method: &str, params: Value) -> Answer {
        let (headers, body) = self.draft(method, params);
        send(&self.url, "POST", &headers, body.to_string().as_bytes()).await
    }

    /// The headers and the body of a conforming request, to be spoilt.
    pub(crate) fn draft(&self, method: &str, mut params: Value) -> (Vec<(String, String)>, Value) {
        params["_meta"] = Value::Object(meta::modern(self.capabilities.clone(), "test", "0"));
        let object = params.as_object().expect("params are an object").clone();
        let mut headers: Vec<(String, String)> = headers::standard(method, &object)
            .into_iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .collect();
        // A few servers want it repeated; to all others it is a header like any other.
        if let Some(handle) = params["arguments"]["workspace_id"].as_str() {
            headers.push(("mcp-param-workspace".into(), handle.to_owned()));
        }
        headers.push(("accept".into(), "application/json, text/event-stream".into()));
        headers.push(("content-type".into(), "application/json".into()));
        if !self.token.is_empty() {
            headers.push(("authorization".into(), format!("Bearer {}", self.token)));
        }
        (headers, json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}))
    }

    /// Calls a tool; the whole message, tasks followed.
    pub(crate) async fn tool(&self, name: &str, arguments: Value) -> Value {
        self.call(name, arguments, json!({})).await
    }

    /// Calls a tool with further parameters.
    pub(crate) async fn call(&self, name: &str, arguments: Value, more: Value) -> Value {
        let mut params = json!({"name": name, "arguments": arguments});
        for (key, value) in more.as_object().expect("an object") {
            params[key] = value.clone();
        }
        let message = self.request("tools/call", params).await.message();
        if message["result"]["resultType"] != "task" {
            return message;
        }
        let task = json!({"taskId": message["result"]["taskId"]});
        let fetched = self.request("tasks/get", task).await.message();
        json!({"result": fetched["result"]["result"]})
    }

    /// Opens a workspace; its handle, wherever it stands.
    pub(crate) async fn open(&self, label: &str) -> Value {
        let message = self.tool("open_workspace", json!({"label": label})).await;
        let result = &message["result"];
        for name in ["workspace_id", "id"] {
            let handle = &result["structuredContent"][name];
            if !handle.is_null() {
                return handle.clone();
            }
        }
        let text = result["content"][0]["text"].as_str().expect("a text block");
        let words: Vec<&str> = text.split(' ').collect();
        assert_eq!(words[..2], ["Created", "workspace"], "{text}");
        words[2].into()
    }
}

/// A served twin with two callers.
pub(crate) struct Scene {
    pub(crate) served: Served,
    pub(crate) a: Client,
    pub(crate) b: Client,
    /// The argument under which this twin takes handles.
    pub(crate) argument: &'static str,
}

/// Every twin that is spoken to and answers as the sound one is; `manners.rs` has the others.
pub(crate) fn plain_twins() -> impl Iterator<Item = &'static Twin> {
    // The client of these tests has a connection for each call, which is no good to one that is bound to it; and one archives
    // nothing, and so never asks.
    let odd = ["legacy", "polite", "nested-handles", "unlabelled", "binds-connection", "endless"];
    // The ones with sessions come last, and are of another era.
    let stateless = all().iter().take_while(|twin| twin.name != "sessions");
    stateless.filter(move |twin| !odd.contains(&twin.name.trim_end_matches("-flawed")))
}

pub(crate) async fn scene(name: &str) -> Scene {
    let twin = find(name).expect("a twin of this name");
    let served = serve_http(twin, 0, Answers::Json).await.expect("a free port");
    let a = Client::new(served.url(), &twin.token("alice"));
    let b = Client::new(served.url(), &twin.token("bob"));
    let argument = if name.starts_with("renamed-handles") { "workspaceId" } else { "workspace_id" };
    Scene { served, a, b, argument }
}

/// Whether a message is a complete result without `isError`.
pub(crate) fn is_accepted(message: &Value) -> bool {
    let result = &message["result"];
    result.is_object() && result["isError"] != true && result["resultType"].as_str().unwrap_or("complete") == "complete"
}
