//! The same handle, shown otherwise: with all that belongs to it, or in a header that names another. Where a plain use was
//! refused, these may still open the door.

use handfast_wire::headers;

use super::{super::handles::use_handle, Experiment, witness::Seen};
use crate::{
    discovery::{self, Entry, emitted},
    disposition::Disposition,
    identity::Who,
    target::Call,
    trial::{Answer, Trial},
    verdict::{ControlPlan, Halt, Reason, Row},
};

/// A row for each other way that there is to show a handle at this entry point.
pub(super) async fn of_entry(
    trial: &mut Trial<'_, '_>,
    experiment: &Experiment<'_>,
    entry: &Entry,
) -> Result<Vec<Row>, Halt> {
    let mut rows = Vec::new();
    for (place, ways) in
        [with_all_that_belongs(trial, experiment, entry).await?, split(trial, experiment, entry).await?]
            .into_iter()
            .flatten()
    {
        match shown(trial, experiment, entry, &place, ways).await {
            Ok(row) => rows.push(row),
            Err(halt) if halt.is_final() => return Err(halt),
            Err(halt) => rows.push(Row::halted(&place, halt)),
        }
    }
    Ok(rows)
}

/// Calls of B's that show A's handle, each with what is different about it; the first names the place.
type Ways = (String, Vec<(Call, &'static str)>);

/// A's own call, to the byte: where one handle stands beside others, a server may ask only whether they belong together.
async fn with_all_that_belongs(
    trial: &mut Trial<'_, '_>,
    experiment: &Experiment<'_>,
    entry: &Entry,
) -> Result<Option<Ways>, Halt> {
    let Entry::Tool { tool, argument } = entry else { return Ok(None) };
    let required = trial.session.surface.tool(tool).map(discovery::required).unwrap_or_default();
    let others = required.iter().filter(|name| *name != argument && !argument.starts_with(&format!("/{name}/")));
    let mut others = others.filter(|name| discovery::supplier(&trial.session.map, tool, name).is_some());
    if others.next().is_none() {
        return Ok(None);
    }
    let call = call_of(trial, Who::A, entry, &experiment.handles.a.handle).await?;
    Ok(Some((format!("{entry} (with all handles of A's)"), vec![(call, "A's call, with all handles of A's in it")])))
}

/// A handle in the body and another in the header that repeats it. "Servers that process the request body MUST reject
/// requests where the values specified in the headers do not match the corresponding values in the request body."
async fn split(trial: &mut Trial<'_, '_>, experiment: &Experiment<'_>, entry: &Entry) -> Result<Option<Ways>, Halt> {
    let Entry::Tool { tool, argument } = entry else { return Ok(None) };
    let schema = trial.session.surface.tool(tool).map(|tool| &tool.input);
    let Some(header) = schema.and_then(|schema| headers::mirrors(schema, argument)) else { return Ok(None) };
    if trial.session.target.transport() != "http" {
        return Ok(None);
    }
    let (a, b) = (&experiment.handles.a.handle, &experiment.handles.b.handle);
    let mut ways = Vec::new();
    for (body, head, how) in [
        (a, b, "A's handle in the body and its own in the header"),
        (b, a, "its own handle in the body and A's in the header"),
    ] {
        let mut call = call_of(trial, Who::B, entry, body).await?;
        call.param_headers = call_of(trial, Who::B, entry, head).await?.param_headers;
        ways.push((call, how));
    }
    Ok(Some((format!("{entry} ({header})"), ways)))
}

async fn call_of(trial: &mut Trial<'_, '_>, who: Who, entry: &Entry, handle: &serde_json::Value) -> Result<Call, Halt> {
    let no_call =
        |reason: String| Halt::skipped(Reason::ControlFailed, format!("no arguments could be made: {reason}"));
    discovery::entry_call(trial, who, entry, handle).await?.map(|(call, _)| call).map_err(no_call)
}

/// The controls once more, and each way twice: what shows A's object once must show it again.
async fn shown(
    trial: &mut Trial<'_, '_>,
    experiment: &Experiment<'_>,
    entry: &Entry,
    place: &str,
    ways: Vec<(Call, &'static str)>,
) -> Result<Row, Halt> {
    let (a, b, forged) = (&experiment.handles.a, &experiment.handles.b, &experiment.handles.forged);
    let mut plan = ControlPlan::default();
    let failed = |said: String| Halt::errored(Reason::ControlFailed, format!("a plain use is refused by now: {said}"));
    let (owner, _) = use_handle(trial, "owner-use", Who::A, entry, &a.handle).await?;
    plan.accepts(&owner, failed)?;
    let (own, _) = use_handle(trial, "stranger-own-use", Who::B, entry, &b.handle).await?;
    plan.accepts(&own, failed)?;
    let (unissued, _) = use_handle(trial, "forged-handle", Who::B, entry, forged).await?;
    plan.presents_unissued(&unissued, &[emitted::text_of(forged)])?;
    let controls = plan.hold()?;

    let witness = experiment.witness(a, &owner, [&own, &unissued]);
    let mut story = vec![owner.step, own.step, unissued.step];
    let mut said: Vec<(&str, Answer)> = Vec::new();
    for (call, how) in &ways {
        let mut seen = Vec::new();
        for step in ["subject", "subject-again"] {
            let answer = trial.complete(step, Who::B, call).await?;
            story.push(answer.step);
            seen.push(witness.look(&answer)?);
            said.push((how, answer));
        }
        if let [Seen::Marked { marker, severity }, Seen::Marked { .. }] = &seen[..] {
            let detail = format!("B sent {how}, and got {}", trial.clean(marker));
            let mut row = Row::confirmed(&controls, place, Reason::HandleNotBound, *severity, detail);
            row.story = story;
            return Ok(row);
        }
        if seen.iter().any(|seen| matches!(seen, Seen::Marked { .. })) {
            return Err(Halt::errored(Reason::Unstable, format!("B sent {how} twice, and got A's data once")));
        }
    }
    let taken = said.iter().find(|(_, answer)| answer.disposition == Disposition::Accepted);
    let (how, words) = taken.or(said.first()).map_or(("", String::new()), |(how, answer)| (how, answer.said()));
    let detail = format!("B sent {how}, and got nothing of A's: {}", trial.clean(&words));
    let mut row = Row::refuted(&controls, place, Reason::HandleBound, detail);
    row.story = story;
    Ok(row)
}
