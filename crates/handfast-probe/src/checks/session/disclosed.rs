//! `session-disclosed`: does a page beside the endpoint tell which sessions are open?

use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    errand::Errand,
    identity::Who,
    owasp, surface,
    target::session::Verb,
    trial::{Answer, Trial},
    verdict::{Controls, Halt, Judgement, Reason, Row, Severity},
};

use super::scene::{self, Live, Unissued};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "session-disclosed",
    title: "A side page tells session ids",
    claim: "A page beside the endpoint, such as /health, shows the session ids of others to whoever asks.",
    spec: "MCP Servers MUST NOT use sessions for authentication. … MCP servers MUST use secure, non-deterministic session IDs.",
    spec_url: "https://modelcontextprotocol.io/specification/2025-11-25/basic/security_best_practices",
    help: include_str!("disclosed.md"),
    level: Level::Hardening,
    severity: Severity::High,
    cwe: &[200, 497],
    cvss: &[cvss::SEEN_BY_ANYBODY],
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
                Ok((status, _)) if status == 429 || status >= 500 => Row::halted(
                    &entry,
                    Halt::errored(Reason::Unclear, format!("{path} is answered with HTTP {status}")),
                ),
                // An id that nobody issued shows that the page does not simply hold everything.
                Ok((status, text)) if holds(&text, &a.id) && !holds(&text, &unissued.id) => {
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
    rows.push(refusals(trial, &a, &unissued, &controls, &errand).await?);
    scene::still_live(trial, &a, &errand).await?;
    Ok(Judgement::over(rows, Vec::new()))
}

/// What B and nobody are told where they are refused: a list of the sessions that there are, perhaps.
async fn refusals(
    trial: &mut Trial<'_, '_>,
    a: &Live,
    unissued: &Unissued,
    controls: &Controls,
    errand: &Errand,
) -> Result<Row, Halt> {
    let opening = trial.session.target.opening();
    let answers = [
        scene::present(trial, "unknown-session", Who::B, Verb::Post, Some(&unissued.id), errand).await?,
        scene::present(trial, "no-session", Who::B, Verb::Post, None, errand).await?,
        scene::post(trial, "no-token", Who::Nobody, None, &opening).await?,
    ];
    let told = |answer: &&Answer| {
        let body = answer.body().map(|body| body.to_string()).unwrap_or_default();
        holds(&body, &a.id) || holds(&answer.said(), &a.id)
    };
    let mut row = match answers.iter().find(told) {
        Some(answer) => {
            // Strangers' ids may stand beside it.
            trial.steps[answer.step].answer = "(not quoted: it tells ids of sessions)".to_owned();
            let detail = "a refusal tells the id of a session of A's".to_owned();
            Row::confirmed(controls, REFUSALS, Reason::SessionDisclosed, CHECK.severity, detail)
        }
        None => {
            let detail = "no refusal that was seen tells the id of a session of A's".to_owned();
            Row::refuted(controls, REFUSALS, Reason::SessionGuardHeld, detail)
        }
    };
    row.story = answers.iter().map(|answer| answer.step).collect();
    Ok(row)
}

const REFUSALS: &str = "refusals";

/// Whether a page holds an id: as it is, with characters escaped as in JSON, or percent-encoded as in an address.
fn holds(text: &str, id: &str) -> bool {
    let encoded = surface::percent_encoded(id, false);
    let plain = text.replace("\\/", "/").replace("\\\"", "\"").replace("&amp;", "&");
    text.contains(id) || plain.contains(id) || text.contains(&encoded)
}

const PATHS: [&str; 5] = ["/health", "/sessions", "/metrics", "/debug", "/status"];
const SHORTEST_ID: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_found_however_a_page_writes_it() {
        let id = "a1/b2+c3==";
        for page in [
            "<li>a1/b2+c3==</li>",
            r#"{"sessions": ["a1\/b2+c3=="]}"#,
            "/close?id=a1%2Fb2%2Bc3%3D%3D",
            r#"{\"id\":\"a1/b2+c3==\"}"#,
        ] {
            assert!(holds(page, id), "{page}");
        }
        for page in ["", "a1/b2+c3=", "a1 / b2 + c3 =="] {
            assert!(!holds(page, id), "{page}");
        }
    }
}
