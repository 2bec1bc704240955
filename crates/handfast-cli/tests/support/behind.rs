//! A server behind a gateway that counts what reaches it, and lies when it is told to.
#![allow(dead_code, reason = "each test file uses its part of this")]

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

/// How its handles are found: `make` hands one out, `use` takes one.
pub(crate) const RULES: &str = r#"
version = 1
[[handle]]
name = "thing"
mint = "make"
pointer = "/structuredContent/thing_id"
consume = ["tools/call use#thing_id"]
"#;

/// The server. Dropping it ends it, and all of its connections with it.
pub(crate) struct Behind {
    address: SocketAddr,
    counts: Counts,
    _alive: watch::Sender<()>,
    task: JoinHandle<()>,
}

type Counts = Arc<Mutex<BTreeMap<String, u64>>>;

impl Behind {
    pub(crate) async fn start() -> Self {
        Self::at("127.0.0.1:0").await
    }

    /// At an address that it had before.
    pub(crate) async fn at(address: &str) -> Self {
        let listener = TcpListener::bind(address).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (counts, (alive, _)) = (Counts::default(), watch::channel(()));
        let (counting, living) = (counts.clone(), alive.subscribe());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (counts, mut living) = (counting.clone(), living.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        _ = serve(stream, &counts) => {}
                        _ = living.changed() => {}
                    }
                });
            }
        });
        Self { address, counts, _alive: alive, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// How often each call, `TOOL N`, has reached it.
    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        self.counts.lock().expect("no panic").clone()
    }

    /// How many calls have reached it.
    pub(crate) fn total(&self) -> u64 {
        self.counts().values().sum()
    }

    pub(crate) fn count(&self, call: &str) -> u64 {
        self.counts().get(call).copied().unwrap_or_default()
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Answers requests until the client, or an answer, ends the connection.
async fn serve(mut stream: TcpStream, counts: &Counts) -> Option<()> {
    let mut bytes = Vec::new();
    loop {
        let (head, body) = loop {
            if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&bytes[..at]).to_ascii_lowercase();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
                let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
                if bytes.len() >= at + 4 + length {
                    let rest = bytes.split_off(at + 4 + length);
                    let request = std::mem::replace(&mut bytes, rest);
                    break (head, request[at + 4..].to_vec());
                }
            }
            if stream.read_buf(&mut bytes).await.ok()? == 0 {
                return None;
            }
        };
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        let (tool, n) = (&message["params"]["name"], &message["params"]["arguments"]["n"]);
        let tool = tool.as_str().unwrap_or_else(|| message["method"].as_str().unwrap_or("nothing")).to_owned();
        let tool = if message["params"]["requestState"].is_string() { format!("{tool}-again") } else { tool };
        *counts.lock().expect("no panic").entry(format!("{tool} {n}")).or_default() += 1;
        assert!(!head.contains("\nauthorization:"), "no token gets here");
        answer(&mut stream, &tool, n, &message).await?;
    }
}

/// Answers one call; `None` where the connection is of no more use.
async fn answer(stream: &mut TcpStream, tool: &str, n: &Value, message: &Value) -> Option<()> {
    let id = &message["id"];
    let told = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    let said = |text: &str| told(json!({"content": [{"type": "text", "text": text}], "resultType": "complete"}));
    let json = match tool {
        "make" => told(json!({
            "content": [{"type": "text", "text": format!("made thing-{n}")}],
            "structuredContent": {"thing_id": format!("thing-{n}")}, "resultType": "complete",
        })),
        "use" => said(&format!("used {}", message["params"]["arguments"]["thing_id"])),
        "ask-again" => {
            assert_eq!(message["params"]["requestState"], format!("state-{n}"));
            said("done")
        }
        "ask" => {
            let schema = json!({"type": "object", "properties": {"go": {"type": "boolean"}}, "required": ["go"]});
            let params = json!({"mode": "form", "message": "Go on?", "requestedSchema": schema});
            let requests = json!({"go": {"method": "elicitation/create", "params": params}});
            told(
                json!({"inputRequests": requests, "requestState": format!("state-{n}"), "resultType": "input_required"}),
            )
        }
        // From here on it lies.
        "no-json" => SECRET.to_owned(),
        "other-id" => json!({"jsonrpc": "2.0", "id": "another", "result": {"content": [], "x": SECRET}}).to_string(),
        "no-answer" => json!({"jsonrpc": "2.0", "id": id, "x": SECRET}).to_string(),
        "no-response" => json!({"jsonrpc": "2.0", "method": "notifications/x", "params": {"x": SECRET}}).to_string(),
        "half" => {
            let whole = said(SECRET);
            whole[..whole.len() - 3].to_owned()
        }
        "twice" => format!("{}{}", said(SECRET), said(SECRET)),
        "html" => {
            let page = format!("<p>{SECRET}</p>");
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n", page.len());
            return stream.write_all(format!("{head}{page}").as_bytes()).await.ok();
        }
        "cut-head" => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-ty").await;
            return None;
        }
        "no-http" => {
            let _ = stream.write_all(format!("{SECRET}\r\n\r\n").as_bytes()).await;
            return None;
        }
        "cut-body" => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n";
            let _ = stream.write_all(format!("{head}{}", said(SECRET)).as_bytes()).await;
            return None;
        }
        "cut-stream" => {
            let note = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "whole"}});
            let events = format!("data: {note}\n\ndata: {}", &said(SECRET));
            let _ = stream.write_all(format!("{STREAM}{:x}\r\n{events}\r\n", events.len()).as_bytes()).await;
            return None;
        }
        // Says nothing, ever.
        "late" => std::future::pending().await,
        // Begins its answer, and does not end it.
        "late-body" => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
            let _ = stream.write_all(head.as_bytes()).await;
            std::future::pending().await
        }
        // A stream on which nothing more happens.
        "idle" => {
            let _ = stream.write_all(format!("{STREAM}9\r\n: hello\n\n\r\n").as_bytes()).await;
            // Until whoever listens has gone.
            let _ = stream.read_u8().await;
            return None;
        }
        // More than anybody wants to hold.
        "flood" => {
            let event = format!("data: {}\n\n", said(&"x".repeat(64 * 1024)));
            let chunk = format!("{:x}\r\n{event}\r\n", event.len());
            stream.write_all(STREAM.as_bytes()).await.ok()?;
            loop {
                stream.write_all(chunk.as_bytes()).await.ok()?;
            }
        }
        other => said(other),
    };
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", json.len());
    stream.write_all(format!("{head}{json}").as_bytes()).await.ok()
}

/// What must not get to a client.
pub(crate) const SECRET: &str = "what-nobody-may-read";
const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
