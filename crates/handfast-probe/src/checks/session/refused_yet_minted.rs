//! `session-refused-yet-minted`: does a refusal hand out a session all the same?

use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    disposition::Disposition,
    errand::Errand,
    identity::Who,
    owasp,
    target::session::Verb,
    trial::{Answer, Trial},
    verdict::{ControlPlan, Halt, Judgement, Reason, Row, Severity},
};

use super::scene;

/// The check.
pub(super) static CHECK: Check = Check {
    id: "session-refused-yet-minted",
    title: "Refusals hand out sessions",
    claim: "A request is refused, and the session id that comes with the refusal works.",
    spec: "MCP servers that implement authorization MUST verify all inbound requests.",
    spec_url: "https://modelcontextprotocol.io/specification/2025-11-25/basic/security_best_practices",
    help: include_str!("refused_yet_minted.md"),
    level: Level::Must,
    severity: Severity::High,
    cwe: &[696, 287],
    cvss: &[cvss::TAKEN, cvss::TOUCHED],
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
    let errand = scene::enter(trial).await?;
    let a = scene::live(trial, Who::A, &errand).await?;
    let opening = trial.session.target.opening();
    let unknown = scene::made_up(trial, &a);
    let mut rows = Vec::new();
    for (entry, who) in [
        ("an unknown session id", Who::A),
        ("no session id", Who::A),
        ("initialize without a credential", Who::Nobody),
        ("initialize with a credential that nobody issued", Who::Impostor),
    ] {
        let refused = match who {
            Who::A => {
                let id = (entry == "an unknown session id").then_some(unknown.as_str());
                scene::present(trial, "to-be-refused", who, Verb::Post, id, &errand).await?
            }
            _ => scene::post(trial, "to-be-refused", who, None, &opening).await?,
        };
        let outcome = of_refusal(trial, entry, who, &a, refused, &errand).await;
        rows.push(outcome.unwrap_or_else(|halt| Row::halted(entry, halt)));
        if scene::is_over(&rows) {
            break;
        }
    }
    Ok(Judgement::over(rows, Vec::new()))
}

async fn of_refusal(
    trial: &mut Trial<'_, '_>,
    entry: &str,
    who: Who,
    a: &scene::Live,
    refused: Answer,
    errand: &Errand,
) -> Result<Row, Halt> {
    if let Some(halt) = refused.unclear() {
        return Err(halt);
    }
    if !matches!(refused.disposition, Disposition::Refused(_)) {
        return Err(Halt::skipped(Reason::NothingWasRefused, format!("this is not refused here: {}", refused.said())));
    }
    // The control: an id that nobody issued is refused to the same caller, in the same call.
    let unissued = scene::unissued(trial, who, Verb::Post, a, errand).await?;
    let mut plan = ControlPlan::default();
    plan.accepts(&a.answer, |said| Halt::errored(Reason::ControlFailed, said))?;
    plan.presents_unissued(&unissued.answer, std::slice::from_ref(&unissued.id))?;
    let controls = plan.hold()?;
    let said = trial.clean(&refused.said());
    let Some(minted) = refused.issued.clone().filter(|issued| *issued != a.id) else {
        let detail = format!("the refusal brings no session id: {said}");
        let mut row = Row::refuted(&controls, entry, Reason::SessionGuardHeld, detail);
        row.story = vec![a.answer.step, unissued.answer.step, refused.step];
        return Ok(row);
    };

    let subject = scene::present(trial, "subject", who, Verb::Post, Some(&minted), errand).await?;
    let again = scene::present(trial, "subject-again", who, Verb::Post, Some(&minted), errand).await?;

    if let Some(halt) = subject.unclear().or_else(|| again.unclear()) {
        return Err(halt);
    }
    let works = |answer: &Answer| answer.disposition == Disposition::Accepted;
    let mut row = match (works(&subject) && works(&again), unissued.is_honoured()) {
        (true, false) => {
            // Without a credential that the server knows, it is a way in.
            let severity = if who == Who::A { Severity::Medium } else { CHECK.severity };
            let detail = format!(
                "a request was refused ({said}), and the session id that came with the refusal works, while others that nobody issued are refused"
            );
            Row::confirmed(&controls, entry, Reason::RefusalMintedSession, severity, detail)
        }
        (true, true) => {
            let detail = "the id that came with the refusal works, as any other does that nobody issued".to_owned();
            Row::refuted(&controls, entry, Reason::SessionWitnessUnusable, detail)
        }
        (false, _) => {
            let detail = format!("the id that came with the refusal does not work: {}", trial.clean(&subject.said()));
            Row::refuted(&controls, entry, Reason::SessionGuardHeld, detail)
        }
    };
    row.story = [a.answer.step, unissued.answer.step, refused.step, subject.step].to_vec();
    Ok(row)
}
