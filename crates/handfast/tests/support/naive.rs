//! A server of protocol 2025-11-25 that binds nothing: whoever shows a session id has the session, and the ids can be
//! counted. It keeps notes, one list for each session.
#![allow(dead_code, reason = "no test needs all of it")]

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, Response},
};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};

/// In what the server is odd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Manner {
    #[default]
    Usual,
    /// It answers in streams of events.
    Streams,
    /// It makes a new session where one is shown that it does not know, and goes on: silent re-initialisation.
    Revives,
    /// It refuses `initialize`, and hands out a session all the same.
    RefusesYetMints,
    /// The same under 400.
    RefusesBadly,
    /// It says by the status that it has made something.
    Creates,
    /// It answers `initialize` with what is no message.
    Babbles,
    /// It answers `initialize` with a stream that says everything but that.
    Rambles,
    /// Its session id is none.
    NamesItBadly,
    /// It has no sessions.
    Stateless,
    /// It shows its session id with every answer.
    Echoes,
    /// It has no streams of its own messages, and says so by 404.
    NoStreams,
    /// It answers `initialize` only when it is told to go on.
    Waits,
    /// It answers calls by streams that do not end.
    AnswersForEver,
}

#[derive(Default)]
pub(crate) struct Naive {
    sessions: Mutex<BTreeMap<String, Vec<String>>>,
    minted: AtomicUsize,
    seen: AtomicUsize,
    manner: Mutex<Manner>,
    going: tokio::sync::Notify,
    /// As many streams are open as this is shared.
    streams: Arc<()>,
}

impl Naive {
    pub(crate) fn router(self: &Arc<Self>) -> Router {
        Router::new().fallback(answer).with_state(self.clone())
    }

    /// How many sessions it has.
    pub(crate) fn sessions(&self) -> usize {
        self.notes().len()
    }

    /// How many requests have come through to it.
    pub(crate) fn seen(&self) -> usize {
        self.seen.load(Ordering::SeqCst)
    }

    /// How many streams are open.
    pub(crate) fn streams(&self) -> usize {
        Arc::strong_count(&self.streams) - 1
    }

    /// Lets whoever waits go on.
    pub(crate) fn go_on(&self) {
        self.going.notify_waiters();
    }

    /// It is started again: what it kept is gone.
    pub(crate) fn restart(&self) {
        self.notes().clear();
    }

    pub(crate) fn set(&self, manner: Manner) {
        *self.manner.lock().unwrap_or_else(PoisonError::into_inner) = manner;
    }

    fn manner(&self) -> Manner {
        *self.manner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notes(&self) -> MutexGuard<'_, BTreeMap<String, Vec<String>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mint(&self) -> String {
        let id = format!("s-{}", self.minted.fetch_add(1, Ordering::SeqCst));
        self.notes().insert(id.clone(), Vec::new());
        id
    }
}

async fn answer(State(server): State<Arc<Naive>>, method: Method, headers: HeaderMap, body: Bytes) -> Response<Body> {
    server.seen.fetch_add(1, Ordering::SeqCst);
    let shown = headers.get("mcp-session-id").map(|id| id.to_str().expect("ASCII").to_owned());
    if method == Method::POST && server.manner() == Manner::Waits {
        server.going.notified().await;
    }
    if method == Method::POST {
        return message(&server, shown, &serde_json::from_slice(&body).expect("a message"));
    }
    let known = shown.as_ref().is_some_and(|id| server.notes().contains_key(id));
    match (known, method) {
        (false, _) => plain(404),
        (true, Method::DELETE) => {
            server.notes().remove(&shown.expect("it is known"));
            plain(200)
        }
        (true, _) if server.manner() == Manner::NoStreams => plain(404),
        (true, _) => {
            let mut response = endless(&server, "data: {\"jsonrpc\":\"2.0\",\"method\":\"hello\"}\n\n");
            if server.manner() == Manner::Echoes {
                response.headers_mut().insert("mcp-session-id", shown.expect("it is known").parse().expect("ASCII"));
            }
            response
        }
    }
}

