//! `task-overbound`: is A's task still A's when A's token is renewed? One respect differs from A's own request: the token.

use crate::{
    check::{Check, Level, Running},
    checks::{self, apart},
    cvss,
    disposition::Disposition,
    identity::Who,
    marker::Naming,
    owasp,
    trial::Trial,
    verdict::{ControlPlan, Halt, Judgement, Reason, Row, Severity},
};

use super::scene::{self, GET};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "task-overbound",
    title: "Tasks are lost with the token",
    claim: "A task cannot be reached by the user who began it once that user's access token was renewed.",
    spec: "Clients SHOULD persist task IDs to durable storage so that polling can resume after a crash or restart.",
    spec_url: "https://modelcontextprotocol.io/seps/2663-tasks-extension",
    help: include_str!("overbound.md"),
    level: Level::Should,
    severity: Severity::Low,
    cwe: &[863],
    cvss: &[cvss::LOST],
    owasp: &[owasp::MCP07],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = judge(trial).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

async fn judge(trial: &mut Trial<'_, '_>) -> Result<Judgement, Halt> {
    let tool = scene::find(trial).await?;
    if !trial.session.target.identities().has(Who::NewToken) {
        let detail = "the profile names no new token of A's (`[identities.a-new-token]`)";
        return Err(Halt::skipped(Reason::NeedsIdentityNewToken, detail));
    }
    let of_a = scene::begun(trial, Who::A, &tool).await?;
    let own = scene::own(trial, "own", Who::A, &of_a).await?;
    let renewed = scene::begun(trial, Who::NewToken, &tool).await?;
    let live = scene::own(trial, "renewed-own", Who::NewToken, &renewed).await?;
    if let Naming::Apart { a, b, .. } = apart::named(trial, &own, &live) {
        let detail = format!("the new token is of another user: `{}` and not `{}`", trial.clean(&b), trial.clean(&a));
        return Err(Halt::skipped(Reason::NeedsIdentityNewToken, detail));
    }
    let forged = scene::forged(trial, &of_a, &renewed);
    let unissued = scene::ask(trial, "forged", Who::NewToken, GET, &forged).await?;
    let mut plan = ControlPlan::default();
    plan.accepts(&live, |said| Halt::skipped(Reason::NeedsIdentityNewToken, said))?;
    scene::as_negative(&mut plan, &unissued, &forged)?;
    let controls = plan.hold()?;

    let mut refused = None;
    for _ in 0..TWICE {
        // A task that nobody has looked at yet: some can be looked at only once.
        let task = scene::begun(trial, Who::A, &tool).await?;
        let subject = scene::settled(trial, "subject", Who::NewToken, &task).await?;
        if scene::shown(&subject).is_some() {
            if refused.is_some() {
                return Err(Halt::errored(
                    Reason::Unstable,
                    "A's task was refused with the new token once, and once not",
                ));
            }
            let detail = "A's task is A's with a new token as well".to_owned();
            let mut row = Row::refuted(&controls, GET, Reason::TaskReachable, detail);
            row.story = vec![task.step, unissued.step, subject.step];
            return Ok(Judgement::over(vec![row], Vec::new()));
        }
        match &subject.disposition {
            Disposition::Refused(refusal) if !refusal.reads_like_an_outage() => {}
            Disposition::Accepted => {}
            _ => return Err(subject.unclear().unwrap_or_else(|| Halt::errored(Reason::Unclear, subject.said()))),
        }
        let after = scene::own(trial, "own-after", Who::A, &task).await?;
        refused = Some((subject.said(), vec![task.step, live.step, subject.step, after.step]));
    }
    let (said, story) = refused.unwrap_or_default();
    let detail =
        format!("A's task is refused to A with a new token, and goes on for the old one: {}", trial.clean(&said));
    let mut row = Row::confirmed(&controls, GET, Reason::TaskOverbound, CHECK.severity, detail);
    row.story = story;
    Ok(Judgement::over(vec![row], Vec::new()))
}

/// A finding must not be a fluke.
const TWICE: usize = 2;
