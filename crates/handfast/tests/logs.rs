//! What the log says to whoever has put a server together wrongly: what is wrong, where, and nothing of any token.

#[path = "support/log.rs"]
mod log;

use std::sync::Arc;

use axum::{Router, routing::post};
use handfast::{
    JsonLines, Keys,
    clock::SystemClock,
    http::{BearerLayer, SessionLayer},
    session::{SessionAuthority, SessionOptions, SessionSetup},
    store::MemoryStore,
    token::{Algorithm, Jwks, JwtVerifier, ProtectedResource, TokenDenial, TokenRules, TokenVerifier},
};
use handfast_twins::issuer::{Issuer, Wish};
use log::Log;
use tokio::net::TcpListener;
use tracing::{Level, subscriber::set_default};

const OURS: &str = "https://mcp.example.com/mcp";

fn verifier(issuer: &str, audience: &str, keys: &str) -> JwtVerifier {
    let rules = TokenRules::new(issuer.parse().expect("an issuer"), audience.parse().expect("an audience"));
    JwtVerifier::new(rules, &[Algorithm::Es256], Jwks::at(keys).expect("loopback"))
}

#[tokio::test]
async fn keys_that_cannot_be_had_are_warned_of_with_their_place_and_the_cause() {
    let (log, issuer) = (Log::default(), Issuer::start(0).await.expect("an issuer"));
    let _guard = set_default(log.clone());
    let token = issuer.token(&Wish::of("alice", OURS));
    // A port that was free a moment ago.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let nobody = format!("http://{closed}/jwks");
    for (keys, why) in [
        (nobody.as_str(), "onnect"),
        (&format!("{}/nothing", issuer.url()), "it answers with HTTP 404"),
        (&format!("{}/.well-known/openid-configuration", issuer.url()), "it answers no set of keys"),
    ] {
        let verifier = verifier(issuer.url(), OURS, &format!("{keys}?secret=s3cret"));
        assert_eq!(verifier.verify(&token).await, Err(TokenDenial::Unavailable));

        let said = log.at(Level::WARN).pop().expect("a warning");
        assert!(said.contains(keys) && said.contains(why), "{said}");
        assert!(!said.contains("s3cret") && !said.contains(&token), "{said}");
    }
}

#[tokio::test]
async fn what_a_token_should_have_said_is_told_and_nothing_of_it() {
    let (log, issuer) = (Log::default(), Issuer::start(0).await.expect("an issuer"));
    let _guard = set_default(log.clone());
    let token = issuer.token(&Wish::of("alice", "https://other.example/secret"));
    let keys = issuer.jwks_url();
    let slashed = format!("{}/", issuer.url());
    for (name, denial, expected) in [
        (slashed.as_str(), TokenDenial::Issuer, format!("expected=\"{slashed}\"")),
        (issuer.url(), TokenDenial::Audience, format!("expected=\"{OURS}\"")),
    ] {
        assert_eq!(verifier(name, OURS, &keys).verify(&token).await, Err(denial));

        let said = log.at(Level::DEBUG).pop().expect("a line");
        assert!(said.contains(&expected), "{said}");
        assert!(!said.contains("other.example") && !said.contains("alice"), "{said}");
    }
}

#[tokio::test]
async fn layers_the_wrong_way_round_are_told_of() {
    let (log, issuer) = (Log::default(), Issuer::start(0).await.expect("an issuer"));
    let _guard = set_default(log.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let audience: handfast::Audience = url.parse().expect("an audience");
    let resource = ProtectedResource::new(audience.clone(), vec![issuer.url().parse().expect("an issuer")]);
    let verifier = verifier(issuer.url(), &url, &issuer.jwks_url());
    let bearer = BearerLayer::new(Arc::new(verifier), resource.expect("a URL"));
    let sessions = SessionAuthority::new(SessionSetup {
        store: Arc::new(MemoryStore::new(Arc::new(SystemClock))),
        keys: Keys::dangerous_for_this_process_only(),
        audience,
        audit: Arc::new(JsonLines::new(std::io::sink())),
        options: SessionOptions::default(),
    });
    let app =
        Router::new().route("/mcp", post(async || "never")).layer(bearer).layer(SessionLayer::new(Arc::new(sessions)));
    tokio::spawn(async move { axum::serve(listener, app).await });

    let asked = reqwest::Client::new().post(&url).bearer_auth(issuer.token(&Wish::of("alice", &url)));
    assert_eq!(asked.send().await.expect("an answer").status(), 401);

    let said = log.at(Level::WARN);
    assert!(said.len() == 1 && said[0].contains("BearerLayer must be outside of SessionLayer"), "{said:?}");
}

/// What is no address of a server would lead clients nowhere.
#[test]
fn a_resource_is_the_whole_url_of_a_server() {
    let issuer = || vec!["https://id.example".parse().expect("an issuer")];
    for good in [OURS, "http://127.0.0.1:8080/mcp", "https://h", "HTTPS://h/"] {
        assert!(ProtectedResource::new(good.parse().expect("an audience"), issuer()).is_ok(), "{good}");
    }
    for bad in
        ["nonsense", "a b", "api://default", "https://h/mcp#x", "https://u@h/", "mcp.example.com/mcp", "https://"]
    {
        let Ok(audience) = bad.parse() else { continue };
        let error = ProtectedResource::new(audience, issuer()).expect_err(bad).to_string();
        assert!(error.contains(bad) && error.contains("https://mcp.example.com/mcp"), "{error}");
    }
    let error = Jwks::at("nonsense").expect_err("no URL").to_string();
    assert!(error.contains("`nonsense` is not a URL"), "{error}");
}
