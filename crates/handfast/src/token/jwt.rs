//! Tokens that carry what they say: JSON Web Tokens (RFC 7519, RFC 9068), signed by a key that the issuer publishes.

use std::fmt;

use async_trait::async_trait;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{DecodingKey, crypto::aws_lc};
use serde_json::Value;

use super::{Jwks, LONGEST, TokenDenial, TokenRules, TokenVerifier, Verified, strict};
/// An algorithm by which an issuer signs. There is none with a shared secret, and no `none`: neither can be configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    const ALL: [Self; 5] = [Self::Rs256, Self::Ps256, Self::Es256, Self::Es384, Self::EdDsa];

    /// Its name in the header of a token.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Ps256 => "PS256",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }

    pub(super) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    fn implemented(self) -> jsonwebtoken::Algorithm {
        match self {
            Self::Rs256 => jsonwebtoken::Algorithm::RS256,
            Self::Ps256 => jsonwebtoken::Algorithm::PS256,
            Self::Es256 => jsonwebtoken::Algorithm::ES256,
            Self::Es384 => jsonwebtoken::Algorithm::ES384,
            Self::EdDsa => jsonwebtoken::Algorithm::EdDSA,
        }
    }
}

/// Verifies JSON Web Tokens.
pub struct JwtVerifier {
    rules: TokenRules,
    algorithms: Vec<Algorithm>,
    plain_type: bool,
    keys: Jwks,
}

impl JwtVerifier {
    /// For tokens that these rules accept, signed by one of these algorithms with one of these keys. What a token itself
    /// says of its algorithm chooses among them, and no further.
    #[must_use]
    pub fn new(rules: TokenRules, algorithms: &[Algorithm], keys: Jwks) -> Self {
        Self { rules, algorithms: algorithms.to_vec(), plain_type: false, keys }
    }

    /// Also tokens whose type (`typ`) is the plain `JWT`, as many issuers write it. An ID token has that type too; what
    /// keeps it out then is its audience, which is the client.
    #[must_use]
    pub fn accepting_plain_type(mut self) -> Self {
        self.plain_type = true;
        self
    }

    /// The claims of a token whose signature is the issuer's.
    async fn authentic(&self, token: &str) -> Result<serde_json::Map<String, Value>, TokenDenial> {
        let (message, signature) = token.rsplit_once('.').ok_or(TokenDenial::Malformed)?;
        let (header, claims) = message.split_once('.').ok_or(TokenDenial::Malformed)?;
        if claims.contains('.') {
            return Err(TokenDenial::Malformed);
        }
        let header = part(header).and_then(|json| strict::read(&json)).ok_or(TokenDenial::Malformed)?;
        let algorithm = self.pinned(header.get("alg")).ok_or(TokenDenial::Algorithm)?;
        if header.contains_key("crit") {
            // "If any of the listed extension Header Parameters are not understood and supported by the recipient, then
            // the JWS is invalid" (RFC 7515, section 4.1.11). None is.
            return Err(TokenDenial::Critical);
        }
        if !self.is_access_token(header.get("typ")) {
            return Err(TokenDenial::Type);
        }
        let id = match header.get("kid") {
            None => None,
            Some(id) => Some(id.as_str().ok_or(TokenDenial::Malformed)?),
        };
        let signature = part(signature).ok_or(TokenDenial::Malformed)?;
        // A key that the token brings itself (`jwk`, `jku`, `x5c`, `x5u`) is not looked at.
        let key = self.keys.find(id, algorithm, self.rules.now()).await?;
        verify(algorithm, &key, message, signature)?;
        part(claims).and_then(|json| strict::read(&json)).ok_or(TokenDenial::Malformed)
    }

    fn pinned(&self, named: Option<&Value>) -> Option<Algorithm> {
        let algorithm = Algorithm::of(named?.as_str()?)?;
        self.algorithms.contains(&algorithm).then_some(algorithm)
    }

    /// "the value of the typ header ... MUST be at+jwt or application/at+jwt" (RFC 9068, section 4); older issuers write
    /// none.
    fn is_access_token(&self, of_type: Option<&Value>) -> bool {
        let Some(of_type) = of_type else { return true };
        let of_type = of_type.as_str().unwrap_or_default().to_ascii_lowercase();
        match of_type.strip_prefix("application/").unwrap_or(&of_type) {
            "at+jwt" => true,
            "jwt" => self.plain_type,
            _ => false,
        }
    }
}

fn verify(algorithm: Algorithm, key: &DecodingKey, message: &str, signature: Vec<u8>) -> Result<(), TokenDenial> {
    let verifier = (aws_lc::DEFAULT_PROVIDER.verifier_factory)(&algorithm.implemented(), key);
    let verifier = verifier.map_err(|_| TokenDenial::UnknownKey)?;
    verifier.verify(message.as_bytes(), &signature).map_err(|_| TokenDenial::Signature)
}

/// A part of a token. It has one spelling.
fn part(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

#[async_trait]
impl TokenVerifier for JwtVerifier {
    async fn verify(&self, token: &str) -> Result<Verified, TokenDenial> {
        if token.len() > LONGEST {
            return Err(TokenDenial::TooLong);
        }
        self.rules.caller(&self.authentic(token).await?)
    }
}

impl fmt::Debug for JwtVerifier {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("JwtVerifier");
        out.field("rules", &self.rules).field("algorithms", &self.algorithms).finish_non_exhaustive()
    }
}
