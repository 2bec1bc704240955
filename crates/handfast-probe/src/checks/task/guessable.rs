//! `task-guessable`: can the id of the next task be foretold? Which it will be is said first; then B begins a task.

use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    identity::Who,
    owasp,
    predict::{self, Choice, Finding, Id, ROUNDS, Source},
    surface::Tool,
    trial::Trial,
    verdict::{ControlPlan, Halt, Judgement, Observation, Reason, Row, Severity},
};

use super::scene::{self, GET};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "task-guessable",
    title: "Task ids can be foretold",
    claim: "The id of the task that the next user begins can be foretold from ids of others' tasks.",
    spec: "Servers MUST generate them with sufficient entropy that a third party cannot enumerate or guess them.",
    spec_url: "https://modelcontextprotocol.io/seps/2663-tasks-extension",
    help: include_str!("guessable.md"),
    level: Level::Must,
    severity: Severity::High,
    cwe: &[340, 330],
    cvss: &[cvss::TAKEN_WITH_LUCK, cvss::HARDENING],
    owasp: &[owasp::MCP07, owasp::API1],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = judge(trial).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

/// Tasks that are begun.
struct Tasks(Tool);

impl Source for Tasks {
    async fn next(&self, trial: &mut Trial<'_, '_>, who: Who) -> Result<Id, Halt> {
        let task = scene::begun(trial, who, &self.0).await?;
        Ok(Id { text: task.id, sent: task.sent })
    }
}

async fn judge(trial: &mut Trial<'_, '_>) -> Result<Judgement, Halt> {
    let source = Tasks(scene::find(trial).await?);
    let of_a = scene::begun(trial, Who::A, &source.0).await?;
    let own = scene::own(trial, "own", Who::A, &of_a).await?;
    let of_b = scene::begun(trial, Who::B, &source.0).await?;
    let forged = scene::forged(trial, &of_a, &of_b);
    let unissued = scene::ask(trial, "forged", Who::B, GET, &forged).await?;
    let mut plan = ControlPlan::default();
    plan.accepts(&own, |said| Halt::errored(Reason::ControlFailed, said))?;
    scene::as_negative(&mut plan, &unissued, &forged)?;
    let controls = plan.hold()?;

    let (ids, finding) = predict::look(trial, &source).await?;
    let mut observations = Vec::new();
    let row = match finding {
        Finding::Foretold(found) => {
            // How bad it is depends on what a guess is worth: whether A is told B's task.
            let guess = found.ids.last().cloned().unwrap_or_default();
            let guessed = scene::ask(trial, "guess", Who::A, GET, &guess).await?;
            let (severity, worth) = match scene::shown(&guessed) {
                Some(_) => (CHECK.severity, "and A is told what became of it"),
                None => (Severity::Low, "though it is refused to A: tasks are bound"),
            };
            let detail = format!(
                "{}: {ROUNDS} times of {ROUNDS} the id of B's task was among {} named before, {worth}",
                found.how, found.candidates
            );
            let mut row = Row::confirmed(&controls, NEXT, Reason::TaskForetold, severity, detail);
            row.facts.insert("candidates".into(), u64::try_from(found.candidates).unwrap_or(u64::MAX).into());
            row.story = vec![own.step, unissued.step, guessed.step];
            row
        }
        Finding::OfTheirOwn(how) => {
            let detail = format!(
                "the ids of one caller's tasks are a series of their own ({how}): {ROUNDS} times of {ROUNDS} the next one of A's was named before"
            );
            Row::confirmed(&controls, NEXT, Reason::TaskForetold, Severity::Low, detail)
        }
        Finding::Same(_) | Finding::Unnamed => {
            let detail = "the ids look like a series, but none of the next was named before";
            return Err(Halt::skipped(Reason::TaskWitnessUnusable, detail));
        }
        Finding::NoHabit => {
            let choice = Choice::of(&ids);
            let bits = choice.bits;
            if bits < FEWEST_BITS {
                let text =
                    format!("the part of the ids that differs has no more than {bits:.0} bits: they can be tried out");
                observations.push(Observation { id: Reason::FewIdsPossible.slug(), text });
            }
            Row::refuted(&controls, NEXT, Reason::TaskNotForetold, choice.untold("tasks were begun, their ids"))
        }
    };
    Ok(Judgement::over(vec![row], observations))
}

const NEXT: &str = "the next id";
/// As many as the Session Management Cheat Sheet of OWASP asks for.
const FEWEST_BITS: f64 = 64.0;