/// A stream that says this, and then nothing for ever.
fn endless(server: &Naive, first: &'static str) -> Response<Body> {
    let open = server.streams.clone();
    let rest = stream::pending().map(move |never: Result<&str, std::io::Error>| {
        let _ = &open;
        never
    });
    let body = Body::from_stream(stream::iter([Ok(first)]).chain(rest));
    Response::builder().header("content-type", "text/event-stream").body(body).expect("a stream")
}

fn message(server: &Naive, shown: Option<String>, message: &Value) -> Response<Body> {
    let manner = server.manner();
    if message["method"] == "initialize" {
        let id = server.mint();
        return match manner {
            Manner::RefusesYetMints => said(manner, message, Err("not today"), Some(&id)),
            Manner::RefusesBadly => {
                let mut response = said(manner, message, Err("not today"), Some(&id));
                *response.status_mut() = axum::http::StatusCode::BAD_REQUEST;
                response
            }
            Manner::Creates => {
                let mut response = said(manner, message, Ok(json!({"protocolVersion": "2025-11-25"})), Some(&id));
                *response.status_mut() = axum::http::StatusCode::CREATED;
                response
            }
            Manner::Babbles => {
                let mut response = said(manner, message, Ok(json!({})), Some(&id));
                *response.body_mut() = Body::from("welcome!");
                response
            }
            Manner::Rambles => {
                let mut response = said(Manner::Streams, message, Ok(json!({})), Some(&id));
                *response.body_mut() = Body::from("data: {\"jsonrpc\":\"2.0\",\"method\":\"hello\"}\n\n");
                response
            }
            Manner::NamesItBadly => {
                let long = "s".repeat(5000);
                server.notes().remove(&id);
                said(manner, message, Ok(json!({"protocolVersion": "2025-11-25"})), Some(&long))
            }
            Manner::Stateless => said(manner, message, Ok(json!({"protocolVersion": "2025-11-25"})), None),
            _ => said(manner, message, Ok(json!({"protocolVersion": "2025-11-25"})), Some(&id)),
        };
    }
    let (id, made) = match shown {
        _ if manner == Manner::Stateless => (String::new(), false),
        None if manner == Manner::Echoes => ("s-unasked".to_owned(), false),
        None => return plain(400),
        Some(id) if server.notes().contains_key(&id) => (id, false),
        Some(_) if manner == Manner::Revives => (server.mint(), true),
        Some(_) => return plain(404),
    };
    if message.get("id").is_none() {
        return plain(202);
    }
    let mut notes = server.notes();
    let notes = notes.entry(id.clone()).or_default();
    if let Some(text) = message["params"]["arguments"]["text"].as_str() {
        notes.push(text.to_owned());
    }
    if manner == Manner::AnswersForEver {
        return endless(server, "data: {\"jsonrpc\":\"2.0\",\"method\":\"hello\"}\n\n");
    }
    let shown = if manner == Manner::Echoes || made { Some(&*id) } else { None };
    said(manner, message, Ok(json!({"notes": notes})), shown)
}

fn said(manner: Manner, to: &Value, told: Result<Value, &str>, session: Option<&str>) -> Response<Body> {
    let told = match told {
        Ok(result) => json!({"jsonrpc": "2.0", "id": to["id"], "result": result}),
        Err(why) => json!({"jsonrpc": "2.0", "id": to["id"], "error": {"code": -32603, "message": why}}),
    };
    let (kind, text) = match manner {
        Manner::Streams => ("text/event-stream", format!("id: 1\r\ndata:\r\n\r\ndata: {told}\r\n\r\n")),
        _ => ("application/json", told.to_string()),
    };
    let mut response = Response::builder().header("content-type", kind);
    if let Some(session) = session {
        response = response.header("mcp-session-id", session);
    }
    response.body(Body::from(text)).expect("an answer")
}

fn plain(status: u16) -> Response<Body> {
    Response::builder().status(status).body(Body::empty()).expect("an answer")
}
