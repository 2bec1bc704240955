//! A use that is written down only when its answer goes out: whoever comes in between finds nothing written.

use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::http::Reply;

/// What was used, by what is written down and by what is yet to be.
#[derive(Default)]
pub(crate) struct Late(Mutex<Uses>);

#[derive(Default)]
struct Uses {
    written: BTreeSet<String>,
    unwritten: Vec<String>,
}

impl Late {
    /// Whether nothing is written of an earlier use.
    pub(crate) fn uses_first(&self, nonce: &str) -> bool {
        let mut uses = self.uses();
        let first = !uses.written.contains(nonce);
        uses.unwritten.extend(first.then(|| nonce.to_owned()));
        first
    }

    /// Answers a request, and takes a moment to write down what was used by it.
    pub(crate) async fn answered(&self, respond: impl FnOnce() -> Reply) -> Reply {
        let reply = respond();
        for _ in 0..LOOKS {
            if self.uses().unwritten.len() != 1 {
                break;
            }
            tokio::time::sleep(LOOK).await;
        }
        self.write_down();
        reply
    }

    /// From now on what was used is known.
    pub(crate) fn write_down(&self) {
        let mut uses = self.uses();
        let unwritten = std::mem::take(&mut uses.unwritten);
        uses.written.extend(unwritten);
    }

    fn uses(&self) -> MutexGuard<'_, Uses> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const LOOKS: usize = 16;
const LOOK: Duration = Duration::from_millis(4);
