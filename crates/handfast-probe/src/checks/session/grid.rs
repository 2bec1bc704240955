//! Everybody with the id of a session of A's.

use super::scene;
use crate::{
    access::{self, Access, Met},
    disposition::Disposition,
    errand,
    identity::Who,
    trial::Trial,
    verdict::{Halt, soft},
};

/// What each of these callers meets with the id of a fresh session of A's; nothing where there are none.
///
/// # Errors
/// A [`Halt`] when the run's bounds are reached or the server is gone.
pub async fn who_is_served(trial: &mut Trial<'_, '_>, callers: &[Who]) -> Result<Option<Access>, Halt> {
    let Some(errand) = soft(scene::enter(trial).await)? else { return Ok(None) };
    let mut met = Vec::new();
    for &who in callers {
        if access::must_be_live(who) && soft(scene::open(trial, who).await)?.is_none() {
            met.push(Met { who: who.label(), outcome: "not live" });
            continue;
        }
        let Some(a) = soft(scene::live(trial, Who::A, &errand).await)? else { return Ok(None) };
        let mark = trial.canary(Who::A);
        let mut call = errand.call.clone();
        if let Some((memory, keep)) = errand.memory.as_ref().and_then(|memory| Some((memory, memory.write(&mark)?))) {
            scene::post(trial, "keep", Who::A, Some(&a.id), &keep).await?;
            call = memory.read.clone();
        }
        let answer = scene::post(trial, "who-is-served", who, Some(&a.id), &call).await?;
        let outcome = match &answer.disposition {
            _ if errand::shown(&answer, &mark) => "served",
            Disposition::Accepted => "accepted",
            Disposition::Refused(_) => "refused",
            _ => "unclear",
        };
        met.push(Met { who: who.label(), outcome });
        trial.session.target.end_visits().await;
    }
    Ok(Some(Access { entry: "POST under the id of a session".to_owned(), callers: met }))
}
