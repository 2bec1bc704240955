//! A small HTTP server by hand: records every request, and for each one forwards it to a twin, answers it in words of
//! the test's own, or misbehaves. One request to a connection.

use std::{
    collections::HashMap,
    net::Ipv4Addr,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    pub(crate) verb: String,
    pub(crate) path: String,
    /// In lower case, in order.
    pub(crate) headers: Vec<(String, String)>,
    /// Null where there was no JSON.
    pub(crate) body: Value,
    raw: Vec<u8>,
}

impl Recorded {
    /// The JSON-RPC method.
    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    /// The only value of a header; `None` where it is missing or there twice.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(given, _)| given == name).map(|(_, value)| value.as_str());
        found.next().filter(|_| found.next().is_none())
    }

    /// The tool of a `tools/call`, or nothing.
    pub(crate) fn tool(&self) -> &str {
        self.body["params"]["name"].as_str().unwrap_or_default()
    }

    /// The bearer token.
    pub(crate) fn token(&self) -> Option<&str> {
        self.header("authorization")?.strip_prefix("Bearer ")
    }

    /// The same from somebody else.
    fn from(&self, token: &str) -> Self {
        let mut other = self.clone();
        other.headers.retain(|(name, _)| name != "authorization");
        other.headers.push(("authorization".to_owned(), format!("Bearer {token}")));
        other
    }

    /// The same without a session id.
    fn without_session(&self) -> Self {
        let mut other = self.clone();
        other.headers.retain(|(name, _)| name != "mcp-session-id");
        other
    }

    /// Whether it only looks at what there is.
    pub(crate) fn is_listing(&self) -> bool {
        self.method() == "server/discover" || self.method().ends_with("/list")
    }
}

