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
    /// It has no sessions.
    Stateless,
}

#[derive(Default)]
pub(crate) struct Naive {
    sessions: Mutex<BTreeMap<String, Vec<String>>>,
    minted: AtomicUsize,
    seen: AtomicUsize,
    manner: Mutex<Manner>,
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
        (true, _) => {
            let first = stream::iter([Ok::<_, std::io::Error>("data: {\"jsonrpc\":\"2.0\",\"method\":\"hello\"}\n\n")]);
            let body = Body::from_stream(first.chain(stream::pending()));
            Response::builder().header("content-type", "text/event-stream").body(body).expect("a stream")
        }
    }
}

fn message(server: &Naive, shown: Option<String>, message: &Value) -> Response<Body> {
    let manner = server.manner();
    if message["method"] == "initialize" {
        let id = server.mint();
        return match manner {
            Manner::RefusesYetMints => said(manner, message, Err("not today"), Some(&id)),
            Manner::Stateless => said(manner, message, Ok(json!({"protocolVersion": "2025-11-25"})), None),
            _ => said(manner, message, Ok(json!({"protocolVersion": "2025-11-25"})), Some(&id)),
        };
    }
    let (id, made) = match shown {
        _ if manner == Manner::Stateless => (String::new(), false),
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
    said(manner, message, Ok(json!({"notes": notes})), made.then_some(&*id))
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
