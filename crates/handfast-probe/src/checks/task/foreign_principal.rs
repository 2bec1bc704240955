//! `task-foreign-principal`: is A's task B's to look at, to update, to cancel? One respect differs from A's own request: who
//! makes it; and from B's own: whose task it is.

use handfast_wire::meta;

use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    disposition::{Disposition, Refusal, RefusedBy},
    identity::Who,
    marker::Naming,
    owasp,
    surface::Tool,
    trial::{Answer, Trial},
    verdict::{ControlPlan, Controls, Halt, Judgement, Observation, Reason, Row, Severity},
};

use super::scene::{self, Begun, CANCEL, GET, UPDATE};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "task-foreign-principal",
    title: "Tasks are not bound to their principal",
    claim: "A task that one principal began is told to another, or ended by another, who has its id.",
    spec: "Servers MUST perform authentication and authorization checks on each task-related request to ensure that the client has permission to access a task.",
    spec_url: "https://modelcontextprotocol.io/seps/2663-tasks-extension",
    help: include_str!("foreign_principal.md"),
    level: Level::Must,
    severity: Severity::High,
    cwe: &[639, 862],
    cvss: &[cvss::TAKEN, cvss::TOUCHED],
    owasp: &[owasp::MCP07, owasp::API1, owasp::ASI03],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = judge(trial).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

/// Tasks of both, and what their owners see.
struct Stage {
    tool: Tool,
    of_a: Begun,
    own: Answer,
    of_b: Begun,
    others: Answer,
    forged: String,
    naming: Naming,
}

async fn judge(trial: &mut Trial<'_, '_>) -> Result<Judgement, Halt> {
    let tool = scene::find(trial).await?;
    let of_a = scene::begun(trial, Who::A, &tool).await?;
    let own = scene::own(trial, "own", Who::A, &of_a).await?;
    let of_b = scene::begun(trial, Who::B, &tool).await?;
    let others = scene::own(trial, "stranger-own", Who::B, &of_b).await?;
    let naming = scene::told_apart(trial, (&of_a, &own), &others).await?;
    let forged = scene::forged(trial, &of_a, &of_b);
    let stage = Stage { tool, of_a, own, of_b, others, forged, naming };

    let (mut rows, mut observations) = (Vec::new(), Vec::new());
    for method in [GET, UPDATE, CANCEL] {
        let outcome = match method {
            GET => looked_at(trial, &stage, &mut observations).await,
            UPDATE => updated(trial, &stage, &mut observations).await,
            _ => cancelled(trial, &stage, &mut observations).await,
        };
        let over = outcome.as_ref().is_err_and(Halt::is_final);
        rows.push(outcome.unwrap_or_else(|halt| Row::halted(method, halt)));
        if over {
            break;
        }
    }
    for row in &mut rows {
        row.story.splice(0..0, [stage.of_a.step, stage.of_b.step]);
    }
    Ok(Judgement::over(rows, observations))
}

