//! Whoever shows no token, or one that nobody issued, with A's session id: the id alone would be enough then. And, where the
//! profile names one, a user of another tenant.

use std::time::Duration;

use crate::{
    clock::Deadline,
    disposition::Disposition,
    errand::{self, Errand},
    identity::Who,
    target::session::Verb,
    trial::Trial,
    verdict::{ControlPlan, Halt, Reason, Row, Severity},
};

use super::{endings, plant, scene};

/// Who comes, by which verb.
pub(super) fn comers(trial: &Trial<'_, '_>) -> Vec<(Who, Verb)> {
    let is_named = trial.session.target.identities().has(Who::OtherTenant);
    let of_tenant = is_named.then_some((Who::OtherTenant, Verb::Post));
    let comers =
        [(Who::Nobody, Verb::Post), (Who::Nobody, Verb::Get), (Who::Nobody, Verb::Delete), (Who::Impostor, Verb::Post)];
    comers.into_iter().chain(of_tenant).collect()
}

/// The row's name.
pub(super) fn entry(who: Who, verb: Verb) -> String {
    let how = match who {
        Who::Nobody => "without a token",
        Who::OtherTenant => "by another tenant",
        _ => "with a token that nobody issued",
    };
    format!("{} {how}", verb.word())
}

/// Is A's session theirs?
pub(super) async fn come(trial: &mut Trial<'_, '_>, who: Who, verb: Verb, errand: &Errand) -> Result<Row, Halt> {
    let entry = entry(who, verb);
    // What is tried first on a session of its own: the owner's own use of the verb.
    let tried = scene::live(trial, Who::A, errand).await?;
    let own = scene::present(trial, "owner-use", Who::A, verb, Some(&tried.id), errand).await?;
    scene::offered(&own, verb)?;
    let opened = Deadline::after(Duration::ZERO);
    let a = scene::live(trial, Who::A, errand).await?;
    if who == Who::OtherTenant {
        // One who is refused everything shows nothing.
        scene::live(trial, who, errand).await?;
    }
    let unissued = scene::unissued(trial, who, verb, &a, errand).await?;
    let canary = plant(trial, &a, errand).await?;
    let mut plan = ControlPlan::default();
    plan.accepts(&own, |said| Halt::errored(Reason::ControlFailed, said))?;
    plan.presents_unissued(&unissued.answer, std::slice::from_ref(&unissued.id))?;
    let controls = plan.hold()?;

    let subject = scene::present(trial, "subject", who, verb, Some(&a.id), errand).await?;
    let mut shown = false;
    if let (Verb::Post, Some(canary), Some(memory)) = (verb, &canary, &errand.memory) {
        let read = scene::post(trial, "subject-reads", who, Some(&a.id), &memory.read).await?;
        shown = errand::shown(&read, canary);
    }
    let (ended, after) = endings::has_ended(trial, &a, errand).await?;
    let taken = match verb {
        Verb::Delete => ended,
        _ if ended => {
            return Err(Halt::errored(Reason::ControlFailed, format!("afterwards A was told: {}", after.said())));
        }
        _ => subject.disposition == Disposition::Accepted || shown,
    };
    if verb != Verb::Delete
        && let Some(halt) = subject.unclear()
    {
        return Err(halt);
    }
    if verb == Verb::Delete && taken {
        endings::goes_on(trial, opened.elapsed(), errand).await?;
    }
    let said = trial.clean(&subject.said());
    let mut row = if taken && unissued.is_honoured() && !shown && verb != Verb::Delete {
        let text = "it is carried out whatever the session id says";
        Row::halted(&entry, Halt::skipped(Reason::SessionWitnessUnusable, text))
    } else if taken {
        let severity = if shown { Severity::High } else { Severity::Medium };
        let what = if shown { "got what A keeps there" } else { "was served in it" };
        let why = if who == Who::OtherTenant { "tenants are not told apart" } else { "the id stands for the token" };
        let detail = match verb {
            Verb::Delete => "A's session was ended by a request that shows its id and nothing else".to_owned(),
            _ => format!("{} with A's session id {what}: {why}", who.label()),
        };
        Row::confirmed(&controls, &entry, Reason::SessionNotBound, severity, detail)
    } else {
        Row::refuted(&controls, &entry, Reason::SessionBound, format!("A's session is refused: {said}"))
    };
    row.story = [&own, &unissued.answer, &a.answer, &subject, &after].map(|answer| answer.step).to_vec();
    Ok(row)
}
