//! `token-none`: is a caller without any token let in? And `token-absent-stronger`: although a bad one is refused?

use crate::{
    check::{Check, Level, Running},
    checks::{
        self,
        handle::{
            self,
            handles::{mint, use_handle},
        },
    },
    cvss,
    discovery::{Entry, Kind},
    identity::Who,
    owasp,
    target::Call,
    trial::Trial,
    verdict::{Halt, Judgement, Negative, Observation, Reason, Row, Severity, Verdict, soft},
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
    cvss: &[cvss::SEEN_BY_ANYBODY, cvss::TOUCHED],
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
async fn unless_public(trial: &mut Trial<'_, '_>, first: &Door, mut row: Row) -> Result<Judgement, Halt> {
    if !matches!(row.verdict, Verdict::Confirmed | Verdict::Refuted) {
        return Ok(Judgement::over(vec![row], Vec::new()));
    }
    match with_as_handle(trial).await? {
        // Whatever else is refused: this was A's.
        Some((Met::Served, entry)) => {
            let detail = "a caller without a token is served with A's handle, and given what A planted".to_owned();
            let controls = first.any_controls()?;
            // Where any token will do, it may be meant for everybody.
            let open = *controls.negative() == Negative::Honoured;
            let severity = if open { Severity::Medium } else { Severity::High };
            let found = Row::confirmed(&controls, &entry, Reason::NoTokenNeeded, severity, detail);
            return Ok(Judgement::over(vec![found], Vec::new()));
        }
        // Guests that have things of their own, and nobody else's: open by choice, perhaps, and less than a door to A's.
        Some((Met::Guest, _)) if row.verdict == Verdict::Confirmed => {
            row.severity = row.severity.map(|severity| severity.min(Severity::Medium));
        }
        _ => {}
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

/// What a caller without a token meets with A's handle.
enum Met {
    /// What A planted, twice.
    Served,
    /// A refusal, and things of their own.
    Guest,
    /// A refusal of everything, or nothing that can be told.
    Neither,
}

async fn with_as_handle(trial: &mut Trial<'_, '_>) -> Result<Option<(Met, String)>, Halt> {
    let Some(kind) = trial.session.map.kinds.first().cloned() else { return Ok(None) };
    let mut outcomes = Vec::new();
    let mut entry = String::new();
    for _ in 0..2 {
        let Some(access) = handle::who_is_served(trial, &kind, &[Who::A, Who::Nobody]).await? else { return Ok(None) };
        outcomes.extend(access.callers.iter().map(|met| met.outcome));
        entry = access.entry;
    }
    Ok(Some(match outcomes[..] {
        ["served", "served", "served", "served"] => (Met::Served, entry),
        ["served", "refused", "served", "refused"] => {
            let own = soft(mint(trial, Who::Nobody, &kind).await)?;
            let is_guest = matches!(own, Some(Ok(_))) && !is_b(trial, &kind, &entry).await?;
            (if is_guest { Met::Guest } else { Met::Neither }, entry)
        }
        _ => (Met::Neither, entry),
    }))
}

/// Whether a caller without a token is taken for B: no guest, but somebody by default.
async fn is_b(trial: &mut Trial<'_, '_>, kind: &Kind, entry: &str) -> Result<bool, Halt> {
    let (Some(entry), Some(Ok(b))) = (Entry::parse(entry), soft(mint(trial, Who::B, kind).await)?) else {
        return Ok(false);
    };
    let used = soft(use_handle(trial, "who-is-served", Who::Nobody, &entry, &b.handle).await)?;
    Ok(used.is_some_and(|(answer, _)| b.marked(&answer).is_some()))
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
