//! Tokens that were found good a moment ago are not verified again: a signature costs more than all the rest of a request.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;

use super::{TokenDenial, TokenVerifier, Verified};
use crate::{
    clock::{Clock, SystemClock, Timestamp, later},
    record::Digest,
};

/// A verifier whose good answers are remembered by the digest of the token: for a minute at most, and never beyond the
/// token's own end. What was refused is asked again each time.
pub struct Remembered<V> {
    verifier: V,
    clock: Arc<dyn Clock>,
    known: Mutex<HashMap<Digest, (Verified, Timestamp)>>,
}

impl<V: TokenVerifier> Remembered<V> {
    /// By the clock of the operating system.
    #[must_use]
    pub fn new(verifier: V) -> Self {
        Self::with_clock(verifier, Arc::new(SystemClock))
    }

    /// By this clock.
    #[must_use]
    pub fn with_clock(verifier: V, clock: Arc<dyn Clock>) -> Self {
        Self { verifier, clock, known: Mutex::default() }
    }
}

#[async_trait]
impl<V: TokenVerifier> TokenVerifier for Remembered<V> {
    async fn verify(&self, token: &str) -> Result<Verified, TokenDenial> {
        if token.len() > super::LONGEST {
            return Err(TokenDenial::TooLong);
        }
        let (digest, now) = (Digest::of(token), self.clock.now());
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&digest).cloned();
        if let Some((verified, until)) = known
            && now < until
            // A clock that was set back does not make it last.
            && later(now, LONGEST) >= until
        {
            return Ok(verified);
        }
        let verified = self.verifier.verify(token).await?;
        let until = later(now, LONGEST).min(verified.expires);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.retain(|_, (_, until)| now < *until);
        }
        if known.len() < MOST && now < until {
            known.insert(digest, (verified.clone(), until));
        }
        Ok(verified)
    }
}

impl<V> fmt::Debug for Remembered<V> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Remembered")
    }
}

/// How long a good answer is remembered.
const LONGEST: Duration = Duration::from_secs(60);
/// How many are.
const MOST: usize = 10_000;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::{Caller, clock::ManualClock};

    /// Takes `good`, until an end, and counts how often it is asked.
    struct Counting {
        asked: AtomicUsize,
        expires: Timestamp,
    }

    #[async_trait]
    impl TokenVerifier for Arc<Counting> {
        async fn verify(&self, token: &str) -> Result<Verified, TokenDenial> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            match token {
                "good" => Ok(Verified { caller: Caller::anonymous(), expires: self.expires }),
                _ => Err(TokenDenial::Signature),
            }
        }
    }

    #[tokio::test]
    async fn a_good_token_is_verified_once_a_minute_and_a_bad_one_each_time() {
        let start: Timestamp = "2026-12-01T00:00:00Z".parse().expect("a time");
        let clock = Arc::new(ManualClock::at(start));
        let counting =
            Arc::new(Counting { asked: AtomicUsize::new(0), expires: later(start, Duration::from_secs(90)) });
        let verifier = Remembered::with_clock(counting.clone(), clock.clone());
        let asked = || counting.asked.load(Ordering::Relaxed);

        for _ in 0..3 {
            assert!(verifier.verify("good").await.is_ok());
        }
        assert_eq!(asked(), 1);
        for _ in 0..2 {
            assert_eq!(verifier.verify("bad").await, Err(TokenDenial::Signature));
        }
        assert_eq!(asked(), 3);
        clock.advance(Duration::from_secs(60));
        assert!(verifier.verify("good").await.is_ok());
        assert_eq!(asked(), 4, "a minute later it is asked again");
        clock.advance(Duration::from_secs(30));
        assert!(verifier.verify("good").await.is_ok());
        assert_eq!(asked(), 5, "it is not remembered beyond its own end");
        clock.set(start);
        assert!(verifier.verify("good").await.is_ok());
        assert_eq!(asked(), 6, "a clock that is set back makes nothing last");
        let long = "x".repeat(super::super::LONGEST + 1);
        assert_eq!(verifier.verify(&long).await, Err(TokenDenial::TooLong));
        assert_eq!(asked(), 6);
    }
}
