//! `decline-ignored`: is what a user declines done all the same? One respect differs from the honest flow: the answer is a no.

use crate::{
    answers::No,
    check::{Check, Level, Running},
    checks::{self, state::flow::Flow},
    cvss,
    discovery::names,
    marker, owasp,
    trial::Trial,
    verdict::{ControlPlan, Halt, Observation, Reason, Row, Severity},
};

use super::scene::{self, End, Judged, Scene};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "decline-ignored",
    title: "A no is taken for a yes",
    claim: "What the server does only after asking is done although the user declined, or dismissed the question.",
    spec: "Servers SHOULD NOT assume that elicitation requests will always succeed, and MUST handle cases where the user declines or cancels the elicitation, or where the client fails to process the request.",
    spec_url: "https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation",
    help: include_str!("decline_ignored.md"),
    level: Level::Must,
    severity: Severity::High,
    cwe: &[862, 754],
    cvss: &[cvss::TAKEN],
    owasp: &[owasp::ASI02, owasp::MCP07],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = scene::each(trial, of_flow).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

fn of_flow<'j>(trial: &'j mut Trial<'_, '_>, flow: Flow, observations: &'j mut Vec<Observation>) -> Judged<'j> {
    Box::pin(async move {
        let mut scene = Scene::of(trial, flow, observations).await?;
        let mut rows = Vec::new();
        for round in scene.approvals() {
            scene.flow.round = round;
            let entry = scene.flow.entry();
            let outcome = of_round(trial, &scene, observations).await;
            let over = outcome.as_ref().is_err_and(Halt::is_final);
            rows.push(outcome.unwrap_or_else(|halt| Row::halted(&entry, halt)));
            if over {
                break;
            }
        }
        Ok(rows)
    })
}

async fn of_round(trial: &mut Trial<'_, '_>, scene: &Scene, observations: &mut Vec<Observation>) -> Result<Row, Halt> {
    let entry = scene.flow.entry();
    let (mut heeded, mut done, mut unticked) = (Vec::new(), Vec::new(), false);
    for no in [No::Decline, No::Cancel, No::Boolean] {
        let Some(ended) = scene.refusing(trial, "subject", no).await? else { continue };
        match scene.end(&ended) {
            End::Undone(said) => heeded.push((no, said, ended.answer.step)),
            End::Done if no == No::Boolean => unticked = true,
            End::Done => done.push((no, ended.answer)),
            End::Unclear(said) => {
                let halt = || Halt::errored(Reason::Unclear, format!("{}: {said}", no.word()));
                return Err(ended.answer.unclear().unwrap_or_else(halt));
            }
        }
    }
    let after = scene.still_works(trial).await?;
    let mut plan = ControlPlan::default();
    plan.accepts(&after.answer, |said| Halt::errored(Reason::ControlFailed, said))?;
    if unticked && done.is_empty() {
        let text =
            format!("{entry}: a form that was submitted with no instead of yes is carried out; a decline is not");
        observations.push(Observation { id: "boolean-ignored", text });
    }
    let Some((no, answer)) = done.first() else {
        let (no, said, step) = heeded
            .first()
            .ok_or_else(|| Halt::skipped(Reason::NoApprovalAsked, "nothing is asked here that a user could decline"))?;
        plan.refused_in_words(said);
        let controls = plan.hold()?;
        let detail = format!("{}: {}", no.word(), trial.clean(said));
        let mut row = Row::refuted(&controls, &entry, Reason::ApprovalHeld, detail);
        row.story = vec![after.first_step, *step, after.answer.step];
        return Ok(row);
    };
    // The answer to a no is the answer to a yes: either the server takes any answer for a yes, or it says the same whatever it does.
    match heeded.first() {
        Some((_, said, _)) => plan.refused_in_words(said),
        None if says_it_was_done(scene) => plan.was_asked_again(),
        None => {
            let detail = "what is declined is answered as what is approved, and nothing shows whether it was done";
            observations
                .push(Observation { id: Reason::ApprovalWitnessUnusable.slug(), text: format!("{entry}: {detail}") });
            return Err(Halt::skipped(Reason::ApprovalWitnessUnusable, detail));
        }
    }
    let controls = plan.hold()?;
    let again = scene.refusing(trial, "subject", *no).await?;
    if again.map(|ended| scene.end(&ended)) != Some(End::Done) {
        return Err(Halt::errored(Reason::Unstable, "a no was taken for a yes once, and once not"));
    }
    let nos = done.iter().map(|(no, _)| no.word()).collect::<Vec<_>>().join(", ");
    let said = trial.clean(&answer.said());
    let detail = format!("the answer was {nos}, and it was done: {said}");
    let mut row = Row::confirmed(&controls, &entry, Reason::DeclinedYetDone, CHECK.severity, detail);
    row.facts.insert("actions".into(), nos.into());
    row.story = vec![after.first_step, after.answer.step];
    row.story.extend(heeded.first().map(|(_, _, step)| *step));
    row.story.push(answer.step);
    Ok(row)
}

/// Whether the honest end says that what the entry point is named for was done: `archived 3 items` of `archive_workspace`. What
/// will be done, or would be if, was not.
fn says_it_was_done(scene: &Scene) -> bool {
    let named = scene.flow.origin.entry.rsplit(' ').next().unwrap_or_default();
    let Some(text) = scene.done.answer.result().map(marker::visible_text) else { return false };
    let done: Vec<String> = names::words(named)
        .iter()
        .filter(|word| word.len() >= SHORTEST_VERB)
        .map(|verb| format!("{}ed", verb.strip_suffix('e').unwrap_or(verb)))
        .collect();
    text.split(['.', ';', '!', '?', '\n']).any(|sentence| {
        let told = names::words(sentence);
        let is = |known: &[&str]| told.iter().any(|word| known.contains(&word.as_str()));
        done.iter().any(|done| told.contains(done)) && !is(&NOT_YET) && !is(&NOT_DONE)
    })
}

const SHORTEST_VERB: usize = 3;
/// Words of a sentence about what is to come, or what depends on something.
const NOT_YET: [&str; 24] = [
    "will", "ll", "would", "shall", "should", "may", "might", "can", "could", "must", "be", "being", "if", "unless",
    "whether", "when", "once", "until", "later", "soon", "shortly", "tonight", "tomorrow", "pending",
];
/// Words of a sentence about what was left undone.
const NOT_DONE: [&str; 13] =
    ["not", "t", "no", "nothing", "none", "never", "neither", "nor", "cannot", "without", "0", "zero", "false"];
