//! Bodies: one that is read within a bound, one that is read as far as is needed, and a stream that ends with its session.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum_core::body::{Body, BodyDataStream};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};

use super::{BoxError, peek};
use crate::{
    caller::Caller,
    clock::{Clock, SystemClock, Timestamp},
    session::{Session, SessionAuthority},
    tally,
};

/// How much of an answer is read at most to find out whether a session has begun, in bytes.
const MOST_OF_A_BEGINNING: usize = 1024 * 1024;

/// A whole body; `None` where it is longer than that, or ends before its end.
pub(super) async fn whole(body: Body, most: usize) -> Option<Bytes> {
    let mut chunks = body.into_data_stream();
    let mut whole = BytesMut::new();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.ok()?;
        if whole.len() + chunk.len() > most {
            return None;
        }
        whole.extend_from_slice(&chunk);
    }
    Some(whole.freeze())
}

/// Reads of an answer as much as says whether `initialize` has succeeded, and gives the whole answer back.
pub(super) async fn begun<B>(body: B, is_stream: bool) -> (bool, Body)
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let mut chunks = Body::new(body).into_data_stream();
    let mut read = BytesMut::new();
    let verdict = loop {
        if is_stream && let Some(verdict) = peek::succeeded(&read, true) {
            break verdict;
        }
        match chunks.next().await {
            Some(Ok(chunk)) if read.len() + chunk.len() <= MOST_OF_A_BEGINNING => read.extend_from_slice(&chunk),
            None if !is_stream => break peek::succeeded(&read, false).unwrap_or(false),
            // It is too long, broken, or ends without an answer.
            _ => return (false, Body::empty()),
        }
    };
    let first = stream::once(async move { Ok(read.freeze()) });
    (verdict, Body::from_stream(first.chain(chunks)))
}

/// A stream of the server's own messages, which ends when its session does, or the token that it was opened with.
pub(super) struct Watched {
    messages: BodyDataStream,
    over: Pin<Box<dyn Future<Output = ()> + Send>>,
    _open: tally::Open,
}

impl Watched {
    pub(super) fn body(
        messages: Body,
        authority: Arc<SessionAuthority>,
        (caller, session): (Caller, Session),
        token_ends: Option<Timestamp>,
        every: Duration,
    ) -> Body {
        let over = Box::pin(async move {
            loop {
                tokio::time::sleep(every).await;
                let expired = token_ends.is_some_and(|ends| ends <= SystemClock.now());
                if expired || !authority.goes_on(&caller, &session).await {
                    return;
                }
            }
        });
        let open = tally::Open::one(tally::STREAMS);
        Body::from_stream(Self { messages: messages.into_data_stream(), over, _open: open })
    }
}

impl Stream for Watched {
    type Item = Result<Bytes, axum_core::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.over.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        self.messages.poll_next_unpin(context)
    }
}
