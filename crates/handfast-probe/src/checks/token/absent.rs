//! `token-none`: is a caller without any token let in? And `token-absent-stronger`: although a bad one is refused?

use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    identity::Who,
    owasp,
    target::Call,
    trial::Trial,
    verdict::{Halt, Judgement, Negative, Observation, Reason, Row, Severity, Verdict},
};

use super::scene::{self, Door, Words};

/// The check of no token at all.
pub(super) static NONE: Check = Check {
    id: "token-none",
    title: "Callers without a token are let in",
    claim: "A call that A makes with a token is carried out without any token as well.",
    spec: "MCP servers that implement authorization MUST verify all inbound requests.",
    spec_url: "https://modelcontextprotocol.io/specification/2025-11-25/basic/security_best_practices",
    help: include_str!("none.md"),
    level: Level::Must,
    severity: Severity::High,
    cwe: &[306, 287],
    cvss: &[cvss::SEEN_BY_ANYBODY, cvss::TOUCHED],
    owasp: &[owasp::MCP07, owasp::API2],
    run: without,
};

/// The check of no token beside a bad one.
pub(super) static STRONGER: Check = Check {
    id: "token-absent-stronger",
    title: "No token is better than a bad one",
    claim: "A call is refused with a bad token and carried out without one.",
    spec: "MCP servers that implement authorization MUST verify all inbound requests.",
    spec_url: "https://modelcontextprotocol.io/specification/2025-11-25/basic/security_best_practices",
    help: include_str!("absent_stronger.md"),
    level: Level::Must,
    severity: Severity::High,
    cwe: &[287, 306],
    cvss: &[cvss::SEEN_BY_ANYBODY],
    owasp: &[owasp::MCP07, owasp::API2],
    run: stronger,
};

fn without<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = none(trial).await;
        checks::finish(trial, &NONE, outcome).await
    })
}

async fn none(trial: &mut Trial<'_, '_>) -> Result<Judgement, Halt> {
    let door = scene::enter(trial).await?;
    let controls = door.any_controls()?;
    let subject = scene::subject(trial, &door, Who::Nobody).await?;
    scene::is_no_guest(&door, &subject)?;
    // Where a call is a listing, or any token will do, it may be meant for everybody.
    let open = *controls.negative() == Negative::Honoured || door.call.method != "tools/call";
    let severity = if open { Severity::Medium } else { NONE.severity };
    let words = Words { taken: Reason::NoTokenNeeded, severity, what: "a caller without a token" };
    let row = scene::row(trial, &door, &controls, &subject, &words);
    unless_public(trial, &door, row).await
}

/// Some calls may be meant for everybody, and only the operator knows which. Where something is refused without a token, and
/// to A it is not, the server does look, and what is open is open by choice: that is told, and no finding.
async fn unless_public(trial: &mut Trial<'_, '_>, first: &Door, row: Row) -> Result<Judgement, Halt> {
    if !matches!(row.verdict, Verdict::Confirmed | Verdict::Refuted) {
        return Ok(Judgement::over(vec![row], Vec::new()));
    }
    let mut open: Vec<String> = (row.verdict == Verdict::Confirmed).then(|| first.entry()).into_iter().collect();
    let mut refused = Some(row.clone()).filter(|row| row.verdict == Verdict::Refuted);
    // Where the first is refused, what else is open is worth a look, and no more.
    let most = if row.verdict == Verdict::Confirmed { usize::MAX } else { MOST_LOOKS };
    // What a run calls anyway, of those that change something, as far as it has arguments for it.
    let others: Vec<Call> = scene::harmless(trial).into_iter().chain(scene::mints(trial)).collect();
    let others = others.into_iter().filter(|call| *call != first.call).take(most);
    for call in others {
        let door = match scene::enter_with(trial, call).await {
            Ok(door) => door,
            // One that takes its time is not waited for twice.
            Err(halt) if halt.reason == Reason::TimedOut => break,
            Err(halt) if !halt.is_final() => continue,
            Err(halt) => return Err(halt),
        };
        let subject = match scene::subject(trial, &door, Who::Nobody).await {
            Ok(subject) => subject,
            Err(halt) if !halt.is_final() => continue,
            Err(halt) => return Err(halt),
        };
        let words = Words { taken: Reason::NoTokenNeeded, severity: NONE.severity, what: "a caller without a token" };
        let row = scene::row(trial, &door, &door.any_controls()?, &subject, &words);
        match row.verdict {
            Verdict::Confirmed => open.push(door.entry()),
            Verdict::Refuted => refused = refused.or(Some(row)),
            _ => {}
        }
    }
    if refused.is_none() && row.verdict == Verdict::Confirmed {
        refused = scene::unknown_tool(trial, first).await?;
    }
    let Some(refused) = refused else { return Ok(Judgement::over(vec![row], Vec::new())) };
    let told = |entry: String| format!("{entry} is carried out without a token: is it meant for everybody?");
    let observations = open.into_iter().map(|entry| Observation { id: "public-call", text: told(entry) }).collect();
    Ok(Judgement::over(vec![refused], observations))
}

const MOST_LOOKS: usize = 2;

fn stronger<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = beside_a_bad_one(trial).await;
        checks::finish(trial, &STRONGER, outcome).await
    })
}

async fn beside_a_bad_one(trial: &mut Trial<'_, '_>) -> Result<Judgement, Halt> {
    let door = scene::enter(trial).await?;
    let controls = door.controls()?;
    let subject = scene::subject(trial, &door, Who::Nobody).await?;
    scene::is_no_guest(&door, &subject)?;
    let what = "a caller without a token, while a bad one is refused,";
    // A listing may be meant for everybody.
    let severity = if door.call.method == "tools/call" { STRONGER.severity } else { Severity::Medium };
    let words = Words { taken: Reason::NoTokenNeeded, severity, what };
    let row = scene::row(trial, &door, &controls, &subject, &words);
    match row.verdict {
        Verdict::Confirmed => unless_public(trial, &door, row).await,
        _ => Ok(Judgement::over(vec![row], Vec::new())),
    }
}
