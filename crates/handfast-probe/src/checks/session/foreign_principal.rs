//! `session-foreign-principal`: does a session serve its owner only? Each verb is an entry point of its own, because a
//! server may guard POST and forget GET or DELETE.

mod identities;
mod outsiders;
mod takeover;
mod verbs;

use handfast_wire::message::Object;

use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    disposition::Disposition,
    errand::{self, Errand},
    identity::Who,
    owasp,
    target::{Call, session::Verb},
    trial::{Answer, Trial},
    verdict::{ControlPlan, Controls, Halt, Judgement, Negative, Observation, Reason, Row, Severity, Verdict},
};

use super::{
    endings,
    scene::{self, Live},
};
use identities::Names;

/// The check.
pub(super) static CHECK: Check = Check {
    id: "session-foreign-principal",
    title: "Sessions are not bound to their owner",
    claim: "A session that the server opened for one principal serves another principal who presents its id.",
    spec: "MCP Servers MUST NOT use sessions for authentication.",
    spec_url: "https://modelcontextprotocol.io/specification/2025-11-25/basic/security_best_practices",
    help: include_str!("foreign_principal.md"),
    level: Level::Must,
    severity: Severity::High,
    cwe: &[639, 863],
    cvss: &[cvss::TAKEN, cvss::TOUCHED, cvss::HARDENING],
    owasp: &[owasp::MCP07, owasp::API2, owasp::ASI03],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = judge(trial).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

async fn judge(trial: &mut Trial<'_, '_>) -> Result<Judgement, Halt> {
    let errand = scene::enter(trial).await?;
    let (mut rows, mut observations) = (Vec::new(), Vec::<Observation>::new());
    let (names, entries) = match identities::told_apart(trial, &errand).await {
        Ok(names) => (names, &ENTRIES[..]),
        // Others may still be in A's session.
        Err(halt) if halt.reason == Reason::SecondIdentityNotLive => {
            rows.push(Row::halted("POST", halt));
            (None, &[][..])
        }
        Err(halt) => return Err(halt),
    };
    for &entry in entries {
        let apart = observations.iter().any(|observation| observation.id == SERVED_APART);
        let outcome = match entry {
            "POST" => post(trial, &errand, names.as_ref(), &mut observations).await,
            "GET" => verbs::served(trial, Verb::Get, &errand, &errand, apart).await,
            "DELETE" => verbs::delete(trial, &errand).await,
            _ => takeover::come(trial, &errand, names.as_ref()).await,
        };
        trial.session.target.end_visits().await;
        rows.push(outcome.unwrap_or_else(|halt| Row::halted(entry, halt)));
        if scene::is_over(&rows) {
            return Ok(Judgement::over(rows, observations));
        }
    }
    // A server may guard the one call and forget another.
    let apart = observations.iter().any(|observation| observation.id == SERVED_APART);
    let listing = Call::new("tools/list", Object::new());
    let others = [listing].into_iter().chain(errand.others.clone()).filter(|call| *call != errand.call);
    for call in others.filter(|_| !entries.is_empty()) {
        let asked = Errand::only(call);
        let outcome = verbs::served(trial, Verb::Post, &asked, &errand, apart).await;
        trial.session.target.end_visits().await;
        rows.push(outcome.unwrap_or_else(|halt| Row::halted(&verbs::entry(Verb::Post, &asked), halt)));
        if scene::is_over(&rows) {
            return Ok(Judgement::over(rows, observations));
        }
    }
    // Without B's ordinary call, that other things are refused does not say that it would be.
    let untested = rows.iter().find(|row| row.entry == "POST" && row.verdict == Verdict::Skipped);
    let untested = untested.map(|row| Halt::skipped(row.reason, row.detail.clone()));
    for (who, verb) in outsiders::comers(trial) {
        let outcome = outsiders::come(trial, who, verb, &errand).await;
        trial.session.target.end_visits().await;
        rows.push(outcome.unwrap_or_else(|halt| Row::halted(&outsiders::entry(who, verb), halt)));
        if scene::is_over(&rows) {
            break;
        }
    }
    match untested {
        Some(halt) if rows.iter().all(|row| row.verdict != Verdict::Confirmed) => Err(halt),
        _ => Ok(Judgement::over(rows, observations)),
    }
}

const ENTRIES: [&str; 4] = ["POST", takeover::ENTRY, "GET", "DELETE"];
/// B is served under A's id, in a part of its own.
const SERVED_APART: &str = "foreign-session-served";

/// What B got in A's session, if it got anything that is A's.
struct Taken {
    what: String,
    answer: Answer,
}

async fn post(
    trial: &mut Trial<'_, '_>,
    errand: &Errand,
    names: Option<&Names>,
    observations: &mut Vec<Observation>,
) -> Result<Row, Halt> {
    let (a, b) = (scene::live(trial, Who::A, errand).await?, scene::live(trial, Who::B, errand).await?);
    scene::distinct(&a, &b)?;
    let unissued = scene::unissued(trial, Who::B, Verb::Post, &a, errand).await?;
    let canary = plant(trial, &a, errand).await?;
    let mut plan = ControlPlan::default();
    for live in [&a, &b] {
        plan.accepts(&live.answer, |said| Halt::errored(Reason::ControlFailed, said))?;
    }
    plan.presents_unissued(&unissued.answer, std::slice::from_ref(&unissued.id))?;
    let controls = plan.hold()?;

    let subject = scene::present(trial, "subject", Who::B, Verb::Post, Some(&a.id), errand).await?;
    let again = scene::present(trial, "subject-again", Who::B, Verb::Post, Some(&a.id), errand).await?;
    let mut taken = taken(trial, &a, &b, errand, names, canary.as_ref()).await?;
    if taken.is_none() {
        taken = wrote(trial, &a, errand).await?;
    }
    if taken.is_none() {
        taken = turned(trial, &a, errand, names).await?;
    }
    // A server may keep a part of a session for each caller: then the id alone decides nothing.
    let apart = canary.is_some() && errand.memory.as_ref().is_some_and(|memory| memory.read == errand.call);
    let after = scene::still_live(trial, &a, errand).await?;
    scene::still_live(trial, &b, errand).await?;

    if let Some(halt) = subject.unclear().or_else(|| again.unclear()) {
        return Err(halt);
    }
    if subject.disposition.word() != again.disposition.word() {
        let detail =
            format!("B's use of A's session was answered in two ways: {} and {}", subject.said(), again.said());
        return Err(Halt::errored(Reason::Unstable, trial.clean(&detail)));
    }
    let story = [&a.answer, &b.answer, &unissued.answer, &subject, &after].map(|answer| answer.step).to_vec();
    let control = unissued_control(&controls);
    let mut row = if let Some(Taken { what, answer }) = taken {
        let detail = format!("B presented A's session id with a token of its own and {what}, while {control}");
        let mut row = Row::confirmed(&controls, "POST", Reason::SessionNotBound, Severity::High, trial.clean(&detail));
        row.facts.insert("marker".into(), trial.clean(&what).into());
        row.story.push(answer.step);
        row
    } else if subject.disposition != Disposition::Accepted {
        let said = trial.clean(&subject.said());
        // An id that was made up may be refused for its form alone: one that is no more is the better measure.
        let steady = scene::words(&subject, &a.id) == scene::words(&again, &a.id);
        if let Some((id, gone)) = endings::gone(trial, Who::B, errand).await?
            && steady
            && scene::words(&gone, &id).is_some_and(|words| Some(words) != scene::words(&subject, &a.id))
        {
            let text = format!(
                "A's session is refused to B with `{said}`, one that has ended with `{}`: the difference tells which ids exist",
                gone.said()
            );
            observations.push(Observation { id: "session-oracle", text: trial.clean(&text) });
        }
        Row::refuted(&controls, "POST", Reason::SessionBound, format!("A's session was refused to B: {said}"))
    } else if unissued.is_honoured() {
        let text =
            "B's use of A's session was carried out, as with an id that nobody issued, and brought nothing of A's";
        observations.push(Observation { id: "unknown-session-served", text: text.to_owned() });
        match canary {
            Some(_) => Row::refuted(&controls, "POST", Reason::SessionWitnessUnusable, text.to_owned()),
            None => Row::halted(
                "POST",
                Halt::skipped(Reason::SessionWitnessUnusable, format!("{text}; nothing here could show what is A's")),
            ),
        }
    } else if subject.issued.as_ref().is_some_and(|issued| *issued != a.id) {
        let detail =
            "B's request with A's session id was carried out in another session, whose id came with the answer";
        observations.push(Observation { id: "foreign-session-renewed", text: detail.to_owned() });
        Row::refuted(&controls, "POST", Reason::SessionBound, detail.to_owned())
    } else if apart {
        let text = format!(
            "B's request with A's session id was carried out, but shows nothing of what A keeps there, and A sees nothing of what B wrote; {control}"
        );
        observations.push(Observation { id: SERVED_APART, text: text.clone() });
        Row::refuted(&controls, "POST", Reason::SessionBound, text)
    } else if endings::gone(trial, Who::B, errand)
        .await?
        .is_some_and(|(_, gone)| gone.disposition == Disposition::Accepted)
    {
        let text = "ids of sessions that have ended are honoured as well: only their form is looked at, and nothing here could show what is A's";
        Row::halted("POST", Halt::skipped(Reason::SessionWitnessUnusable, text))
    } else {
        let detail = format!(
            "B's request with A's session id and a token of its own was carried out, while {control}: the id alone decides; nothing of A's was seen"
        );
        Row::confirmed(&controls, "POST", Reason::SessionNotBound, Severity::Medium, detail)
    };
    row.story = story.into_iter().chain(row.story).collect();
    row.facts.insert("unknown_id_control".into(), unissued.answer.disposition.word().into());
    Ok(row)
}

fn unissued_control(controls: &Controls) -> &'static str {
    match controls.negative() {
        Negative::Honoured => "an id that nobody issued brings nothing of A's",
        _ => "an id that nobody issued is refused",
    }
}

