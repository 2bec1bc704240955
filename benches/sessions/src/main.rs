//! What the layers add to a request, in one run: sessions in front of a server that answers at once, and the verification of
//! a token whose issuer's keys are known. Prints medians and ratios; asserts nothing.

use std::{
    convert::Infallible,
    future::Future,
    hint::black_box,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ED25519, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
        UnparsedPublicKey,
    },
};
use axum_core::body::Body;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use handfast::{
    Audience, Caller, ClientId, DangerousNoAudit, Issuer, Keys, Principal,
    clock::SystemClock,
    http::SessionLayer,
    session::{SessionAuthority, SessionOptions, SessionSetup},
    store::MemoryStore,
    token::{Algorithm, Jwks, JwtVerifier, TokenRules, TokenVerifier},
};
use http::{Request, Response};
use serde_json::json;
use tower_layer::Layer;
use tower_service::Service;

const OURS: &str = "https://mcp.example.com/mcp";
const MESSAGE: &str =
    r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"remember","arguments":{"text":"milk"}}}"#;
const ROUNDS: usize = 25;
const CALLS: usize = 400;

/// Answers at once, and hands out a session where one is begun.
#[derive(Clone)]
struct Instantly;

impl Service<Request<Body>> for Instantly {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let begins = !request.headers().contains_key("mcp-session-id");
        Box::pin(async move {
            let mut response = Response::new(Body::from(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#));
            if begins {
                response
                    .headers_mut()
                    .insert("mcp-session-id", "0123456789abcdef0123456789abcdef".parse().expect("a value"));
            }
            Ok(response)
        })
    }
}

fn caller() -> Caller {
    let principal = Principal::new(Issuer::new("https://id.example.com").expect("an issuer"), "alice@example.com");
    Caller::trusted(principal.expect("a principal"))
        .by_client(ClientId::new("https://app.example.com/client.json").expect("a client"))
        .for_audience(OURS.parse().expect("an audience"))
}

fn request(session: &str, message: &'static str, caller: &Caller) -> Request<Body> {
    let mut request = Request::post("/mcp").header("content-type", "application/json");
    if !session.is_empty() {
        request = request.header("mcp-session-id", session);
    }
    let mut request = request.body(Body::from(message)).expect("a request");
    request.extensions_mut().insert(caller.clone());
    request
}

/// The median of single calls, in nanoseconds.
async fn timed<S>(service: &mut S, session: &str, caller: &Caller) -> u128
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let request = request(session, MESSAGE, caller);
        let begun = Instant::now();
        let answer = service.call(request).await.expect("an answer");
        times.push(begun.elapsed().as_nanos());
        assert_eq!(black_box(answer).status(), 200);
    }
    median(times)
}

fn median(mut times: Vec<u128>) -> u128 {
    times.sort_unstable();
    times[times.len() / 2]
}

/// A token, a verifier that knows its key, and the bare verification of the same signature.
struct Signed {
    token: String,
    verifier: JwtVerifier,
    bare: Box<dyn Fn()>,
}

