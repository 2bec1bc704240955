//! Ids of requests: servers have confused callers whose requests had the same one, so that none of a client gets to them.

use std::ops::Range;

use aws_lc_rs::digest;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use handfast::Caller;
use handfast_wire::span::{self, Kind, Node};
use http::HeaderValue;
use serde_json::Value;

use crate::{admit::Message, respond::Rejection};

/// The ids that stand for those of a client.
#[derive(Default)]
pub(crate) struct Ids {
    /// What stands before the client's own id in a session: what is cancelled, or answered later, is named by it as well.
    /// Empty where there are no sessions, and every id is new.
    mark: String,
    /// What the server behind was sent, and what the client has sent, both in JSON.
    exchanged: Option<(String, String)>,
}

impl Ids {
    /// Those of requests of this caller in this session of the server behind.
    pub(crate) fn of_session(caller: &Caller, session: Option<&HeaderValue>) -> Self {
        let part = |text: Option<&str>| format!("{}\n", text.unwrap_or_default());
        let mut whose = part(session.and_then(|session| session.to_str().ok()));
        if let Some(principal) = caller.principal() {
            whose += &part(Some(principal.issuer().as_str()));
            whose += &part(Some(principal.subject().expose()));
        }
        whose += &part(caller.tenant().map(handfast::Tenant::as_str));
        whose += &part(caller.client().map(handfast::ClientId::as_str));
        let digest = digest::digest(&digest::SHA256, whose.as_bytes());
        Self { mark: format!("{}.", URL_SAFE_NO_PAD.encode(&digest.as_ref()[..15])), exchanged: None }
    }

    /// The places of a message that hold an id of a request of the client, and what the server behind is sent there.
    pub(crate) fn exchange(&mut self, message: &Message<'_, '_>, text: &str) -> Vec<(Range<usize>, String)> {
        let sent = |own: &Node<'_>| match self.mark.is_empty() {
            true => format!("\"{}\"", handfast::ObjectRef::random()),
            false => Value::from(format!("{}{}", self.mark, own.raw(text))).to_string(),
        };
        let cancelled = message.params.and_then(|params| params.get("requestId"));
        match (message.id, message.method) {
            (Some(own), Some(_)) => {
                let sent = sent(own);
                self.exchanged = Some((sent.clone(), own.raw(text).to_owned()));
                vec![(own.at.clone(), sent)]
            }
            (None, Some(CANCELLED)) if !self.mark.is_empty() => {
                cancelled.map(|own| (own.at.clone(), sent(own))).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// The id of the request, as the client has sent it; empty where it has sent none.
    pub(crate) fn own(&self) -> &str {
        self.exchanged.as_ref().map_or("", |(_, own)| own)
    }

    /// The places of a message of the server behind that hold an id of ours, and what the client is told there.
    ///
    /// An answer is an answer to what was asked.
    pub(crate) fn give_back(&self, node: &Node<'_>, text: &str) -> Result<Vec<(Range<usize>, String)>, Rejection> {
        let mut changes = Vec::new();
        let (is_result, is_error) = (node.get("result").is_some(), node.get("error").is_some());
        if is_result || is_error {
            match node.get("id").map(|id| (id, self.known(id, text))) {
                Some((id, Some(own))) => changes.push((id.at.clone(), own)),
                // "A response without an id" is said of a request that could not be read.
                None if !is_result => {}
                Some((id, None)) if !is_result && id.raw(text) == "null" => {}
                _ => return Err(Rejection::Upstream("the server has answered another request")),
            }
        }
        let meta = ["params", "result"].into_iter().filter_map(|part| node.get(part)?.get("_meta"));
        for subscription in meta.filter_map(|meta| meta.get(SUBSCRIPTION)) {
            if let Some(own) = self.known(subscription, text) {
                changes.push((subscription.at.clone(), own));
            }
        }
        Ok(changes)
    }

    /// What the client calls it.
    fn known(&self, id: &Node<'_>, text: &str) -> Option<String> {
        if let Some((sent, own)) = &self.exchanged
            && id.raw(text) == sent
        {
            return Some(own.clone());
        }
        // On a stream of a session there may be what was asked before.
        let own = id.text().filter(|_| !self.mark.is_empty())?.strip_prefix(&self.mark)?;
        let is_id = span::parse(own).is_ok_and(|own| matches!(own.kind, Kind::Text(_) | Kind::Number));
        is_id.then(|| own.to_owned())
    }
}

const CANCELLED: &str = "notifications/cancelled";

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
