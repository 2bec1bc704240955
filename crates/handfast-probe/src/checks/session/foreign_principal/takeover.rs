//! `initialize`, and the notification after it, under A's id: does B become whom the session is for? Or is A put out?

use std::time::Duration;

use crate::{
    clock::Deadline,
    errand::Errand,
    identity::Who,
    target::session::Verb,
    trial::Trial,
    verdict::{ControlPlan, Halt, Reason, Row, Severity},
};

use super::{Taken, endings, identities::Names, plant, scene, taken, turned};

/// The row's name.
pub(super) const ENTRY: &str = "initialize under A's id";

pub(super) async fn come(trial: &mut Trial<'_, '_>, errand: &Errand, names: Option<&Names>) -> Result<Row, Halt> {
    let b = scene::live(trial, Who::B, errand).await?;
    let opened = Deadline::after(Duration::ZERO);
    let a = scene::live(trial, Who::A, errand).await?;
    scene::distinct(&a, &b)?;
    let unissued = scene::unissued(trial, Who::B, Verb::Post, &a, errand).await?;
    let canary = plant(trial, &a, errand).await?;
    let mut plan = ControlPlan::default();
    plan.accepts(&a.answer, |said| Halt::errored(Reason::ControlFailed, said))?;
    plan.presents_unissued(&unissued.answer, std::slice::from_ref(&unissued.id))?;
    let controls = plan.hold()?;

    let opening = trial.session.target.opening();
    let subject = scene::post(trial, "subject", Who::B, Some(&a.id), &opening).await?;
    trial.session.target.ready(Who::B, &a.id).await;
    let mut got = taken(trial, &a, &b, errand, names, canary.as_ref()).await?;
    if got.is_none() {
        got = turned(trial, &a, errand, names).await?;
    }
    let (ended, after) = endings::has_ended(trial, &a, errand).await?;
    let mut row = if let Some(Taken { what, answer }) = got {
        let detail = format!("after an `initialize` of its own under A's id, B {what}");
        let mut row = Row::confirmed(&controls, ENTRY, Reason::SessionNotBound, Severity::High, trial.clean(&detail));
        row.story.push(answer.step);
        row
    } else if ended {
        endings::goes_on(trial, opened.elapsed(), errand).await?;
        let detail = format!("B's `initialize` under A's id put A out of the session: {}", trial.clean(&after.said()));
        Row::confirmed(&controls, ENTRY, Reason::SessionNotBound, Severity::Medium, detail)
    } else {
        let detail = "B's `initialize` under A's id changes nothing of A's session".to_owned();
        Row::refuted(&controls, ENTRY, Reason::SessionBound, detail)
    };
    let story = [&a.answer, &unissued.answer, &subject, &after].map(|answer| answer.step);
    row.story = story.into_iter().chain(row.story).collect();
    Ok(row)
}
