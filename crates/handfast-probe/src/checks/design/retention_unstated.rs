//! `design-retention-unstated`: is a model told how long what it makes will be there?

use super::{ADVICE, Advice, Seen, of_each};
use crate::{
    check::{Check, Level, Running},
    checks, clock, cvss, lifetime, owasp,
    trial::Trial,
    verdict::{Halt, Severity},
};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "design-retention-unstated",
    title: "Nobody is told how long a handle lives",
    claim: "The tool that mints a handle does not say how long the handle lives.",
    spec: "Because handles outlive any single connection, the server's retention policy should be stated in the creation tool's description (e.g., \"baskets expire after 24 hours of inactivity\") so the model can see it when deciding to create state.",
    spec_url: ADVICE,
    help: include_str!("retention_unstated.md"),
    level: Level::Hardening,
    severity: Severity::Info,
    cwe: &[1059],
    cvss: &[cvss::NOTHING],
    owasp: &[owasp::API8],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = of_each(trial, look).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

fn look(_: &Trial<'_, '_>, seen: &Seen<'_>) -> Result<Advice, Halt> {
    let name = &seen.tool.name;
    let result = seen.minted.answer.result();
    let beside = result.and_then(|result| lifetime::in_result(result, &seen.kind.spot, clock::unix_seconds()));
    Ok(match beside {
        _ if lifetime::is_mentioned(&seen.tool.description) => {
            Advice::Followed(format!("{name} says how long what it makes is kept"))
        }
        Some(_) => {
            Advice::Followed(format!("{name} says beside the handle how long it lives, though not in its description"))
        }
        None => Advice::NotFollowed(format!(
            "{name} says nowhere how long what it makes is kept: `{}`",
            seen.tool.description
        )),
    })
}
