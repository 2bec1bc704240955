//! `token-in-query`: is a token taken from the query string? One respect differs from the control: where the token stands.

use crate::{
    check::{Check, Level, Running},
    checks,
    disposition::Disposition,
    identity::Who,
    trial::Trial,
    verdict::{Halt, Judgement, Reason, Severity},
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
    Ok(Judgement::over(vec![row], Vec::new()))
}