/// What to do with a request.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Let the twin answer, at its own path.
    Forward,
    /// Let the twin answer somebody with this token.
    As(&'static str),
    /// Let the twin answer a request that names no session.
    WithoutSession,
    /// Let the twin answer a request that names this session.
    Under(&'static str),
    /// Let the twin answer, and change the body of its answer.
    Changed(fn(&str) -> String),
    /// Both.
    AsChanged(&'static str, fn(&str) -> String),
    /// Let the twin answer; what it refuses is written anew from the id of the request.
    Refusing(fn(&Value) -> Vec<u8>),
    /// Let the twin answer, and write the body of its answer in another way. Held open: the connection does not end.
    Framed { write: fn(&str) -> Vec<Vec<u8>>, held: bool },
    /// What the twin last answered to a call of the same kind, whoever made it; the twin's own answer if there is none.
    Replay,
    /// A JSON-RPC result.
    Result(Value),
    /// A JSON-RPC error.
    Error(i64, &'static str),
    /// A JSON-RPC error with words of the moment.
    Refusal(String),
    /// A JSON-RPC error, as it stands on the wire.
    ErrorWith(Value),
    /// A JSON-RPC error under this status.
    ErrorUnder(u16, i64, &'static str),
    /// A status without a body, with these headers.
    Status(u16, Vec<(&'static str, String)>),
    /// These bytes, piece by piece, and then the end.
    Raw(Vec<Vec<u8>>),
    /// Close the socket.
    Close,
    /// Never answer.
    Hang,
}

/// The server; dropping it ends it.
pub(crate) struct Front {
    port: u16,
    seen: Arc<Mutex<Vec<Recorded>>>,
    task: JoinHandle<()>,
}

/// The last complete answer to each kind of call.
type Cache = Mutex<HashMap<String, Value>>;

impl Drop for Front {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Front {
    /// Starts one. `act` is told the number of the request, from 0.
    pub(crate) async fn start(
        upstream: Option<String>,
        act: impl Fn(usize, &Recorded) -> Act + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, act, cache) = (Arc::clone(&seen), Arc::new(act), Arc::new(Cache::default()));
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let (log, act, upstream) = (Arc::clone(&log), Arc::clone(&act), upstream.clone());
                let cache = Arc::clone(&cache);
                connections.spawn(async move {
                    // Whatever goes wrong with a connection is the client's leaving.
                    let _ = serve(socket, &log, &cache, &*act, upstream.as_deref()).await;
                });
            }
        });
        Self { port, seen, task }
    }

    /// In front of a twin.
    pub(crate) async fn of(url: &str, act: impl Fn(usize, &Recorded) -> Act + Send + Sync + 'static) -> Self {
        Self::start(Some(url.to_owned()), act).await
    }

    /// `http://127.0.0.1:PORT/mcp`.
    pub(crate) fn url(&self) -> String {
        format!("{}/mcp", self.origin())
    }

    /// `http://127.0.0.1:PORT`.
    pub(crate) fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Everything that arrived so far.
    pub(crate) fn seen(&self) -> Vec<Recorded> {
        self.seen.lock().expect("no test panics while it holds this").clone()
    }
}

async fn serve(
    mut socket: TcpStream,
    log: &Mutex<Vec<Recorded>>,
    cache: &Cache,
    act: &(dyn Fn(usize, &Recorded) -> Act + Send + Sync),
    upstream: Option<&str>,
) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let Some(request) = read(&mut socket).await? else { return Ok(()) };
    let number = {
        let mut log = log.lock().expect("no test panics while it holds this");
        log.push(request.clone());
        log.len() - 1
    };
    let id = request.body.get("id").cloned().unwrap_or_default();
    let act = act(number, &request);
    let request = match act {
        Act::As(token) | Act::AsChanged(token, _) => request.from(token),
        Act::WithoutSession => request.without_session(),
        Act::Under(id) => {
            let mut named = request.without_session();
            named.headers.push(("mcp-session-id".to_owned(), id.to_owned()));
            named
        }
        _ => request,
    };
    match act {
        Act::Forward | Act::As(_) | Act::WithoutSession | Act::Under(_) => {
            let reply = forward(&request, upstream.expect("somebody to forward to")).await?;
            remember(cache, &request, &reply);
            socket.write_all(&reply).await
        }
        Act::Refusing(write) => {
            let reply = forward(&request, upstream.expect("somebody to forward to")).await?;
            let is_refusal = reply.split(|byte| *byte == b' ').nth(1).is_some_and(|status| status.starts_with(b"4"));
            socket.write_all(&if is_refusal { write(&id) } else { reply }).await
        }
        Act::Replay => {
            let known = cache.lock().expect("no test panics while it holds this").get(&kind_of(&request)).cloned();
            match known {
                Some(result) => answer(&mut socket, &json!({"jsonrpc": "2.0", "id": id, "result": result})).await,
                None => socket.write_all(&forward(&request, upstream.expect("somebody to forward to")).await?).await,
            }
        }
        Act::Changed(change) | Act::AsChanged(_, change) => {
            let reply = forward(&request, upstream.expect("somebody to forward to")).await?;
            let reply = String::from_utf8_lossy(&reply).into_owned();
            let (head, body) = reply.split_once("\r\n\r\n").unwrap_or((&reply, ""));
            let status = head.split(' ').nth(1).unwrap_or_default();
            let body = change(body);
            let head =
                format!("HTTP/1.1 {status} so\r\ncontent-type: application/json\r\ncontent-length: {}", body.len());
            socket.write_all(format!("{head}\r\nconnection: close\r\n\r\n{body}").as_bytes()).await
        }
        Act::Result(result) => answer(&mut socket, &json!({"jsonrpc": "2.0", "id": id, "result": result})).await,
        Act::Error(code, message) => {
            let error = json!({"code": code, "message": message});
            answer(&mut socket, &json!({"jsonrpc": "2.0", "id": id, "error": error})).await
        }
        Act::Refusal(message) => {
            let error = json!({"code": -32602, "message": message});
            answer(&mut socket, &json!({"jsonrpc": "2.0", "id": id, "error": error})).await
        }
        Act::ErrorWith(error) => answer(&mut socket, &json!({"jsonrpc": "2.0", "id": id, "error": error})).await,
        Act::ErrorUnder(status, code, message) => {
            let error = json!({"code": code, "message": message});
            let message = json!({"jsonrpc": "2.0", "id": id, "error": error});
            socket.write_all(&json_answer(status, &message)).await
        }
        Act::Status(status, headers) => {
            let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let head = format!("HTTP/1.1 {status} so\r\n{headers}content-length: 0\r\nconnection: close\r\n\r\n");
            socket.write_all(head.as_bytes()).await
        }
        Act::Framed { write, held } => {
            let reply = forward(&request, upstream.expect("somebody to forward to")).await?;
            let reply = String::from_utf8_lossy(&reply).into_owned();
            in_pieces(&mut socket, write(reply.split_once("\r\n\r\n").map_or("", |(_, body)| body))).await?;
            if held { std::future::pending().await } else { socket.shutdown().await }
        }
        Act::Raw(pieces) => {
            in_pieces(&mut socket, pieces).await?;
            socket.shutdown().await
        }
        Act::Close => Ok(()),
        Act::Hang => std::future::pending().await,
    }
}

/// Calls of one kind: of one tool, with or without a state.
fn kind_of(request: &Recorded) -> String {
    format!("{} {} {}", request.method(), request.tool(), request.body["params"]["requestState"].is_string())
}

/// Keeps an answer that is complete and no error.
fn remember(cache: &Cache, request: &Recorded, reply: &[u8]) {
    let text = String::from_utf8_lossy(reply);
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let message: Value = serde_json::from_str(body).unwrap_or_default();
    let result = &message["result"];
    if result["resultType"] == "complete" && result["isError"] != true {
        cache.lock().expect("no test panics while it holds this").insert(kind_of(request), result.clone());
    }
}

async fn in_pieces(socket: &mut TcpStream, pieces: Vec<Vec<u8>>) -> std::io::Result<()> {
    for piece in pieces {
        socket.write_all(&piece).await?;
        socket.flush().await?;
        // Lets the other side read before the next piece comes.
        tokio::task::yield_now().await;
    }
    Ok(())
}

async fn answer(socket: &mut TcpStream, message: &Value) -> std::io::Result<()> {
    socket.write_all(&json_answer(200, message)).await
}

/// A whole HTTP answer with a JSON body.
pub(crate) fn json_answer(status: u16, message: &Value) -> Vec<u8> {
    let body = message.to_string();
    let head = format!("HTTP/1.1 {status} so\r\ncontent-type: application/json\r\ncontent-length: {}", body.len());
    format!("{head}\r\nconnection: close\r\n\r\n{body}").into_bytes()
}

/// A whole HTTP answer with a page that is no JSON.
pub(crate) fn page(status: u16, text: &str) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status} so\r\ncontent-type: text/html\r\ncontent-length: {}", text.len());
    format!("{head}\r\nconnection: close\r\n\r\n{text}").into_bytes()
}

