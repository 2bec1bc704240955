//! Requests that name their session themselves, whatever the handshake opened: by any verb, as anybody, with any id or
//! none. And pages beside the endpoint, where a server may tell more than it should.

use std::time::Duration;

use handfast_wire::{
    headers as wire,
    message::{self, Message, Response},
    sse,
};
use reqwest::{
    Method,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};

use super::{Body, CLOSING, Fault, Http, Identity, Reply, chain, fault, is_stream};
use crate::{
    clock::Deadline,
    target::session::{Sending, Verb, Visited},
};

impl Http {
    /// Sends one request with this session id, and reads the answer; of a stream that GET attaches, only that it is there.
    pub(in crate::target) async fn visit(
        &mut self,
        identity: &Identity,
        sending: &Sending<'_>,
        timeout: Duration,
    ) -> Visited {
        let exchange = async {
            let headers = match self.visit_headers(identity, sending) {
                Ok(headers) => headers,
                Err(reason) => return Visited::lost(Fault::NotMcp(reason)),
            };
            let client = match self.client_of(identity.who) {
                Ok(client) => client,
                Err(reason) => return Visited::lost(Fault::Unreachable(reason)),
            };
            let mut building = client.request(method_of(sending.verb), self.url_for(identity)).headers(headers);
            if let Some(body) = &sending.body {
                building = building.body(body.clone());
            }
            match building.send().await {
                Ok(response) => self.visited(response, sending).await,
                Err(error) if error.is_connect() => Visited::lost(Fault::Unreachable(chain(&error.without_url()))),
                Err(error) => Visited::lost(Fault::Closed(chain(&error.without_url()))),
            }
        };
        tokio::time::timeout(timeout, exchange).await.unwrap_or_else(|_| Visited::lost(Fault::TimedOut(timeout)))
    }

    fn listening(&self) -> Duration {
        FIRST_WORDS[usize::from(self.listens_longer)]
    }

    fn visit_headers(&self, identity: &Identity, sending: &Sending<'_>) -> Result<HeaderMap, String> {
        let &Sending { verb, session, version, .. } = sending;
        let mut headers = self.caller_headers(identity)?;
        let accept = match verb {
            Verb::Get => "text/event-stream",
            Verb::Post | Verb::Delete => "application/json, text/event-stream",
        };
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        if verb == Verb::Post {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        for (name, value) in [("mcp-protocol-version", version), ("mcp-session-id", session)] {
            if let Some(value) = value {
                let value = HeaderValue::from_str(value).map_err(|error| format!("header `{name}`: {error}"))?;
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        Ok(headers)
    }

    async fn visited(&mut self, response: reqwest::Response, sending: &Sending<'_>) -> Visited {
        self.challenge = super::challenge_of(&response);
        let issued = response.headers().get(wire::SESSION_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
        let status = response.status();
        let stream = sending.verb == Verb::Get && status.is_success() && is_stream(&response);
        let reply = match sending.request {
            Some(request) => self.read(response, request).await,
            // A stream never ends by itself: that it is attached is all that there is to know, but for a refusal in it.
            None if stream => Reply::new(Some(status.as_u16()), first_words(response, self.listening()).await),
            None => match text_of(response, LONGEST_WORDS).await {
                Ok(text) => Reply::new(Some(status.as_u16()), error_or_words(text)),
                Err(lost) => fault(Some(status.as_u16()), lost),
            },
        };
        Visited { reply, issued, stream }
    }

    /// Ends a session. "Clients that no longer need a particular session SHOULD send an HTTP DELETE."
    pub(in crate::target) async fn end(&mut self, identity: &Identity, session: &str, version: Option<&str>) {
        let sending = Sending { verb: Verb::Delete, session: Some(session), version, body: None, request: None };
        self.visit(identity, &sending, CLOSING).await;
    }

    /// The status and the text of a page of the same origin, within bounds.
    pub(in crate::target) async fn page(
        &mut self,
        identity: &Identity,
        path: &str,
        timeout: Duration,
    ) -> Result<(u16, String), Fault> {
        let reading = async {
            let mut url = self.url.clone();
            url.set_path(path);
            url.set_query(None);
            let mut headers = self.caller_headers(identity).map_err(Fault::NotMcp)?;
            headers.insert(ACCEPT, HeaderValue::from_static("application/json, */*;q=0.5"));
            let client = self.client_of(identity.who).map_err(Fault::Unreachable)?;
            let sent = client.get(url).headers(headers).send().await;
            let response = sent.map_err(|error| Fault::Closed(chain(&error.without_url())))?;
            let status = response.status().as_u16();
            Ok((status, beginning_of(response, LONGEST_PAGE).await?))
        };
        tokio::time::timeout(timeout, reading).await.unwrap_or(Err(Fault::TimedOut(timeout)))
    }
}

/// What a page says: one that never ends, as a stream of events, is left after a while.
async fn beginning_of(mut response: reqwest::Response, limit: usize) -> Result<String, Fault> {
    let mut bytes = Vec::new();
    let until = Deadline::after(CLOSING);
    while bytes.len() < limit {
        let Some(left) = until.left() else { break };
        match tokio::time::timeout(left, response.chunk()).await {
            Ok(Ok(Some(chunk))) => bytes.extend_from_slice(&chunk),
            Ok(Ok(None)) | Err(_) => break,
            Ok(Err(error)) => return Err(Fault::Closed(chain(&error.without_url()))),
        }
    }
    bytes.truncate(limit);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What a stream begins with: a refusal, or nothing that matters. Whoever waits for something to tell is not waited for.
async fn first_words(mut response: reqwest::Response, listening: Duration) -> Body {
    let mut begun = false;
    let mut decoder = sse::Decoder::new(LONGEST_WORDS);
    let reading = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            let Ok(events) = decoder.push(&chunk) else { break };
            begun = true;
            if events.iter().any(|event| event.name.as_deref() == Some("error")) {
                return Body::Fault(Fault::NotMcp("the stream begins with an event that is called `error`".to_owned()));
            }
            if let Some(event) = events.into_iter().find(|event| !event.data.is_empty()) {
                return error_or_words(event.data);
            }
        }
        if begun {
            Body::Bare(String::new())
        } else {
            Body::Fault(Fault::Closed("the stream ended at once".to_owned()))
        }
    };
    tokio::time::timeout(listening, reading).await.unwrap_or_else(|_| Body::Bare(String::new()))
}

/// A server may refuse a stream or an end by a JSON-RPC error, whatever the status says.
fn error_or_words(text: String) -> Body {
    match message::parse(text.as_bytes()) {
        Ok(Message::Response(Response { outcome: Err(error), .. })) => Body::Error(error),
        _ => Body::Bare(text),
    }
}

/// The beginning of a body, as text.
async fn text_of(mut response: reqwest::Response, limit: usize) -> Result<String, Fault> {
    let mut bytes = Vec::new();
    while bytes.len() < limit {
        match response.chunk().await {
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Ok(None) => break,
            Err(error) => return Err(Fault::Closed(chain(&error.without_url()))),
        }
    }
    bytes.truncate(limit);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn method_of(verb: Verb) -> Method {
    match verb {
        Verb::Post => Method::POST,
        Verb::Get => Method::GET,
        Verb::Delete => Method::DELETE,
    }
}

/// How long a stream is listened to, and where much depends on it.
const FIRST_WORDS: [Duration; 2] = [Duration::from_millis(150), Duration::from_millis(1500)];
const LONGEST_WORDS: usize = 4096;
const LONGEST_PAGE: usize = 256 * 1024;
