//! Bodies: one that is read within a bound, one that is read as far as is needed, and a stream that ends with its session.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use axum_core::body::{Body, BodyDataStream};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream};
use tokio::{sync::oneshot, task::AbortHandle};

use super::{
    BoxError,
    peek::{self, Events},
};
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

/// Reads of an answer as much as says whether `initialize` has succeeded, and gives the whole answer back; `None` where that
/// cannot be said: it is too long, broken, or ends without an answer.
pub(super) async fn begun<B>(body: B, is_stream: bool) -> Option<(bool, Body)>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let mut chunks = Body::new(body).into_data_stream();
    let (mut read, mut events) = (BytesMut::new(), Events::default());
    let verdict = loop {
        match chunks.next().await {
            Some(Ok(chunk)) if read.len() + chunk.len() <= MOST_OF_A_BEGINNING => {
                read.extend_from_slice(&chunk);
                if is_stream && let Some(verdict) = events.more(&chunk) {
                    break verdict;
                }
            }
            None if !is_stream => break peek::succeeded(&read)?,
            _ => return None,
        }
    };
    let first = stream::once(async move { Ok(read.freeze()) });
    Some((verdict, Body::from_stream(first.chain(chunks))))
}

/// A stream that ends when its session does, whether or not anybody reads it.
pub(super) struct Watched {
    messages: Arc<Mutex<Option<BodyDataStream>>>,
    over: oneshot::Receiver<()>,
    watch: AbortHandle,
    _open: Option<tally::Open>,
}

/// Whose session a stream belongs to, and how long it may go on.
pub(super) struct Watch {
    pub(super) authority: Arc<SessionAuthority>,
    pub(super) caller: Caller,
    pub(super) session: Session,
    /// When the token ends that it was opened with, where it ends with that.
    pub(super) token_ends: Option<Timestamp>,
    /// How often it is asked whether the session is there.
    pub(super) every: Duration,
}

impl Watched {
    pub(super) fn body(messages: Body, watch: Watch, open: Option<tally::Open>) -> Body {
        let messages = Arc::new(Mutex::new(Some(messages.into_data_stream())));
        let (tell, over) = oneshot::channel();
        let watched = Arc::clone(&messages);
        let task = tokio::spawn(async move {
            watch.until_it_is_over().await;
            // The server behind sees that nobody listens any more.
            drop(watched.lock().unwrap_or_else(PoisonError::into_inner).take());
            // Whoever reads may have gone.
            let _ = tell.send(());
        });
        Body::from_stream(Self { messages, over, watch: task.abort_handle(), _open: open })
    }
}

impl Watch {
    async fn until_it_is_over(&self) {
        let goes_on = async {
            loop {
                tokio::time::sleep(self.every).await;
                // A store that does not say that the session is there says that it is not.
                let asking = self.authority.goes_on(&self.caller, &self.session);
                if !tokio::time::timeout(PATIENCE, asking).await.unwrap_or(false) {
                    return;
                }
            }
        };
        let token = async {
            match self.token_ends {
                Some(ends) => {
                    // Now and then the clock is asked again: it may be set, and a timer does not know.
                    while SystemClock.now() < ends {
                        let left = ends.duration_since(SystemClock.now()).unsigned_abs();
                        tokio::time::sleep(left.clamp(SHORTEST, LONGEST)).await;
                    }
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = goes_on => {}
            () = token => {}
        }
    }
}

/// How long the store may take to say whether a session is there.
const PATIENCE: Duration = Duration::from_secs(10);
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(60);

impl Stream for Watched {
    type Item = Result<Bytes, axum_core::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let mut messages = this.messages.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *messages {
            // To be told that it is over is a reason to look again.
            Some(_) if Pin::new(&mut this.over).poll(context).is_ready() => Poll::Ready(None),
            Some(messages) => messages.poll_next_unpin(context),
            None => Poll::Ready(None),
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.watch.abort();
    }
}