/// An answer as a stream of events, with a log message before it.
pub(crate) fn logged(log: &str, answer: &Value) -> Vec<u8> {
    let note = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": log}});
    let events = format!("event: message\ndata: {note}\n\nevent: message\ndata: {answer}\n\n");
    [stream_head(), events.into_bytes()].concat()
}

/// The head of an event stream that ends with the connection.
pub(crate) fn stream_head() -> Vec<u8> {
    b"HTTP/1.1 200 so\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_vec()
}

async fn read(socket: &mut TcpStream) -> std::io::Result<Option<Recorded>> {
    let mut raw = Vec::new();
    let end = loop {
        if let Some(end) = raw.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if socket.read_buf(&mut raw).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&raw[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (verb, path) = (first.next().unwrap_or_default().to_owned(), first.next().unwrap_or_default().to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
    while raw.len() < end + length.unwrap_or(0) {
        if socket.read_buf(&mut raw).await? == 0 {
            return Ok(None);
        }
    }
    let body = serde_json::from_slice(&raw[end..]).unwrap_or_default();
    Ok(Some(Recorded { verb, path, headers, body, raw: raw[end..].to_vec() }))
}

async fn forward(request: &Recorded, upstream: &str) -> std::io::Result<Vec<u8>> {
    let (authority, path) = upstream.trim_start_matches("http://").split_once('/').expect("a URL with a path");
    let mut twin = TcpStream::connect(authority).await?;
    let mut head = format!("{} /{path} HTTP/1.1\r\nconnection: close\r\n", request.verb);
    for (name, value) in request.headers.iter().filter(|(name, _)| name != "connection") {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    twin.write_all(format!("{head}\r\n").as_bytes()).await?;
    twin.write_all(&request.raw).await?;
    let mut reply = Vec::new();
    twin.read_to_end(&mut reply).await?;
    Ok(reply)
}
