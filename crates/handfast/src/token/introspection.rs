//! Tokens that say nothing themselves: the issuer is asked about each one (RFC 7662).

use std::fmt;

use async_trait::async_trait;
use serde_json::Value;
use url::form_urlencoded;
use zeroize::Zeroizing;

use super::{
    FetchError, LONGEST, TokenDenial, TokenRules, TokenVerifier, Verified,
    fetch::{self, Address, NoAnswer},
    strict,
};
use crate::secret::SecretText;

/// Verifies tokens by asking their issuer, at every request: what the issuer has revoked is refused at once. Nothing is
/// remembered.
pub struct IntrospectionVerifier {
    rules: TokenRules,
    address: Address,
    id: String,
    secret: SecretText,
}

impl IntrospectionVerifier {
    /// For tokens that these rules accept. The issuer is asked at this address (`https`, or `http` on this machine), by a
    /// client of this id and secret.
    ///
    /// # Errors
    /// The address is not one that may be asked.
    pub fn new(rules: TokenRules, url: &str, id: &str, secret: SecretText) -> Result<Self, FetchError> {
        Ok(Self { rules, address: Address::new(url)?, id: id.to_owned(), secret })
    }
}

#[async_trait]
impl TokenVerifier for IntrospectionVerifier {
    async fn verify(&self, token: &str) -> Result<Verified, TokenDenial> {
        if token.len() > LONGEST {
            return Err(TokenDenial::TooLong);
        }
        // RFC 6750, section 2.1: what is no token is not asked about.
        let is_of_a_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        if token.is_empty() || !token.bytes().all(is_of_a_token) {
            return Err(TokenDenial::Malformed);
        }
        let form = [("token", token), ("token_type_hint", "access_token")];
        let (id, secret) = (encoded(&self.id), Zeroizing::new(encoded(self.secret.expose())));
        let request = self.address.post().basic_auth(id, Some(&*secret)).form(&form);
        let lost = |why: NoAnswer| {
            tracing::warn!(target: "handfast", at = %self.address, %why, "the issuer cannot be asked about a token");
            TokenDenial::Unavailable
        };
        let answer = fetch::answer(request).await.map_err(lost)?;
        let mut claims = strict::read(&answer).ok_or_else(|| lost(NoAnswer::new("it answers no JSON object")))?;
        if claims.get("active") != Some(&Value::Bool(true)) {
            return Err(TokenDenial::Inactive);
        }
        // A refresh token is no access token, and one for DPoP is not for this.
        let kinds = ["bearer", "access_token"];
        let kind = claims.get("token_type").filter(|kind| !kind.is_null());
        if kind.is_some_and(|kind| !kind.as_str().is_some_and(|kind| kinds.contains(&&*kind.to_ascii_lowercase()))) {
            return Err(TokenDenial::Type);
        }
        // The issuer that was asked may leave out that it is the issuer, and may not name another.
        claims.entry("iss").or_insert_with(|| self.rules.issuer().as_str().into());
        self.rules.caller(&claims)
    }
}

/// "The client identifier is encoded using the "application/x-www-form-urlencoded" encoding algorithm" (RFC 6749, section
/// 2.3.1), and so is the password.
fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

impl fmt::Debug for IntrospectionVerifier {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("IntrospectionVerifier").field("rules", &self.rules).finish_non_exhaustive()
    }
}
