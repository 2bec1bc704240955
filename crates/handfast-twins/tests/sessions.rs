//! The twins with sessions over HTTP: the sound one guards each verb, and each flaw leaves out one guard and no other.

mod support;

use std::collections::BTreeSet;

use handfast_twins::{Answers, Served, all, find, serve_http};
use serde_json::{Value, json};
use support::{Answer, send};

const UNKNOWN: &str = "00000000000000000000000000000000";

struct Scene {
    served: Served,
    alice: String,
}

impl Scene {
    /// A twin with one session of alice's that holds a note.
    async fn of(name: &str) -> Self {
        let served = serve_http(find(name).expect("a twin"), 0, Answers::Json).await.expect("a free port");
        let mut scene = Self { served, alice: String::new() };
        scene.alice = scene.opened("alice", None).await;
        scene.call("alice", Some(&scene.alice), "remember", json!({"text": "a note of alice"})).await;
        scene
    }

    async fn verb(&self, verb: &str, token: &str, session: Option<&str>, body: &str) -> Answer {
        let mut headers = vec![
            ("accept".to_owned(), "application/json, text/event-stream".to_owned()),
            ("content-type".to_owned(), "application/json".to_owned()),
            ("authorization".to_owned(), format!("Bearer {token}")),
        ];
        headers.extend(session.map(|session| ("mcp-session-id".to_owned(), session.to_owned())));
        send(&self.served.url(), verb, &headers, body.as_bytes()).await
    }

    async fn post(&self, token: &str, session: Option<&str>, method: &str, params: Value) -> Answer {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        self.verb("POST", token, session, &body).await
    }

    async fn opened(&self, token: &str, presented: Option<&str>) -> String {
        let answer = self.post(token, presented, "initialize", json!({"protocolVersion": "2025-11-25"})).await;
        answer.header("mcp-session-id").expect("a session id").to_owned()
    }

    async fn call(&self, token: &str, session: Option<&str>, tool: &str, arguments: Value) -> Answer {
        self.post(token, session, "tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// What a tool says in a session, or the status of the refusal.
    async fn said(&self, token: &str, session: Option<&str>, tool: &str) -> Result<String, u16> {
        let answer = self.call(token, session, tool, json!({})).await;
        let text = |answer: &Answer| answer.message()["result"]["content"][0]["text"].as_str().map(str::to_owned);
        (answer.status == 200).then(|| text(&answer)).flatten().ok_or(answer.status)
    }

    /// Every guard that does not hold.
    async fn broken(&self) -> BTreeSet<&'static str> {
        let mut broken = BTreeSet::new();
        let mut held = |guard: &'static str, holds: bool| {
            if !holds {
                broken.insert(guard);
            }
        };
        let alice = Some(self.alice.as_str());
        held("missing alone", self.said("alice", None, "recall").await == Err(400));
        let bob = self.opened("bob", None).await;
        held("missing", self.said("alice", None, "recall").await == Err(400));
        for _ in 0..2 {
            held("unknown", self.said("alice", Some(UNKNOWN), "recall").await == Err(404));
        }
        held("minted", self.post("alice", Some(UNKNOWN), "ping", json!({})).await.header("mcp-session-id").is_none());
        held("presented", self.opened("alice", Some("chosen")).await != "chosen");
        held("post", self.said("bob", alice, "recall").await.is_err());
        held("write", self.call("bob", alice, "remember", json!({"text": "of bob"})).await.status != 200);
        held("listing", self.post("bob", alice, "tools/list", json!({})).await.status != 200);
        held("get", self.verb("GET", "bob", alice, "").await.status != 200);
        held("oracle", self.said("bob", alice, "recall").await != Err(403));
        held("token", self.said("expired-alice", alice, "whoami").await == Err(401));
        held("audience", self.said("elsewhere-alice", alice, "whoami").await == Err(401));
        held("delete", self.verb("DELETE", "bob", alice, "").await.status != 204);
        held("ids", bob.len() == 32);
        let health = send(&self.served.url().replace("/mcp", "/health"), "GET", &[], b"").await;
        held("health", !health.text().contains(&bob));
        held("end", {
            let ended = self.opened("alice", None).await;
            self.verb("DELETE", "alice", Some(&ended), "").await;
            self.said("alice", Some(&ended), "recall").await != Ok("nothing is kept".to_owned())
        });
        broken
    }
}

