//! One caller on one connection, in either protocol: makes calls, and believes no answer before it has looked at it.

use bytes::Bytes;
use clap::{Args, ValueEnum};
use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, Response, StatusCode, Uri,
    body::Incoming,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::{Failure, upstream::MODERN};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"0"}}"#;

const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}}"#;

/// Where the load goes, and how it speaks.
#[derive(Args, Clone)]
pub struct Way {
    #[arg(long)]
    url: Uri,
    #[arg(long)]
    pub leg: Leg,
    /// Shown with every request, as `Authorization: Bearer`.
    #[arg(long)]
    token: Option<String>,
    /// What the names of tools begin with there.
    #[arg(long, default_value = "")]
    prefix: String,
}

/// What is asked for.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub enum Leg {
    /// 2026-07-28: baskets are read, now and then opened and bought.
    Mix,
    /// 2026-07-28: one tool without arguments.
    Whoami,
    /// 2025-11-25: a session for each connection, and one tool without arguments.
    Session,
}

/// A caller.
pub struct Client {
    way: Way,
    sender: SendRequest<Full<Bytes>>,
    session: Option<String>,
    /// The id of the last call.
    made: u64,
}

impl Client {
    /// Connects, and opens a session where the protocol has them.
    pub async fn new(way: &Way) -> Result<Self, Failure> {
        let mut client = Self { way: way.clone(), sender: connect(way).await?, session: None, made: 0 };
        if way.leg == Leg::Session {
            let reply = client.send(Method::POST, "initialize", "", HELLO.to_owned()).await?;
            let session = reply.headers().get("mcp-session-id").ok_or("no session")?;
            client.session = Some(session.to_str()?.to_owned());
            read(reply).await?;
            let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
            read(client.send(Method::POST, "notifications/initialized", "", ready.to_owned()).await?).await?;
        }
        Ok(client)
    }

    /// Calls a tool with these arguments, and with what else belongs into the parameters; returns the result.
    pub async fn call(&mut self, tool: &str, arguments: &str, more: &str) -> Result<Value, Failure> {
        let name = format!("{}{tool}", self.way.prefix);
        self.made += 1;
        let (id, meta) = (self.made, if self.session.is_none() { META } else { r#""_meta":{}"# });
        let params = format!(r#"{{"name":"{name}","arguments":{arguments},{more}{meta}}}"#);
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
        let text = read(self.send(Method::POST, "tools/call", &name, body).await?).await?;
        let mut answer: Value = serde_json::from_str(&text).unwrap_or_default();
        let result = answer["result"].take();
        if answer["id"] != id || !result.is_object() || result["isError"] == true {
            return Err(format!("{tool}: no answer to this call: {text}").into());
        }
        Ok(result)
    }

    /// Connects, and opens a stream.
    pub async fn listening(way: &Way) -> Result<(Self, Response<Incoming>), Failure> {
        let mut client = Self::new(way).await?;
        if way.leg == Leg::Session {
            let stream = client.send(Method::GET, "", "", String::new()).await?;
            return Ok((client, stream));
        }
        let params = format!(r#"{{"notifications":{{"toolsListChanged":true}},{META}}}"#);
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{params}}}"#);
        let mut reply = client.send(Method::POST, "subscriptions/listen", "", body).await?;
        let mut seen = Vec::new();
        while !seen.windows(12).any(|part| part == b"acknowledged") {
            let frame = reply.body_mut().frame().await.ok_or("the stream ended")??;
            seen.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
        }
        Ok((client, reply))
    }

    /// Ends its session, so that those of a long run do not pile up. Some servers do not let it.
    pub async fn end(mut self) {
        if self.session.is_some() {
            let _ = self.send(Method::DELETE, "", "", String::new()).await;
        }
    }

    async fn send(
        &mut self,
        verb: Method,
        method: &str,
        name: &str,
        body: String,
    ) -> Result<Response<Incoming>, Failure> {
        let mut request = Request::builder().method(verb).uri(self.way.url.path());
        request = request.header("host", self.way.url.authority().map_or("", |host| host.as_str()));
        request = request.header("accept", "application/json, text/event-stream");
        request = request.header("content-type", "application/json");
        if self.way.leg == Leg::Session {
            request = request.header("mcp-protocol-version", "2025-11-25");
        } else {
            request = request.header("mcp-protocol-version", MODERN).header("mcp-method", method);
            if !name.is_empty() {
                request = request.header("mcp-name", name);
            }
        }
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        if let Some(token) = &self.way.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Full::from(body))?;
        // The other side may have ended the connection between two requests.
        if self.sender.ready().await.is_err() {
            self.sender = connect(&self.way).await?;
        }
        let reply = self.sender.send_request(request).await?;
        match reply.status() {
            StatusCode::OK | StatusCode::ACCEPTED => Ok(reply),
            status => Err(format!("{method}: {status}: {}", read(reply).await?).into()),
        }
    }
}

async fn connect(way: &Way) -> Result<SendRequest<Full<Bytes>>, Failure> {
    let stream = TcpStream::connect(way.url.authority().ok_or("no host")?.as_str()).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::task::spawn_local(connection);
    Ok(sender)
}

/// Whether a result names this basket, as structure and as text.
pub fn names(result: &Value, basket: &str) -> bool {
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    result["structuredContent"]["basket_id"] == basket && text.contains(basket) && !basket.is_empty()
}

/// The message of an answer: the body, or the last event of it.
async fn read(reply: Response<Incoming>) -> Result<String, Failure> {
    let kind = reply.headers().get("content-type").map_or(&[][..], |kind| kind.as_bytes());
    let streamed = kind.starts_with(b"text/event-stream");
    let text = String::from_utf8(reply.into_body().collect().await?.to_bytes().into())?;
    if !streamed {
        return Ok(text);
    }
    let events = text.lines().filter_map(|line| line.strip_prefix("data:"));
    Ok(events.map(str::trim).rfind(|event| !event.is_empty()).unwrap_or_default().to_owned())
}
