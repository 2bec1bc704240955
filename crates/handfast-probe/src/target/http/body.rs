//! The body of an answer, read within bounds: one message, or the events of a stream until the answer is among them.

use handfast_wire::{
    message::{self, Message, Request, RequestId, Response},
    sse,
};
use reqwest::{StatusCode, header::CONTENT_TYPE};
use serde_json::Value;

use super::{
    super::{Body, Fault, Heard, Options},
    CLOSING,
    client::chain,
};

pub(super) fn is_stream(response: &reqwest::Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|value| value.trim_start().to_ascii_lowercase().starts_with("text/event-stream"))
}

pub(super) async fn read_whole(
    mut response: reqwest::Response,
    status: StatusCode,
    request: &Request,
    limit: usize,
) -> Body {
    let mut bytes = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if bytes.len() + chunk.len() > limit => return Body::Fault(Fault::TooLarge(limit)),
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Ok(None) => break,
            Err(error) => return Body::Fault(Fault::Closed(chain(&error.without_url()))),
        }
    }
    match message::parse(&bytes) {
        Ok(Message::Response(answer)) => match addressed(answer, request) {
            Ok(body) => body,
            Err(fault) => Body::Fault(fault),
        },
        _ if !status.is_success() => {
            Body::Bare(String::from_utf8_lossy(&bytes[..bytes.len().min(KEPT_OF_BARE_BODY)]).into_owned())
        }
        Ok(_) => Body::Fault(Fault::NotMcp("a message that is no answer".to_owned())),
        Err(error) => Body::Fault(Fault::NotMcp(error.to_string())),
    }
}

pub(super) async fn read_stream(
    mut response: reqwest::Response,
    request: &Request,
    options: &Options,
    heard: &mut Heard,
) -> Body {
    let limit = options.max_body;
    let mut decoder = sse::Decoder::new(limit);
    let (mut received, mut unreadable) = (0, None);
    loop {
        let chunk = match response.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => {
                return Body::Fault(match unreadable {
                    Some(reason) => Fault::NotMcp(reason),
                    None => Fault::Closed("the stream ended".to_owned()),
                });
            }
            Err(error) => return Body::Fault(Fault::Closed(chain(&error.without_url()))),
        };
        received += chunk.len();
        let Ok(events) = decoder.push(&chunk) else { return Body::Fault(Fault::TooLarge(limit)) };
        // Heartbeats come as events of other names, or as data that is no message: only `message` carries one.
        let carries =
            |event: &&sse::Event| !event.data.is_empty() && event.name.as_deref().is_none_or(|name| name == "message");
        for event in events.iter().filter(carries) {
            match message::parse(event.data.as_bytes()) {
                // Another id is an answer to something else; a stream may carry it before ours.
                Ok(Message::Response(answer)) if answer.id.is_none() || answer.id.as_ref() == Some(&request.id) => {
                    if options.http.keeps_connection {
                        // A connection is kept only by who has read all that came on it.
                        let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
                        let _ = tokio::time::timeout(CLOSING, rest).await;
                    }
                    return answered(answer);
                }
                Ok(message) => heard.note(&message),
                Err(error) => unreadable = Some(error.to_string()),
            }
        }
        if received > limit {
            return Body::Fault(Fault::TooLarge(limit));
        }
    }
}

fn addressed(answer: Response, request: &Request) -> Result<Body, Fault> {
    match &answer.id {
        // An error that comes before a message is read has no id; the SDK for Python of 2025 has a word in its place.
        Some(RequestId::Text(id)) if answer.outcome.is_err() && id == BEFORE_READING => Ok(answered(answer)),
        Some(id) if *id != request.id => Err(Fault::NotMcp("the answer carries the id of another request".to_owned())),
        _ => Ok(answered(answer)),
    }
}

pub(in crate::target) fn answered(answer: Response) -> Body {
    match answer.outcome {
        Ok(result @ Value::Object(_)) => Body::Result(result),
        Ok(_) => Body::Fault(Fault::NotMcp("the result is not an object".to_owned())),
        Err(error) => Body::Error(error),
    }
}

const BEFORE_READING: &str = "server-error";
const KEPT_OF_BARE_BODY: usize = 64 * 1024;
