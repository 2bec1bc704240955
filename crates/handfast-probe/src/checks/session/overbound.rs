//! `session-overbound`: does A's session still serve A, once A has a new token? A fault of availability: nobody else gains.

use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    disposition::Disposition,
    identity::Who,
    owasp,
    target::session::Verb,
    trial::Trial,
    verdict::{Halt, Judgement, Reason, Row, Severity},
};

use super::scene;

/// The check.
pub(super) static CHECK: Check = Check {
    id: "session-overbound",
    title: "Sessions are bound to more than their owner",
    claim: "A session is refused to its owner as soon as the owner comes with a new access token.",
    spec: "MCP servers SHOULD bind session IDs to user-specific information.",
    spec_url: "https://modelcontextprotocol.io/specification/2025-11-25/basic/security_best_practices",
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
        let outcome = judge(trial).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

async fn judge(trial: &mut Trial<'_, '_>) -> Result<Judgement, Halt> {
    let errand = scene::enter(trial).await?;
    if !trial.session.target.identities().has(Who::NewToken) {
        let detail = "give a token of A's that was issued later in the profile, as [identities.a-new-token]";
        return Err(Halt::skipped(Reason::NeedsIdentityNewToken, detail));
    }
    // To the server the new token must be good.
    let own = scene::live(trial, Who::NewToken, &errand).await.map_err(|halt| match halt.is_final() {
        true => halt,
        false => {
            Halt::skipped(Reason::NeedsIdentityNewToken, format!("the new token opens no session: {}", halt.detail))
        }
    })?;
    // After that: a server may keep one session for each user.
    let a = scene::live(trial, Who::A, &errand).await?;
    let (unissued, controls) = scene::controlled(trial, &a, &errand).await?;
    let subject = scene::present(trial, "subject", Who::NewToken, Verb::Post, Some(&a.id), &errand).await?;
    let again = scene::present(trial, "subject-again", Who::NewToken, Verb::Post, Some(&a.id), &errand).await?;
    let after = scene::still_live(trial, &a, &errand).await?;

    if let Some(halt) = subject.unclear().or_else(|| again.unclear()) {
        return Err(halt);
    }
    if subject.disposition.word() != again.disposition.word() {
        return Err(Halt::errored(Reason::Unstable, "the new token was taken once and refused once"));
    }
    let said = trial.clean(&subject.said());
    let mut row = match &subject.disposition {
        Disposition::Accepted => {
            let detail = format!("with a new token A is served in the session that it had: {said}");
            Row::refuted(&controls, ENTRY, Reason::FollowsItsOwner, detail)
        }
        _ => {
            let detail = format!("with a new token A opens sessions, and is refused the one that it had: {said}");
            Row::confirmed(&controls, ENTRY, Reason::Overbound, CHECK.severity, detail)
        }
    };
    row.story = [&a.answer, &unissued.answer, &own.answer, &subject, &after].map(|answer| answer.step).to_vec();
    Ok(Judgement::over(vec![row], Vec::new()))
}

const ENTRY: &str = "POST";
