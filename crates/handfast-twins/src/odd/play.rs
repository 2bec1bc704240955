//! What each odd server does with a connection.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use handfast_wire::{
    message::{self, Message, Request},
    meta,
};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::{
    Odd,
    raw::{self, Received},
};
use crate::{
    answer::{self, Refused},
    flaws,
    http::{self, Answers, Host, Reply},
};

/// One odd server: its kind, and the honest twin behind it.
pub(super) struct Player {
    kind: Odd,
    honest: Host,
    requests: Arc<AtomicU64>,
}

impl Player {
    pub(super) fn new(kind: Odd, requests: Arc<AtomicU64>) -> Self {
        Self { kind, honest: flaws::honest_base(), requests }
    }

    /// Handles one connection. Whatever goes wrong with it is the client's leaving.
    pub(super) async fn play(&self, mut socket: TcpStream) {
        let _ = self.answer(&mut socket).await;
    }

    async fn answer(&self, socket: &mut TcpStream) -> io::Result<()> {
        let Some(received) = raw::read(socket).await? else { return Ok(()) };
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let reply = match &self.kind {
            Odd::RefusesEverything => self.refuse(&received),
            Odd::RefusesCalls if is_listing(&received) => self.honest(&received),
            Odd::RefusesCalls => self.refuse(&received),
            Odd::AnswersEverything => match request(&received).filter(|request| request.method == "tools/call") {
                Some(request) => http::frame(Answers::Json, &request, Ok(answer::tool("done".into(), None))),
                None => self.honest(&received),
            },
            Odd::Status(status) => Reply::bare(*status),
            Odd::StatusAfter { honest, status } if number >= *honest => Reply::bare(*status),
            Odd::RateLimits(honest) if number >= *honest => Reply::bare(429).with("retry-after", "1"),
            Odd::ClosesSocket => return Ok(()),
            Odd::ClosesAfter(honest) if number >= *honest => return Ok(()),
            Odd::Hangs => return hang().await,
            Odd::HangsAfter(honest) if number >= *honest => return hang().await,
            Odd::StatusAfter { .. } | Odd::RateLimits(_) | Odd::ClosesAfter(_) | Odd::HangsAfter(_) => {
                self.honest(&received)
            }
            Odd::WrongId => under_another_id(self.honest(&received)),
            Odd::Garbage => body("application/json", b"{\"jsonrpc\":\"2.0\",\xff\xfe\"result\": oh no".to_vec()),
            Odd::Html => body("text/html; charset=utf-8", PAGE.as_bytes().to_vec()),
            Odd::RedirectsElsewhere(place) => Reply::bare(307).with("location", place),
            Odd::Huge => return huge(socket).await,
            Odd::EndlessSse => return endless(socket).await,
            Odd::DeepJson => return deep(socket, &received).await,
        };
        raw::write(socket, &reply).await
    }

    fn honest(&self, received: &Received) -> Reply {
        let Received { method, path, headers, body } = received;
        match http::at_the_door(&self.honest, method, (path, None), headers) {
            Ok(caller) => http::respond(&self.honest, Answers::Json, &caller, method, headers, body),
            Err(reply) => reply,
        }
    }

    fn refuse(&self, received: &Received) -> Reply {
        let refused = Refused::protocol(meta::INTERNAL_ERROR, 200, "refused");
        match request(received) {
            Some(request) => http::frame(Answers::Json, &request, Err(refused)),
            None => http::nameless(refused),
        }
    }
}

async fn hang() -> io::Result<()> {
    std::future::pending().await
}

async fn huge(socket: &mut TcpStream) -> io::Result<()> {
    raw::open(socket, "application/json").await?;
    raw::piece(socket, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"text\":\"").await?;
    for _ in 0..GIGABYTE / PIECE.len() {
        raw::piece(socket, &PIECE).await?;
    }
    raw::piece(socket, b"\"}}").await?;
    raw::close(socket).await
}

async fn endless(socket: &mut TcpStream) -> io::Result<()> {
    raw::open(socket, "text/event-stream").await?;
    loop {
        raw::piece(socket, b": still here\n\n").await?;
        tokio::time::sleep(HEARTBEAT).await;
    }
}

async fn deep(socket: &mut TcpStream, received: &Received) -> io::Result<()> {
    let id = request(received).map_or(Value::Null, |request| request.id.to_value());
    raw::open(socket, "application/json").await?;
    raw::piece(socket, format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":").as_bytes()).await?;
    for bracket in [b'[', b']'] {
        for _ in 0..100 {
            raw::piece(socket, &[bracket; 1000]).await?;
        }
    }
    raw::piece(socket, b"}").await?;
    raw::close(socket).await
}

fn under_another_id(mut reply: Reply) -> Reply {
    if let Ok(mut message) = serde_json::from_slice::<Value>(&reply.body) {
        message["id"] = json!("somebody-else");
        reply.body = message.to_string().into_bytes();
    }
    reply
}

fn body(kind: &str, body: Vec<u8>) -> Reply {
    Reply { status: 200, headers: vec![("content-type", kind.to_owned())], body }
}

fn request(received: &Received) -> Option<Request> {
    match message::parse(&received.body) {
        Ok(Message::Request(request)) => Some(request),
        _ => None,
    }
}

fn is_listing(received: &Received) -> bool {
    request(received).is_some_and(|request| request.method == "server/discover" || request.method.ends_with("/list"))
}

const PAGE: &str = "<!doctype html><title>Welcome</title><h1>It works</h1>";
const GIGABYTE: usize = 1 << 30;
static PIECE: [u8; 65_536] = [b'a'; 65_536];
const HEARTBEAT: Duration = Duration::from_millis(10);
