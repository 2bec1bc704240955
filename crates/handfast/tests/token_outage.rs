//! An issuer that publishes its keys slowly, not at all, too many, somewhere else, or not as keys. It is a real server,
//! and it counts how often it is asked.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{Response, StatusCode},
    routing::get,
};
use handfast::{
    clock::{Clock, ManualClock, SystemClock},
    token::{Algorithm, Jwks, JwtVerifier, TokenDenial, TokenRules, TokenVerifier},
};
use handfast_twins::issuer::{Issuer, Wish};
use tokio::{
    net::TcpListener,
    sync::{Notify, oneshot},
};

#[path = "support/child.rs"]
mod child;

const OURS: &str = "https://mcp.example.com/mcp";

/// How the keys are published.
#[derive(Debug, Clone)]
enum Manner {
    Well(String),
    Never,
    Status(u16),
    Elsewhere(String),
    Endlessly,
    /// When it is told to.
    When(Arc<Notify>, String),
    As(String),
}

struct Stand {
    manner: Mutex<Manner>,
    asked: AtomicUsize,
}

/// A place where keys are published, in a manner that can be changed.
async fn stand(manner: Manner) -> (Arc<Stand>, String) {
    let stand = Arc::new(Stand { manner: Mutex::new(manner), asked: AtomicUsize::new(0) });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/jwks", listener.local_addr().expect("an address"));
    let router = Router::new().route("/jwks", get(publish)).with_state(stand.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (stand, url)
}

async fn publish(State(stand): State<Arc<Stand>>) -> Response<Body> {
    stand.asked.fetch_add(1, Ordering::SeqCst);
    let manner = stand.manner.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let answer = Response::builder();
    match manner {
        Manner::Well(keys) | Manner::As(keys) => answer.body(Body::from(keys)),
        Manner::When(told, keys) => {
            told.notified().await;
            answer.body(Body::from(keys))
        }
        Manner::Never => std::future::pending().await,
        Manner::Status(status) => answer.status(status).body(Body::empty()),
        Manner::Elsewhere(url) => answer.status(StatusCode::FOUND).header("location", url).body(Body::empty()),
        Manner::Endlessly => {
            let more = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 4096]));
            answer.body(Body::from_stream(more))
        }
    }
    .expect("an answer")
}

