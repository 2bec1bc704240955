//! `handle-foreign-tenant`: does A's handle serve a user of another tenant?

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
    id: "handle-foreign-tenant",
    title: "Handles are not bound to the tenant",
    claim: "A handle that is refused to other users of its owner's tenant is honoured when a user of another tenant presents it.",
    spec: "MUST NOT treat possession of a state handle as authentication.",
    spec_url: "https://modelcontextprotocol.io/docs/2026-07-28/tutorials/security/security_best_practices",
    help: include_str!("foreign_tenant.md"),
    level: Level::Must,
    severity: Severity::High,
    cwe: &[639, 863],
    cvss: &[cvss::TAKEN, cvss::TOUCHED],
    owasp: &[owasp::MCP07, owasp::API1, owasp::ASI03],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let missing = Reason::NeedsIdentityOtherTenant;
        let outcome = loan::each(trial, Who::OtherTenant, Refused::Stranger, missing, row).await;
        let outcome = outcome.map(|(rows, observations)| Judgement::over(rows, observations));
        checks::finish(trial, &CHECK, outcome).await
    })
}

fn row(trial: &Trial<'_, '_>, loan: Loan, observations: &mut Vec<Observation>) -> Row {
    loan::bound_row(trial, loan, Who::OtherTenant, CHECK.severity, observations)
}
