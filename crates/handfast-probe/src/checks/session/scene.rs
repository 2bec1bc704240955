//! What every check of sessions begins and ends with: sessions that demonstrably work, ids that nobody issued, and the end
//! of everything that was opened.

use serde_json::Value;

use crate::{
    disposition::{Disposition, Refusal},
    errand::{self, Errand},
    forge,
    identity::Who,
    target::{
        Call,
        session::{Issues, Verb, Visit},
    },
    trial::{Answer, Trial},
    verdict::{ControlPlan, Controls, Halt, Reason, Row},
};

/// A session that was opened for somebody and works.
#[derive(Debug, Clone)]
pub(super) struct Live {
    pub(super) who: Who,
    pub(super) id: String,
    /// The answer to the errand in it.
    pub(super) answer: Answer,
}

/// Sees whether there are sessions here, and what there is to do in one.
///
/// # Errors
/// The missing precondition, by name.
pub(super) async fn enter(trial: &mut Trial<'_, '_>) -> Result<Errand, Halt> {
    let target = &mut trial.session.target;
    match target.issues_sessions().await {
        Issues::Ids(_) => {}
        Issues::NoHttp => {
            return Err(Halt::skipped(
                Reason::NeedsHttp,
                "over stdio the process is the session: there are no session ids",
            ));
        }
        Issues::None => {
            return Err(Halt::skipped(Reason::NoSessionIssued, "the server answers `initialize` without a session id"));
        }
        Issues::Unclear(reply) => {
            let answer = Answer::of(reply);
            let detail = format!("whether the server opens sessions is not known: {}", answer.said());
            return Err(answer.lost().unwrap_or_else(|| Halt::errored(Reason::Unclear, detail)));
        }
        Issues::NoOlderRevision(said) => {
            let detail = format!("the server opens no session: `initialize` is answered with {said}");
            return Err(Halt::skipped(Reason::NoSessionIssued, trial.clean(&detail)));
        }
    }
    target.set_aside().await;
    target.end_visits().await;
    if let Some(errand) = trial.session.errand.clone() {
        return Ok(errand);
    }
    // What a session that does not work would hide is not concluded from.
    let plain = Errand::plain("tools/list");
    let (first, plain) = match live(trial, Who::A, &plain).await {
        Ok(first) => (first, plain),
        Err(halt) if halt.reason == Reason::ControlFailed => {
            let plain = Errand::plain("ping");
            (live(trial, Who::A, &plain).await?, plain)
        }
        Err(halt) => return Err(halt),
    };
    let pairs = errand::look(trial, &first.id, &first.answer).await?;
    let second = live(trial, Who::A, &plain).await?;
    let mut found = errand::choose(trial, pairs, &first.id, &second.id, plain).await?;
    trial.session.target.end_visits().await;
    found.honest = honest(trial, &found).await?;
    trial.session.errand = Some(found.clone());
    trial.session.target.end_visits().await;
    Ok(found)
}

/// What the errand is answered with by those who may: A, A with something kept, and B. None where two answers to one caller
/// have little in common: then nothing is to be read from how an answer looks.
async fn honest(trial: &mut Trial<'_, '_>, errand: &Errand) -> Result<Vec<Value>, Halt> {
    let a = live(trial, Who::A, errand).await?;
    let mut answers = vec![a.answer.clone(), still_live(trial, &a, errand).await?];
    if answers[0].is_unlike(&answers[1]) {
        return Ok(Vec::new());
    }
    if let Some(memory) = &errand.memory {
        let canary = trial.canary(Who::A);
        if let Some(keep) = memory.write(&canary) {
            post(trial, "keep", Who::A, Some(&a.id), &keep).await?;
            answers.push(post(trial, "show", Who::A, Some(&a.id), &memory.read).await?);
        }
    }
    // Whether B is there at all is each check's own affair.
    if let Ok(b) = live(trial, Who::B, errand).await {
        answers.push(b.answer);
    }
    let accepted = answers.iter().filter(|answer| answer.disposition == Disposition::Accepted);
    Ok(accepted.filter_map(|answer| answer.result().cloned()).collect())
}

