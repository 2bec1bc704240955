//! `handle-foreign-client`: does A's handle serve A by another OAuth client?

use super::loan::{self, Loan, Refused};
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
    id: "handle-foreign-client",
    title: "Handles are not bound to the client",
    claim: "A handle that a user got by one OAuth client is honoured when the same user presents it by another.",
    spec: "For authenticated servers, a handle is a name, not a capability. The server should validate the caller's authorization against the handle on every call.",
    spec_url: "https://modelcontextprotocol.io/specification/2026-07-28/server/tools",
    help: include_str!("foreign_client.md"),
    level: Level::Hardening,
    severity: Severity::Low,
    cwe: &[863, 639],
    cvss: &[cvss::HARDENING, cvss::NOTHING],
    owasp: &[owasp::MCP07, owasp::API1, owasp::ASI03],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let missing = Reason::NeedsIdentityOtherClient;
        let outcome = loan::each(trial, Who::OtherClient, Refused::Stranger, missing, row).await;
        let outcome = outcome.map(|(rows, observations)| Judgement::over(rows, observations));
        checks::finish(trial, &CHECK, outcome).await
    })
}

fn row(trial: &Trial<'_, '_>, loan: Loan, observations: &mut Vec<Observation>) -> Row {
    loan::bound_row(trial, loan, Who::OtherClient, CHECK.severity, observations)
}
