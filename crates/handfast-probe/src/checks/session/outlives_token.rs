//! `session-outlives-token`: is the token looked at on every request, or on the first alone?

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
    id: "session-outlives-token",
    title: "Sessions outlive the token",
    claim: "A session serves requests that carry a token whose time is over.",
    spec: "MCP servers that implement authorization MUST verify all inbound requests.",
    spec_url: "https://modelcontextprotocol.io/specification/2025-11-25/basic/security_best_practices",
    help: include_str!("outlives_token.md"),
    level: Level::Must,
    severity: Severity::High,
    cwe: &[613, 863],
    cvss: &[cvss::TAKEN_WITH_LUCK],
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
    if !trial.session.target.identities().has(Who::Expired) {
        let detail = "give an expired credential of A's in the profile, as [identities.expired]";
        return Err(Halt::skipped(Reason::NeedsIdentityExpired, detail));
    }
    let a = scene::live(trial, Who::A, &errand).await?;
    let (unissued, controls) = scene::controlled(trial, &a, &errand).await?;
    // To the server the credential must really be worthless: it opens nothing.
    let opening = trial.session.target.opening();
    let opened = scene::post(trial, "open-with-expired-token", Who::Expired, None, &opening).await?;
    if !matches!(opened.disposition, Disposition::Refused(_)) {
        let detail =
            "the credential that the profile calls expired opens a session: it is not expired, or nobody looks at it";
        return Err(opened.unclear().unwrap_or_else(|| Halt::skipped(Reason::NeedsIdentityExpired, detail)));
    }

    // A call that is meant for everybody says nothing about tokens.
    let open = scene::present(trial, "without-token", Who::Nobody, Verb::Post, Some(&a.id), &errand).await?;
    if open.disposition == Disposition::Accepted {
        let detail = "the call is carried out in A's session without any token as well";
        return Err(Halt::skipped(Reason::NothingWasRefused, detail));
    }

    let subject = scene::present(trial, "subject", Who::Expired, Verb::Post, Some(&a.id), &errand).await?;
    let again = scene::present(trial, "subject-again", Who::Expired, Verb::Post, Some(&a.id), &errand).await?;
    let after = scene::still_live(trial, &a, &errand).await?;

    if let Some(halt) = subject.unclear().or_else(|| again.unclear()) {
        return Err(halt);
    }
    if subject.disposition.word() != again.disposition.word() {
        return Err(Halt::errored(Reason::Unstable, "the expired token was taken once and refused once"));
    }
    let said = trial.clean(&subject.said());
    let as_at_the_door = scene::words(&subject, &a.id) == scene::words(&opened, &a.id);
    let mut row = if subject.disposition == Disposition::Accepted {
        let detail = format!("with a token that opens no session any more A's session is served: {said}");
        Row::confirmed(&controls, ENTRY, Reason::SessionOutlivedToken, CHECK.severity, detail)
    } else if subject.reply.status == Some(401) || as_at_the_door {
        Row::refuted(
            &controls,
            ENTRY,
            Reason::SessionGuardHeld,
            format!("the expired token is refused in A's session: {said}"),
        )
    } else {
        // Refused as a stranger would be: that says nothing about time.
        let detail = format!(
            "the expired token is refused in A's session otherwise than it is when it opens one ({said}): is it a token of A's?"
        );
        return Err(Halt::skipped(Reason::NeedsIdentityExpired, detail));
    };
    row.story = [&a.answer, &unissued.answer, &opened, &subject, &after].map(|answer| answer.step).to_vec();
    Ok(Judgement::over(vec![row], Vec::new()))
}

const ENTRY: &str = "POST";
