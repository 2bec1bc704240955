//! A server behind that is reached over HTTP.

use async_trait::async_trait;
use axum_core::body::Body;
use bytes::Bytes;
use handfast::{Caller, SecretText};
use http::{HeaderName, HeaderValue, Request, Response, Uri, header};
use http_body_util::Full;
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use rustls_platform_verifier::ConfigVerifierExt;
use thiserror::Error;

use super::{Down, Upstream};

/// A server behind that is reached over HTTP, as this caller of its own and nobody else: a client's token never gets there.
pub struct HttpUpstream {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    url: Uri,
    credential: Option<HeaderValue>,
    identity: Option<Identity>,
}

/// How the server behind is told who calls.
#[derive(Debug, Clone)]
pub struct Identity {
    /// In this header.
    pub header: HeaderName,
    /// In these words, with `{subject}` and `{issuer}`.
    pub value: String,
}

/// Why there is no such server behind.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NoUpstream {
    /// Its address is none.
    #[error("{0:?} is no address: write http://127.0.0.1:9000/mcp, or one that begins with https://")]
    Address(String),
    /// What it is to be shown is no header.
    #[error("the credential for the server behind cannot stand in a header")]
    Credential,
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
}

impl HttpUpstream {
    /// The server at this address, that is shown this credential (all of the header `Authorization`).
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn new(url: &str, credential: Option<&SecretText>, identity: Option<Identity>) -> Result<Self, NoUpstream> {
        let wrong = || NoUpstream::Address(url.to_owned());
        let address: Uri = url.parse().map_err(|_| wrong())?;
        if !matches!(address.scheme_str(), Some("http" | "https")) || address.host().is_none_or(str::is_empty) {
            return Err(wrong());
        }
        let credential = credential.map(|credential| {
            let mut value = HeaderValue::from_str(credential.expose()).map_err(|_| NoUpstream::Credential)?;
            value.set_sensitive(true);
            Ok::<_, NoUpstream>(value)
        });
        // Another program in the process may have chosen a provider already.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let tls = rustls::ClientConfig::with_platform_verifier()?;
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .build(connector);
        Ok(Self { client, url: address, credential: credential.transpose()?, identity })
    }
}

#[async_trait]
impl Upstream for HttpUpstream {
    async fn ask(&self, caller: &Caller, request: Request<Bytes>) -> Result<Response<Body>, Down> {
        let mut request = request.map(Full::new);
        *request.uri_mut() = self.url.clone();
        let headers = request.headers_mut();
        if let Some(credential) = &self.credential {
            headers.insert(header::AUTHORIZATION, credential.clone());
        }
        if let (Some(identity), Some(principal)) = (&self.identity, caller.principal()) {
            let told = identity.value.replace("{issuer}", principal.issuer().as_str());
            let told = told.replace("{subject}", principal.subject().expose());
            let value = HeaderValue::from_str(&told).map_err(|error| Down::Unreachable(error.into()))?;
            headers.insert(identity.header.clone(), value);
        }
        let answer = self.client.request(request).await.map_err(|error| Down::Unreachable(error.into()))?;
        Ok(answer.map(Body::new))
    }
}