impl Stand {
    fn set(&self, manner: Manner) {
        *self.manner.lock().unwrap_or_else(PoisonError::into_inner) = manner;
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

struct Scene {
    issuer: Issuer,
    stand: Arc<Stand>,
    clock: Arc<ManualClock>,
    verifier: JwtVerifier,
    token: String,
}

async fn scene(well: bool) -> Scene {
    let issuer = Issuer::start(0).await.expect("an issuer");
    let manner = if well { Manner::Well(keys(&issuer).await) } else { Manner::Status(500) };
    let (stand, url) = stand(manner).await;
    let clock = Arc::new(ManualClock::at(SystemClock.now()));
    let name = issuer.url().parse().expect("an issuer");
    let rules = TokenRules::new(name, OURS.parse().expect("one")).clock(clock.clone());
    let verifier = JwtVerifier::new(rules, &[Algorithm::Es256], Jwks::at(&url).expect("one"));
    let token = issuer.token(&Wish { lifetime: 1_000_000, ..Wish::of("alice", OURS) });
    Scene { verifier, issuer, stand, clock, token }
}

async fn keys(issuer: &Issuer) -> String {
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    client.get(issuer.jwks_url()).send().await.expect("keys").text().await.expect("text")
}

#[tokio::test]
async fn whatever_it_answers_instead_of_keys_nobody_gets_in() {
    let scene = scene(false).await;
    let real = scene.issuer.jwks_url();
    for manner in [
        Manner::Status(500),
        Manner::Status(204),
        Manner::Elsewhere(real),
        Manner::Endlessly,
        Manner::As(String::new()),
        Manner::As("<html>".into()),
        Manner::As("[]".into()),
        Manner::As(r#"{"keys":{}}"#.into()),
        Manner::As(format!("{}1", "[".repeat(100_000))),
    ] {
        scene.stand.set(manner.clone());
        scene.clock.advance(Duration::from_secs(10));
        let before = scene.stand.asked();
        assert_eq!(scene.verifier.verify(&scene.token).await, Err(TokenDenial::Unavailable), "{manner:?}");
        assert_eq!(scene.stand.asked(), before + 1, "{manner:?}");
    }
    for none in [r#"{"keys":[]}"#, r#"{"keys":[{},7,{"kty":"RSA","n":"AQAB","e":"AQAB"}]}"#] {
        scene.stand.set(Manner::As(none.into()));
        scene.clock.advance(Duration::from_secs(10));
        assert_eq!(scene.verifier.verify(&scene.token).await, Err(TokenDenial::UnknownKey), "{none}");
    }
    scene.stand.set(Manner::Well(keys(&scene.issuer).await));
    scene.clock.advance(Duration::from_secs(10));
    assert!(scene.verifier.verify(&scene.token).await.is_ok(), "when it answers again");
}

/// Time jumps to the next deadline where everybody waits.
#[tokio::test(start_paused = true)]
async fn one_that_never_answers_is_waited_for_so_long_and_no_longer() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/jwks", listener.local_addr().expect("an address"));
    let name = "https://id.example".parse().expect("one");
    let keys = Jwks::at(&url).expect("loopback");
    let verifier = JwtVerifier::new(TokenRules::new(name, OURS.parse().expect("one")), &[Algorithm::Es256], keys);
    #[expect(clippy::disallowed_methods, reason = "the time that stands still and jumps")]
    let begun = tokio::time::Instant::now();

    assert_eq!(verifier.verify("eyJhbGciOiJFUzI1NiJ9.e30.AA").await, Err(TokenDenial::Unavailable));

    let took = begun.elapsed();
    assert!(took >= Duration::from_secs(5) && took < Duration::from_secs(6), "{took:?}");
}

#[tokio::test]
async fn keys_outlive_an_outage_for_an_hour() {
    let scene = scene(true).await;
    assert!(scene.verifier.verify(&scene.token).await.is_ok());
    scene.stand.set(Manner::Status(503));

    for _ in 0..6 {
        scene.clock.advance(Duration::from_secs(9 * 60));
        assert!(scene.verifier.verify(&scene.token).await.is_ok());
    }
    assert_eq!(scene.stand.asked(), 1 + 6, "it was asked each time");
    scene.clock.advance(Duration::from_secs(6 * 60));
    assert_eq!(scene.verifier.verify(&scene.token).await, Err(TokenDenial::Unavailable), "keys of an hour ago");
}

#[tokio::test]
async fn whoever_has_a_key_that_will_do_does_not_wait() {
    let scene = scene(true).await;
    assert!(scene.verifier.verify(&scene.token).await.is_ok());
    scene.stand.set(Manner::Never);
    scene.clock.advance(Duration::from_secs(6 * 60));
    let verifier = Arc::new(scene.verifier);
    let (one, token) = (verifier.clone(), scene.token.clone());
    let (done, mut waits) = oneshot::channel();
    tokio::spawn(async move { done.send(one.verify(&token).await) });
    while scene.stand.asked() < 2 {
        tokio::task::yield_now().await;
    }

    assert!(verifier.verify(&scene.token).await.is_ok());
    assert!(waits.try_recv().is_err(), "the one that asks waits still");
}

#[tokio::test]
async fn keys_that_nobody_has_do_not_make_it_asked_more_often() {
    let scene = scene(true).await;
    assert!(scene.verifier.verify(&scene.token).await.is_ok());
    for n in 0..100 {
        let header = [("kid".to_owned(), format!("k{n}").into())].into();
        let token = scene.issuer.token(&Wish { header, ..Wish::of("alice", OURS) });
        assert_eq!(scene.verifier.verify(&token).await, Err(TokenDenial::UnknownKey));
    }
    assert_eq!(scene.stand.asked(), 1);
    scene.clock.advance(Duration::from_secs(10));
    let verifier = &scene.verifier;
    let tokens: Vec<String> = (0..50)
        .map(|n| {
            let header = [("kid".to_owned(), format!("k{n}").into())].into();
            scene.issuer.token(&Wish { header, ..Wish::of("alice", OURS) })
        })
        .collect();
    let all = tokens.iter().map(|token| verifier.verify(token));
    for answer in futures_util::future::join_all(all).await {
        assert_eq!(answer, Err(TokenDenial::UnknownKey));
    }
    assert_eq!(scene.stand.asked(), 2, "of many at once one asks");
}

/// Whoever asks and goes does not take the question along: it is asked once, and the answer is for those who come after.
#[tokio::test]
async fn a_question_outlives_whoever_asked_it() {
    let scene = scene(false).await;
    let told = Arc::new(Notify::new());
    scene.stand.set(Manner::When(told.clone(), keys(&scene.issuer).await));
    for _ in 0..30 {
        let mut going = Box::pin(scene.verifier.verify(&scene.token));
        while scene.stand.asked() == 0 {
            assert!(futures_util::poll!(&mut going).is_pending());
            tokio::task::yield_now().await;
        }
        assert!(futures_util::poll!(&mut going).is_pending(), "it waits for the one question");
    }
    assert_eq!(scene.stand.asked(), 1);
    told.notify_one();
    assert!(scene.verifier.verify(&scene.token).await.is_ok());
    assert_eq!(scene.stand.asked(), 1);
}

/// What is in clear stays on this machine, whatever proxy the environment names.
#[tokio::test]
async fn no_proxy_is_asked_for_keys_on_this_machine() {
    if let Some(proxy) = child::told() {
        let scene = scene(true).await;
        assert!(scene.verifier.verify(&scene.token).await.is_ok());
        assert!(!proxy.is_empty());
        child::tell("verified");
        return;
    }
    let (proxy, url) = stand(Manner::As("{}".into())).await;
    let origin = url.trim_end_matches("/jwks").to_owned();
    let mut program = std::process::Command::new(std::env::current_exe().expect("this program"));
    program.env("HTTP_PROXY", &origin).env("http_proxy", &origin).env_remove("NO_PROXY").env_remove("no_proxy");
    let mut command = child::by(program, "no_proxy_is_asked_for_keys_on_this_machine", &origin);
    let output = tokio::task::spawn_blocking(move || command.output()).await.expect("it ends").expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("verified"), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(proxy.asked(), 0);
}
