//! A header that repeats the handle (`x-mcp-header`): whoever stands in front of a server may ask about the one, and the
//! server open the other. "Servers that process the request body MUST reject requests where the values specified in the
//! headers do not match the corresponding values in the request body."

use super::{super::handles::use_handle, Experiment, witness::Seen};
use crate::{
    discovery::{self, Entry, emitted},
    disposition::Disposition,
    identity::Who,
    trial::{Answer, Trial},
    verdict::{ControlPlan, Halt, Reason, Row},
};
use handfast_wire::headers;

/// Header and body with a handle each, one of them A's; `None` where no header repeats this argument.
pub(super) async fn of_entry(
    trial: &mut Trial<'_, '_>,
    experiment: &Experiment<'_>,
    entry: &Entry,
) -> Result<Option<Row>, Halt> {
    let Entry::Tool { tool, argument } = entry else { return Ok(None) };
    let schema = trial.session.surface.tool(tool).map(|tool| &tool.input);
    let Some(header) = schema.and_then(|schema| headers::mirrors(schema, argument)) else { return Ok(None) };
    if trial.session.target.transport() != "http" {
        return Ok(None);
    }
    let (a, b) = (&experiment.handles.a, &experiment.handles.b);
    let mut plan = ControlPlan::default();
    let failed = |said: String| Halt::errored(Reason::ControlFailed, format!("with header and body alike: {said}"));
    let (owner, _) = use_handle(trial, "owner-use", Who::A, entry, &a.handle).await?;
    plan.accepts(&owner, failed)?;
    let (own, _) = use_handle(trial, "stranger-own-use", Who::B, entry, &b.handle).await?;
    plan.accepts(&own, failed)?;
    let forged = &experiment.handles.forged;
    let (unissued, _) = use_handle(trial, "forged-handle", Who::B, entry, forged).await?;
    plan.presents_unissued(&unissued, &[emitted::text_of(forged)])?;
    let controls = plan.hold()?;

    let witness = experiment.witness(a, &owner, [&own, &unissued]);
    let place = format!("{entry} ({header})");
    let mut story = vec![owner.step, own.step, unissued.step];
    let mut said = Vec::new();
    for (body, head, how) in [(a, b, "A's handle in the body and B's in the header"), (b, a, "the two changed about")] {
        let mut seen = Vec::new();
        for step in ["subject", "subject-again"] {
            let answer = split(trial, step, entry, [&body.handle, &head.handle]).await?;
            story.push(answer.step);
            seen.push(witness.look(&answer)?);
            said.push((how, answer));
        }
        if let [Seen::Marked { marker, severity }, Seen::Marked { .. }] = &seen[..] {
            let detail = format!("B sent {how}, and got {}", trial.clean(marker));
            let mut row = Row::confirmed(&controls, &place, Reason::HandleNotBound, *severity, detail);
            row.story = story;
            return Ok(Some(row));
        }
        if seen.iter().any(|seen| matches!(seen, Seen::Marked { .. })) {
            let detail = format!("B sent {how} twice, and got A's data once");
            return Err(Halt::errored(Reason::Unstable, detail));
        }
    }
    let was_taken = said.iter().find(|(_, answer)| answer.disposition == Disposition::Accepted);
    let detail = match was_taken.or(said.first()) {
        Some((how, answer)) => format!("B sent {how}, and got nothing of A's: {}", trial.clean(&answer.said())),
        None => "header and body with a handle each bring nothing of A's".to_owned(),
    };
    let mut row = Row::refuted(&controls, &place, Reason::HandleBound, detail);
    row.story = story;
    Ok(Some(row))
}

/// B's call with one handle in its body and the other in its header.
async fn split(
    trial: &mut Trial<'_, '_>,
    step: &str,
    entry: &Entry,
    [body, head]: [&serde_json::Value; 2],
) -> Result<Answer, Halt> {
    let no_call =
        |reason: String| Halt::skipped(Reason::ControlFailed, format!("no arguments could be made: {reason}"));
    let (mut call, _) = discovery::entry_call(trial, Who::B, entry, body).await?.map_err(no_call)?;
    let (other, _) = discovery::entry_call(trial, Who::B, entry, head).await?.map_err(no_call)?;
    call.param_headers = other.param_headers;
    trial.call(step, Who::B, &call).await
}
