//! The verbs that carry no message: GET attaches a stream to a session, DELETE ends one.

use std::time::Duration;

use crate::{
    clock::Deadline,
    disposition::Disposition,
    errand::Errand,
    identity::Who,
    target::session::Verb,
    trial::Trial,
    verdict::{ControlPlan, Halt, Reason, Row, Severity},
};

use super::{endings, scene};

/// Is B served in A's session where a stream is attached, or by this call, of which nothing has to be A's? `apart` says that B
/// has a part of A's session for itself.
pub(super) async fn served(
    trial: &mut Trial<'_, '_>,
    verb: Verb,
    asked: &Errand,
    errand: &Errand,
    apart: bool,
) -> Result<Row, Halt> {
    let is_listing = asked.call.method.ends_with("/list");
    let (what, severity, worth) = match verb {
        Verb::Get => ("stream", Severity::Medium, "B may hear what is meant for A"),
        _ if is_listing => ("listing", Severity::Low, "the id alone decides"),
        _ => ("answer", Severity::Medium, "the id alone decides"),
    };
    let entry = &entry(verb, asked);
    let b = scene::live(trial, Who::B, errand).await?;
    let own = scene::present(trial, "stranger-own-use", Who::B, verb, Some(&b.id), asked).await?;
    scene::offered(&own, verb)?;
    let unissued = scene::unissued(trial, Who::B, verb, &b, asked).await?;
    // No stream was attached to this one yet: a server may take one for each session.
    let a = scene::live(trial, Who::A, errand).await?;
    scene::distinct(&a, &b)?;
    let owners = match verb {
        Verb::Post => scene::post(trial, "owner-use", Who::A, Some(&a.id), &asked.call).await?,
        _ => own.clone(),
    };
    let mut plan = ControlPlan::default();
    plan.accepts(&own, |said| Halt::errored(Reason::ControlFailed, said))?;
    plan.presents_unissued(&unissued.answer, std::slice::from_ref(&unissued.id))?;
    let controls = plan.hold()?;

    let mut subject = scene::present(trial, "subject", Who::B, verb, Some(&a.id), asked).await?;
    if verb == Verb::Get && subject.disposition == Disposition::Accepted && !unissued.is_honoured() {
        // A server may refuse in the stream, and take its time.
        trial.session.target.listen_longer(true);
        let again = scene::present(trial, "subject-again", Who::B, verb, Some(&a.id), asked).await;
        trial.session.target.listen_longer(false);
        subject = again?;
    }
    let after = scene::still_live(trial, &a, errand).await?;

    if let Some(halt) = subject.unclear() {
        return Err(halt);
    }
    if matches!(subject.disposition, Disposition::Refused(_)) {
        // It may be refused to B because B has one already.
        let fresh = scene::live(trial, Who::B, errand).await?;
        let again = scene::present(trial, "stranger-own-use-again", Who::B, verb, Some(&fresh.id), asked).await?;
        if again.disposition != Disposition::Accepted {
            let detail = format!("B is refused a {what} of its own as well: {}", again.said());
            return Err(again.unclear().unwrap_or_else(|| Halt::errored(Reason::ControlFailed, detail)));
        }
    }
    let said = trial.clean(&subject.said());
    let mut row = match subject.disposition {
        Disposition::Accepted if unissued.is_honoured() => {
            let text = format!("a {what} is given whatever the session id says");
            Row::halted(entry, Halt::skipped(Reason::SessionWitnessUnusable, text))
        }
        Disposition::Accepted if apart => {
            let text = format!("B is given a {what}, and has a part of A's session for itself");
            Row::refuted(&controls, entry, Reason::SessionWitnessUnusable, text)
        }
        Disposition::Accepted if subject.is_unlike(&own) && subject.is_unlike(&owners) => {
            let detail = format!("under A's session id B is given what is like no {what} of A's or B's: {said}");
            return Err(Halt::errored(Reason::Unclear, detail));
        }
        Disposition::Accepted => {
            let detail = format!(
                "B was given a {what} under A's session id, while an id that nobody issued is refused: {worth}"
            );
            Row::confirmed(&controls, entry, Reason::SessionNotBound, severity, detail)
        }
        _ => {
            let detail = format!("B is given no {what} under A's session id: {said}");
            Row::refuted(&controls, entry, Reason::SessionBound, detail)
        }
    };
    row.story = [&own, &unissued.answer, &a.answer, &subject, &after].map(|answer| answer.step).to_vec();
    Ok(row)
}

/// The row's name.
pub(super) fn entry(verb: Verb, asked: &Errand) -> String {
    match verb {
        Verb::Post => format!("POST {}", asked.call.title()),
        other => other.word().to_owned(),
    }
}

/// Can B end A's session? Whatever DELETE answers: what counts is whether A can still use it.
pub(super) async fn delete(trial: &mut Trial<'_, '_>, errand: &Errand) -> Result<Row, Halt> {
    let b = scene::live(trial, Who::B, errand).await?;
    let own = scene::present(trial, "stranger-ends-own", Who::B, Verb::Delete, Some(&b.id), errand).await?;
    scene::offered(&own, Verb::Delete)?;
    let opened = Deadline::after(Duration::ZERO);
    let a = scene::live(trial, Who::A, errand).await?;
    scene::distinct(&a, &b)?;
    let unissued = scene::unissued(trial, Who::B, Verb::Delete, &a, errand).await?;
    let untouched = scene::still_live(trial, &a, errand).await?;
    let mut plan = ControlPlan::default();
    plan.accepts(&untouched, |said| Halt::errored(Reason::ControlFailed, said))?;
    plan.presents_unissued(&unissued.answer, std::slice::from_ref(&unissued.id))?;
    let controls = plan.hold()?;

    let subject = scene::present(trial, "subject", Who::B, Verb::Delete, Some(&a.id), errand).await?;
    let (ended, after) = endings::has_ended(trial, &a, errand).await?;
    let said = trial.clean(&subject.said());
    let mut row = if ended {
        // The server itself must still be there for A, and its sessions must not end by themselves.
        endings::goes_on(trial, opened.elapsed(), errand).await?;
        let detail = format!(
            "B ended A's session: it worked before, and after B's DELETE A is told `{}`; a DELETE of an id that nobody issued had left it alone",
            after.said()
        );
        Row::confirmed(&controls, "DELETE", Reason::SessionNotBound, Severity::Medium, trial.clean(&detail))
    } else {
        let detail = format!("A's session outlives B's DELETE, which is answered with: {said}");
        Row::refuted(&controls, "DELETE", Reason::SessionBound, detail)
    };
    row.story = [&a.answer, &unissued.answer, &untouched, &subject, &after].map(|answer| answer.step).to_vec();
    Ok(row)
}
