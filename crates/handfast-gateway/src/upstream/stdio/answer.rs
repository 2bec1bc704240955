//! One request from its first byte to its last: what the child says to it becomes one answer, or a stream of events.

use std::{convert::Infallible, time::Duration};

use axum_core::body::Body;
use bytes::Bytes;
use futures_util::stream;
use handfast_wire::{
    message::{Response as Answer, RpcError},
    meta,
    sse::{self, Event},
};
use http::{HeaderValue, Response, StatusCode, header};
use tokio::sync::mpsc::UnboundedReceiver;

use super::{
    ear::{Heard, Loss, Waiting},
    message::{CANCELLED, Message},
    pool::Link,
    table::{No, Owner},
};
use crate::upstream::Down;

/// A request that a child was asked. To drop it before its answer is to cancel it.
pub(super) struct Asked {
    link: Link,
    number: u64,
    hear: UnboundedReceiver<Waiting>,
    id: String,
    line: Option<String>,
    may_be_cancelled: bool,
}

impl Asked {
    pub(super) fn begin(link: Link, owner: &Owner, request: &Message<'_>) -> Result<Self, No> {
        let (number, hear) = link.table.begin(owner, request)?;
        let id = request.id.unwrap_or_default().to_owned();
        Ok(Self { link, number, hear, id, line: Some(request.numbered(number)), may_be_cancelled: false })
    }

    /// Asks, and waits for the first thing that is said to it.
    pub(super) async fn first(&mut self, patience: Duration) -> Result<Heard, Down> {
        let exchange = async {
            if let Some(line) = self.line.take() {
                let Ok(place) = self.link.input.reserve().await else { return Heard::Lost(Loss::Ended) };
                // "The initialize request MUST NOT be cancelled by clients."
                self.may_be_cancelled = !Message::read(&line).is_some_and(|request| request.is(INITIALIZE));
                place.send(line);
            }
            next(&mut self.hear).await
        };
        match tokio::time::timeout(patience, exchange).await {
            Ok(Heard::Lost(loss)) => Err(Down::Unreachable(Box::new(loss))),
            Ok(heard) => Ok(heard),
            Err(_) => Err(Down::Late),
        }
    }

    /// The answer, or a stream that ends after it.
    pub(super) fn answer(self, first: Heard, patience: Option<Duration>, is_modern: bool) -> Response<Body> {
        match first {
            Heard::Answer { text, error } => {
                let status = error.filter(|_| is_modern).map_or(StatusCode::OK, status_of);
                json(status, text)
            }
            first => {
                let talk = Talk { asked: self, first: Some(first), patience, is_asked: false, is_over: false };
                let events = stream::unfold(talk, |mut talk| async {
                    let event = talk.next().await?;
                    Some((Ok::<_, Infallible>(event), talk))
                });
                events_of(Body::from_stream(events))
            }
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if self.link.table.leave(self.number) && self.may_be_cancelled {
            let number = self.number;
            // Where the child reads nothing, it cannot be told either.
            let _ = self.link.input.try_send(format!(
                r#"{{"jsonrpc":"2.0","method":"{CANCELLED}","params":{{"requestId":{number},"reason":"nobody waits any more"}}}}"#
            ));
        }
    }
}

/// An answer that has begun with something else.
struct Talk {
    asked: Asked,
    first: Option<Heard>,
    /// For how long the child may say nothing.
    patience: Option<Duration>,
    /// It is the client who has to say something now, and that may be a person.
    is_asked: bool,
    is_over: bool,
}

impl Talk {
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        let heard = match (self.first.take(), self.patience.filter(|_| !self.is_asked)) {
            (Some(first), _) => first,
            (None, Some(patience)) => {
                tokio::time::timeout(patience, next(&mut self.asked.hear)).await.unwrap_or(Heard::Lost(Loss::Late))
            }
            (None, None) => next(&mut self.asked.hear).await,
        };
        Some(match heard {
            Heard::Message { text, asks } => {
                self.is_asked = asks;
                event(text)
            }
            Heard::Answer { text, .. } => {
                self.is_over = true;
                event(text)
            }
            Heard::Lost(loss) => {
                self.is_over = true;
                let message = serde_json::Value::from(loss.to_string());
                let (id, code) = (&self.asked.id, meta::INTERNAL_ERROR);
                event(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}}}}}"#))
            }
        })
    }
}

/// The stream of what a child says unasked; `None` where somebody has it already.
pub(super) fn unasked(link: &Link) -> Option<Response<Body>> {
    struct Listener(Link, Option<UnboundedReceiver<Waiting>>);

    impl Drop for Listener {
        fn drop(&mut self) {
            self.1.take().into_iter().for_each(|hear| self.0.table.listen_no_more(hear));
        }
    }

    let listener = Listener(link.clone(), Some(link.table.listen()?));
    let events = stream::unfold(listener, |mut listener| async {
        match next(listener.1.as_mut()?).await {
            Heard::Message { text, .. } => Some((Ok::<_, Infallible>(event(text)), listener)),
            Heard::Answer { .. } | Heard::Lost(_) => None,
        }
    });
    Some(events_of(Body::from_stream(events)))
}

async fn next(hear: &mut UnboundedReceiver<Waiting>) -> Heard {
    hear.recv().await.map_or(Heard::Lost(Loss::Ended), |(heard, _)| heard)
}

fn event(data: String) -> Bytes {
    sse::encode(&Event { name: Some("message".to_owned()), data, id: None }).into()
}

/// 404 for a method that a server does not have, and 400 for what a server finds wrong with the request itself.
fn status_of(error: i64) -> StatusCode {
    match error {
        meta::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        meta::HEADER_MISMATCH | meta::MISSING_CAPABILITY | meta::UNSUPPORTED_VERSION => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// A refusal of ours.
pub(super) fn refusal(status: StatusCode, code: i64, message: &str) -> Response<Body> {
    let error = RpcError { code, message: message.to_owned(), data: None };
    json(status, Answer { id: None, outcome: Err(error) }.to_value().to_string())
}

pub(super) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

fn json(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn events_of(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

pub(super) const INITIALIZE: &str = "initialize";
