//! Everybody with the id of a task of A's.

use super::scene;
use crate::{
    access::{self, Access, Met},
    disposition::Disposition,
    identity::Who,
    trial::Trial,
    verdict::{Halt, soft},
};

/// What each of these callers is told with the id of a fresh task of A's; nothing where there are none.
///
/// # Errors
/// A [`Halt`] when the run's bounds are reached or the server is gone.
pub async fn who_is_served(trial: &mut Trial<'_, '_>, callers: &[Who]) -> Result<Option<Access>, Halt> {
    let Some(tool) = soft(scene::find(trial).await)? else { return Ok(None) };
    let mut met = Vec::new();
    for &who in callers {
        if access::must_be_live(who) && !matches!(soft(scene::begin(trial, who, &tool).await)?, Some(Ok(_))) {
            met.push(Met { who: who.label(), outcome: "not live" });
            continue;
        }
        let Some(task) = soft(scene::begun(trial, Who::A, &tool).await)? else { return Ok(None) };
        if who != Who::A {
            scene::settled(trial, "own", Who::A, &task).await?;
        }
        let answer = match who {
            Who::A => scene::settled(trial, "who-is-served", who, &task).await?,
            _ => scene::ask(trial, "who-is-served", who, scene::GET, &task.id).await?,
        };
        let is_marked = answer.result().is_some_and(|result| task.canary.is_in(&result.to_string()));
        let outcome = match &answer.disposition {
            _ if is_marked => "served",
            Disposition::Accepted if scene::shown(&answer).is_some() => "accepted",
            Disposition::Accepted | Disposition::Refused(_) => "refused",
            _ => "unclear",
        };
        met.push(Met { who: who.label(), outcome });
    }
    Ok(Some(Access { entry: format!("tasks/get of {}", tool.name), callers: met }))
}