#[tokio::test]
async fn a_session_remembers_and_acts_as_whoever_opened_it() {
    let scene = Scene::of("sessions").await;
    let (alice, bob) = (Some(scene.alice.as_str()), scene.opened("bob", None).await);

    assert_eq!(scene.said("alice", alice, "recall").await, Ok("a note of alice".to_owned()));
    assert_eq!(scene.said("alice", alice, "whoami").await, Ok("alice".to_owned()));
    assert_eq!(scene.said("bob", Some(&bob), "recall").await, Ok("nothing is kept".to_owned()));
    assert_eq!(scene.verb("GET", "alice", alice, "").await.header("content-type"), Some("text/event-stream"));
    assert_eq!(scene.verb("DELETE", "alice", alice, "").await.status, 204);
    for verb in ["GET", "DELETE"] {
        assert_eq!(scene.verb(verb, "alice", alice, "").await.status, 404, "{verb}");
    }
    assert_eq!(scene.said("alice", alice, "recall").await, Err(404));
    assert_eq!(scene.post("expired-alice", None, "initialize", json!({})).await.status, 401);
}

#[tokio::test]
async fn each_flaw_leaves_out_one_guard_and_no_other() {
    for (twin, guards) in [
        ("sessions", &[][..]),
        ("dual-era", &[]),
        ("one-session-each", &[]),
        ("revives-unknown", &["unknown"]),
        ("adopts-unknown", &["unknown"]),
        ("adopts-client-id", &["presented"]),
        ("mints-on-refusal", &["minted"]),
        ("adopts-on-refusal", &["unknown"]),
        ("unbound-writes", &["write"]),
        ("unbound-listing", &["listing"]),
        ("unbound-get", &["get"]),
        ("unbound-delete", &["delete"]),
        ("missing-accepted", &["missing", "missing alone"]),
        ("single-session-fallback", &["missing alone"]),
        ("counter-ids", &["ids"]),
        ("encoded-counter-ids", &["ids"]),
        ("unverified-ids", &["ids"]),
        ("pointer-ids", &["ids"]),
        ("timestamp-ids", &["ids"]),
        ("health-lists-sessions", &["health"]),
        ("checks-token-once", &["token"]),
        ("known-tokens", &[]),
        ("checks-audience-once", &["audience"]),
        ("unknown-is-bad-request", &["unknown"]),
        ("unknown-is-unauthorized", &["unknown"]),
        ("unknown-is-ok", &["unknown"]),
        ("session-oracle", &["oracle"]),
    ] {
        let broken = Scene::of(twin).await.broken().await;

        // An ended session is an unknown one, and what is said of those goes for it.
        let wanted: BTreeSet<&str> = guards.iter().copied().collect();
        let broken: BTreeSet<&str> = broken.into_iter().filter(|guard| *guard != "end" || wanted.is_empty()).collect();
        assert_eq!(broken, wanted, "{twin}");
    }
    for twin in ["unbound-sessions", "dual-era-unbound"] {
        assert_eq!(
            Scene::of(twin).await.broken().await,
            BTreeSet::from(["post", "write", "listing", "get", "delete"]),
            "{twin}"
        );
    }
    assert_eq!(Scene::of("outlives-delete").await.broken().await, BTreeSet::from(["end"]));
}

#[tokio::test]
async fn a_signature_that_nobody_verifies_may_be_any() {
    let scene = Scene::of("unverified-ids").await;
    let (id, signature) = scene.alice.split_once('.').expect("a signature");

    let other = format!("{id}.{}", "0".repeat(signature.len()));
    assert_eq!(scene.said("alice", Some(&other), "recall").await, Ok("a note of alice".to_owned()));
    assert_eq!(scene.said("alice", Some(&format!("{UNKNOWN}.{signature}")), "recall").await, Err(404));
}

#[tokio::test]
async fn two_replicas_know_a_session_by_turns() {
    let served = serve_http(find("two-replicas").expect("a twin"), 0, Answers::Json).await.expect("a free port");
    let scene = Scene { served, alice: String::new() };
    let session = scene.opened("alice", None).await;

    for _ in 0..2 {
        assert_eq!(scene.said("alice", Some(&session), "recall").await, Err(404));
        assert_eq!(scene.said("alice", Some(&session), "recall").await, Ok("nothing is kept".to_owned()));
    }
}

#[tokio::test]
async fn listings_are_byte_identical() {
    let mut bodies = BTreeSet::new();
    let first = all().iter().position(|twin| twin.name == "sessions").expect("it is listed");
    for twin in &all()[first..] {
        let served = serve_http(twin, 0, Answers::Json).await.expect("a free port");
        let scene = Scene { served, alice: String::new() };
        let session = scene.opened("alice", None).await;
        let mut listed = scene.post("alice", Some(&session), "tools/list", json!({})).await;
        if twin.name == "two-replicas" {
            listed = scene.post("alice", Some(&session), "tools/list", json!({})).await;
        }
        assert_eq!(listed.status, 200, "{}", twin.name);
        bodies.insert(listed.body);
    }

    assert_eq!(bodies.len(), 1);
}
