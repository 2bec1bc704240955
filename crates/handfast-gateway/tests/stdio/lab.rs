//! A server on stdio, users who ask it, and what they are answered.

use std::{path::PathBuf, time::Duration};

use axum_core::body::{Body, BodyDataStream};
use bytes::Bytes;
use futures_util::StreamExt;
use handfast::{Caller, Issuer, Principal};
use handfast_gateway::upstream::{Children, Down, StdioOptions, StdioUpstream, Upstream};
use handfast_wire::sse;
use http::{Method, Request, Response};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::AsyncReadExt,
    net::{UnixListener, UnixStream},
};

pub(crate) struct Lab {
    pub(crate) upstream: StdioUpstream,
    folder: TempDir,
    witness: UnixListener,
}

impl Lab {
    pub(crate) fn new(change: impl FnOnce(&mut StdioOptions)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        std::fs::write(at("server.py"), include_str!("server.py")).expect("a script");
        let witness = UnixListener::bind(at("witness")).expect("a socket");
        let mut options = StdioOptions {
            program: "python3".to_owned(),
            arguments: vec![at("server.py")],
            environment: vec![
                ("STARTS".to_owned(), at("starts")),
                ("WITNESS".to_owned(), at("witness")),
                ("BROKEN".to_owned(), at("broken")),
            ],
            hidden: Vec::new(),
            folder: Some(folder.path().to_owned()),
            children: Children::PerPrincipal,
            most_children: 8,
            idle: LONG,
            patience: LONG,
            longest_message: 100_000,
        };
        change(&mut options);
        Self { upstream: StdioUpstream::new(options), folder, witness }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// How many children were started.
    pub(crate) fn starts(&self) -> usize {
        std::fs::read(self.path("starts")).unwrap_or_default().len()
    }

    /// The connection of the next child that was started: it ends when all of its processes have.
    pub(crate) async fn born(&self) -> UnixStream {
        within(self.witness.accept()).await.expect("a child").0
    }

    pub(crate) async fn ask(&self, user: &str, request: Request<Bytes>) -> Result<Response<Body>, Down> {
        within(self.upstream.ask(&caller(user), request)).await
    }

    /// Asks until there was time enough: where patience is short, a child may need longer to start.
    async fn insist(&self, user: &str, request: impl Fn() -> Request<Bytes>) -> Response<Body> {
        within(async {
            loop {
                match self.ask(user, request()).await {
                    Err(Down::Late) => {}
                    answer => return answer.expect("an answer"),
                }
            }
        })
        .await
    }

    /// A call without a session, and its one answer.
    pub(crate) async fn call(&self, user: &str, tool: &str, arguments: Value) -> Value {
        one(self.insist(user, || modern(&call(1, tool, arguments.clone()))).await).await
    }

    /// A new session.
    pub(crate) async fn session(&self, user: &str) -> String {
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}});
        let response = self.insist(user, || legacy(None, &hello)).await;
        assert_eq!(response.status(), 200);
        response.headers()["mcp-session-id"].to_str().expect("an id").to_owned()
    }
}

/// All of a child's processes have ended.
pub(crate) async fn ended(mut child: UnixStream) {
    let _ = within(child.read(&mut [0])).await;
}

/// Waits, but not for ever.
pub(crate) async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, what).await.expect("it takes too long")
}

pub(crate) fn caller(user: &str) -> Caller {
    let issuer = Issuer::new("https://id.example").expect("an issuer");
    Caller::trusted(Principal::new(issuer, user).expect("a principal"))
}

pub(crate) fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

pub(crate) fn modern(body: &Value) -> Request<Bytes> {
    modern_text(body.to_string())
}

pub(crate) fn modern_text(body: String) -> Request<Bytes> {
    let request = Request::builder().method(Method::POST).header("mcp-protocol-version", "2026-07-28");
    request.body(body.into()).expect("a request")
}

pub(crate) fn legacy(session: Option<&str>, body: &Value) -> Request<Bytes> {
    bare(Method::POST, session, body.to_string())
}

pub(crate) fn bare(method: Method, session: Option<&str>, body: String) -> Request<Bytes> {
    let mut request = Request::builder().method(method).header("mcp-protocol-version", "2025-11-25");
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    request.body(body.into()).expect("a request")
}

/// The text of an answer that is one message.
pub(crate) async fn text(response: Response<Body>) -> String {
    assert_eq!(response.headers()["content-type"], "application/json");
    let chunks: Vec<Bytes> = within(response.into_body().into_data_stream().map(Result::unwrap).collect()).await;
    String::from_utf8(chunks.concat()).expect("text")
}

pub(crate) async fn one(response: Response<Body>) -> Value {
    serde_json::from_str(&text(response).await).expect("JSON")
}

/// A stream of events.
pub(crate) struct Events(BodyDataStream, sse::Decoder, std::collections::VecDeque<Value>);

impl Events {
    pub(crate) fn of(response: Response<Body>) -> Self {
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self(response.into_body().into_data_stream(), sse::Decoder::new(1_000_000), Default::default())
    }

    /// The next message; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(message) = self.2.pop_front() {
                return Some(message);
            }
            let chunk = within(self.0.next()).await?.expect("a chunk");
            let events = self.1.push(&chunk).expect("events");
            self.2.extend(events.iter().map(|event| serde_json::from_str::<Value>(&event.data).expect("JSON")));
        }
    }

    pub(crate) async fn rest(mut self) -> Vec<Value> {
        let mut all = Vec::new();
        while let Some(message) = self.next().await {
            all.push(message);
        }
        all
    }
}

pub(crate) const LONG: Duration = Duration::from_secs(60);
