//! `task-listed`: does a list of tasks show A's to B? The extension has no such list, because nothing says whose tasks belong
//! on it.

use handfast_wire::{message::Object, pointer};
use serde_json::Value;

use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    disposition::Disposition,
    identity::Who,
    owasp,
    target::Call,
    trial::{Answer, Trial},
    verdict::{ControlPlan, Halt, Judgement, Observation, Reason, Row, Severity},
};

use super::scene::{self, GET};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "task-listed",
    title: "Tasks are listed to others",
    claim: "A list of tasks shows one principal the ids of another's tasks.",
    spec: "Servers MUST perform authentication and authorization checks on each task-related request to ensure that the client has permission to access a task.",
    spec_url: "https://modelcontextprotocol.io/seps/2663-tasks-extension",
    help: include_str!("listed.md"),
    level: Level::Must,
    severity: Severity::Medium,
    cwe: &[862, 200],
    cvss: &[cvss::TOUCHED],
    owasp: &[owasp::MCP10, owasp::API1],
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
    let of_a = scene::begun(trial, Who::A, &tool).await?;
    let own = scene::own(trial, "own", Who::A, &of_a).await?;
    let of_b = scene::begun(trial, Who::B, &tool).await?;
    let mut plan = ControlPlan::default();
    plan.accepts(&own, |said| Halt::errored(Reason::ControlFailed, said))?;
    let (last, listed) = list(trial, "subject", Who::B).await?;
    let mut observations = Vec::new();
    let (of_a_id, of_b_id) = (of_a.id.clone().into(), of_b.id.clone().into());
    let row = match &last.disposition {
        Disposition::Refused(refusal) => {
            plan.presents_unissued(&last, &[])?;
            let detail = format!("there is no list of tasks: {}", trial.clean(&refusal.to_string()));
            Row::refuted(&plan.hold()?, LIST, Reason::TasksNotListed, detail)
        }
        Disposition::Accepted if listed.contains(&of_a_id) => {
            let others = scene::own(trial, "stranger-own", Who::B, &of_b).await?;
            scene::told_apart(trial, (&of_a, &own), &others).await?;
            let forged = scene::forged(trial, &of_a, &of_b);
            let unissued = scene::ask(trial, "forged", Who::B, GET, &forged).await?;
            scene::as_negative(&mut plan, &unissued, &forged)?;
            let controls = plan.hold()?;
            let another = scene::begun(trial, Who::A, &tool).await?;
            let (again, listed) = list(trial, "subject", Who::B).await?;
            if !listed.contains(&another.id.clone().into()) || listed.contains(&forged.into()) {
                return Err(Halt::errored(Reason::Unstable, "a task of A's was listed to B once, and once not"));
            }
            let detail = format!("a list of {} tasks that B was shown has those of A on it", listed.len());
            let mut row = Row::confirmed(&controls, LIST, Reason::TaskListedToOthers, CHECK.severity, detail);
            row.story = vec![of_a.step, last.step, another.step, again.step];
            row
        }
        Disposition::Accepted => {
            let (owners, of_owner) = list(trial, "own-list", Who::A).await?;
            if !listed.contains(&of_b_id) && !of_owner.contains(&of_a_id) {
                let detail = "the list of tasks has neither A's on it for A nor B's for B";
                return Err(Halt::skipped(Reason::TaskWitnessUnusable, detail));
            }
            plan.refused_in_words("A's task is not on the list that B is shown");
            let text = "tasks/list, which the extension has no more, lists to each caller their own tasks";
            observations.push(Observation { id: "tasks-listed", text: text.to_owned() });
            let mut row = Row::refuted(&plan.hold()?, LIST, Reason::TasksNotListed, text.to_owned());
            row.story = vec![of_a.step, last.step, owners.step];
            row
        }
        _ => return Err(last.unclear().unwrap_or_else(|| Halt::errored(Reason::Unclear, last.said()))),
    };
    Ok(Judgement::over(vec![row], observations))
}

/// Every text in the pages of the list, as far as they are read.
async fn list(trial: &mut Trial<'_, '_>, step: &str, who: Who) -> Result<(Answer, Vec<Value>), Halt> {
    let (mut found, mut params) = (Vec::new(), Object::new());
    loop {
        let answer = trial.call_once(step, who, &Call::new(LIST, params.clone())).await?;
        let result = answer.result().filter(|_| answer.disposition == Disposition::Accepted);
        let scalars = result.map(|result| pointer::scalars(result, MOST_VALUES)).unwrap_or_default();
        let texts = scalars.into_iter().filter(|(_, value)| value.is_string()).map(|(_, value)| value.clone());
        found.extend(texts);
        let next = result.and_then(|result| result.get("nextCursor")).filter(|next| next.is_string()).cloned();
        match next {
            Some(next) if params.get("cursor") != Some(&next) && found.len() < MOST_VALUES => {
                params.insert("cursor".into(), next);
            }
            _ => return Ok((answer, found)),
        }
    }
}

const LIST: &str = "tasks/list";
const MOST_VALUES: usize = 4000;
