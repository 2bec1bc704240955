//! Counters, through the `metrics` facade (feature `metrics`): by names that alert rules know. No label has a value that a
//! client has written.

/// Tokens that were found good.
#[cfg(any(all(feature = "http", feature = "tokens"), feature = "metrics"))]
pub(crate) const AUTH_VALID: &str = "auth_valid_total";
/// Tokens, or the want of one, that were refused, by reason.
#[cfg(any(all(feature = "http", feature = "tokens"), feature = "metrics"))]
pub(crate) const AUTH_REFUSED: &str = "auth_refused_total";
/// The reasons where there is no token to be bad: none at all, or one in the query.
#[cfg(all(feature = "tokens", feature = "metrics"))]
const WITHOUT_TOKEN: [&str; 2] = [NO_TOKEN, IN_QUERY];
#[cfg(all(feature = "tokens", any(feature = "http", feature = "metrics")))]
pub(crate) const NO_TOKEN: &str = "none";
#[cfg(all(feature = "tokens", any(feature = "http", feature = "metrics")))]
pub(crate) const IN_QUERY: &str = "in-query";
/// Requests of callers with a token for this server, about whose sessions was decided.
pub(crate) const AUTHENTICATED: &str = "authenticated_requests_total";
/// Sessions that were made.
pub(crate) const CREATED: &str = "sessions_created_total";
/// Requests that showed a session that is not there, and were told to begin again.
pub(crate) const REINIT_REJECTED: &str = "session_reinit_rejected_total";
/// Sessions that the server behind has made without being asked to, in the place of one that it did not know.
pub(crate) const SILENT_REINIT: &str = "session_silent_reinit_total";
/// Requests that showed somebody else's session.
pub(crate) const MISMATCH: &str = "session_mismatch_total";
/// Streams of the server's own messages that are open.
#[cfg(any(feature = "http", feature = "metrics"))]
pub(crate) const STREAMS: &str = "sse_streams_open";

#[cfg(feature = "metrics")]
pub(crate) fn count(name: &'static str) {
    metrics::counter!(name).increment(1);
}

#[cfg(not(feature = "metrics"))]
pub(crate) fn count(_: &'static str) {}

/// Counts with the reason.
#[cfg(all(feature = "metrics", feature = "http", feature = "tokens"))]
pub(crate) fn count_why(name: &'static str, reason: &'static str) {
    metrics::counter!(name, "reason" => reason).increment(1);
}

#[cfg(all(not(feature = "metrics"), feature = "http", feature = "tokens"))]
pub(crate) fn count_why(_: &'static str, _: &'static str) {}

/// One more of what is open, until this is dropped.
#[cfg(feature = "http")]
pub(crate) struct Open(&'static str);

#[cfg(feature = "http")]
impl Open {
    pub(crate) fn one(name: &'static str) -> Self {
        #[cfg(feature = "metrics")]
        metrics::gauge!(name).increment(1.0);
        Self(name)
    }
}

#[cfg(feature = "http")]
impl Drop for Open {
    fn drop(&mut self) {
        #[cfg(feature = "metrics")]
        metrics::gauge!(self.0).decrement(1.0);
        let _ = self.0;
    }
}

/// Says what each of them is, to whatever collects them, and that there are none yet. Call it once, after the recorder is
/// installed: a counter that comes to be with its first event alerts nobody of that.
#[cfg(feature = "metrics")]
pub fn describe() {
    use metrics::{describe_counter, describe_gauge};
    describe_counter!(AUTH_VALID, "Tokens that were found good.");
    describe_counter!(AUTH_REFUSED, "Tokens, or the want of one, that were refused.");
    describe_counter!(AUTHENTICATED, "Requests with a good token about whose sessions was decided.");
    describe_counter!(CREATED, "Sessions that were made.");
    describe_counter!(
        REINIT_REJECTED,
        "Requests that showed a session that is not there, and were told to begin again."
    );
    describe_counter!(SILENT_REINIT, "Sessions that the server behind has made without being asked to.");
    describe_counter!(MISMATCH, "Requests that showed somebody else's session.");
    // A counter that is not there yet has nothing that it could have increased from: its first event would alert nobody.
    for name in [AUTH_VALID, AUTHENTICATED, CREATED, REINIT_REJECTED, SILENT_REINIT, MISMATCH] {
        metrics::counter!(name).increment(0);
    }
    #[cfg(feature = "tokens")]
    for reason in crate::token::TokenDenial::ALL.map(crate::token::TokenDenial::slug).into_iter().chain(WITHOUT_TOKEN) {
        metrics::counter!(AUTH_REFUSED, "reason" => reason).increment(0);
    }
    metrics::gauge!(STREAMS).increment(0.0);
    describe_gauge!(STREAMS, "Streams of the server's own messages that are open.");
}
