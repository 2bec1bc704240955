//! A server behind both layers, over real HTTP, and those who call it with tokens of a real issuer.
#![allow(dead_code, reason = "no test needs all of it")]

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::Router;
use handfast::{
    Audience, AuditError, AuditEvent, AuditSink, Keys,
    http::{BearerLayer, SessionLayer},
    session::{SessionAuthority, SessionOptions, SessionSetup},
    store::Store,
    token::{Algorithm, Jwks, JwtVerifier, ProtectedResource, TokenRules},
};
use handfast_twins::issuer::{Issuer, Wish};
use serde_json::{Value, json};
use tokio::net::TcpListener;

pub(crate) const OURS: &str = "https://mcp.example.com/mcp";

/// What was accounted for: decision and reason.
#[derive(Default)]
pub(crate) struct Diary(Mutex<Vec<Value>>, AtomicBool);

impl AuditSink for Diary {
    fn record(&self, event: &AuditEvent) -> Result<(), AuditError> {
        if self.1.load(Ordering::SeqCst) {
            return Err(AuditError("it is closed".into()));
        }
        self.0.lock().expect("nobody panics").push(event.json());
        Ok(())
    }
}

impl Diary {
    /// Nothing more can be kept.
    pub(crate) fn close(&self) {
        self.1.store(true, Ordering::SeqCst);
    }

    /// The last event as `action reason`.
    pub(crate) fn last(&self) -> String {
        let all = self.0.lock().expect("nobody panics");
        let last = all.last().expect("an event");
        format!("{} {}", last["action"].as_str().unwrap_or("-"), last["reason"].as_str().unwrap_or("allowed"))
    }

    pub(crate) fn all(&self) -> Vec<Value> {
        self.0.lock().expect("nobody panics").clone()
    }
}

/// One replica of the server.
pub(crate) struct Front {
    pub(crate) url: String,
    pub(crate) diary: Arc<Diary>,
    client: reqwest::Client,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn notes(&self) -> Value {
        let json = self.body.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let json = json.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        json.map(|json| json["result"]["notes"].clone()).next().unwrap_or_default()
    }
}

pub(crate) struct Parts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) keys: Keys,
    pub(crate) options: SessionOptions,
}

impl Front {
    pub(crate) async fn start(issuer: &Issuer, inner: Router, parts: Parts) -> Self {
        Self::with(issuer, inner, parts, |layer| layer).await
    }

    pub(crate) async fn with(
        issuer: &Issuer,
        inner: Router,
        parts: Parts,
        set: impl FnOnce(SessionLayer) -> SessionLayer,
    ) -> Self {
        let diary = Arc::new(Diary::default());
        let audience: Audience = OURS.parse().expect("an audience");
        let Parts { store, keys, options } = parts;
        let setup = SessionSetup { store, keys, audience: audience.clone(), audit: diary.clone(), options };
        let layer = SessionLayer::new(Arc::new(SessionAuthority::new(setup))).asking_every(Duration::from_millis(5));
        let name: handfast::Issuer = issuer.url().parse().expect("an issuer");
        let jwks = Jwks::at(&issuer.jwks_url()).expect("loopback");
        let verifier = JwtVerifier::new(TokenRules::new(name.clone(), audience.clone()), &[Algorithm::Es256], jwks);
        let bearer = BearerLayer::new(Arc::new(verifier), ProtectedResource::new(audience, vec![name]).expect("a URL"));
        let app = inner.layer(set(layer)).layer(bearer);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, diary, client: reqwest::Client::new() }
    }

    pub(crate) fn request(&self, verb: &str, token: &str, session: Option<&str>) -> reqwest::RequestBuilder {
        let request = self.client.request(verb.parse().expect("a method"), &self.url);
        let request = request.header("accept", "application/json, text/event-stream");
        let request = if token.is_empty() { request } else { request.bearer_auth(token) };
        match session {
            Some(session) => request.header("mcp-session-id", session),
            None => request,
        }
    }

    pub(crate) async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let response = request.send().await.expect("an answer");
        let session = response.headers().get("mcp-session-id").map(|id| id.to_str().expect("ASCII").to_owned());
        Answer { status: response.status().as_u16(), session, body: response.text().await.expect("text") }
    }

    pub(crate) async fn post(&self, token: &str, session: Option<&str>, message: &Value) -> Answer {
        let request = self.request("POST", token, session).header("content-type", "application/json");
        self.send(request.body(message.to_string())).await
    }

    pub(crate) async fn initialize(&self, token: &str, session: Option<&str>) -> Answer {
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        self.post(token, session, &message).await
    }

    /// A new session.
    pub(crate) async fn session(&self, token: &str) -> String {
        let answer = self.initialize(token, None).await;
        answer.session.clone().unwrap_or_else(|| panic!("no session: {answer:?}"))
    }

    /// Notes this, and tells what is noted.
    pub(crate) async fn note(&self, token: &str, session: Option<&str>, text: &str) -> Answer {
        let params = json!({"name": "remember", "arguments": {"text": text}});
        self.post(token, session, &json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})).await
    }

    /// What a request of this verb comes to: a call, the opening of a stream, or the end of a session.
    pub(crate) async fn by(&self, verb: &str, token: &str, session: Option<&str>) -> Answer {
        match verb {
            "POST" => self.note(token, session, "x").await,
            _ => self.send(self.request(verb, token, session)).await,
        }
    }

    /// Opens a stream, and gives it when its first message has come.
    pub(crate) async fn stream(&self, token: &str, session: &str) -> reqwest::Response {
        let mut response = self.request("GET", token, Some(session)).send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        let first = response.chunk().await.expect("a stream").expect("a message");
        assert!(String::from_utf8_lossy(&first).contains("hello"));
        response
    }
}

pub(crate) async fn issuer() -> Issuer {
    Issuer::start(0).await.expect("an issuer")
}

pub(crate) fn token(issuer: &Issuer, subject: &str) -> String {
    issuer.token(&Wish::of(subject, OURS))
}
