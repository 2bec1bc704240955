//! The one clock of a twin. Tests move it; nothing sleeps.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

/// Seconds since 1970, plus what a test added.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    ahead: AtomicU64,
}

impl Clock {
    pub(crate) fn now(&self) -> u64 {
        #[allow(clippy::disallowed_methods, reason = "this is the one place that asks the system")]
        let system = SystemTime::now();
        let seconds = system.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        seconds + self.ahead.load(Ordering::Relaxed)
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.ahead.fetch_add(seconds, Ordering::Relaxed);
    }
}
