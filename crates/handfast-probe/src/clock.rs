//! The one place that reads a clock.
#![allow(clippy::disallowed_methods, reason = "this is that place")]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// A point in time that a run must not pass.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    at: Instant,
    started: Instant,
}

impl Deadline {
    /// A deadline this far from now.
    pub fn after(duration: Duration) -> Self {
        let started = Instant::now();
        Self { at: started + duration, started }
    }

    /// What is left; nothing when it has passed.
    pub fn left(&self) -> Option<Duration> {
        self.at.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }

    /// How long the run has taken.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

/// Seconds since 1970, for the timestamps of reports.
pub fn unix_seconds() -> u64 {
    since_1970().as_secs()
}

/// The same to the nanosecond.
pub fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
