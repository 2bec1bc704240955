//! One way in for a kind of handle, and everybody with a fresh handle of A's.

use super::handles::{mint, use_handle, way_in};
use crate::{
    access::{self, Access, Met},
    discovery::Kind,
    disposition::Disposition,
    identity::Who,
    trial::{Answer, Trial},
    verdict::Halt,
};

/// What each of these callers meets with A's handle, at the first way in that does not end the object.
///
/// # Errors
/// A [`Halt`] when the run's bounds are reached or the server is gone.
pub async fn who_is_served(trial: &mut Trial<'_, '_>, kind: &Kind, callers: &[Who]) -> Result<Option<Access>, Halt> {
    let entry = match way_in(trial, kind).await {
        Ok(entry) => entry,
        Err(halt) if halt.is_final() => return Err(halt),
        Err(_) => return Ok(None),
    };
    let mut met = Vec::new();
    let mut owners: Option<Answer> = None;
    for &who in callers {
        // Whoever is refused for who they are not is refused everything.
        if access::must_be_live(who) {
            match mint(trial, who, kind).await {
                Ok(Ok(_)) => {}
                Ok(Err(halt)) | Err(halt) if halt.is_final() => return Err(halt),
                _ => {
                    met.push(Met { who: who.label(), outcome: "not live" });
                    continue;
                }
            }
        }
        // One for each: a use may use a handle up.
        let a = match mint(trial, Who::A, kind).await {
            Ok(Ok(minted)) => minted,
            Ok(Err(halt)) | Err(halt) if halt.is_final() => return Err(halt),
            _ => return Ok(None),
        };
        let answer = match use_handle(trial, "who-is-served", who, &entry, &a.handle).await {
            Ok((answer, _)) => answer,
            Err(halt) if halt.is_final() => return Err(halt),
            Err(_) => return Ok(None),
        };
        let outcome = match &answer.disposition {
            _ if a.marked(&answer).is_some() => "served",
            // "Sorry, no such thing": a no in a complete result.
            Disposition::Accepted if owners.as_ref().is_some_and(|owners| answer.is_unlike(owners)) => "refused",
            Disposition::Accepted => "accepted",
            Disposition::Refused(_) => "refused",
            _ => "unclear",
        };
        owners.get_or_insert(answer);
        met.push(Met { who: who.label(), outcome });
    }
    Ok(Some(Access { entry: entry.to_string(), callers: met }))
}
