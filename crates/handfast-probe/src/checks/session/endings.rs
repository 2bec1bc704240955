//! Ends of sessions, and what looks like one: a session that has ended, as a measure; and one that is left alone, which must
//! go on.

use std::time::Duration;

use crate::{
    clock::Deadline,
    disposition::Disposition,
    errand::Errand,
    identity::Who,
    target::session::Verb,
    trial::{Answer, Trial},
    verdict::{Halt, Reason},
};

use super::scene::{Live, live, post, present, still_live};

/// Sees that a session of A's that nobody ends is there after as long a time and as many calls.
///
/// # Errors
/// [`Reason::Unstable`] where it is not: what looked like an end was the end of its time.
pub(super) async fn goes_on(trial: &mut Trial<'_, '_>, as_long: Duration, errand: &Errand) -> Result<(), Halt> {
    let opened = Deadline::after(Duration::ZERO);
    let a = live(trial, Who::A, errand).await?;
    still_live(trial, &a, errand).await?;
    tokio::time::sleep(as_long.saturating_sub(opened.elapsed())).await;
    let after = post(trial, "left-alone", Who::A, Some(&a.id), &errand.call).await?;
    if after.disposition == Disposition::Accepted {
        return Ok(());
    }
    let detail =
        format!("a session of A's that nobody ended is gone after {} ms: {}", as_long.as_millis(), after.said());
    Err(after.unclear().unwrap_or_else(|| Halt::errored(Reason::Unstable, detail)))
}

/// Whether a session that worked is over for its owner, and what the owner was told.
///
/// # Errors
/// [`Reason::Unstable`] where it is served once and refused once.
pub(super) async fn has_ended(trial: &mut Trial<'_, '_>, of: &Live, errand: &Errand) -> Result<(bool, Answer), Halt> {
    let after = post(trial, "owner-after", of.who, Some(&of.id), &errand.call).await?;
    let later = post(trial, "owner-after", of.who, Some(&of.id), &errand.call).await?;
    if let Some(halt) = after.unclear().or_else(|| later.unclear()) {
        return Err(halt);
    }
    match [&after, &later].map(|answer| answer.disposition == Disposition::Accepted) {
        [true, true] => Ok((false, after)),
        [false, false] => Ok((true, after)),
        _ => Err(Halt::errored(Reason::Unstable, "afterwards the session was served once and refused once")),
    }
}

/// A session of A's that has ended, presented by somebody; `None` where clients cannot end sessions.
pub(super) async fn gone(
    trial: &mut Trial<'_, '_>,
    who: Who,
    errand: &Errand,
) -> Result<Option<(String, Answer)>, Halt> {
    let Live { id, .. } = live(trial, Who::A, errand).await?;
    let end = present(trial, "end", Who::A, Verb::Delete, Some(&id), errand).await?;
    if end.disposition != Disposition::Accepted {
        return Ok(None);
    }
    let answer = present(trial, "ended-session", who, Verb::Post, Some(&id), errand).await?;
    Ok(Some((id, answer)))
}
