//! `session-unknown-not-404`: does a client whose session is gone learn that it has to open another? Only 404 says so.

use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    disposition::Disposition,
    errand::Errand,
    identity::Who,
    owasp,
    target::session::Verb,
    trial::{Answer, Trial},
    verdict::{ControlPlan, Halt, Judgement, Observation, Reason, Row, Severity},
};

use super::scene::{self, Live};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "session-unknown-not-404",
    title: "Unknown sessions are not answered with 404",
    claim: "A session id that the server does not know is refused in a way that tells no client to open a new session.",
    spec: "Servers that require a session ID SHOULD respond to requests without an MCP-Session-Id header (other than initialization) with HTTP 400 Bad Request. … The server MAY terminate the session at any time, after which it MUST respond to requests containing that session ID with HTTP 404 Not Found.",
    spec_url: "https://modelcontextprotocol.io/specification/2025-11-25/basic/transports",
    help: include_str!("unknown_not_404.md"),
    level: Level::Should,
    severity: Severity::Low,
    cwe: &[392],
    cvss: &[cvss::LOST],
    owasp: &[owasp::API2],
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
    let (mut rows, mut observations) = (Vec::new(), Vec::new());
    for verb in [Verb::Post, Verb::Get, Verb::Delete] {
        let outcome = of_verb(trial, verb, &errand, &mut observations).await;
        rows.push(outcome.unwrap_or_else(|halt| Row::halted(verb.word(), halt)));
        if scene::is_over(&rows) {
            break;
        }
    }
    Ok(Judgement::over(rows, observations))
}

async fn of_verb(
    trial: &mut Trial<'_, '_>,
    verb: Verb,
    errand: &Errand,
    observations: &mut Vec<Observation>,
) -> Result<Row, Halt> {
    let ended = ended(trial, errand).await?;
    let can_end = ended.is_some();
    let a = scene::live(trial, Who::A, errand).await?;
    // A server may give the id out again.
    let ended = ended.filter(|ended| *ended != a.id);
    if verb != Verb::Delete {
        let own = scene::present(trial, "owner-use", Who::A, verb, Some(&a.id), errand).await?;
        scene::offered(&own, verb)?;
    } else if !can_end {
        return Err(Halt::skipped(Reason::VerbNotOffered, "the server does not let its clients end a session"));
    }
    let subject = scene::unissued(trial, Who::A, verb, &a, errand).await?;
    // What was a session once is the better subject: an id that was made up may be refused for its form.
    let past = match &ended {
        Some(id) => Some(scene::present(trial, "ended-session", Who::A, verb, Some(id), errand).await?),
        None => None,
    };
    let after = scene::still_live(trial, &a, errand).await?;
    let decisive = past.as_ref().unwrap_or(&subject.answer);
    let mut plan = ControlPlan::default();
    plan.accepts(&a.answer, |said| Halt::errored(Reason::ControlFailed, said))?;
    plan.presents_unissued(&subject.answer, std::slice::from_ref(&subject.id))?;
    let controls = plan.hold()?;
    if let Some(halt) = decisive.unclear() {
        return Err(halt);
    }
    if decisive.disposition == Disposition::Accepted || subject.is_honoured() {
        let text = format!("nothing is refused here, so there is no status to look at: {}", decisive.said());
        return Err(Halt::skipped(Reason::UnknownSessionServed, trial.clean(&text)));
    }
    // An id that was made up may be refused for its form, by whoever signs ids or knows them by a checksum.
    if past.is_none() && decisive.reply.status != Some(404) {
        let text = format!(
            "an id that was made up is refused, but its form may be why, and no session can be ended: {}",
            decisive.said()
        );
        return Err(Halt::skipped(Reason::SessionWitnessUnusable, trial.clean(&text)));
    }
    let status = |answer: &Answer| answer.reply.status.unwrap_or_default();
    if status(decisive) == 404 && status(&subject.answer) != 404 {
        let text = format!("{}: an id that was made up is answered with HTTP {}", verb.word(), status(&subject.answer));
        observations.push(Observation { id: "unknown-session-status", text });
    }
    let said = format!("HTTP {}, {}", status(decisive), decisive.said());
    let whose = if past.is_some() { "a session that was ended" } else { "a session id that nobody issued" };
    let said = trial.clean(&format!("{whose} is answered with {said}"));
    let mut row = match status(decisive) {
        404 => Row::refuted(&controls, verb.word(), Reason::UnknownSessionRefused, said),
        _ => Row::confirmed(&controls, verb.word(), Reason::UnknownSessionNot404, CHECK.severity, said),
    };
    row.story = [&a.answer, &subject.answer, decisive, &after].map(|answer| answer.step).to_vec();
    row.story.dedup();
    Ok(row)
}

/// A session that worked and was ended, where the server lets its clients end one.
async fn ended(trial: &mut Trial<'_, '_>, errand: &Errand) -> Result<Option<String>, Halt> {
    let Live { id, .. } = scene::live(trial, Who::A, errand).await?;
    let end = scene::present(trial, "end", Who::A, Verb::Delete, Some(&id), errand).await?;
    Ok((end.disposition == Disposition::Accepted).then_some(id))
}