/// Keeps a canary of A's in A's session, where there is a tool for that and it works.
async fn plant(trial: &mut Trial<'_, '_>, a: &Live, errand: &Errand) -> Result<Option<crate::canary::Canary>, Halt> {
    let Some(memory) = &errand.memory else { return Ok(None) };
    let canary = trial.canary(Who::A);
    let Some(keep) = memory.write(&canary) else { return Ok(None) };
    scene::post(trial, "keep", Who::A, Some(&a.id), &keep).await?;
    let seen = scene::post(trial, "show", Who::A, Some(&a.id), &memory.read).await?;
    Ok(errand::shown(&seen, &canary).then_some(canary))
}

/// What B gets with A's id that is A's: what A kept there, or A's name as the one whom the server takes the caller for.
async fn taken(
    trial: &mut Trial<'_, '_>,
    a: &Live,
    b: &Live,
    errand: &Errand,
    names: Option<&Names>,
    canary: Option<&crate::canary::Canary>,
) -> Result<Option<Taken>, Halt> {
    if let (Some(memory), Some(canary)) = (&errand.memory, canary) {
        let own = scene::post(trial, "stranger-own-view", Who::B, Some(&b.id), &memory.read).await?;
        let answer = scene::post(trial, "subject-reads", Who::B, Some(&a.id), &memory.read).await?;
        if errand::shown(&answer, canary) && !errand::shown(&own, canary) {
            return Ok(Some(Taken { what: format!("got A's canary `{}`", canary.long), answer }));
        }
    }
    if let (Some(call), Some(names)) = (&errand.who_am_i, names) {
        let own = scene::post(trial, "stranger-asks", Who::B, Some(&b.id), call).await?;
        let answer = scene::post(trial, "subject-asks", Who::B, Some(&a.id), call).await?;
        if names.is_a(&answer) && !names.is_b(&answer) && !names.is_a(&own) {
            return Ok(Some(Taken { what: format!("was taken for A: {}", answer.said()), answer }));
        }
    }
    Ok(None)
}