/// Opens a session.
pub(super) async fn open(trial: &mut Trial<'_, '_>, who: Who) -> Result<String, Halt> {
    let opening = trial.session.target.opening();
    let answer = post(trial, "open", who, None, &opening).await?;
    let Some(id) = answer.issued.clone().filter(|_| answer.disposition == Disposition::Accepted) else {
        let reason = if who == Who::A { Reason::ControlFailed } else { Reason::SecondIdentityNotLive };
        let detail = format!("no session was opened for {}: {}", who.label(), answer.said());
        return Err(answer.unclear().unwrap_or_else(|| match who {
            Who::A => Halt::errored(reason, detail),
            _ => Halt::skipped(reason, detail),
        }));
    };
    trial.session.target.ready(who, &id).await;
    Ok(id)
}

/// Opens a session and sees that it works, and works again.
pub(super) async fn live(trial: &mut Trial<'_, '_>, who: Who, errand: &Errand) -> Result<Live, Halt> {
    let id = open(trial, who).await?;
    let answer = works(trial, "own-session", who, &id, errand).await?;
    Ok(Live { who, id, answer })
}

/// Sees that a session still works: what was refused may otherwise have been refused for an outage.
pub(super) async fn still_live(trial: &mut Trial<'_, '_>, live: &Live, errand: &Errand) -> Result<Answer, Halt> {
    works(trial, "own-session-again", live.who, &live.id, errand).await
}

async fn works(trial: &mut Trial<'_, '_>, step: &str, who: Who, id: &str, errand: &Errand) -> Result<Answer, Halt> {
    let first = post(trial, step, who, Some(id), &errand.call).await?;
    let second = post(trial, step, who, Some(id), &errand.call).await?;
    let third = post(trial, step, who, Some(id), &errand.call).await?;
    let answers = [&first, &second, &third];
    if let Some(halt) = answers.iter().find_map(|answer| answer.unclear()) {
        return Err(halt);
    }
    let refused = answers.iter().filter(|answer| answer.disposition != Disposition::Accepted).count();
    let said = answers.iter().find(|answer| answer.disposition != Disposition::Accepted).map(|answer| answer.said());
    let said = said.unwrap_or_default();
    match refused {
        0 => Ok(first),
        3 if who != Who::A => {
            let detail = format!("{} could not use a session of its own: {said}", who.label());
            Err(Halt::skipped(Reason::SecondIdentityNotLive, detail))
        }
        3 => Err(Halt::errored(Reason::ControlFailed, format!("A could not use a session of its own: {said}"))),
        _ => {
            let detail = format!(
                "a live session of {} was refused {refused} times of three: {said}; several processes, each with sessions of its own?",
                who.label()
            );
            Err(Halt::errored(Reason::Unstable, detail))
        }
    }
}

/// Two sessions under one id are one session: what B does in it says nothing.
pub(super) fn distinct(a: &Live, b: &Live) -> Result<(), Halt> {
    let skipped = || Halt::skipped(Reason::SessionWitnessUnusable, "A and B are given the same session id");
    if a.id == b.id { Err(skipped()) } else { Ok(()) }
}

/// An id that nobody issued, shaped like one that was.
pub(super) fn made_up(trial: &mut Trial<'_, '_>, like: &Live) -> String {
    let value = Value::String(like.id.clone());
    let forged = forge::handle(&value, &value, &[], None);
    let id = forged.as_str().unwrap_or_default().to_owned();
    trial.session.redactor.name_session(&id);
    id
}

/// An id that nobody issued, and what came of presenting it.
pub(super) struct Unissued {
    pub(super) id: String,
    pub(super) answer: Answer,
    /// It was refused and works since, while others are refused as before: the refusal itself has opened a session.
    pub(super) opened_by_refusal: Option<Answer>,
}

impl Unissued {
    pub(super) fn is_honoured(&self) -> bool {
        self.answer.disposition == Disposition::Accepted
    }

    /// Where an id that nobody issued does as well, to know one that somebody was given is worth nothing.
    pub(super) fn must_be_worthless(&self) -> Result<(), Halt> {
        if !self.is_honoured() {
            return Ok(());
        }
        let detail = "ids that nobody issued are honoured as well: to know one is worth nothing here";
        Err(Halt::skipped(Reason::SessionWitnessUnusable, detail))
    }
}

