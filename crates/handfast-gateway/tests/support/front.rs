//! A gateway in front of a twin, over real HTTP, with tokens of a real issuer.
#![allow(dead_code, reason = "each test file uses its part of this")]

use std::{sync::Arc, time::Duration};

use handfast::{
    Audience, DangerousNoAudit, Keys,
    clock::SystemClock,
    http::SessionLayer,
    session::{SessionAuthority, SessionOptions, SessionSetup},
    store::{MemoryStore, Store},
    token::{Algorithm, Jwks, JwtVerifier, ProtectedResource, TokenRules},
};
use handfast_gateway::{
    App, Defaults, Gateway, Listening, Options, Rules, Setup, Who, serve,
    upstream::{HttpUpstream, Identity, Upstream},
};
use handfast_twins::issuer::{Issuer, Wish};
use tokio::{net::TcpListener, sync::oneshot};

/// The server, as tokens name it.
pub(crate) const OURS: &str = "https://mcp.example.com/mcp";

pub(crate) fn defaults() -> Defaults {
    Defaults {
        lifetime: Duration::from_secs(3600),
        idle: None,
        bound: ["principal", "tenant", "client"].map(str::to_owned).to_vec(),
    }
}

/// A running gateway; it ends when this is dropped.
pub(crate) struct Running {
    pub(crate) url: String,
    _ends: oneshot::Sender<()>,
}

pub(crate) struct Parts {
    pub(crate) rules: Rules,
    pub(crate) upstream: Arc<dyn Upstream>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) keys: Keys,
    pub(crate) options: Options,
}

impl Parts {
    /// In front of a server that is told the subject as its bearer token.
    pub(crate) fn new(rules: &str, url: &str) -> Self {
        let identity = Identity { header: http::header::AUTHORIZATION, value: "Bearer {subject}".to_owned() };
        Self::before(rules, Arc::new(HttpUpstream::new(url, None, Some(identity)).expect("an upstream")))
    }

    /// In front of this one.
    pub(crate) fn before(rules: &str, upstream: Arc<dyn Upstream>) -> Self {
        Self {
            rules: Rules::from_toml(rules, &defaults()).expect("rules"),
            upstream,
            store: Arc::new(MemoryStore::new(Arc::new(SystemClock))),
            keys: Keys::dangerous_for_this_process_only(),
            options: Options::default(),
        }
    }

    pub(crate) async fn start(self, issuer: &Issuer) -> Running {
        let Self { rules, upstream, store, keys, options } = self;
        let audience: Audience = OURS.parse().expect("an audience");
        let name: handfast::Issuer = issuer.url().parse().expect("an issuer");
        let tokens = TokenRules::new(name.clone(), audience.clone()).tenant_claim("tenant");
        let jwks = Jwks::at(&issuer.jwks_url()).expect("loopback");
        let verifier = JwtVerifier::new(tokens, &[Algorithm::Es256], jwks);
        let server = ProtectedResource::new(audience.clone(), vec![name]).expect("a URL");
        let sessions = SessionAuthority::new(SessionSetup {
            store: store.clone(),
            keys: keys.clone(),
            audience: audience.clone(),
            audit: Arc::new(DangerousNoAudit),
            options: SessionOptions::default(),
        });
        let sessions = SessionLayer::new(Arc::new(sessions)).asking_every(Duration::from_millis(20));
        let gateway =
            Gateway::new(Setup { rules, upstream, store, keys, audience, audit: Arc::new(DangerousNoAudit), options });
        let app = App::new(Who::Tokens(Arc::new(verifier), server), Some(sessions), gateway.expect("a gateway"));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let (ends, ended) = oneshot::channel::<()>();
        let (_, apps) = tokio::sync::watch::channel(app);
        tokio::spawn(serve(listener, apps, Listening::default(), async { drop(ended.await) }));
        Running { url, _ends: ends }
    }
}

/// A good token of this user.
pub(crate) fn token(issuer: &Issuer, subject: &str) -> String {
    issuer.token(&Wish::of(subject, OURS))
}
