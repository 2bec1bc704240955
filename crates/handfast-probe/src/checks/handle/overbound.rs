//! `handle-overbound`: does A's handle still serve A, once A has a new token? A fault of availability: nobody else gains.

use super::loan::{self, Loan, Outcome, Refused};
use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    identity::Who,
    owasp,
    trial::Trial,
    verdict::{Judgement, Observation, Reason, Row, Severity},
};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "handle-overbound",
    title: "Handles are bound to more than their owner",
    claim: "A handle is refused to its owner as soon as the owner comes with a new access token.",
    spec: "MCP servers SHOULD bind handles server-side to the authenticated user, for example by keying stored state as `<user_id>:<handle>` where the user ID is derived from the verified token rather than supplied by the client, and reject a handle presented by any other principal.",
    spec_url: "https://modelcontextprotocol.io/docs/2026-07-28/tutorials/security/security_best_practices",
    help: include_str!("overbound.md"),
    level: Level::Should,
    severity: Severity::Low,
    cwe: &[1220],
    cvss: &[cvss::LOST],
    owasp: &[owasp::API2, owasp::MCP07],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let missing = Reason::NeedsIdentityNewToken;
        let outcome = loan::each(trial, Who::NewToken, Refused::Forged, missing, row).await;
        let outcome = outcome.map(|(rows, observations)| Judgement::over(rows, observations));
        checks::finish(trial, &CHECK, outcome).await
    })
}

fn row(trial: &Trial<'_, '_>, loan: Loan, observations: &mut Vec<Observation>) -> Row {
    let Loan { entry, controls, outcome, story } = loan;
    let mut row = match outcome {
        Outcome::Refused(refusal) => {
            let said = trial.clean(&refusal.to_string());
            let detail = format!("with a new token A mints and uses handles, and is refused the one it had: {said}");
            Row::confirmed(&controls, &entry, Reason::Overbound, CHECK.severity, detail)
        }
        Outcome::Marked(mark) | Outcome::Told(mark) => {
            let detail = format!("with a new token A is served as before: {}", trial.clean(&mark));
            Row::refuted(&controls, &entry, Reason::FollowsItsOwner, detail)
        }
        Outcome::Accepted => {
            let text = "with a new token A is served, and nothing shows that it is by the same object";
            observations.push(Observation { id: "cross-use-unattributable", text: format!("{entry}: {text}") });
            Row::refuted(&controls, &entry, Reason::FollowsItsOwner, text.to_owned())
        }
    };
    row.story = story;
    row
}
