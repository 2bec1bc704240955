//! What is said to somebody who waits, and how much of it may be unread.

use std::sync::Arc;

use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// What somebody hears who waits.
pub(super) enum Heard {
    /// A message on the way to the answer.
    Message { text: String, asks: bool },
    /// The answer, and which error it is.
    Answer { text: String, error: Option<i64> },
    /// There will be none.
    Lost(Loss),
}

/// Why there will be no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(super) enum Loss {
    #[error("the child has ended")]
    Ended,
    #[error("the child's message is too long")]
    TooLong,
    #[error("too much waits to be read")]
    Unread,
    #[error("the child said nothing in time")]
    Late,
}

/// What waits to be read, with its share of the room for that.
pub(super) type Waiting = (Heard, Option<OwnedSemaphorePermit>);

/// Takes what is said to somebody, as long as not too much of it is unread.
pub(super) struct Ear {
    room: Arc<Semaphore>,
    say: mpsc::UnboundedSender<Waiting>,
}

impl Ear {
    /// For messages of at most so many bytes.
    pub(super) fn new(longest: usize) -> (Self, mpsc::UnboundedReceiver<Waiting>) {
        let (say, hear) = mpsc::unbounded_channel();
        let room = longest.saturating_add(OVERHEAD).saturating_mul(2).min(Semaphore::MAX_PERMITS);
        let room = Arc::new(Semaphore::new(room));
        (Self { room, say }, hear)
    }

    /// Whether there was room for it.
    pub(super) fn say(&self, heard: Heard) -> bool {
        let length = match &heard {
            Heard::Message { text, .. } | Heard::Answer { text, .. } => text.len() + OVERHEAD,
            Heard::Lost(_) => 0,
        };
        let permit =
            u32::try_from(length).ok().and_then(|length| Arc::clone(&self.room).try_acquire_many_owned(length).ok());
        // Who no longer listens has dropped its end, and is taken from the table with it.
        permit.map(|permit| self.say.send((heard, Some(permit)))).is_some()
    }

    /// The last that is ever said to it.
    pub(super) fn lose(&self, loss: Loss) {
        if self.room.is_closed() {
            return;
        }
        self.room.close();
        let _ = self.say.send((Heard::Lost(loss), None));
    }
}

/// What a message costs beside its bytes.
const OVERHEAD: usize = 128;
