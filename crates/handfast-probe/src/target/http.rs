//! Streamable HTTP: one POST a request, answered by JSON or by a stream of events, read within bounds.

mod body;
mod client;
mod visit;

use std::{collections::HashMap, time::Duration};

use handfast_wire::{
    headers,
    message::{Notification, Request},
};
use reqwest::{
    StatusCode, Url,
    header::{
        ACCEPT, AUTHORIZATION, CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER,
        WWW_AUTHENTICATE,
    },
};
use secrecy::ExposeSecret;

use super::{Body, Era, ExtraHeader, Fault, Heard, Options, Reply};
use crate::{
    clock, dates,
    identity::{Identities, Identity, Who},
};
pub(super) use body::answered;
use body::{is_stream, read_stream, read_whole};
use client::{chain, client, is_loopback};

/// Options of the HTTP transport.
#[derive(Debug, Clone, Default)]
pub struct HttpOptions {
    /// Further trusted certificates, in PEM.
    pub ca_certificates: Option<Vec<u8>>,
    /// Accept any certificate. Only by its loud name on the command line, `--insecure`.
    pub dangerous_accept_any_certificate: bool,
    /// Added to every request.
    pub headers: Vec<ExtraHeader>,
    /// The header that carries an identity, when it is not `Authorization: Bearer`.
    pub identity_header: Option<String>,
    /// Whether calls of one caller share a connection also on this machine.
    pub keeps_connection: bool,
}

/// The URLs to try: the given one, or the usual paths where the operator named none.
pub fn candidate_urls(url: &Url) -> Vec<Url> {
    if url.path() != "/" || url.query().is_some() {
        return vec![url.clone()];
    }
    USUAL_PATHS
        .iter()
        .map(|path| {
            let mut candidate = url.clone();
            candidate.set_path(path);
            candidate
        })
        .collect()
}

fn challenge_of(response: &reqwest::Response) -> Option<String> {
    let values = response.headers().get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    values
        .map(|value| value.chars().take(LONGEST_CHALLENGE).collect::<String>())
        .reduce(|all, one| format!("{all}, {one}"))
}

/// "429 Too Many Requests … MAY include a `Retry-After` header" (RFC 6585), in seconds.
fn wait_of(response: &reqwest::Response) -> Option<Duration> {
    let is_limit = response.status() == StatusCode::TOO_MANY_REQUESTS;
    let seconds = response.headers().get(RETRY_AFTER).filter(|_| is_limit)?.to_str().ok()?;
    seconds.trim().parse().ok().map(Duration::from_secs)
}

/// What the time of an answer says of the server's clock. It is given in whole seconds that are over, so this is never too much.
fn clock_ahead(response: &reqwest::Response) -> Option<f64> {
    let told = dates::http(response.headers().get(DATE)?.to_str().ok()?)?;
    Some(told.as_secs_f64() - clock::since_1970().as_secs_f64())
}

/// A URL without user, password, query and fragment.
pub(super) fn shown(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

/// Who sends what, with which headers that mirror its parameters.
pub(super) type Posting<'p> = (&'p Identity, &'p Request, &'p [(String, String)]);

/// A connection to one endpoint.
#[derive(Debug)]
pub(super) struct Http {
    url: Url,
    options: Options,
    clients: HashMap<Who, reqwest::Client>,
    extra: HeaderMap,
    identity_header: Option<HeaderName>,
    /// Legacy only: the session that each caller was given.
    sessions: HashMap<Who, HeaderValue>,
    /// What the last answer wants of whoever shows no good token.
    challenge: Option<String>,
    /// How long the last answer asks to wait: it was not the time for that call.
    asked_to_wait: Option<Duration>,
    /// How far the server's clock is ahead of ours, by the last answer that told the time.
    clock_ahead: Option<f64>,
    /// The session id that came with the last answer.
    issued: Option<String>,
    /// Streams are listened to for a while before they are taken for attached.
    pub(super) listens_longer: bool,
}

impl Http {
    /// Prepares a connection; nothing is sent yet.
    pub(super) fn new(url: Url, options: &Options) -> Result<Self, String> {
        let mut extra = HeaderMap::new();
        for header in &options.http.headers {
            let name = header_name(&header.name)?;
            let mut value = HeaderValue::from_str(header.value.expose_secret())
                .map_err(|_| format!("the value of header `{}` has characters that HTTP forbids", header.name))?;
            value.set_sensitive(true);
            extra.append(name, value);
        }
        let identity_header = options.http.identity_header.as_deref().map(header_name).transpose()?;
        // The first caller's client shows that the options work.
        let clients = HashMap::from([(Who::A, client(&url, &options.http)?)]);
        let options = options.clone();
        Ok(Self {
            url,
            options,
            clients,
            extra,
            identity_header,
            sessions: HashMap::new(),
            challenge: None,
            asked_to_wait: None,
            clock_ahead: None,
            issued: None,
            listens_longer: false,
        })
    }

    /// Each caller has connections of its own: what a server or a proxy remembers of a connection must not mix A and B.
    fn client_of(&mut self, who: Who) -> Result<reqwest::Client, String> {
        if let Some(client) = self.clients.get(&who) {
            return Ok(client.clone());
        }
        let client = client(&self.url, &self.options.http)?;
        self.clients.insert(who, client.clone());
        Ok(client)
    }

