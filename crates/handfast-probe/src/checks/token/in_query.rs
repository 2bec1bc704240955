//! `token-in-query`: is a token taken from the query string? One respect differs from the control: where the token stands.

use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    disposition::Disposition,
    identity::Who,
    owasp,
    target::session::{Verb, Visit},
    trial::Trial,
    verdict::{ControlPlan, Halt, Judgement, Reason, Row, Severity},
};

use super::scene::{self, Words};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "token-in-query",
    title: "Tokens are taken from the query string",
    claim: "A good token in the query string, and none in the header, lets A in.",
    spec: "Access tokens MUST NOT be included in the URI query string.",
    spec_url: "https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization",
    help: include_str!("in_query.md"),
    level: Level::Must,
    severity: Severity::Low,
    cwe: &[598],
    cvss: &[cvss::HARDENING],
    owasp: &[owasp::MCP01, owasp::API2],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = judge(trial).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

async fn judge(trial: &mut Trial<'_, '_>) -> Result<Judgement, Halt> {
    let door = scene::enter(trial).await?;
    let controls = door.controls()?;
    let without = scene::knock(trial, "no-token", Who::Nobody, &door).await?;
    if without.disposition == Disposition::Accepted {
        let detail = "the call is carried out without any token: where one stands makes no difference";
        return Err(Halt::skipped(Reason::NothingWasRefused, detail));
    }
    let subject = scene::subject(trial, &door, Who::InQuery).await?;
    let what = "A's token in the query string, and none in the header,";
    let words = Words { taken: Reason::TokenTakenFromQuery, severity: CHECK.severity, what };
    let mut row = scene::row(trial, &door, &controls, &subject, &words);
    row.story.insert(1, without.step);
    let mut rows = vec![row];
    match stream(trial).await {
        Ok(row) => rows.extend(row),
        Err(halt) => rows.push(Row::halted(STREAM, halt)),
    }
    Ok(Judgement::over(rows, Vec::new()))
}

/// The same for a stream: what a browser opens one with (`EventSource`) can set no header, and so servers take the token from
/// the query there alone. `None` where there are no sessions, or no streams.
async fn stream(trial: &mut Trial<'_, '_>) -> Result<Option<Row>, Halt> {
    let Some(id) = scene::own_session(trial).await? else { return Ok(None) };
    let visit = Visit { verb: Verb::Get, session: Some(&id), call: None };
    let own = trial.visit("own-token", Who::A, &visit).await?;
    if own.disposition != Disposition::Accepted {
        return Ok(None);
    }
    let unissued = trial.visit("unissued-token", Who::Impostor, &visit).await?;
    let without = trial.visit("no-token", Who::Nobody, &visit).await?;
    if without.disposition == Disposition::Accepted {
        let detail = "a stream is attached without any token: where one stands makes no difference";
        return Err(Halt::skipped(Reason::NothingWasRefused, detail));
    }
    let mut plan = ControlPlan::default();
    plan.accepts(&own, |said| Halt::errored(Reason::ControlFailed, said))?;
    plan.presents_unissued(&unissued, &[])?;
    let controls = plan.hold()?;
    let subject = trial.visit("subject", Who::InQuery, &visit).await?;
    if let Some(halt) = subject.unclear() {
        return Err(halt);
    }
    let said = trial.clean(&subject.said());
    let mut row = match subject.disposition {
        Disposition::Accepted => {
            let detail = "with A's token in the query string, and none in the header, a stream is attached".to_owned();
            Row::confirmed(&controls, STREAM, Reason::TokenTakenFromQuery, CHECK.severity, detail)
        }
        _ => {
            let detail = format!("with A's token in the query string no stream is attached: {said}");
            Row::refuted(&controls, STREAM, Reason::TokenRefused, detail)
        }
    };
    row.story = [&own, &unissued, &without, &subject].map(|answer| answer.step).to_vec();
    Ok(Some(row))
}

const STREAM: &str = "GET in a session of A's";
