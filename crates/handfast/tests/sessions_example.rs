//! The official SDK's server with sessions, as it is run by hand: what it does by itself, and behind the layer.

use handfast_twins::issuer::{Issuer, Wish};
use serde_json::{Value, json};

#[path = "support/example.rs"]
mod example;

use example::Example;

struct Server {
    url: String,
    counters: String,
    client: reqwest::Client,
    alice: String,
    bob: String,
    /// Alice's namesake in another tenant.
    namesake: String,
    _issuer: Issuer,
    _example: Example,
    _folder: tempfile::TempDir,
}

impl Server {
    async fn start(more: &[&str]) -> Self {
        let (issuer, folder) = (Issuer::start(0).await.expect("an issuer"), tempfile::tempdir().expect("a folder"));
        let store = format!("sqlite:{}", folder.path().join("sessions.db").display());
        let arguments = [&["--issuer", issuer.url(), "--store", &store], more].concat();
        let mut example = Example::start("sessions", &arguments);
        let (url, counters) = (example.after("listening on "), example.after("counters at "));
        let token = |subject: &str| issuer.token(&Wish::of(subject, &url));
        let (alice, bob, client) = (token("alice"), token("bob"), reqwest::Client::new());
        let elsewhere = serde_json::Map::from_iter([("tenant".to_owned(), "other".into())]);
        let namesake = issuer.token(&Wish { claims: elsewhere, ..Wish::of("alice", &url) });
        Self { url, counters, client, alice, bob, namesake, _issuer: issuer, _example: example, _folder: folder }
    }

    /// The status, the session and the text of the answer.
    async fn post(&self, token: &str, session: Option<&str>, message: Value) -> (u16, Option<String>, String) {
        let mut request = self.client.post(&self.url).bearer_auth(token).body(message.to_string());
        for (name, value) in [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2025-11-25"),
        ] {
            request = request.header(name, value);
        }
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        let response = request.send().await.expect("an answer");
        let session = response.headers().get("mcp-session-id").map(|id| id.to_str().expect("ASCII").to_owned());
        (response.status().as_u16(), session, response.text().await.expect("text"))
    }

    async fn begin(&self, token: &str) -> String {
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        let (status, session, text) = self.post(token, None, message).await;
        assert_eq!(status, 200, "{text}");
        let session = session.expect("a session");
        let (status, ..) =
            self.post(token, Some(&session), json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        assert_eq!(status, 202);
        session
    }

    async fn call(&self, token: &str, session: &str, name: &str, arguments: Value) -> (u16, String) {
        let params = json!({"name": name, "arguments": arguments});
        let message = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
        let (status, _, text) = self.post(token, Some(session), message).await;
        (status, text)
    }
}

#[tokio::test]
async fn the_sdk_alone_gives_a_session_to_whoever_shows_it() {
    let server = Server::start(&["--unguarded"]).await;
    let session = server.begin(&server.alice).await;
    server.call(&server.alice, &session, "remember", json!({"text": "hers"})).await;

    let (status, text) = server.call(&server.bob, &session, "recall", json!({})).await;

    assert!(status == 200 && text.contains("hers"), "{status} {text}");
}

#[tokio::test]
async fn behind_the_layer_it_is_whoevers_began_it() {
    let server = Server::start(&[]).await;
    let (hers, his) = (server.begin(&server.alice).await, server.begin(&server.bob).await);
    let (status, text) = server.call(&server.alice, &hers, "remember", json!({"text": "hers"})).await;
    assert!(status == 200 && text.contains("remembered"), "{status} {text}");

    let (status, text) = server.call(&server.bob, &hers, "recall", json!({})).await;
    assert!(status == 404 && !text.contains("hers"), "{status} {text}");
    // The same subject of the same issuer, in another tenant, is somebody else.
    let (status, text) = server.call(&server.namesake, &hers, "recall", json!({})).await;
    assert!(status == 404 && !text.contains("hers"), "{status} {text}");
    let (status, text) = server.call(&server.bob, &his, "recall", json!({})).await;
    assert!(status == 200 && !text.contains("hers"), "{status} {text}");
    let (status, text) = server.call(&server.alice, &hers, "recall", json!({})).await;
    assert!(status == 200 && text.contains("hers"), "{status} {text}");

    let ended = server.client.delete(&server.url).bearer_auth(&server.alice).header("mcp-session-id", &hers);
    assert_eq!(ended.send().await.expect("an answer").status(), 204);
    assert_eq!(server.call(&server.alice, &hers, "recall", json!({})).await.0, 404);

    let counters = reqwest::get(&server.counters).await.expect("an answer").text().await.expect("text");
    for line in [
        "sessions_created_total 2",
        "session_mismatch_total 1",
        "session_reinit_rejected_total 2",
        // There from the beginning, so that its first event is an increase.
        "auth_refused_total{reason=\"audience\"} 0",
        "auth_refused_total{reason=\"none\"} 0",
    ] {
        assert!(counters.lines().any(|counter| counter == line), "{line}: {counters}");
    }
    assert!(counters.contains("# HELP sessions_created_total") && !counters.contains("alice"), "{counters}");
}

#[tokio::test]
async fn a_server_elsewhere_is_guarded_by_the_same_line() {
    let behind = Server::start(&["--unguarded"]).await;
    // The server behind wants tokens for itself, which the front does not hand on: it lets nobody through, and so
    // `initialize` fails and no session is made.
    let front = Server::start(&["--upstream", &behind.url]).await;
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}});

    let (status, session, _) = front.post(&front.alice, None, message).await;

    assert_eq!((status, session), (401, None));
}
