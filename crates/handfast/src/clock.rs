//! The one place where clocks are read. Time is passed in everywhere else, so that tests can move it.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::{Duration, SystemTime},
};

pub use jiff::Timestamp;

/// Tells the time, in whole microseconds: what every store keeps, and the tick of every expiry.
pub trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// The clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "this is the one place that asks the system")]
        let now = SystemTime::now();
        match now.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => from_micros(micros(since)),
            Err(before) => from_micros(-micros(before.duration())),
        }
    }
}

/// A clock that stands still until it is moved, in either direction: for tests, and for verifying expiries to the tick.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that stands at this time.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self(AtomicI64::new(now.as_microsecond()))
    }

    /// Moves it to this time.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_microsecond(), Ordering::SeqCst);
    }

    /// Moves it forward.
    pub fn advance(&self, by: Duration) {
        self.set(later(self.now(), by));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        from_micros(self.0.load(Ordering::SeqCst))
    }
}

/// The latest time that this process has seen: time never goes back behind it.
///
/// Without it a clock that is set back would revive handles that were already seen expired.
#[derive(Debug, Default)]
pub struct Horizon(AtomicI64);

impl Horizon {
    /// Nothing was seen yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The later of the two: this time, or the latest seen before.
    pub fn reach(&self, now: Timestamp) -> Timestamp {
        let now = now.as_microsecond();
        from_micros(self.0.fetch_max(now, Ordering::SeqCst).max(now))
    }

    /// The latest time seen.
    pub fn seen(&self) -> Timestamp {
        from_micros(self.0.load(Ordering::SeqCst))
    }
}

/// The time so many microseconds later; the end of time where that is beyond it.
pub(crate) fn later(than: Timestamp, by: Duration) -> Timestamp {
    from_micros(than.as_microsecond().saturating_add(micros(by)))
}

/// The time so much earlier; the beginning of time where that is before it.
pub(crate) fn earlier(than: Timestamp, by: Duration) -> Timestamp {
    than.checked_sub(by).unwrap_or(Timestamp::MIN)
}

/// What a store keeps of a time.
pub(crate) fn from_micros(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(if micros < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

/// A time that only goes forward, to measure how long something takes. No expiry is judged by it.
#[cfg(feature = "postgres")]
pub(crate) fn monotonic() -> std::time::Instant {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that asks the system")]
    std::time::Instant::now()
}

/// A time as the operating system has it.
#[cfg(feature = "postgres")]
pub(crate) fn system_time(time: Timestamp) -> SystemTime {
    let micros = Duration::from_micros(time.as_microsecond().unsigned_abs());
    if time < Timestamp::UNIX_EPOCH { SystemTime::UNIX_EPOCH - micros } else { SystemTime::UNIX_EPOCH + micros }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_horizon_never_goes_back() {
        let horizon = Horizon::new();
        let (early, late) = (from_micros(1_000_000), from_micros(2_000_000));

        assert_eq!(horizon.reach(late), late);
        assert_eq!(horizon.reach(early), late);
        assert_eq!(horizon.reach(from_micros(2_000_001)), from_micros(2_000_001));
    }

    #[test]
    fn the_ends_of_time_are_not_passed() {
        assert_eq!(later(Timestamp::MAX, Duration::MAX), Timestamp::MAX);
        assert_eq!(earlier(Timestamp::MIN, Duration::from_secs(1)), Timestamp::MIN);
        assert_eq!(from_micros(i64::MAX), Timestamp::MAX);
    }

    #[test]
    fn the_system_clock_ticks_in_whole_microseconds() {
        assert_eq!(SystemClock.now().as_nanosecond() % 1000, 0);
    }
}
