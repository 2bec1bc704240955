//! Asking the issuer, within bounds: over TLS, at the one address that was configured, for a short time, for a short
//! answer.

use std::{fmt, net::IpAddr, time::Duration};

use reqwest::{RequestBuilder, Url, redirect::Policy};
use thiserror::Error;

/// How long an issuer may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many bytes an answer may have.
const LONGEST_ANSWER: usize = 256 * 1024;

/// Why the issuer cannot be asked at this address.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FetchError {
    /// It is no URL.
    #[error("`{0}` is not a URL: {1}")]
    NotAUrl(String, String),
    /// It is neither `https` nor on this machine.
    #[error("{0} must be https: keys that anybody on the way can exchange are nobody's")]
    NotHttps(String),
    /// There is no key in it that could verify a token.
    #[error("no key of the set could verify a token")]
    NoKeys,
    /// The client for HTTP could not be set up.
    #[error("cannot set up HTTP: {0}")]
    Setup(String),
}

/// One address of the issuer.
pub(super) struct Address {
    url: Url,
    client: reqwest::Client,
}

/// The issuer did not answer as it should, in words for the log.
#[derive(Debug, Clone, Error)]
#[error("{0}")]
pub(super) struct NoAnswer(String);

impl NoAnswer {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }

    /// The cause, and those behind it, without the address, which may hold a secret.
    fn of(error: reqwest::Error) -> Self {
        let error = error.without_url();
        let mut why = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(error) = cause {
            why = format!("{why}: {error}");
            cause = error.source();
        }
        Self(why)
    }
}

/// Where it is, for the log: no user, no query.
impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", self.url.origin().ascii_serialization(), self.url.path())
    }
}

impl Address {
    /// # Errors
    /// The address is not one that is asked.
    pub(super) fn new(url: &str) -> Result<Self, FetchError> {
        let url = Url::parse(url).map_err(|error| {
            // What stands before an `@` may be a password.
            let shown = url.rsplit_once('@').map_or(url, |(_, host)| host);
            FetchError::NotAUrl(shown.to_owned(), error.to_string())
        })?;
        let named = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let here = named == "localhost" || named.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        if url.scheme() != "https" && !(url.scheme() == "http" && here) {
            return Err(FetchError::NotHttps(url.origin().ascii_serialization()));
        }
        // A redirect would hand the question to somebody else.
        let client = reqwest::Client::builder().redirect(Policy::none()).timeout(PATIENCE);
        // What is in clear stays on this machine: a proxy that the environment names would see it, and could answer.
        let client = if url.scheme() == "http" { client.no_proxy() } else { client };
        let client = client.build().map_err(|error| FetchError::Setup(error.to_string()))?;
        Ok(Self { url, client })
    }

    pub(super) fn get(&self) -> RequestBuilder {
        self.client.get(self.url.clone()).header("accept", "application/json")
    }

    pub(super) fn post(&self) -> RequestBuilder {
        self.client.post(self.url.clone()).header("accept", "application/json")
    }
}

/// The body of an answer with status 200.
pub(super) async fn answer(request: RequestBuilder) -> Result<Vec<u8>, NoAnswer> {
    let mut response = request.send().await.map_err(NoAnswer::of)?;
    if response.status() != 200 {
        return Err(NoAnswer::new(format!("it answers with HTTP {}", response.status().as_u16())));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(NoAnswer::of)? {
        if body.len() + chunk.len() > LONGEST_ANSWER {
            return Err(NoAnswer::new(format!("its answer is longer than {LONGEST_ANSWER} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
