//! How long a client may take: to send the body of a request, and to read what it is sent. Whoever takes longer loses the
//! connection, which somebody else can use.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum_core::body::Body;
use bytes::Bytes;
use http_body::Frame;
use hyper::body::Incoming;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// A connection that breaks off where nothing can be written to it for that long.
pub(crate) struct Patient<S> {
    stream: S,
    patience: Duration,
    /// While nothing can be written.
    late: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    pub(crate) fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, late: None }
    }

    fn wait<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.late = None;
            return written;
        }
        let late = self.late.get_or_insert_with(|| Box::pin(sleep(self.patience)));
        late.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.wait(written, context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, parts);
        this.wait(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

/// A body that breaks off when its time is over.
pub(crate) struct InTime {
    body: Incoming,
    late: Pin<Box<Sleep>>,
    was_late: Arc<AtomicBool>,
}

impl InTime {
    /// The body, and whether it was late.
    pub(crate) fn of(body: Incoming, patience: Duration) -> (Body, Arc<AtomicBool>) {
        let was_late = Arc::<AtomicBool>::default();
        let body = Self { body, late: Box::pin(sleep(patience)), was_late: was_late.clone() };
        (Body::new(body), was_late)
    }
}

impl http_body::Body for InTime {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        this.late.as_mut().poll(context).map(|()| {
            this.was_late.store(true, Ordering::Relaxed);
            Some(Err(io::Error::from(io::ErrorKind::TimedOut).into()))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::{io::ErrorKind, time::Duration};

    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, duplex},
        time::advance,
    };

    use super::Patient;

    #[tokio::test(start_paused = true)]
    async fn whoever_reads_now_and_then_is_waited_for_and_nobody_else() {
        let (ours, mut theirs) = duplex(8);
        let mut ours = Patient::new(ours, Duration::from_secs(10));
        let writing = tokio::spawn(async move { ours.write_all(&[0; 64]).await });
        for _ in 0..4 {
            // Until it waits.
            tokio::task::yield_now().await;
            advance(Duration::from_secs(9)).await;
            assert!(!writing.is_finished());
            theirs.read_exact(&mut [0; 8]).await.expect("it is there");
        }
        tokio::task::yield_now().await;
        advance(Duration::from_secs(11)).await;
        let late = writing.await.expect("no panic").expect_err("nobody reads any more");
        assert_eq!(late.kind(), ErrorKind::TimedOut);
    }
}
