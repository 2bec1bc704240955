//! Listening: connections with their bounds, and the end of it in good order.

use std::{
    future::Future,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use axum_core::body::Body;
use http::{Request, Response, StatusCode};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
};

use crate::{
    patience::{InTime, Patient},
    who::App,
};

/// What is heeded while listening.
#[derive(Debug, Clone)]
pub struct Listening {
    /// The path of the server, and of nothing else.
    pub path: String,
    /// How many connections there may be at once.
    pub most_connections: usize,
    /// How long a client may take to send the head of a request, as long again for its body, and as long to read anything of
    /// what it is sent.
    pub patience: Duration,
    /// How long requests that are running may take to end, once no more are taken.
    pub drain: Duration,
}

impl Default for Listening {
    fn default() -> Self {
        Self {
            path: "/mcp".to_owned(),
            most_connections: 20_000,
            patience: Duration::from_secs(30),
            drain: Duration::from_secs(30),
        }
    }
}

/// Serves the newest of `apps` until `ends`, and then lets running requests end.
///
/// # Errors
/// The listener is of no more use.
pub async fn serve(
    listener: TcpListener,
    apps: watch::Receiver<App>,
    listening: Listening,
    ends: impl Future<Output = ()>,
) -> std::io::Result<()> {
    let graceful = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(listening.most_connections));
    let path: Arc<str> = listening.path.clone().into();
    tokio::pin!(ends);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut ends => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            // A client that has gone already, or no more files: the next one may do better.
            Err(error) if passes(&error) => {
                tracing::warn!(target: "handfast", %error, "a connection was not taken");
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        let Ok(place) = room.clone().try_acquire_owned() else { continue };
        let _ = stream.set_nodelay(true);
        let (apps, path, patience) = (apps.clone(), path.clone(), listening.patience);
        let service = service_fn(move |request: Request<Incoming>| {
            // Each request is answered by the rules of its time.
            let (app, path) = (apps.borrow().clone(), path.clone());
            async move { Ok::<_, std::convert::Infallible>(answer(&app, &path, patience, request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(patience)
            .max_buf_size(64 * 1024)
            .serve_connection(TokioIo::new(Patient::new(stream, patience)), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(listening.drain, graceful.shutdown()).await;
    Ok(())
}

async fn answer(app: &App, path: &str, patience: Duration, request: Request<Incoming>) -> Response<Body> {
    let asked = request.uri().path();
    if asked != path && !asked.starts_with("/.well-known/oauth-protected-resource") {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_FOUND;
        return response;
    }
    let (head, body) = request.into_parts();
    let (body, was_late) = InTime::of(body, patience);
    let response = app.answer(Request::from_parts(head, body)).await;
    if was_late.load(Ordering::Relaxed) {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::REQUEST_TIMEOUT;
        return response;
    }
    response
}

fn passes(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{
        ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted, OutOfMemory, WouldBlock,
    };
    let kind = error.kind();
    matches!(kind, ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted | OutOfMemory | WouldBlock)
        // Too many open files, here or on the whole machine.
        || matches!(error.raw_os_error(), Some(23 | 24))
}
