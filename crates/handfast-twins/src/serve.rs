//! A twin behind a loopback port. axum moves the bytes; every answer comes from `http.rs`.

use std::{
    collections::BTreeMap,
    fmt,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{ConnectInfo, Request, State},
    http::{HeaderMap, Response},
};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

use crate::{
    flaws::Twin,
    http::{self, Answers, BODY_LIMIT, Headers, Host, PATH, Reply},
    server::Server,
    waiting::Waiting,
};

/// A twin that is being served. Dropping it stops it.
pub struct Served {
    port: u16,
    host: Arc<Host>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

/// Serves a twin on 127.0.0.1, and nowhere else. Port 0 takes any free port.
///
/// # Errors
/// When the port cannot be had.
pub async fn serve_http(twin: &'static Twin, port: u16, answers: Answers) -> std::io::Result<Served> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let port = listener.local_addr()?.port();
    let host = Arc::new(twin.host());
    let router = Router::new().fallback(answer).with_state((Arc::clone(&host), answers, Waiting::default()));
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(async move {
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        let serving = axum::serve(listener, service).with_graceful_shutdown(async {
            // A dropped sender is an order to stop as well.
            let _ = stopped.await;
        });
        // The listener is ours and bound; what can fail is a single connection, and axum carries on.
        let _ = serving.await;
    });
    Ok(Served { port, host, stop: Some(stop), task })
}

impl Served {
    /// Where it listens: `http://127.0.0.1:PORT/mcp`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// How often the tool that declares itself destructive was called. A probe must leave this at zero.
    pub fn destructive_calls(&self) -> u64 {
        self.host.modern().map_or(0, Server::purges)
    }

    /// How often the library decided what about the twin's handles, as `resolve workspace:read foreign-principal`.
    pub fn decisions(&self) -> BTreeMap<String, u64> {
        self.host.modern().map(|server| server.tickets.decisions()).unwrap_or_default()
    }

    /// Moves the twin's clock forward, for tests of expiry.
    pub fn advance(&self, seconds: u64) {
        if let Some(server) = self.host.modern() {
            server.clock.advance(seconds);
        }
    }

    /// Stops listening and waits until the port is free; connections that are busy get a moment to finish.
    pub async fn stop(mut self) {
        self.stop.take();
        if tokio::time::timeout(LAST_WORDS, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

impl fmt::Debug for Served {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Served").field("port", &self.port).finish_non_exhaustive()
    }
}

async fn answer(
    State((host, answers, waiting)): State<(Arc<Host>, Answers, Waiting)>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let (method, headers) = (parts.method.as_str(), readable(&parts.headers));
    let caller = match http::at_the_door(&host, method, (parts.uri.path(), parts.uri.query()), &headers) {
        Ok(caller) => caller.over(peer.port()),
        Err(reply) => return written(reply),
    };
    match to_bytes(body, BODY_LIMIT).await {
        Ok(body) => {
            let respond = || http::respond(&host, answers, &caller, method, &headers, &body);
            written(match host.modern() {
                Some(server) if !server.guards.answers_by_connection() => waiting.answered(&body, respond).await,
                Some(server) if !server.guards.writes_at_once() => server.late.answered(respond).await,
                _ => respond(),
            })
        }
        Err(_) => written(Reply::bare(413)),
    }
}

fn readable(headers: &HeaderMap) -> Headers {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    Headers(headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes()))).collect())
}

fn written(reply: Reply) -> Response<Body> {
    let mut response = Response::builder().status(reply.status);
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    response.body(Body::from(reply.body)).unwrap_or_else(|_| Response::new(Body::empty()))
}

const LAST_WORDS: Duration = Duration::from_secs(2);
