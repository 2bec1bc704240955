//! The one clock of a twin. Tests move it; nothing sleeps.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use handfast::clock::Timestamp;

/// The system's time, plus what a test added.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// In seconds.
    ahead: AtomicU64,
}

impl Clock {
    /// Whole seconds since 1970: the tick of states.
    pub(crate) fn seconds(&self) -> u64 {
        self.since_1970().as_secs()
    }

    /// The same in thousandths, for ids that are made of it.
    pub(crate) fn milliseconds(&self) -> u64 {
        u64::try_from(self.since_1970().as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.ahead.fetch_add(seconds, Ordering::Relaxed);
    }

    fn since_1970(&self) -> Duration {
        #[allow(clippy::disallowed_methods, reason = "this is the one place that asks the system")]
        let system = SystemTime::now();
        let ahead = Duration::from_secs(self.ahead.load(Ordering::Relaxed));
        system.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_add(ahead)
    }
}

/// The same time in microseconds: the tick of handles.
impl handfast::clock::Clock for Clock {
    fn now(&self) -> Timestamp {
        let micros = i64::try_from(self.since_1970().as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
    }
}
