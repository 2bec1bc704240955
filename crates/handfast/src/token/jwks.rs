//! The issuer's public keys, as it publishes them (RFC 7517), kept for a while.

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use jsonwebtoken::{
    DecodingKey,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse},
};
use reqwest::Url;
use serde_json::Value;

use super::{
    Algorithm, FetchError, TokenDenial,
    fetch::{self, Address, NoAnswer},
};
use crate::{
    caller::Issuer,
    clock::{Timestamp, later},
};

/// How long keys are used before the issuer is asked again.
const FRESH: Duration = Duration::from_secs(5 * 60);
/// How long they are used at most while the issuer does not answer.
const STALE: Duration = Duration::from_secs(60 * 60);
/// How long the issuer is left alone after it was asked, whatever keys are shown meanwhile.
const REST: Duration = Duration::from_secs(10);
/// How many keys are read of a set.
const MOST_KEYS: usize = 100;

/// The keys of one issuer: from an address, asked when they are needed, or as they are.
///
/// They are used for 5 minutes, then asked for again; while the issuer does not answer, for an hour. A key that is not
/// among them makes the issuer be asked again, but never more often than every 10 seconds. A question goes on when whoever
/// has asked it is gone.
#[derive(Clone)]
pub struct Jwks(Arc<Shared>);

struct Shared {
    source: Source,
    known: RwLock<Arc<Known>>,
    asking: Arc<tokio::sync::Mutex<()>>,
}

/// Where keys come from.
enum Source {
    /// They are as they are.
    Nowhere,
    /// This address.
    At(Address),
    /// The address that the issuer names in its metadata, which are at one of these.
    Issuer(Issuer, Vec<Address>),
}

/// What is known of the issuer's keys.
#[derive(Default, Clone)]
struct Known {
    keys: Arc<[Published]>,
    fetched: Option<Timestamp>,
    asked: Option<Timestamp>,
}

/// One key that was published, for one purpose.
struct Published {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    key: Arc<DecodingKey>,
}

impl Jwks {
    /// Keys that are published at this address: `https`, or `http` on this machine.
    ///
    /// # Errors
    /// It is neither.
    pub fn at(url: &str) -> Result<Self, FetchError> {
        Ok(Self::of(Source::At(Address::new(url)?), Known::default()))
    }

    /// Keys of this issuer, wherever its metadata say that they are (RFC 8414, or OpenID Connect Discovery).
    ///
    /// # Errors
    /// The issuer's name is not a URL that begins with `https`, or `http` on this machine.
    pub fn of_issuer(issuer: &Issuer) -> Result<Self, FetchError> {
        let name = issuer.as_str().trim_end_matches('/');
        let url = Url::parse(name).map_err(|error| FetchError::NotAUrl(name.to_owned(), error.to_string()))?;
        let (origin, path) = (url.origin().ascii_serialization(), url.path().trim_end_matches('/'));
        // "by inserting a well-known URI string between the host component and the path component", and in the older way.
        let places = [
            format!("{origin}/.well-known/oauth-authorization-server{path}"),
            format!("{origin}/.well-known/openid-configuration{path}"),
            format!("{name}/.well-known/openid-configuration"),
        ];
        let places = places.iter().map(|place| Address::new(place)).collect::<Result<_, _>>()?;
        Ok(Self::of(Source::Issuer(issuer.clone(), places), Known::default()))
    }

    /// The keys of this set, as JSON, for ever. What is no key that could verify a token is left out.
    ///
    /// # Errors
    /// There is no such key in it.
    pub fn fixed(set: &str) -> Result<Self, FetchError> {
        let keys = read(set.as_bytes()).filter(|keys| !keys.is_empty()).ok_or(FetchError::NoKeys)?;
        Ok(Self::of(Source::Nowhere, Known { keys: keys.into(), fetched: Some(Timestamp::MAX), asked: None }))
    }

    fn of(source: Source, known: Known) -> Self {
        Self(Arc::new(Shared { source, known: RwLock::new(Arc::new(known)), asking: Arc::default() }))
    }

    /// The key of this id, for this algorithm. Without an id there must be only one that it could be.
    pub(super) async fn find(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
        now: Timestamp,
    ) -> Result<Arc<DecodingKey>, TokenDenial> {
        let known = self.0.known();
        let found = known.find(id, algorithm);
        if known.is_fresh(now)
            && let Some(key) = found
        {
            return Ok(key);
        }
        let usable = found.filter(|_| known.is_usable(now));
        // Whoever has a key that will do does not wait for somebody else's question.
        let turn = match &usable {
            Some(_) => self.0.asking.clone().try_lock_owned().ok(),
            None => Some(self.0.asking.clone().lock_owned().await),
        };
        let asked = match turn {
            Some(turn) => {
                let shared = self.0.clone();
                let asking = tokio::spawn(async move {
                    let asked = shared.ask(now).await;
                    drop(turn);
                    asked
                });
                asking.await.unwrap_or_else(|_| Err(NoAnswer::new("the question was given up")))
            }
            None => Ok(()),
        };
        let known = self.0.known();
        match (known.find(id, algorithm).filter(|_| known.is_usable(now)), asked) {
            (Some(key), _) => Ok(key),
            (None, Ok(())) if known.is_usable(now) => Err(TokenDenial::UnknownKey),
            (None, _) => Err(TokenDenial::Unavailable),
        }
    }
}

