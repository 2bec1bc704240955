//! Progress of what is mostly done at once: it is shown when it takes longer than a second.

use std::time::Duration;

use handfast::clock::{Clock, SystemClock, Timestamp};

use crate::output::Progress;

pub(super) struct Patience {
    started: Timestamp,
    progress: Option<Progress>,
}

impl Patience {
    pub(super) fn start() -> Self {
        Self { started: SystemClock.now(), progress: None }
    }

    /// Says how far it is.
    pub(super) fn say(&mut self, text: &str) {
        if SystemClock.now().duration_since(self.started).unsigned_abs() > Duration::from_secs(1) {
            self.progress.get_or_insert_with(Progress::start).say(text);
        }
    }
}