async fn looked_at(trial: &mut Trial<'_, '_>, stage: &Stage, observations: &mut Vec<Observation>) -> Result<Row, Halt> {
    let Stage { of_a, own, of_b, others, forged, naming, .. } = stage;
    // What can be looked at only once is spent by its owner: then B is shown a task that nobody has looked at yet.
    let again = scene::ask(trial, "own-again", Who::A, GET, &of_a.id).await?;
    let fresh = match scene::shown(&again) {
        Some(_) => None,
        None => Some(scene::begun(trial, Who::A, &stage.tool).await?),
    };
    let task = fresh.as_ref().unwrap_or(of_a);
    let unissued = scene::ask(trial, "forged", Who::B, GET, forged).await?;
    let mut plan = ControlPlan::default();
    plan.accepts(own, |said| Halt::errored(Reason::ControlFailed, said))?;
    plan.accepts(others, |said| Halt::skipped(Reason::SecondIdentityNotLive, said))?;
    scene::as_negative(&mut plan, &unissued, forged)?;
    let controls = plan.hold()?;

    let subject = scene::settled(trial, "subject", Who::B, task).await?;
    // A value of A's that an unissued id brings as well is nobody's.
    let everybodys = scene::marker(&unissued, task, own, others, naming).is_some();
    let found = scene::marker(&subject, task, own, others, naming).filter(|_| !everybodys);
    let mut story = vec![own.step, others.step, unissued.step, subject.step];
    if let (Some(at), Some(_)) = (&found, scene::shown(&subject)) {
        let once_more = match &fresh {
            None => scene::ask(trial, "subject", Who::B, GET, &task.id).await?,
            Some(_) => {
                let another = scene::begun(trial, Who::A, &stage.tool).await?;
                scene::settled(trial, "subject", Who::B, &another).await?
            }
        };
        if scene::shown(&once_more).is_none() {
            return Err(Halt::errored(Reason::Unstable, "A's task was told to B once, and once not"));
        }
        let detail = format!("A's task was told to B, and something of A's came with it: {}", trial.clean(at));
        let mut row = Row::confirmed(&controls, GET, Reason::TaskNotBound, CHECK.severity, detail);
        row.facts.insert("marker".into(), trial.clean(at).into());
        row.story = story;
        return Ok(row);
    }
    if let Some(mut row) = quoted(trial, (GET, task), &subject, [&unissued, others], &controls).await? {
        row.story.splice(0..0, story);
        return Ok(row);
    }
    let after = scene::settled(trial, "own-again", Who::A, task).await?;
    if scene::shown(&after).is_none() {
        let detail = format!("after B's request A's own task cannot be looked at: {}", after.said());
        return Err(after.unclear().unwrap_or_else(|| Halt::errored(Reason::ControlFailed, detail)));
    }
    story.push(after.step);
    let own_after = scene::ask(trial, "stranger-own-again", Who::B, GET, &of_b.id).await?;
    let b_lives = scene::shown(&own_after).is_some() || fresh.is_some();
    let mut row = match &subject.disposition {
        Disposition::Refused(refusal) if refusal.reads_like_an_outage() || !b_lives => {
            return Err(Halt::errored(Reason::ControlFailed, format!("refused for some other reason: {refusal}")));
        }
        Disposition::Refused(refusal) => {
            oracle(&unissued, (refusal, &task.id), forged, observations);
            let detail = format!("A's task is refused to B: {}", trial.clean(&refusal.to_string()));
            Row::refuted(&controls, GET, Reason::TaskBound, detail)
        }
        _ if scene::shown(&subject).is_some() => {
            let text = "B is answered about A's task, and nothing of A's came with it";
            observations.push(Observation { id: Reason::CrossUseUnattributable.slug(), text: text.to_owned() });
            Row::refuted(&controls, GET, Reason::CrossUseUnattributable, text.to_owned())
        }
        Disposition::Accepted => {
            let detail = format!("B is told no task: {}", trial.clean(&subject.said()));
            Row::refuted(&controls, GET, Reason::TaskBound, detail)
        }
        _ => return Err(subject.unclear().unwrap_or_else(|| Halt::errored(Reason::Unclear, subject.said()))),
    };
    row.story = story;
    Ok(row)
}

