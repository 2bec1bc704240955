//! Servers that are broken on purpose, for tests of how a client bears it. Each listens on loopback only, at a free
//! port, and stops when it is dropped. None of them holds in memory what it sends.

mod play;
mod raw;

use std::{
    io,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{net::TcpListener, task::JoinSet};

use crate::http::PATH;

/// A way of being broken. "Honest" requests are answered as the twin `flawed` answers them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Odd {
    /// A JSON-RPC error to everything.
    RefusesEverything,
    /// Honest listings; a JSON-RPC error to everything else.
    RefusesCalls,
    /// Honest listings; one and the same complete text result to every `tools/call`.
    AnswersEverything,
    /// This HTTP status, with no body, to everything.
    Status(u16),
    /// Honest for some requests, then this HTTP status.
    StatusAfter {
        /// How many requests are answered first.
        honest: u64,
        /// What all later ones get.
        status: u16,
    },
    /// Reads the request and closes the socket.
    ClosesSocket,
    /// Honest for this many requests, then closes sockets.
    ClosesAfter(u64),
    /// Accepts and never answers.
    Hangs,
    /// Honest for this many requests, then never answers.
    HangsAfter(u64),
    /// 200, `application/json`, and bytes that are no JSON.
    Garbage,
    /// 200, `application/json`, and a body of one gigabyte.
    Huge,
    /// An event stream of comments that never ends.
    EndlessSse,
    /// A result of a hundred thousand nested arrays.
    DeepJson,
    /// 307 to this place.
    RedirectsElsewhere(String),
    /// Honest for this many requests, then 429.
    RateLimits(u64),
    /// Honest answers under another request's id.
    WrongId,
    /// 200 and a web page.
    Html,
}

/// An odd server. Dropping it stops it, and closes all of its connections.
#[derive(Debug)]
pub struct OddServer {
    port: u16,
    requests: Arc<AtomicU64>,
    task: tokio::task::JoinHandle<()>,
}

/// Starts one on 127.0.0.1, at any free port.
///
/// # Errors
/// When no port can be had.
pub async fn start(kind: Odd) -> io::Result<OddServer> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let port = listener.local_addr()?.port();
    let requests = Arc::new(AtomicU64::new(0));
    let player = Arc::new(play::Player::new(kind, Arc::clone(&requests)));
    let task = tokio::spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    if let Ok((socket, _)) = accepted {
                        let player = Arc::clone(&player);
                        connections.spawn(async move { player.play(socket).await });
                    }
                }
                Some(_) = connections.join_next() => {}
            }
        }
    });
    Ok(OddServer { port, requests, task })
}

impl OddServer {
    /// Where it listens: `http://127.0.0.1:PORT/mcp`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// How many requests have arrived so far.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}

impl Drop for OddServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}
