//! The verbs that carry no message: GET attaches a stream to a session, DELETE ends one.

use crate::{
    disposition::Disposition,
    errand::Errand,
    identity::Who,
    target::session::Verb,
    trial::Trial,
    verdict::{ControlPlan, Halt, Reason, Row, Severity},
};

use super::scene;

/// Is B's stream attached to A's session?
pub(super) async fn get(trial: &mut Trial<'_, '_>, errand: &Errand) -> Result<Row, Halt> {
    let b = scene::live(trial, Who::B, errand).await?;
    let own = scene::present(trial, "stranger-own-stream", Who::B, Verb::Get, Some(&b.id), errand).await?;
    scene::offered(&own, Verb::Get)?;
    let unissued = scene::unissued(trial, Who::B, Verb::Get, &b, errand).await?;
    // No stream was attached to this one yet: a server may take one for each session.
    let a = scene::live(trial, Who::A, errand).await?;
    scene::distinct(&a, &b)?;
    let mut plan = ControlPlan::default();
    plan.accepts(&own, |said| Halt::errored(Reason::ControlFailed, said))?;
    plan.presents_unissued(&unissued.answer, std::slice::from_ref(&unissued.id))?;
    let controls = plan.hold()?;

    let subject = scene::present(trial, "subject", Who::B, Verb::Get, Some(&a.id), errand).await?;
    let after = scene::still_live(trial, &a, errand).await?;

    if let Some(halt) = subject.unclear() {
        return Err(halt);
    }
    let said = trial.clean(&subject.said());
    let mut row = match subject.disposition {
        Disposition::Accepted if unissued.is_honoured() => {
            let text = "a stream is attached whatever the session id says".to_owned();
            Row::refuted(&controls, "GET", Reason::SessionWitnessUnusable, text)
        }
        Disposition::Accepted => {
            let detail = "B's stream was attached to A's session, while an id that nobody issued is refused: B hears what is meant for A";
            Row::confirmed(&controls, "GET", Reason::SessionNotBound, Severity::Medium, detail.to_owned())
        }
        _ => Row::refuted(
            &controls,
            "GET",
            Reason::SessionBound,
            format!("no stream of B's is attached to A's session: {said}"),
        ),
    };
    row.story = [&own, &unissued.answer, &a.answer, &subject, &after].map(|answer| answer.step).to_vec();
    Ok(row)
}

/// Can B end A's session? Whatever DELETE answers: what counts is whether A can still use it.
pub(super) async fn delete(trial: &mut Trial<'_, '_>, errand: &Errand) -> Result<Row, Halt> {
    let b = scene::live(trial, Who::B, errand).await?;
    let own = scene::present(trial, "stranger-ends-own", Who::B, Verb::Delete, Some(&b.id), errand).await?;
    scene::offered(&own, Verb::Delete)?;
    let a = scene::live(trial, Who::A, errand).await?;
    scene::distinct(&a, &b)?;
    let unissued = scene::unissued(trial, Who::B, Verb::Delete, &a, errand).await?;
    let untouched = scene::still_live(trial, &a, errand).await?;
    let mut plan = ControlPlan::default();
    plan.accepts(&untouched, |said| Halt::errored(Reason::ControlFailed, said))?;
    plan.presents_unissued(&unissued.answer, std::slice::from_ref(&unissued.id))?;
    let controls = plan.hold()?;

    let subject = scene::present(trial, "subject", Who::B, Verb::Delete, Some(&a.id), errand).await?;
    let after = scene::post(trial, "owner-after", Who::A, Some(&a.id), &errand.call).await?;
    let later = scene::post(trial, "owner-after", Who::A, Some(&a.id), &errand.call).await?;

    if let Some(halt) = after.unclear().or_else(|| later.unclear()) {
        return Err(halt);
    }
    let alive = [&after, &later].map(|answer| answer.disposition == Disposition::Accepted);
    let said = trial.clean(&subject.said());
    let mut row = match alive {
        [false, false] => {
            // The server itself must still be there for A.
            scene::live(trial, Who::A, errand).await?;
            let detail = format!(
                "B ended A's session: it worked before, and after B's DELETE A is told `{}`; a DELETE of an id that nobody issued had left it alone",
                after.said()
            );
            Row::confirmed(&controls, "DELETE", Reason::SessionNotBound, Severity::Medium, trial.clean(&detail))
        }
        [true, true] => Row::refuted(
            &controls,
            "DELETE",
            Reason::SessionBound,
            format!("A's session outlives B's DELETE, which is answered with: {said}"),
        ),
        _ => {
            return Err(Halt::errored(
                Reason::Unstable,
                "after B's DELETE, A's session was served once and refused once",
            ));
        }
    };
    row.story = [&a.answer, &unissued.answer, &untouched, &subject, &after].map(|answer| answer.step).to_vec();
    Ok(row)
}