/// An update is acknowledged and no more: whether it was taken, only a refusal can tell.
async fn updated(trial: &mut Trial<'_, '_>, stage: &Stage, observations: &mut Vec<Observation>) -> Result<Row, Halt> {
    let own = offered(scene::ask(trial, "own-update", Who::A, UPDATE, &stage.of_a.id).await?)?;
    let unissued = scene::ask(trial, "forged", Who::B, UPDATE, &stage.forged).await?;
    let mut plan = ControlPlan::default();
    plan.accepts(&own, |said| Halt::skipped(Reason::VerbNotOffered, format!("not even to A: {said}")))?;
    plan.presents_unissued(&unissued, std::slice::from_ref(&stage.forged))?;
    let controls = plan.hold()?;
    let subject = scene::ask(trial, "subject", Who::B, UPDATE, &stage.of_a.id).await?;
    if let Some(mut row) = quoted(trial, (UPDATE, &stage.of_a), &subject, [&unissued, &stage.others], &controls).await?
    {
        row.story.splice(0..0, [own.step, unissued.step, subject.step]);
        return Ok(row);
    }
    let after = scene::ask(trial, "own-update", Who::A, UPDATE, &stage.of_a.id).await?;
    let mut row = match (&subject.disposition, &unissued.disposition) {
        (Disposition::Refused(refusal), _) if after.disposition == Disposition::Accepted => {
            oracle(&unissued, (refusal, &stage.of_a.id), &stage.forged, observations);
            let detail = format!("an update of A's task is refused to B: {}", trial.clean(&refusal.to_string()));
            Row::refuted(&controls, UPDATE, Reason::TaskBound, detail)
        }
        (Disposition::Refused(refusal), _) => {
            return Err(Halt::errored(Reason::ControlFailed, format!("refused to A as well: {refusal}")));
        }
        (Disposition::Accepted, Disposition::Refused(_)) => {
            let text = "an update of A's task by B is acknowledged, and one of a task that nobody has is refused; nothing shows what it did";
            observations.push(Observation { id: Reason::CrossUseUnattributable.slug(), text: text.to_owned() });
            Row::refuted(&controls, UPDATE, Reason::CrossUseUnattributable, text.to_owned())
        }
        (Disposition::Accepted, _) => {
            let detail = "every update is acknowledged, also of a task that nobody has";
            return Err(Halt::skipped(Reason::TaskWitnessUnusable, detail));
        }
        _ => return Err(subject.unclear().unwrap_or_else(|| Halt::errored(Reason::Unclear, subject.said()))),
    };
    row.story = vec![own.step, unissued.step, subject.step];
    Ok(row)
}

/// A cancellation is acknowledged and no more: whether it was taken, the owner sees.
async fn cancelled(trial: &mut Trial<'_, '_>, stage: &Stage, observations: &mut Vec<Observation>) -> Result<Row, Halt> {
    // A's own: begun, and ended before anybody looked.
    let of_a = scene::begun(trial, Who::A, &stage.tool).await?;
    let own = offered(scene::ask(trial, "own-cancel", Who::A, CANCEL, &of_a.id).await?)?;
    let seen = scene::settled(trial, "own-cancelled", Who::A, &of_a).await?;
    let shows = is_cancelled(&seen) && !is_cancelled(&stage.own);
    let unissued = scene::ask(trial, "forged", Who::B, CANCEL, &stage.forged).await?;
    let mut plan = ControlPlan::default();
    plan.accepts(&own, |said| Halt::skipped(Reason::VerbNotOffered, format!("not even to A: {said}")))?;
    plan.presents_unissued(&unissued, std::slice::from_ref(&stage.forged))?;
    let controls = plan.hold()?;

    let mut ended = Vec::new();
    for _ in 0..TWICE {
        let task = scene::begun(trial, Who::A, &stage.tool).await?;
        let subject = scene::ask(trial, "subject", Who::B, CANCEL, &task.id).await?;
        let after = scene::settled(trial, "own-after", Who::A, &task).await?;
        if scene::shown(&after).is_none() {
            let detail = format!("after B's request A's own task cannot be looked at: {}", after.said());
            return Err(after.unclear().unwrap_or_else(|| Halt::errored(Reason::ControlFailed, detail)));
        }
        let story = vec![own.step, seen.step, unissued.step, task.step, subject.step, after.step];
        if shows && is_cancelled(&after) {
            ended.push(story);
            continue;
        }
        if !ended.is_empty() {
            return Err(Halt::errored(Reason::Unstable, "B's request ended A's task once, and once not"));
        }
        if let Some(mut row) = quoted(trial, (CANCEL, &task), &subject, [&unissued, &stage.others], &controls).await? {
            row.story.splice(0..0, story);
            return Ok(row);
        }
        let mut row = match (&subject.disposition, &unissued.disposition) {
            (Disposition::Refused(refusal), _) => {
                oracle(&unissued, (refusal, &task.id), &stage.forged, observations);
                let detail = format!("A's task is not ended by B: {}", trial.clean(&refusal.to_string()));
                Row::refuted(&controls, CANCEL, Reason::TaskBound, detail)
            }
            // Acknowledged whatever the id, and A's task went on: where A's own request ends one, that is a guard.
            (Disposition::Accepted, Disposition::Accepted) if shows => {
                let detail = "B's request is acknowledged like one for a task that nobody has, and A's task goes on";
                Row::refuted(&controls, CANCEL, Reason::TaskBound, detail.to_owned())
            }
            (Disposition::Accepted, Disposition::Refused(_)) => {
                let text = "B's request to end A's task is acknowledged, and one for a task that nobody has is refused; A's task shows no effect";
                observations.push(Observation { id: Reason::CrossUseUnattributable.slug(), text: text.to_owned() });
                Row::refuted(&controls, CANCEL, Reason::CrossUseUnattributable, text.to_owned())
            }
            (Disposition::Accepted, _) => {
                let detail = "tasks end before they can be cancelled, and every request to cancel one is acknowledged";
                return Err(Halt::skipped(Reason::TaskWitnessUnusable, detail));
            }
            _ => return Err(subject.unclear().unwrap_or_else(|| Halt::errored(Reason::Unclear, subject.said()))),
        };
        row.story = story;
        return Ok(row);
    }
    let detail = "A's task was cancelled after B's request, and goes on without it".to_owned();
    let mut row = Row::confirmed(&controls, CANCEL, Reason::TaskNotBound, Severity::Medium, detail);
    row.story = ended.pop().unwrap_or_default();
    Ok(row)
}