fn signed(algorithm: Algorithm) -> Signed {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let claims = json!({
        "iss": "https://id.example.com", "sub": "alice@example.com", "aud": OURS, "client_id": "https://app.example.com/client.json",
        "iat": now, "exp": now + 3600, "jti": "0123456789abcdef0123456789abcdef", "scope": "mcp:tools mcp:read"
    });
    let header = json!({"alg": algorithm.name(), "typ": "at+jwt", "kid": "1"});
    let part = |json: &serde_json::Value| URL_SAFE_NO_PAD.encode(json.to_string());
    let message = format!("{}.{}", part(&header), part(&claims));
    let bytes = message.clone().into_bytes();
    let (signature, key, bare): (Vec<u8>, _, Box<dyn Fn()>) = if algorithm == Algorithm::EdDsa {
        let pair = Ed25519KeyPair::generate().expect("a key");
        let (signature, public) = (pair.sign(&bytes).as_ref().to_vec(), pair.public_key().as_ref().to_vec());
        let key = json!({"kty": "OKP", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode(&public), "kid": "1"});
        let tag = signature.clone();
        (
            signature,
            key,
            Box::new(move || UnparsedPublicKey::new(&ED25519, &public).verify(&bytes, &tag).expect("good")),
        )
    } else {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
        let signature = pair.sign(&SystemRandom::new(), &bytes).expect("signed").as_ref().to_vec();
        let public = pair.public_key().as_ref().to_vec();
        let half = |from: usize| URL_SAFE_NO_PAD.encode(&public[from..from + 32]);
        let key = json!({"kty": "EC", "crv": "P-256", "x": half(1), "y": half(33), "kid": "1"});
        let tag = signature.clone();
        let verify =
            move || UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &public).verify(&bytes, &tag).expect("good");
        (signature, key, Box::new(verify))
    };
    let token = format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature));
    let (issuer, audience) = ("https://id.example.com".parse().expect("one"), OURS.parse().expect("one"));
    let verifier = JwtVerifier::new(TokenRules::new(issuer, audience), &[algorithm], Jwks::fixed(&json!({"keys": [key]}).to_string()).expect("a key"));
    Signed { token, verifier, bare }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let audience: Audience = OURS.parse().expect("an audience");
    let authority = SessionAuthority::new(SessionSetup {
        store: Arc::new(MemoryStore::new(Arc::new(SystemClock))),
        keys: Keys::dangerous_for_this_process_only(),
        audience,
        audit: Arc::new(DangerousNoAudit),
        options: SessionOptions { most: 20_000, ..SessionOptions::default() },
    });
    let (mut guarded, mut plain, caller) =
        (SessionLayer::new(Arc::new(authority)).layer(Instantly), Instantly, caller());
    let begin = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
    let answer = guarded.call(request("", begin, &caller)).await.expect("an answer");
    let session = answer.headers()["mcp-session-id"].to_str().expect("ASCII").to_owned();

    let kinds = [("ES256", signed(Algorithm::Es256)), ("EdDSA", signed(Algorithm::EdDsa))];
    let mut columns: Vec<Vec<u128>> = vec![Vec::new(); 6];
    for _ in 0..ROUNDS {
        columns[0].push(timed(&mut guarded, &session, &caller).await);
        columns[1].push(timed(&mut plain, "given", &caller).await);
        for (at, (_, kind)) in kinds.iter().enumerate() {
            let (mut ours, mut bare) = (Vec::new(), Vec::new());
            for _ in 0..CALLS / 4 {
                let begun = Instant::now();
                black_box(kind.verifier.verify(&kind.token).await.expect("good"));
                ours.push(begun.elapsed().as_nanos());
                let begun = Instant::now();
                (kind.bare)();
                bare.push(begun.elapsed().as_nanos());
            }
            columns[2 + 2 * at].push(median(ours));
            columns[3 + 2 * at].push(median(bare));
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("medians of {ROUNDS} rounds; load average {}\n", load.split(' ').next().unwrap_or("unknown"));
    println!("{:<52} {:>11} {:>11} {:>7}  target", "", "ours", "floor", "ratio");
    let medians: Vec<u128> = columns.into_iter().map(median).collect();
    for (at, name, target) in [
        (0, "a request in a session, guarded / not guarded", "< 20,000 ns more"),
        (2, "an ES256 token verified / its bare signature", "< 100,000 ns"),
        (4, "an EdDSA token verified / its bare signature", "< 100,000 ns"),
    ] {
        let (ours, floor) = (medians[at], medians[at + 1]);
        #[allow(clippy::cast_precision_loss)]
        let ratio = ours as f64 / floor.max(1) as f64;
        println!("{name:<52} {ours:>8} ns {floor:>8} ns {ratio:>7.2}  {target}");
    }
}
