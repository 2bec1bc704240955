//! What a server says of the tokens that it wants: its metadata (RFC 9728), and the challenge to whoever shows no good
//! one (RFC 6750, section 3).

use serde_json::{Value, json};

use crate::{
    audience,
    caller::{Audience, Issuer, ScopeSet},
};

/// A server as RFC 9728 describes it.
#[derive(Debug, Clone)]
pub struct ProtectedResource {
    resource: Audience,
    issuers: Vec<Issuer>,
    scopes: Option<ScopeSet>,
}

/// The canonical URI of a server is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no address of a server: it must be its whole URL, such as `https://mcp.example.com/mcp`")]
pub struct NotAResource(Audience);

/// What a refusal says, in `WWW-Authenticate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Challenge {
    /// There was no token.
    None,
    /// There was one, and it is not good; why is not told.
    InvalidToken,
    /// It is good, and does not allow this.
    InsufficientScope,
}

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

impl ProtectedResource {
    /// The server with this canonical URI, which takes tokens of these issuers.
    ///
    /// # Errors
    /// "The value MUST be an absolute URI" (RFC 8707, section 2), `http` or `https`, without a fragment or a user.
    pub fn new(resource: Audience, issuers: Vec<Issuer>) -> Result<Self, NotAResource> {
        match audience::is_uri(resource.as_str()) {
            true => Ok(Self { resource, issuers, scopes: None }),
            false => Err(NotAResource(resource)),
        }
    }

    /// The scopes that every request needs.
    #[must_use]
    pub fn needing(mut self, scopes: ScopeSet) -> Self {
        self.scopes = Some(scopes);
        self
    }

    /// The server's canonical URI.
    #[must_use]
    pub fn resource(&self) -> &Audience {
        &self.resource
    }

    /// The scopes that every request needs.
    #[must_use]
    pub fn scopes(&self) -> Option<&ScopeSet> {
        self.scopes.as_ref()
    }

    /// The path at which the metadata stand: "inserting a well-known URI string into the protected resource's resource
    /// identifier between the host component and the path" (RFC 9728, section 3).
    #[must_use]
    pub fn path(&self) -> String {
        let (_, path) = self.split();
        format!("{WELL_KNOWN}{}", path.trim_end_matches('/'))
    }

    /// The URL at which they stand.
    #[must_use]
    pub fn url(&self) -> String {
        let (origin, _) = self.split();
        format!("{origin}{}", self.path())
    }

    fn split(&self) -> (&str, &str) {
        let uri = self.resource.as_str();
        let after = uri.find("://").map_or(0, |at| at + 3);
        let begins = uri[after..].find(['/', '?']).map_or(uri.len(), |at| after + at);
        let (origin, path) = uri.split_at(begins);
        (origin, path.split('?').next().unwrap_or_default())
    }

    /// The metadata.
    #[must_use]
    pub fn json(&self) -> Value {
        let issuers: Vec<&str> = self.issuers.iter().map(Issuer::as_str).collect();
        let mut document = json!({
            "resource": self.resource.as_str(),
            "authorization_servers": issuers,
            "bearer_methods_supported": ["header"],
        });
        if let Some(scopes) = &self.scopes {
            document["scopes_supported"] = scopes.iter().map(|scope| Value::from(scope.as_str())).collect();
        }
        document
    }

    /// The value of `WWW-Authenticate` in a refusal.
    #[must_use]
    pub fn challenge(&self, challenge: Challenge) -> String {
        let mut parts = Vec::new();
        match challenge {
            Challenge::None => {}
            Challenge::InvalidToken => parts.push(r#"error="invalid_token""#.to_owned()),
            Challenge::InsufficientScope => parts.push(r#"error="insufficient_scope""#.to_owned()),
        }
        if let Some(scopes) = &self.scopes {
            // A scope has neither quotes nor backslashes in it.
            parts.push(format!(r#"scope="{}""#, scopes.text()));
        }
        // What would end the quotes does not stand in a URI.
        let url: String = self
            .url()
            .chars()
            .filter(|character| character.is_ascii_graphic() && !"\"\\".contains(*character))
            .collect();
        parts.push(format!(r#"resource_metadata="{url}""#));
        format!("Bearer {}", parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(resource: &str) -> ProtectedResource {
        ProtectedResource::new(resource.parse().expect("one"), vec!["https://id.example".parse().expect("one")])
            .expect("a URL")
    }

    #[test]
    fn the_metadata_stand_where_the_rfc_says() {
        for (resource, url) in [
            ("https://h.example/mcp", "https://h.example/.well-known/oauth-protected-resource/mcp"),
            ("https://h.example", "https://h.example/.well-known/oauth-protected-resource"),
            ("https://h.example/", "https://h.example/.well-known/oauth-protected-resource"),
            ("https://h.example:8/a/b?c", "https://h.example:8/.well-known/oauth-protected-resource/a/b"),
        ] {
            assert_eq!(of(resource).url(), url);
        }
    }

    #[test]
    fn a_challenge_says_what_is_wanted_and_not_what_was_wrong() {
        let server = of("https://h.example/mcp").needing(ScopeSet::new(["mcp:tools"]).expect("one"));
        let whole = r#"Bearer error="invalid_token", scope="mcp:tools", resource_metadata="https://h.example/.well-known/oauth-protected-resource/mcp""#;

        assert_eq!(server.challenge(Challenge::InvalidToken), whole);
        assert_eq!(
            of("https://h").challenge(Challenge::None),
            r#"Bearer resource_metadata="https://h/.well-known/oauth-protected-resource""#
        );
    }
}