/// An answer to B that shows no task and quotes what A wrote, twice: that gave A's data away, whatever else it says.
async fn quoted(
    trial: &mut Trial<'_, '_>,
    (method, task): (&str, &Begun),
    subject: &Answer,
    innocent: [&Answer; 2],
    controls: &Controls,
) -> Result<Option<Row>, Halt> {
    let Some(mark) = scene::quoted(subject, task) else { return Ok(None) };
    if innocent.iter().any(|other| scene::quoted(other, task).is_some()) {
        return Ok(None);
    }
    let again = scene::ask(trial, "subject-again", Who::B, method, &task.id).await?;
    if scene::quoted(&again, task).is_none() {
        return Err(Halt::errored(Reason::Unstable, "what A wrote was quoted to B once, and once not"));
    }
    let form = match subject.disposition {
        Disposition::Accepted => "an answer that shows no task",
        _ => "an answer that calls itself an error",
    };
    let detail = format!("B's request about A's task brought {} in {form}", trial.clean(&mark));
    let mut row = Row::confirmed(controls, method, Reason::TaskNotBound, CHECK.severity.lower(), detail);
    row.facts.insert("marker".into(), trial.clean(&mark).into());
    row.story = vec![again.step];
    Ok(Some(row))
}

fn is_cancelled(answer: &Answer) -> bool {
    scene::shown(answer).is_some_and(|task| ["cancelled", "canceled"].contains(&task.status.as_str()))
}

/// The owner's own use of a method, unless the server does not know it.
fn offered(answer: Answer) -> Result<Answer, Halt> {
    match &answer.disposition {
        Disposition::Refused(Refusal { by: RefusedBy::RpcError(meta::METHOD_NOT_FOUND), text }) => {
            Err(Halt::skipped(Reason::VerbNotOffered, format!("the server does not know this method: {text}")))
        }
        _ => Ok(answer),
    }
}

/// A's live task and one that nobody has are refused in different words: the difference tells which there are.
fn oracle(unissued: &Answer, (refusal, id): (&Refusal, &str), forged: &str, observations: &mut Vec<Observation>) {
    let Disposition::Refused(other) = &unissued.disposition else { return };
    if refusal.normalised(&[id.to_owned()]) != other.normalised(&[forged.to_owned()]) {
        let text = format!(
            "A's task is refused to B as `{refusal}`, one that nobody has as `{other}`: the difference tells which there are"
        );
        observations.push(Observation { id: "task-oracle", text });
    }
}

/// A finding must not be a fluke.
const TWICE: usize = 2;
