//! An issuer of access tokens on this machine, for tests and demonstrations: it gives anybody any token. It signs with
//! ES256, publishes its keys, answers introspection, and can exchange its key.
//!
//! Whoever listens on loopback could pretend to be it, and its keys end with it. No real server may trust it.

mod serve;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::Ipv4Addr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};
use jsonwebtoken::{Algorithm, EncodingKey, Header, jwk::Jwk};
use serde_json::{Map, Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::workspaces::random_hex;

/// An issuer that is being served. Dropping it stops it.
pub struct Issuer {
    desk: Arc<Desk>,
    task: JoinHandle<()>,
}

/// What the issuer has in its desk.
struct Desk {
    url: String,
    secret: String,
    keys: Mutex<Keys>,
    revoked: Mutex<BTreeSet<String>>,
}

struct Keys {
    current: Key,
    /// Published still, but nothing new is signed with it.
    former: Option<Key>,
    /// Never published: what somebody else would sign with.
    foreign: Key,
}

#[derive(Clone)]
struct Key {
    id: String,
    signing: EncodingKey,
    public: Value,
}

/// A token that somebody would like to have.
#[derive(Debug, Clone, PartialEq)]
pub struct Wish {
    /// Whose it is.
    pub subject: String,
    /// To which OAuth client it is issued.
    pub client: String,
    /// For whom: a text or a list of them; null for a token without an audience.
    pub audience: Value,
    /// What it allows, with spaces between.
    pub scope: Option<String>,
    /// How many seconds it lives; one with less than none has expired.
    pub lifetime: i64,
    /// Whether it is signed with a key that the issuer has not published.
    pub foreign_key: bool,
    /// Further claims, or others in the place of those.
    pub claims: Map<String, Value>,
    /// Further members of its header, or others in the place of those.
    pub header: BTreeMap<String, Value>,
}

impl Wish {
    /// A good token of this subject for this server, for an hour.
    #[must_use]
    pub fn of(subject: &str, audience: &str) -> Self {
        Self {
            subject: subject.to_owned(),
            client: "demo-client".to_owned(),
            audience: audience.into(),
            scope: None,
            lifetime: 3600,
            foreign_key: false,
            claims: Map::from_iter([("tenant".to_owned(), TENANT.into())]),
            header: BTreeMap::new(),
        }
    }
}

/// The tenant that users belong to, unless somebody wishes another: the claim `tenant`.
const TENANT: &str = "demo";

impl Issuer {
    /// Serves an issuer on 127.0.0.1. Port 0 takes any free port.
    ///
    /// # Errors
    /// The port cannot be had, or no key could be made.
    pub async fn start(port: u16) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let url = format!("http://127.0.0.1:{}", listener.local_addr()?.port());
        let keys = Keys { current: Key::new()?, former: None, foreign: Key::new()? };
        let desk = Desk { url, secret: random_hex(), keys: Mutex::new(keys), revoked: Mutex::default() };
        let desk = Arc::new(desk);
        let router = serve::router(Arc::clone(&desk));
        let task = tokio::spawn(async move {
            // The listener is bound; what can fail is a single connection.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { desk, task })
    }

    /// Its name: the `iss` of its tokens, and where it listens.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.desk.url
    }

    /// Where its keys are published.
    #[must_use]
    pub fn jwks_url(&self) -> String {
        format!("{}/jwks", self.desk.url)
    }

    /// The secret of every client, for the token endpoint and for introspection.
    #[must_use]
    pub fn client_secret(&self) -> &str {
        &self.desk.secret
    }

    /// A token, as wished.
    #[must_use]
    pub fn token(&self, wish: &Wish) -> String {
        self.desk.token(wish)
    }

    /// Signs with a new key from now on. The one before stays published, the one before that does not.
    ///
    /// # Errors
    /// No key could be made.
    pub fn rotate(&self) -> std::io::Result<()> {
        self.desk.rotate()
    }

    /// Says of this token from now on that it is not active, to those who ask.
    pub fn revoke(&self, token: &str) {
        self.desk.revoked().insert(token.to_owned());
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Issuer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Issuer({})", self.desk.url)
    }
}

impl Desk {
    fn token(&self, wish: &Wish) -> String {
        let keys = self.keys();
        let key = if wish.foreign_key { &keys.foreign } else { &keys.current };
        let now = seconds_now();
        let mut claims = json!({
            "iss": self.url, "sub": wish.subject, "client_id": wish.client, "iat": now, "exp": now.saturating_add(wish.lifetime),
            "jti": random_hex(),
        });
        if !wish.audience.is_null() {
            claims["aud"] = wish.audience.clone();
        }
        if let Some(scope) = &wish.scope {
            claims["scope"] = scope.as_str().into();
        }
        for (name, value) in &wish.claims {
            claims[name.as_str()] = value.clone();
        }
        // What somebody else signs says that it is ours.
        let mut header = json!({"alg": "ES256", "typ": "at+jwt", "kid": keys.current.id});
        for (name, value) in &wish.header {
            header[name.as_str()] = value.clone();
        }
        key.signed(&header, &claims)
    }

    fn rotate(&self) -> std::io::Result<()> {
        let new = Key::new()?;
        let mut keys = self.keys();
        keys.former = Some(std::mem::replace(&mut keys.current, new));
        Ok(())
    }

    /// What is published.
    fn jwks(&self) -> Value {
        let keys = self.keys();
        let published: Vec<&Value> =
            std::iter::once(&keys.current).chain(&keys.former).map(|key| &key.public).collect();
        json!({"keys": published})
    }

    fn keys(&self) -> MutexGuard<'_, Keys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn revoked(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.revoked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Key {
    fn new() -> std::io::Result<Self> {
        let failed = |what: &str| std::io::Error::other(format!("no key could be made: {what}"));
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
            .map_err(|_| failed("the system gives none"))?;
        let (signing, id) = (EncodingKey::from_ec_der(pair.as_ref()), random_hex());
        let public = Jwk::from_encoding_key(&signing, Algorithm::ES256).map_err(|error| failed(&error.to_string()))?;
        let mut public = serde_json::to_value(public)?;
        public["kid"] = id.as_str().into();
        public["use"] = "sig".into();
        Ok(Self { id, signing, public })
    }

    /// Signs any header, also one that no library would write.
    fn signed(&self, header: &Value, claims: &Value) -> String {
        use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
        let part = |json: &Value| URL_SAFE_NO_PAD.encode(json.to_string());
        let message = format!("{}.{}", part(header), part(claims));
        let signed = jsonwebtoken::crypto::sign(message.as_bytes(), &self.signing, Header::new(Algorithm::ES256).alg);
        format!("{message}.{}", signed.unwrap_or_default())
    }
}

/// The claims of one of our own tokens, without a look at its signature.
fn claims_of(token: &str) -> Option<Map<String, Value>> {
    jsonwebtoken::dangerous::insecure_decode::<Map<String, Value>>(token).ok().map(|data| data.claims)
}

#[expect(clippy::disallowed_methods, reason = "tokens of a real clock")]
fn seconds_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
