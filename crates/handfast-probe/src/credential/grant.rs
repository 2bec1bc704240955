//! An OAuth client-credentials grant (RFC 6749, section 4.4; RFC 8707 for `resource`). The secret goes to one endpoint and
//! no other: no redirect is followed, and nothing but HTTPS is spoken, loopback apart.

use std::{collections::BTreeMap, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use reqwest::{
    Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue},
};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{CredentialError, Environment, command, from_environment};

/// How a client gets a token of its own.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientCredentials {
    /// The token endpoint.
    token_url: String,
    /// The client.
    client_id: String,
    /// The environment variable that holds its secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_secret_env: Option<String>,
    /// A program with its arguments whose standard output is its secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    client_secret_command: Vec<String>,
    /// What the token is to be good for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    /// The server that the token is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
    /// Whatever else the issuer wants in the form.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<String, String>,
}

impl ClientCredentials {
    /// The same for another server.
    pub(super) fn for_audience(&self, resource: Option<String>) -> Self {
        Self { resource, ..self.clone() }
    }

    pub(super) fn resource(&self) -> Option<&str> {
        self.resource.as_deref()
    }

    pub(super) fn variables(&self) -> impl Iterator<Item = &String> {
        self.client_secret_env.iter()
    }

    pub(super) fn check(&self) -> Result<(), CredentialError> {
        let url = Url::parse(&self.token_url).map_err(|_| self.fail("`token_url` is not a URL"))?;
        let loopback = url.host_str().is_some_and(is_loopback);
        match url.scheme() {
            "https" => {}
            "http" if loopback => {}
            _ => return Err(self.fail("`token_url` must be https: a secret goes there")),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(self.fail("`token_url` must carry no user and no password"));
        }
        if self.client_secret_env.is_some() != self.client_secret_command.is_empty() {
            return Err(self.fail("needs one of `client_secret_env` and `client_secret_command`"));
        }
        if let Some(name) = OWN.into_iter().find(|name| self.parameters.contains_key(*name)) {
            return Err(self.fail(&format!("`parameters` must not hold `{name}`, which has a place of its own")));
        }
        Ok(())
    }

    /// Asks for a token.
    pub(super) async fn token(
        &self,
        environment: &Environment,
        ca: Option<&[u8]>,
    ) -> Result<SecretString, CredentialError> {
        let secret = match (&self.client_secret_env, self.client_secret_command.split_first()) {
            (Some(name), _) => from_environment(environment, name)?,
            (None, Some((program, arguments))) => command::output_of(program, arguments).await?,
            (None, None) => return Err(self.fail("has no client secret")),
        };
        let asking = self.ask(&secret, ca);
        let answer = tokio::time::timeout(PATIENCE, asking).await;
        answer.map_err(|_| self.fail(&format!("no answer within {} s", PATIENCE.as_secs())))?
    }

    async fn ask(&self, secret: &SecretString, ca: Option<&[u8]>) -> Result<SecretString, CredentialError> {
        let url = Url::parse(&self.token_url).map_err(|_| self.fail("`token_url` is not a URL"))?;
        let request = self
            .client(&url, ca)?
            .post(url)
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(AUTHORIZATION, self.basic(secret)?)
            .body(self.form());
        let mut response = request.send().await.map_err(|error| self.fail(&outline(&error)))?;
        let status = response.status();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.fail(&outline(&error)))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > LONGEST_ANSWER {
                return Err(self.fail(&format!("the answer is longer than {LONGEST_ANSWER} bytes")));
            }
        }
        let answer: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if status.is_redirection() {
            return Err(self.fail("redirects, which is not followed: a secret goes there"));
        }
        if !status.is_success() {
            // `invalid_client` and its like are words of the standard; whatever else the answer says stays here.
            let code = answer.get("error").and_then(Value::as_str).filter(|code| is_code(code));
            let code = code.map(|code| format!(", {code}")).unwrap_or_default();
            return Err(self.fail(&format!("HTTP {}{code}", status.as_u16())));
        }
        let kind = answer.get("token_type").and_then(Value::as_str);
        if kind.is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
            return Err(self.fail("the token is no bearer token"));
        }
        let token = answer.get("access_token").and_then(Value::as_str);
        token
            .map(|token| SecretString::from(token.to_owned()))
            .ok_or_else(|| self.fail("the answer has no `access_token`"))
    }

    fn client(&self, url: &Url, ca: Option<&[u8]>) -> Result<reqwest::Client, CredentialError> {
        let mut builder = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
        if url.host_str().is_some_and(is_loopback) {
            builder = builder.no_proxy();
        }
        if url.scheme() == "http" {
            builder = builder.tls_certs_only([]);
        }
        if let Some(pem) = ca {
            let certificates = reqwest::Certificate::from_pem_bundle(pem);
            builder = builder.tls_certs_merge(certificates.map_err(|error| self.fail(&outline(&error)))?);
        }
        builder.build().map_err(|error| self.fail(&outline(&error)))
    }

    /// "The client identifier is encoded using the `application/x-www-form-urlencoded` encoding algorithm [...] and used
    /// as the username; the client password is encoded using the same algorithm and used as the password."
    fn basic(&self, secret: &SecretString) -> Result<HeaderValue, CredentialError> {
        let pair = format!("{}:{}", encoded(&self.client_id), encoded(secret.expose_secret()));
        let value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair)));
        let mut value = value.map_err(|_| self.fail("the client secret cannot be sent"))?;
        value.set_sensitive(true);
        Ok(value)
    }

    fn form(&self) -> String {
        let mut form = "grant_type=client_credentials".to_owned();
        for (name, value) in [("scope", &self.scope), ("resource", &self.resource)] {
            if let Some(value) = value {
                form.push_str(&format!("&{name}={}", encoded(value)));
            }
        }
        for (name, value) in &self.parameters {
            form.push_str(&format!("&{}={}", encoded(name), encoded(value)));
        }
        form
    }

    fn fail(&self, reason: &str) -> CredentialError {
        // A query may be secret.
        let endpoint = self.token_url.split(['?', '#']).next().unwrap_or_default();
        let endpoint = endpoint.rsplit_once('@').map_or(endpoint, |(_, rest)| rest);
        CredentialError::Grant { endpoint: endpoint.to_owned(), reason: reason.to_owned() }
    }
}

/// What went wrong with a request, without its URL.
fn outline(error: &reqwest::Error) -> String {
    match error {
        error if error.is_connect() => "could not connect".to_owned(),
        error if error.is_timeout() => "no answer in time".to_owned(),
        error if error.is_builder() => "the certificates cannot be used".to_owned(),
        _ => "the connection ended before the answer".to_owned(),
    }
}

fn is_code(code: &str) -> bool {
    code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

fn encoded(text: &str) -> String {
    let kept = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if kept(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// What stands in the form by itself. A secret in `parameters` would be written out by whoever writes profiles.
const OWN: [&str; 5] = ["grant_type", "client_id", "client_secret", "scope", "resource"];
const PATIENCE: Duration = Duration::from_secs(20);
const LONGEST_ANSWER: usize = 64 * 1024;
