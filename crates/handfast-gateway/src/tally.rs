//! Counters, through the `metrics` facade: by names that alert rules and the dashboard know. No label has a value that a client
//! or the server behind has written.

use crate::respond::Rejection;

/// Requests, by what became of them: `answered`, or why they were refused.
pub(crate) const REQUESTS: &str = "gateway_requests_total";
/// How long the server behind took to begin its answer, in seconds.
pub(crate) const UPSTREAM: &str = "gateway_upstream_seconds";
/// Events that were rewritten on their way.
pub(crate) const EVENTS: &str = "gateway_events_total";
/// Streams that ended because an event could not be passed on.
pub(crate) const STREAMS_STOPPED: &str = "gateway_streams_stopped_total";

/// What becomes of a request that is not refused.
const ANSWERED: &str = "answered";

/// Says what each of them is, and that there are none yet: call it once, after the recorder is installed.
pub fn describe_metrics() {
    metrics::describe_counter!(REQUESTS, "Requests, by what became of them.");
    metrics::describe_histogram!(UPSTREAM, "How long the server behind took to begin its answer, in seconds.");
    metrics::describe_counter!(EVENTS, "Events that went through.");
    metrics::describe_counter!(STREAMS_STOPPED, "Streams that ended because an event could not be passed on.");
    for outcome in Rejection::SLUGS.into_iter().chain([ANSWERED]) {
        metrics::counter!(REQUESTS, "outcome" => outcome).increment(0);
    }
    metrics::counter!(EVENTS).increment(0);
    metrics::counter!(STREAMS_STOPPED).increment(0);
}

pub(crate) fn request<T>(outcome: &Result<T, Rejection>) {
    let outcome = outcome.as_ref().err().map_or(ANSWERED, Rejection::slug);
    metrics::counter!(REQUESTS, "outcome" => outcome).increment(1);
}

pub(crate) fn upstream(seconds: f64) {
    // A clock may have been set back meanwhile.
    metrics::histogram!(UPSTREAM).record(seconds.max(0.0));
}

pub(crate) fn event() {
    metrics::counter!(EVENTS).increment(1);
}

pub(crate) fn stopped() {
    metrics::counter!(STREAMS_STOPPED).increment(1);
}
