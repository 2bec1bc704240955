//! The twin of the years before over HTTP: `initialize`, a session, and nothing of 2026-07-28.

mod support;

use handfast_twins::{Answers, Served, find, serve_http};
use serde_json::{Value, json};
use support::{Answer, Client, send};

async fn served() -> Served {
    serve_http(find("legacy").expect("legacy"), 0, Answers::Json).await.expect("a free port")
}

async fn post(url: &str, token: &str, session: Option<&str>, method: &str, params: Value) -> Answer {
    verb(
        url,
        "POST",
        token,
        session,
        &json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string(),
    )
    .await
}

async fn verb(url: &str, verb: &str, token: &str, session: Option<&str>, body: &str) -> Answer {
    let mut headers = vec![
        ("accept".to_owned(), "application/json, text/event-stream".to_owned()),
        ("content-type".to_owned(), "application/json".to_owned()),
        ("authorization".to_owned(), format!("Bearer {token}")),
    ];
    headers.extend(session.map(|session| ("mcp-session-id".to_owned(), session.to_owned())));
    send(url, verb, &headers, body.as_bytes()).await
}

async fn opened(url: &str, token: &str) -> String {
    let answer = post(url, token, None, "initialize", json!({"protocolVersion": "2025-11-25"})).await;
    assert_eq!(answer.status, 200);
    answer.header("mcp-session-id").expect("a session id").to_owned()
}

#[tokio::test]
async fn version_is_agreed_on() {
    let served = served().await;
    for (asked, agreed) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2024-11-05"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let answer = post(&served.url(), "alice", None, "initialize", json!({"protocolVersion": asked})).await;

        assert_eq!(answer.message()["result"]["protocolVersion"], agreed, "{asked}");
    }
}

#[tokio::test]
async fn session_is_needed_known_and_ones_own() {
    let served = served().await;
    let session = opened(&served.url(), "alice").await;
    let nearly = format!("{}0", &session[..session.len() - 1]);

    // (token, session, status)
    let cases = [
        ("alice", Some(session.as_str()), 200),
        ("alice", None, 400),
        ("alice", Some(""), 404),
        ("alice", Some("00000000000000000000000000000000"), 404),
        ("alice", Some(if nearly == session { "x" } else { &nearly }), 404),
        ("bob", Some(session.as_str()), 404),
        ("", Some(session.as_str()), 401),
    ];
    for (token, session, status) in cases {
        let answer = post(&served.url(), token, session, "tools/list", json!({})).await;

        assert_eq!(answer.status, status, "{token} {session:?}");
        assert_eq!(answer.header("mcp-session-id"), None, "{token} {session:?}");
    }
}

#[tokio::test]
async fn unknown_session_and_somebody_elses_look_the_same() {
    let served = served().await;
    let session = opened(&served.url(), "alice").await;

    let foreign = post(&served.url(), "bob", Some(&session), "tools/list", json!({})).await;
    let unknown = post(&served.url(), "bob", Some("nothing"), "tools/list", json!({})).await;

    assert_eq!((foreign.status, foreign.text()), (unknown.status, unknown.text()));
}

#[tokio::test]
async fn ended_session_stays_ended_and_a_stale_id_is_not_adopted() {
    let served = served().await;
    let session = opened(&served.url(), "alice").await;

    assert_eq!(verb(&served.url(), "DELETE", "bob", Some(&session), "").await.status, 404);
    assert_eq!(verb(&served.url(), "DELETE", "alice", None, "").await.status, 400);
    assert_eq!(verb(&served.url(), "DELETE", "alice", Some(&session), "").await.status, 204);
    assert_eq!(verb(&served.url(), "DELETE", "alice", Some(&session), "").await.status, 404);
    assert_eq!(post(&served.url(), "alice", Some(&session), "tools/list", json!({})).await.status, 404);
    let again = post(&served.url(), "alice", Some(&session), "initialize", json!({})).await;
    assert_ne!(again.header("mcp-session-id").expect("a fresh id"), session);
    assert_eq!(post(&served.url(), "alice", Some(&session), "tools/list", json!({})).await.status, 404);
}

#[tokio::test]
async fn modern_requests_are_not_understood_and_get_do_not_exist() {
    let served = served().await;
    let modern = Client::new(served.url(), "alice").request("server/discover", json!({})).await;

    assert_eq!(modern.status, 400);
    assert!(![-32020, -32021, -32022].contains(&modern.code()), "{}", modern.text());
    assert_eq!(verb(&served.url(), "GET", "alice", None, "").await.status, 405);
}

#[tokio::test]
async fn tools_work_and_carry_neither_handles_nor_states() {
    let served = served().await;
    let session = opened(&served.url(), "alice").await;
    let call = |params: Value| {
        let (url, session) = (served.url(), session.clone());
        async move { post(&url, "alice", Some(&session), "tools/call", params).await.message() }
    };

    let echoed = call(json!({"name": "echo", "arguments": {"text": "hi"}})).await;
    let who = call(json!({"name": "whoami"})).await;
    let nothing = call(json!({"name": "nothing"})).await;

    assert_eq!(echoed["result"]["content"][0]["text"], "hi");
    assert_eq!(who["result"]["content"][0]["text"], "alice");
    assert_eq!(echoed["result"].get("resultType"), None);
    assert_eq!(nothing["error"]["code"], -32602);
    let notified = verb(
        &served.url(),
        "POST",
        "alice",
        Some(&session),
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    )
    .await;
    assert_eq!(notified.status, 202);
}