    pub(super) fn shown(&self) -> String {
        shown(&self.url)
    }

    /// Sends one request as somebody.
    pub(super) async fn send(
        &mut self,
        era: &Era,
        identity: &Identity,
        request: &Request,
        param_headers: &[(String, String)],
        timeout: Duration,
    ) -> Reply {
        let exchange = async {
            let headers = match self.headers(era, identity, request, param_headers) {
                Ok(headers) => headers,
                Err(reason) => return fault(None, Fault::NotMcp(reason)),
            };
            let client = match self.client_of(identity.who) {
                Ok(client) => client,
                Err(reason) => return fault(None, Fault::Unreachable(reason)),
            };
            let sent =
                client.post(self.url_for(identity)).headers(headers).body(request.to_value().to_string()).send().await;
            match sent {
                Ok(response) => {
                    self.challenge = challenge_of(&response);
                    self.asked_to_wait = wait_of(&response);
                    self.clock_ahead = clock_ahead(&response).or(self.clock_ahead);
                    let issued = response.headers().get(headers::SESSION_ID);
                    self.issued = issued.and_then(|id| id.to_str().ok()).map(str::to_owned);
                    if let Some(session) = response.headers().get(headers::SESSION_ID)
                        && request.method == "initialize"
                        && response.status().is_success()
                    {
                        self.sessions.insert(identity.who, session.clone());
                    }
                    self.read(response, request).await
                }
                Err(error) if error.is_connect() => {
                    fault(None, Fault::Unreachable(with_hint(chain(&error.without_url()))))
                }
                Err(error) => fault(None, Fault::Closed(chain(&error.without_url()))),
            }
        };
        tokio::time::timeout(timeout, exchange).await.unwrap_or_else(|_| fault(None, Fault::TimedOut(timeout)))
    }

