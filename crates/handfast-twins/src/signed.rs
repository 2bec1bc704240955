//! Tokens that are JSON Web Tokens: the text of a plain one stands in them as the subject, under a signature. Everybody
//! may know the key: the servers listen on loopback and keep nothing.

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde_json::{Value, json};

/// A token that says so.
pub(crate) fn token(text: &str) -> String {
    let (header, claims) = (Header::new(Algorithm::HS256), json!({"sub": text}));
    let signed = EncodingKey::from_secret(KEY).and_then(|key| jsonwebtoken::encode(&header, &claims, &key));
    signed.unwrap_or_default()
}

/// What a token says; `None` where it is none, or its signature is wrong and somebody minds.
pub(crate) fn read(token: &str, minds_signature: bool) -> Option<String> {
    let claims: Value = if minds_signature {
        let mut validation = Validation::new(Algorithm::HS256);
        // The text says whether a token's time is over, and for whom it is.
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        jsonwebtoken::decode(token, &DecodingKey::from_secret(KEY).ok()?, &validation).ok()?.claims
    } else {
        jsonwebtoken::dangerous::insecure_decode(token).ok()?.claims
    };
    claims.get("sub")?.as_str().map(str::to_owned)
}

const KEY: &[u8] = b"the key of a server that is flawed on purpose";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_verified_by_whoever_minds() {
        let good = token("alice");
        let (signed, _) = good.rsplit_once('.').expect("three parts");
        let forged = format!("{signed}.{}", "A".repeat(43));
        assert_eq!(read(&good, true).as_deref(), Some("alice"));
        assert_eq!(read(&forged, true), None);
        assert_eq!(read(&forged, false).as_deref(), Some("alice"));
        for other in ["", "alice", "a.b.c", ".."] {
            assert!(read(other, false).is_none() && read(other, true).is_none(), "{other}");
        }
    }
}
