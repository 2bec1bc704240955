//! The same run several times: what holds, holds each time. Several processes with a memory of their own, caches and races
//! answer now so and now otherwise, and that is told as what it is.

use std::fmt::Write;

use crate::{
    coverage,
    report::{CheckReport, Report, Totals},
    runner::{Run, Unusable},
    verdict::{Observation, Reason, Verdict},
};

impl Run {
    /// Tests the server `times` times, and says of each check how often it came to what it came to.
    ///
    /// A weakness that was confirmed once is there: it stays confirmed, with a remark. Where nothing was confirmed and the
    /// verdicts differ, the check is errored, [`Reason::Unstable`]. The evidence is that of the run that decided.
    ///
    /// # Errors
    /// As [`Run::probe`].
    pub async fn repeated(&self, times: usize, progress: &dyn Fn(&str)) -> Result<Report, Unusable> {
        let mut merged = self.probe(progress).await?;
        for run in 2..=times {
            let next = self.probe(progress).await?;
            // What each run left behind is left behind by each.
            merged.notes.extend(next.notes.into_iter().map(|note| format!("run {run}: {note}")));
            merged.calls += next.calls;
            merged.duration_ms += next.duration_ms;
            merged.finished_at = next.finished_at;
            for (check, again) in merged.checks.iter_mut().zip(next.checks) {
                take(check, again);
            }
        }
        merged.checks.iter_mut().for_each(settle);
        merged.totals = Totals::of(&merged.checks);
        merged.coverage = coverage::of(&merged.checks, merged.handshake.as_ref());
        Ok(merged)
    }
}

/// Counts one more outcome, and keeps the worse evidence.
fn take(check: &mut CheckReport, again: CheckReport) {
    let mut seen = std::mem::take(&mut check.runs);
    seen.extend(again.runs.iter().copied());
    if rank(again.verdict) > rank(check.verdict) {
        *check = again;
    }
    check.runs = seen;
}

/// Bad news first, then what was not clear.
fn rank(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Confirmed => 3,
        Verdict::Errored => 2,
        Verdict::Refuted => 1,
        Verdict::Skipped => 0,
    }
}

fn settle(check: &mut CheckReport) {
    let runs = check.runs.len();
    if check.runs.iter().all(|verdict| *verdict == check.runs[0]) {
        return;
    }
    let mut text = String::new();
    for verdict in Verdict::ALL {
        let count = check.runs.iter().filter(|seen| **seen == verdict).count();
        if count > 0 {
            let _ = write!(text, "{}{} {count} of {runs}", if text.is_empty() { "" } else { ", " }, verdict.word());
        }
    }
    if check.verdict == Verdict::Confirmed {
        let text = format!("the server answered now so and now otherwise: {text}");
        check.observations.push(Observation { id: Reason::Unstable.slug(), text });
    } else {
        check.verdict = Verdict::Errored;
        check.reason = Reason::Unstable;
        check.detail = format!("the same experiment ended now so and now otherwise: {text}; last: {}", check.detail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{checks, verdict::Halt};

    fn came_to(verdict: Verdict, reason: Reason) -> CheckReport {
        let check = checks::all().next().expect("there are checks");
        CheckReport::halted(check, Halt { verdict, reason, detail: reason.slug().to_owned() })
    }

    fn merged(outcomes: &[(Verdict, Reason)]) -> CheckReport {
        let mut reports = outcomes.iter().map(|(verdict, reason)| came_to(*verdict, *reason));
        let mut check = reports.next().expect("one at least");
        reports.for_each(|again| take(&mut check, again));
        settle(&mut check);
        check
    }

    #[test]
    fn what_holds_each_time_is_what_one_run_says() {
        let bound = (Verdict::Refuted, Reason::HandleBound);
        let check = merged(&[bound; 3]);
        assert_eq!((check.verdict, check.reason, check.runs.len()), (Verdict::Refuted, Reason::HandleBound, 3));
        assert!(check.observations.is_empty());
    }

    #[test]
    fn a_weakness_that_was_seen_once_is_there_and_that_it_was_not_always_seen_is_said() {
        let (bound, not) = ((Verdict::Refuted, Reason::HandleBound), (Verdict::Confirmed, Reason::HandleNotBound));
        for order in [[bound, not, bound], [not, bound, bound], [bound, bound, not]] {
            let check = merged(&order);
            assert_eq!((check.verdict, check.reason), (Verdict::Confirmed, Reason::HandleNotBound));
            let said = &check.observations[0];
            assert_eq!(said.id, "unstable");
            assert!(said.text.contains("confirmed 1 of 3, refuted 2 of 3"), "{}", said.text);
        }
    }

    #[test]
    fn good_news_that_comes_and_goes_is_none() {
        let check =
            merged(&[(Verdict::Refuted, Reason::HandleBound), (Verdict::Skipped, Reason::SecondIdentityNotLive)]);
        assert_eq!((check.verdict, check.reason), (Verdict::Errored, Reason::Unstable));
        assert!(check.detail.contains("refuted 1 of 2, skipped 1 of 2"), "{}", check.detail);
    }
}
