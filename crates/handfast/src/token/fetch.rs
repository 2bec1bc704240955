//! Asking the issuer, within bounds: over TLS, at the one address that was configured, for a short time, for a short
//! answer.

use std::{net::IpAddr, time::Duration};

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
    #[error("not a URL: {0}")]
    NotAUrl(String),
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

/// The issuer did not answer as it should.
pub(super) struct NoAnswer;

impl Address {
    /// # Errors
    /// The address is not one that is asked.
    pub(super) fn new(url: &str) -> Result<Self, FetchError> {
        let url = Url::parse(url).map_err(|error| FetchError::NotAUrl(error.to_string()))?;
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
    let mut response = request.send().await.map_err(|_| NoAnswer)?;
    if response.status() != 200 {
        return Err(NoAnswer);
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|_| NoAnswer)? {
        if body.len() + chunk.len() > LONGEST_ANSWER {
            return Err(NoAnswer);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
