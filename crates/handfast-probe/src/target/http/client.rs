//! The client of one caller: whom it trusts, where it follows, and which connections it keeps.

use reqwest::Url;

use super::HttpOptions;

pub(super) fn client(url: &Url, options: &HttpOptions) -> Result<reqwest::Client, String> {
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("handfast/", env!("CARGO_PKG_VERSION")))
        .tcp_nodelay(true)
        .redirect(same_origin_only());
    if url.scheme() == "http" {
        // Redirects stay within the origin, so nothing here ever speaks TLS; reading the system's roots takes its time.
        builder = builder.tls_certs_only([]);
    }
    if let Some(pem) = &options.ca_certificates {
        let certificates = reqwest::Certificate::from_pem_bundle(pem).map_err(|error| error.to_string())?;
        if certificates.is_empty() {
            return Err("the CA file holds no certificate".to_owned());
        }
        builder = builder.tls_certs_merge(certificates);
    }
    if options.dangerous_accept_any_certificate {
        builder = builder.tls_danger_accept_invalid_certs(true);
    }
    if url.host_str().is_some_and(is_loopback) {
        // A server on this machine is never asked by way of a proxy elsewhere. A fresh connection costs nothing here, and
        // a kept one costs 40 ms a call on servers that write head and body apart (delayed acknowledgements).
        builder = builder.no_proxy();
        if url.scheme() == "http" && !options.keeps_connection {
            builder = builder.pool_max_idle_per_host(0);
        }
    }
    builder.build().map_err(|error| chain(&error))
}

/// Redirects are followed within one origin only: a credential must never travel to another.
fn same_origin_only() -> reqwest::redirect::Policy {
    reqwest::redirect::Policy::custom(|attempt| {
        let first = attempt.previous().first().map(Url::origin);
        if attempt.previous().len() <= MAX_REDIRECTS && first == Some(attempt.url().origin()) {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}

pub(super) fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// An error with its causes: the outermost one alone says "error sending request".
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

const MAX_REDIRECTS: usize = 5;
