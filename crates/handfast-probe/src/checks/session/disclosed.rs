//! `session-disclosed`: does a page beside the endpoint tell which sessions are open?

use crate::{
    check::{Check, Level, Running},
    checks,
    identity::Who,
    trial::Trial,
    verdict::{Halt, Judgement, Reason, Row, Severity},
};

use super::scene;

/// The check.
pub(super) static CHECK: Check = Check {
    id: "session-disclosed",
    title: "A side page tells session ids",
    claim: "A page beside the endpoint, such as /health, shows the session ids of others to whoever asks.",
    spec: "MCP Servers MUST NOT use sessions for authentication. MCP servers MUST use secure, non-deterministic session IDs.",
    spec_url: "https://modelcontextprotocol.io/specification/2025-11-25/basic/security_best_practices",
    help: include_str!("disclosed.md"),
    level: Level::Hardening,
    severity: Severity::High,
    cwe: &[200, 497],
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
    let a = scene::live(trial, Who::A, &errand).await?;
    if a.id.chars().count() < SHORTEST_ID {
        let detail = format!("an id of fewer than {SHORTEST_ID} characters may stand on a page by chance");
        return Err(Halt::skipped(Reason::SessionWitnessUnusable, detail));
    }
    let (unissued, controls) = scene::controlled(trial, &a, &errand).await?;
    unissued.must_be_worthless()?;

    let mut rows = Vec::new();
    for path in PATHS {
        for who in [Who::Nobody, Who::B] {
            let (step, page) = trial.page("side-page", who, path).await?;
            let entry = format!("GET {path} as {}", who.label());
            let mut row = match page {
                Err(fault) => Row::halted(&entry, Halt::errored(Reason::Unclear, fault.to_string())),
                // An id that nobody issued shows that the page does not simply hold everything.
                Ok((status, text)) if text.contains(&a.id) && !text.contains(&unissued.id) => {
                    let detail = format!("{path} (HTTP {status}) shows to {} the id of a session of A's", who.label());
                    Row::confirmed(&controls, &entry, Reason::SessionDisclosed, CHECK.severity, detail)
                }
                Ok((status, _)) => {
                    let detail =
                        format!("{path} is answered with HTTP {status} and shows no session id that the probe holds");
                    Row::refuted(&controls, &entry, Reason::SessionGuardHeld, detail)
                }
            };
            row.story = vec![a.answer.step, unissued.answer.step, step];
            rows.push(row);
        }
    }
    scene::still_live(trial, &a, &errand).await?;
    Ok(Judgement::over(rows, Vec::new()))
}

const PATHS: [&str; 5] = ["/health", "/sessions", "/metrics", "/debug", "/status"];
const SHORTEST_ID: usize = 8;
