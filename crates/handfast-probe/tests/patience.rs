//! "Not now" is no answer: where a server that limits its callers says when to come again, the call is made again then.

mod support;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use handfast_probe::report::Report;
use handfast_twins::Answers;
use support::{
    HANDLE, check,
    front::{Act, Front, Recorded},
    narrow_run_on, probed, served, verdict,
};

/// A run against a twin that puts every third tool call off, in these words; and how many calls it put off.
async fn put_off(twin: &str, headers: Vec<(&'static str, String)>) -> (Report, usize) {
    let served = served(twin, Answers::Json).await;
    let (calls, refused) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&refused);
    let limits = move |_: usize, request: &Recorded| {
        if request.method() != "tools/call" || calls.fetch_add(1, Ordering::Relaxed) % 3 != 2 {
            return Act::Forward;
        }
        count.fetch_add(1, Ordering::Relaxed);
        Act::Status(429, headers.clone())
    };
    let front = Front::of(&served.url(), limits).await;
    let report = probed(&narrow_run_on(&front.url())).await;
    (report, refused.load(Ordering::Relaxed))
}

#[tokio::test]
async fn a_call_that_is_put_off_is_made_again() {
    for (twin, expected) in [("sound", "refuted handle-bound"), ("flawed", "confirmed handle-not-bound high")] {
        let (report, refused) = put_off(twin, vec![("retry-after", "0".to_owned())]).await;

        assert!(refused > 3, "{refused}");
        let said = verdict(check(&report, HANDLE));
        assert!(said.starts_with(expected), "{twin}: {said}: {}", check(&report, HANDLE).detail);
    }
}

#[tokio::test]
async fn who_does_not_say_when_or_says_tomorrow_is_not_waited_for() {
    for headers in [vec![], vec![("retry-after", "86400".to_owned())], vec![("retry-after", "soon".to_owned())]] {
        let (report, _) = put_off("sound", headers.clone()).await;

        assert!(check(&report, HANDLE).detail.contains("429"), "{headers:?}: {}", check(&report, HANDLE).detail);
        assert_ne!(verdict(check(&report, HANDLE)), "refuted handle-bound", "{headers:?}");
    }
}