    /// Sends two requests at once, each by the connections of its own caller.
    pub(super) async fn send_together(
        &mut self,
        era: &Era,
        postings: [Posting<'_>; 2],
        timeout: Duration,
    ) -> [Reply; 2] {
        let mut ready = Vec::new();
        for (identity, request, param_headers) in postings {
            let headers = self.headers(era, identity, request, param_headers);
            match (headers, self.client_of(identity.who)) {
                (Ok(headers), Ok(client)) => {
                    let url = self.url_for(identity);
                    ready.push((client.post(url).headers(headers).body(request.to_value().to_string()), request));
                }
                (Err(reason), _) => return [(); 2].map(|()| fault(None, Fault::NotMcp(reason.clone()))),
                (_, Err(reason)) => return [(); 2].map(|()| fault(None, Fault::Unreachable(reason.clone()))),
            }
        }
        let here = &*self;
        let mut sent = ready.into_iter().map(|(posting, request)| async move {
            let answer = async {
                match posting.send().await {
                    Ok(response) => here.read(response, request).await,
                    Err(error) => fault(None, Fault::Closed(chain(&error.without_url()))),
                }
            };
            tokio::time::timeout(timeout, answer).await.unwrap_or_else(|_| fault(None, Fault::TimedOut(timeout)))
        });
        match (sent.next(), sent.next()) {
            (Some(one), Some(other)) => tokio::join!(one, other).into(),
            _ => [(); 2].map(|()| fault(None, Fault::NotMcp("nothing was sent".to_owned()))),
        }
    }

    /// Puts a header on every request, or takes it away; what HTTP forbids is left out.
    pub(super) fn add_header(&mut self, name: &str, value: Option<&str>) {
        let Ok(name) = header_name(name) else { return };
        match value.and_then(|value| HeaderValue::from_str(value).ok()) {
            Some(value) => self.extra.insert(name, value),
            None => self.extra.remove(name),
        };
    }

    /// The session id that came with the last answer.
    pub(super) fn issued(&self) -> Option<&str> {
        self.issued.as_deref()
    }

    fn headers(
        &self,
        era: &Era,
        identity: &Identity,
        request: &Request,
        param_headers: &[(String, String)],
    ) -> Result<HeaderMap, String> {
        let mut headers = self.caller_headers(identity)?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        match era {
            Era::Modern => {
                let standard = headers::standard(&request.method, &request.params);
                let mirrors = param_headers.iter().map(|(name, value)| (name.as_str(), value.clone()));
                for (name, value) in standard.into_iter().chain(mirrors) {
                    let value = HeaderValue::from_str(&value).map_err(|error| format!("header `{name}`: {error}"))?;
                    headers.insert(header_name(name)?, value);
                }
            }
            Era::Legacy(version) => {
                if request.method != "initialize" {
                    headers.insert(
                        HeaderName::from_static("mcp-protocol-version"),
                        HeaderValue::from_str(version).map_err(|error| error.to_string())?,
                    );
                }
                if let Some(session) = self.sessions.get(&identity.who) {
                    headers.insert(HeaderName::from_static("mcp-session-id"), session.clone());
                }
            }
        }
        Ok(headers)
    }

    /// Where a caller's requests go: to the endpoint, and for one who shows its token in the query, with that.
    fn url_for(&self, identity: &Identity) -> Url {
        let mut url = self.url.clone();
        if let (Who::InQuery, Some(credential)) = (identity.who, identity.credential()) {
            url.query_pairs_mut().append_pair("access_token", credential);
        }
        url
    }

    pub(super) fn can_lead_to(&self, place: &str) -> bool {
        let here = |url: &Url| url.host_str().is_some_and(is_loopback);
        let place = Url::parse(place).ok().filter(|url| ["http", "https"].contains(&url.scheme()));
        place.is_some_and(|place| here(&self.url) || !here(&place))
    }

    /// How many seconds the server's clock is ahead of ours: not at all where it runs on this machine and does not say.
    pub(super) fn clock_ahead(&self) -> Option<f64> {
        self.clock_ahead.or_else(|| self.url.host_str().is_some_and(is_loopback).then_some(0.0))
    }

    /// How long the last answer asks to wait before the same call.
    pub(super) fn asked_to_wait(&self) -> Option<Duration> {
        self.asked_to_wait
    }

    /// The challenge of the last answer.
    pub(super) fn challenge(&self) -> Option<&str> {
        self.challenge.as_deref()
    }

    /// The path of the endpoint.
    pub(super) fn path(&self) -> &str {
        self.url.path()
    }

    fn caller_headers(&self, identity: &Identity) -> Result<HeaderMap, String> {
        let mut headers = self.extra.clone();
        let Some(credential) = identity.credential().filter(|_| identity.who != Who::InQuery) else {
            // Who comes without a credential comes without one that `--header` would give to everybody.
            headers.remove(self.identity_header.as_ref().unwrap_or(&AUTHORIZATION));
            return Ok(headers);
        };
        let (name, text) = match &self.identity_header {
            Some(name) => (name.clone(), credential.to_owned()),
            None => (AUTHORIZATION, format!("Bearer {credential}")),
        };
        let mut value = HeaderValue::from_str(&text)
            .map_err(|_| format!("the credential of {} has characters that HTTP forbids", identity.who.label()))?;
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok(headers)
    }

    async fn read(&self, response: reqwest::Response, request: &Request) -> Reply {
        let status = response.status();
        let streamed = is_stream(&response);
        if status.is_redirection() {
            let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let origin = location.and_then(|to| self.url.join(to).ok()).map(|to| to.origin().ascii_serialization());
            let text =
                format!("redirects to {}, which is not followed", origin.unwrap_or_else(|| "nowhere".to_owned()));
            return Reply::new(Some(status.as_u16()), Body::Bare(text));
        }
        let mut heard = Heard::default();
        let body = if streamed && status.is_success() {
            read_stream(response, request, &self.options, &mut heard).await
        } else {
            read_whole(response, status, request, self.options.max_body).await
        };
        Reply { heard: heard.0, ..Reply::new(Some(status.as_u16()), body) }
    }

    /// Sends a notification; the answer, if any, does not matter.
    pub(super) async fn notify(
        &mut self,
        era: &Era,
        identity: &Identity,
        notification: &Notification,
        timeout: Duration,
    ) -> Result<(), String> {
        let stand_in =
            Request { id: 0.into(), method: notification.method.clone(), params: notification.params.clone() };
        let headers = self.headers(era, identity, &stand_in, &[])?;
        let body = notification.to_value().to_string();
        let sent =
            self.client_of(identity.who)?.post(self.url.clone()).headers(headers).body(body).timeout(timeout).send();
        sent.await.map(drop).map_err(|error| chain(&error.without_url()))
    }

    /// Ends the legacy sessions that this run was given. "Clients that no longer need a session SHOULD send DELETE."
    pub(super) async fn end_sessions(&mut self, era: &Era, identities: &Identities) {
        for (who, session) in std::mem::take(&mut self.sessions) {
            let (Ok(mut headers), Ok(client)) = (self.caller_headers(identities.of(who)), self.client_of(who)) else {
                continue;
            };
            headers.insert(HeaderName::from_static("mcp-session-id"), session.clone());
            if let Era::Legacy(version) = era
                && let Ok(version) = HeaderValue::from_str(version)
            {
                headers.insert(HeaderName::from_static("mcp-protocol-version"), version);
            }
            // A server that refuses to end a session keeps it; that is its business here.
            let _ = client.delete(self.url.clone()).headers(headers).timeout(CLOSING).send().await;
        }
    }
}

fn fault(status: Option<u16>, fault: Fault) -> Reply {
    Reply::new(status, Body::Fault(fault))
}

fn header_name(name: &str) -> Result<HeaderName, String> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("`{name}` is not a header name"))
}

fn with_hint(reason: String) -> String {
    if reason.contains("certificate") { format!("{reason} (--ca-file FILE trusts a private CA)") } else { reason }
}

const LONGEST_CHALLENGE: usize = 8192;
const USUAL_PATHS: [&str; 3] = ["/mcp", "/", "/rpc"];
/// How long what ends is waited for.
const CLOSING: Duration = Duration::from_secs(2);