/// What B puts into A's session: B may be refused what it asks for, and heard all the same.
async fn wrote(trial: &mut Trial<'_, '_>, a: &Live, errand: &Errand) -> Result<Option<Taken>, Halt> {
    let Some(memory) = &errand.memory else { return Ok(None) };
    let canary = trial.canary(Who::B);
    let Some(keep) = memory.write(&canary) else { return Ok(None) };
    scene::post(trial, "subject-writes", Who::B, Some(&a.id), &keep).await?;
    let answer = scene::post(trial, "owner-reads", Who::A, Some(&a.id), &memory.read).await?;
    let what = || format!("wrote into it: A is shown B's canary `{}`", canary.long);
    Ok(errand::shown(&answer, &canary).then(|| Taken { what: what(), answer }))
}

/// After B's call: is A still A?
async fn turned(
    trial: &mut Trial<'_, '_>,
    a: &Live,
    errand: &Errand,
    names: Option<&Names>,
) -> Result<Option<Taken>, Halt> {
    let (Some(call), Some(names)) = (&errand.who_am_i, names) else { return Ok(None) };
    let answer = scene::post(trial, "owner-asks", Who::A, Some(&a.id), call).await?;
    let turned = names.is_b(&answer) && !names.is_a(&answer);
    Ok(turned.then(|| Taken { what: format!("A was then taken for B: {}", answer.said()), answer }))
}