/// Two ids that nobody issued, presented one after the other: the same must come of both.
pub(super) async fn unissued(
    trial: &mut Trial<'_, '_>,
    who: Who,
    verb: Verb,
    like: &Live,
    errand: &Errand,
) -> Result<Unissued, Halt> {
    let (id, other) = (made_up(trial, like), made_up(trial, like));
    let answer = present(trial, "unknown-session", who, verb, Some(&id), errand).await?;
    let second = present(trial, "unknown-session", who, verb, Some(&other), errand).await?;
    if answer.disposition.word() != second.disposition.word() {
        let detail =
            format!("two ids that nobody issued were answered in two ways: {} and {}", answer.said(), second.said());
        return Err(second.lost().unwrap_or_else(|| Halt::errored(Reason::Unstable, detail)));
    }
    let mut opened_by_refusal = None;
    if refusal(&answer).is_some() {
        let again = present(trial, "unknown-session-again", who, verb, Some(&id), errand).await?;
        if again.disposition == Disposition::Accepted {
            let third = present(trial, "unknown-session-again", who, verb, Some(&id), errand).await?;
            let fresh = made_up(trial, like);
            let fresh = present(trial, "unknown-session", who, verb, Some(&fresh), errand).await?;
            let steady = third.disposition == Disposition::Accepted && refusal(&fresh).is_some();
            opened_by_refusal = Some(again).filter(|_| steady);
        }
    }
    Ok(Unissued { id, answer, opened_by_refusal })
}

/// The controls of most checks: A's session works, and ids that nobody issued were presented by A.
pub(super) async fn controlled(
    trial: &mut Trial<'_, '_>,
    a: &Live,
    errand: &Errand,
) -> Result<(Unissued, Controls), Halt> {
    let unissued = unissued(trial, Who::A, Verb::Post, a, errand).await?;
    let mut plan = ControlPlan::default();
    plan.accepts(&a.answer, |said| Halt::errored(Reason::ControlFailed, said))?;
    plan.presents_unissued(&unissued.answer, std::slice::from_ref(&unissued.id))?;
    Ok((unissued, plan.hold()?))
}

/// The errand, or whatever else the verb stands for, under this id.
pub(super) async fn present(
    trial: &mut Trial<'_, '_>,
    step: &str,
    who: Who,
    verb: Verb,
    session: Option<&str>,
    errand: &Errand,
) -> Result<Answer, Halt> {
    let call = (verb == Verb::Post).then_some(&errand.call);
    trial.visit(step, who, &Visit { verb, session, call }).await
}

/// Posts a call under this id.
pub(super) async fn post(
    trial: &mut Trial<'_, '_>,
    step: &str,
    who: Who,
    session: Option<&str>,
    call: &Call,
) -> Result<Answer, Halt> {
    trial.visit(step, who, &Visit { verb: Verb::Post, session, call: Some(call) }).await
}

/// The owner's own use of a verb must work, or the verb is not there to be tested.
pub(super) fn offered(own: &Answer, verb: Verb) -> Result<(), Halt> {
    if own.disposition == Disposition::Accepted {
        return Ok(());
    }
    let lost = own.lost();
    if verb == Verb::Get && lost.as_ref().is_some_and(|halt| halt.reason == Reason::TimedOut) {
        // Some servers send not even a head before there is something to tell.
        return Err(Halt::skipped(
            Reason::VerbNotOffered,
            format!("a caller's own stream does not begin: {}", own.said()),
        ));
    }
    let is_absent = matches!(own.reply.status, Some(405 | 501));
    let how =
        if is_absent { "the server does not take this verb" } else { "a caller's own use of this verb does not work" };
    let skipped = || Halt::skipped(Reason::VerbNotOffered, format!("{how}: {}", own.said()));
    Err(lost.unwrap_or_else(skipped))
}

/// Whether nothing more can be tried in this run.
pub(super) fn is_over(rows: &[Row]) -> bool {
    rows.iter().any(|row| matches!(row.reason, Reason::TimedOut | Reason::Unreachable | Reason::CallLimit))
}

pub(super) fn refusal(answer: &Answer) -> Option<&Refusal> {
    match &answer.disposition {
        Disposition::Refused(refusal) => Some(refusal),
        _ => None,
    }
}

/// How a request was refused, without what differs from call to call: two refusals that say the same have the same words.
pub(super) fn words(answer: &Answer, presented: &str) -> Option<String> {
    let status = answer.reply.status.unwrap_or_default();
    refusal(answer).map(|refusal| format!("{status} {}", refusal.normalised(&[presented.to_owned()])))
}