impl Shared {
    /// Asks the issuer, unless it was asked a moment ago.
    async fn ask(&self, now: Timestamp) -> Result<(), NoAnswer> {
        if matches!(self.source, Source::Nowhere) {
            return Ok(());
        }
        let known = self.known();
        if known.asked.is_some_and(|asked| later(asked, REST) > now) {
            return Ok(());
        }
        self.set(Known { asked: Some(now), ..(*known).clone() });
        let keys = self.source.keys().await.inspect_err(|why| {
            tracing::warn!(target: "handfast", at = %self.source, %why, "the issuer's keys cannot be fetched");
        })?;
        self.set(Known { keys: keys.into(), fetched: Some(now), asked: Some(now) });
        Ok(())
    }

    fn known(&self) -> Arc<Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, known: Known) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(known);
    }
}

impl Source {
    /// What is published there now.
    async fn keys(&self) -> Result<Vec<Published>, NoAnswer> {
        let set = match self {
            Self::Nowhere => return Ok(Vec::new()),
            Self::At(address) => fetch::answer(address.get()).await?,
            Self::Issuer(issuer, places) => fetch::answer(named(issuer, places).await?.get()).await?,
        };
        read(&set).ok_or_else(|| NoAnswer::new("it answers no set of keys"))
    }
}

/// Where the issuer says that its keys are.
async fn named(issuer: &Issuer, places: &[Address]) -> Result<Address, NoAnswer> {
    let mut why = NoAnswer::new("it has no metadata");
    for place in places {
        let json = match fetch::answer(place.get()).await {
            Ok(json) => json,
            Err(error) => {
                why = error;
                continue;
            }
        };
        let metadata: Value = serde_json::from_slice(&json).map_err(|_| NoAnswer::new("its metadata are not JSON"))?;
        // "The issuer value returned MUST be identical to the authorization server's issuer identifier value".
        if metadata.get("issuer").and_then(Value::as_str) != Some(issuer.as_str()) {
            return Err(NoAnswer::new("its metadata are of another issuer"));
        }
        let keys = metadata.get("jwks_uri").and_then(Value::as_str);
        let keys = keys.ok_or_else(|| NoAnswer::new("its metadata name no keys"))?;
        return Address::new(keys).map_err(|error| NoAnswer::new(error.to_string()));
    }
    Err(why)
}

impl fmt::Display for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nowhere => out.write_str("nowhere"),
            Self::At(address) => address.fmt(out),
            Self::Issuer(issuer, _) => issuer.fmt(out),
        }
    }
}

impl Known {
    fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<Arc<DecodingKey>> {
        let mut could = self
            .keys
            .iter()
            .filter(|key| key.algorithms.contains(&algorithm) && (id.is_none() || key.id.as_deref() == id));
        let first = could.next()?;
        could.next().is_none().then(|| first.key.clone())
    }

    fn is_fresh(&self, now: Timestamp) -> bool {
        self.fetched.is_some_and(|fetched| later(fetched, FRESH) > now)
    }

    fn is_usable(&self, now: Timestamp) -> bool {
        self.fetched.is_some_and(|fetched| later(fetched, STALE) > now)
    }
}

/// The keys of a set; `None` where it is no set.
fn read(json: &[u8]) -> Option<Vec<Published>> {
    let set: Value = serde_json::from_slice(json).ok()?;
    let keys = set.get("keys")?.as_array()?;
    // "Implementations SHOULD ignore JWKs within a JWK Set that use "kty" values that are not understood by them, that are
    // missing required members, or for which values are out of the supported ranges" (RFC 7517, section 5).
    Some(keys.iter().take(MOST_KEYS).filter_map(published).collect())
}

fn published(json: &Value) -> Option<Published> {
    let key: Jwk = serde_json::from_value(json.clone()).ok()?;
    if key.common.public_key_use.is_some_and(|used| used != PublicKeyUse::Signature) {
        return None;
    }
    if key.common.key_operations.is_some_and(|operations| !operations.contains(&KeyOperations::Verify)) {
        return None;
    }
    // What kind of key it is says what it may verify, so that none is taken for one of another kind.
    let mut algorithms = match &key.algorithm {
        AlgorithmParameters::RSA(_) => vec![Algorithm::Rs256, Algorithm::Ps256],
        AlgorithmParameters::EllipticCurve(curve) => match curve.curve {
            EllipticCurve::P256 => vec![Algorithm::Es256],
            EllipticCurve::P384 => vec![Algorithm::Es384],
            _ => return None,
        },
        AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => vec![Algorithm::EdDsa],
        _ => return None,
    };
    if let Some(named) = json.get("alg") {
        algorithms.retain(|algorithm| Some(algorithm.name()) == named.as_str());
    }
    let key_of = |key: &AlgorithmParameters| match key {
        AlgorithmParameters::RSA(rsa) => DecodingKey::from_rsa_components(&rsa.n, &rsa.e),
        AlgorithmParameters::EllipticCurve(curve) => DecodingKey::from_ec_components(&curve.x, &curve.y),
        AlgorithmParameters::OctetKeyPair(pair) => DecodingKey::from_ed_components(&pair.x),
        _ => Err(jsonwebtoken::errors::ErrorKind::InvalidKeyFormat.into()),
    };
    let decoding = Arc::new(key_of(&key.algorithm).ok()?);
    Some(Published { id: key.common.key_id, algorithms, key: decoding })
}

impl fmt::Debug for Jwks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Jwks({} keys)", self.0.known().keys.len())
    }
}
