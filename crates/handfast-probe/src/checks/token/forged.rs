//! `token-forged`: is the signature of a token verified? One respect differs from the control: the signature.

use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    identity::Who,
    owasp,
    trial::Trial,
    verdict::{Halt, Judgement, Reason, Row, Severity},
};

use super::scene::{self, Words};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "token-forged",
    title: "The signature of tokens is not verified",
    claim: "A token of A's under another signature, or under none, lets A in.",
    spec: "MCP servers, acting in their role as an OAuth 2.1 resource server, MUST validate access tokens as described in OAuth 2.1 Section 5.2.",
    spec_url: "https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization",
    help: include_str!("forged.md"),
    level: Level::Must,
    severity: Severity::Critical,
    cwe: &[347, 345],
    cvss: &[cvss::TAKEN_BY_ANYBODY],
    owasp: &[owasp::MCP07, owasp::API2],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = judge(trial).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

async fn judge(trial: &mut Trial<'_, '_>) -> Result<Judgement, Halt> {
    scene::real(trial)?;
    let forgers = Who::FORGED.into_iter().filter(|who| trial.session.target.identities().has(*who));
    let forgers: Vec<Who> = forgers.collect();
    if forgers.is_empty() {
        let detail = "A's token bears no signature that is seen: it is no `value.signature`, as JSON Web Tokens are";
        return Err(Halt::skipped(Reason::NoSignatureSeen, detail));
    }
    let door = scene::enter(trial).await?;
    let controls = door.controls()?;
    let mut doors = vec![(door, controls)];
    // A server may verify where a session begins, and only read after that.
    if let Some(within) = scene::enter_session(trial).await? {
        doors.extend(within.controls().ok().map(|controls| (within, controls)));
    }
    let mut rows = Vec::new();
    for (door, controls) in &doors {
        for &who in &forgers {
            let what = match who {
                Who::Resigned => "A's token under another signature",
                Who::EmptySignature => "A's token with an empty signature",
                Who::UnknownKey => "A's token, which names a key that there is not,",
                _ => "A's token without a signature, whose header says so,",
            };
            let words = Words { taken: Reason::ForgedTokenTaken, severity: CHECK.severity, what };
            let row = match scene::subject(trial, door, who).await {
                Ok(subject) => scene::row(trial, door, controls, &subject, &words),
                Err(halt) => Row::halted(&door.entry(), halt),
            };
            rows.push(Row { entry: format!("{}, by {}", row.entry, who.label()), ..row });
        }
    }
    Ok(Judgement::over(rows, Vec::new()))
}
