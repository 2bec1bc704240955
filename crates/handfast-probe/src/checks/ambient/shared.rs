//! `ambient-shared`: does what A keeps without a handle reach B?

use crate::{
    arguments::{self, Wish},
    canary::Canary,
    check::{Check, Level, Running},
    checks::{self, apart},
    cvss,
    discovery::{self, names},
    disposition::Disposition,
    errand,
    identity::Who,
    owasp,
    surface::Tool,
    target::Call,
    trial::{Answer, Trial},
    verdict::{ControlPlan, Halt, Judgement, Observation, Reason, Row, Severity},
};
use handfast_wire::message::Object;
use serde_json::Value;

/// The check.
pub(super) static CHECK: Check = Check {
    id: "ambient-shared",
    title: "What is kept without a handle is kept for all",
    claim: "What one user gave the server to keep, by a tool that takes no handle, comes back to another user.",
    spec: "State that needs to span multiple requests (e.g., long-running tasks, application-level handles) MUST be referenced by an explicit identifier the client passes on each request.",
    spec_url: "https://modelcontextprotocol.io/specification/2026-07-28/basic",
    help: include_str!("shared.md"),
    level: Level::Must,
    severity: Severity::High,
    cwe: &[488, 668],
    cvss: &[cvss::TAKEN],
    owasp: &[owasp::MCP10, owasp::API1, owasp::ASI06],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = judge(trial).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

async fn judge(trial: &mut Trial<'_, '_>) -> Result<Judgement, Halt> {
    let tools = trial.session.surface.tools.clone();
    let (mut rows, mut observations) = (trial.unlisted_rows(), Vec::new());
    let mut writers = errand::writers(trial, &tools);
    writers.retain(|tool| !trial.session.map.kinds.iter().any(|kind| kind.mint == tool.name));
    let mut readers = errand::readers(trial, &tools);
    readers.retain(|tool| discovery::required(tool).is_empty());
    for write in &writers {
        if readers.is_empty() {
            break;
        }
        if let Some(word) = meant_for_all(write) {
            let text = format!("tools/call {}: `{word}` sounds as if it is meant for everybody", write.name);
            observations.push(Observation { id: "entry-point-left-out", text });
            continue;
        }
        for read in &readers {
            if let Some(word) = meant_for_all(read) {
                let text = format!("tools/call {}: `{word}` sounds as if it is meant for everybody", read.name);
                if !observations.iter().any(|known| known.text == text) {
                    observations.push(Observation { id: "entry-point-left-out", text });
                }
                continue;
            }
            let entry = format!("tools/call {} and {}", write.name, read.name);
            match of_pair(trial, &entry, write, read).await {
                Ok(row) => rows.extend(row),
                Err(halt) => {
                    let over = halt.is_final();
                    rows.push(Row::halted(&entry, halt));
                    if over {
                        return Ok(Judgement::over(rows, observations));
                    }
                }
            }
        }
    }
    if rows.is_empty() {
        let mut judgement = Judgement::halted(Halt::skipped(
            Reason::NoAmbientState,
            "no tool shows, without a handle, what another one was given to keep without a handle",
        ));
        judgement.observations = observations;
        return Ok(judgement);
    }
    Ok(Judgement::over(rows, observations))
}

/// One tool that keeps and one that shows; nothing where the one does not show what the other kept.
async fn of_pair(trial: &mut Trial<'_, '_>, entry: &str, write: &Tool, read: &Tool) -> Result<Option<Row>, Halt> {
    let show = discovery::tool_call(read, Object::new());
    let mut plan = ControlPlan::default();
    let before = trial.complete("stranger-before", Who::B, &show).await?;
    let Some((mark, wrote, own)) = kept(trial, Who::A, write, &show).await? else { return Ok(None) };
    plan.accepts(&own, |said| Halt::skipped(Reason::ControlFailed, said))?;
    let first = trial.complete("subject", Who::B, &show).await?;
    apart::are_two(trial, &show, [&own, &first]).await?;
    if before.disposition != Disposition::Accepted {
        let detail = format!("B could not use {}: {}", read.name, before.said());
        return Err(before.unclear().unwrap_or_else(|| Halt::skipped(Reason::SecondIdentityNotLive, detail)));
    }
    // The negative control: what nobody has kept yet is seen by nobody.
    match errand::shown(&before, &mark) {
        true => return Err(Halt::errored(Reason::ProbeBug, "B saw a canary before it was planted")),
        false => plan.refused_in_words("before it was kept"),
    }
    let controls = plan.hold()?;
    let mut seen = vec![errand::shown(&first, &mark)];
    if seen == [true] {
        // Once more, with another canary: a finding must not be a fluke.
        let Some((mark, ..)) = kept(trial, Who::A, write, &show).await? else {
            return Err(Halt::errored(Reason::Unstable, "A's own text was shown to A once, and once not"));
        };
        let again = trial.complete("subject-again", Who::B, &show).await?;
        seen.push(errand::shown(&again, &mark));
    }
    let mut row = match seen[..] {
        [true, true] => {
            let detail = format!(
                "what A gave {} to keep came back to B from {}: A's canary `{}`",
                write.name, read.name, mark.long
            );
            Row::confirmed(&controls, entry, Reason::AmbientStateShared, CHECK.severity, trial.clean(&detail))
        }
        [true, false] => return Err(Halt::errored(Reason::Unstable, "A's text came back to B once, and once not")),
        _ => {
            // The instrument is live for B as well: what B gives to keep, B sees.
            if kept(trial, Who::B, write, &show).await?.is_none() {
                let detail =
                    "B does not see what it gave the server to keep itself, so that it does not see A's says nothing";
                return Err(Halt::skipped(Reason::SecondIdentityNotLive, detail));
            }
            let detail = format!("{} shows B what B gave {} to keep, and not what A did", read.name, write.name);
            Row::refuted(&controls, entry, Reason::AmbientStateApart, detail)
        }
    };
    row.facts.insert("canary_of_a".into(), mark.long.into());
    row.story = vec![before.step, wrote, own.step, first.step];
    Ok(Some(row))
}

/// Somebody gives a canary to keep and sees it again: the canary, the step of the writing, and what was shown.
async fn kept(
    trial: &mut Trial<'_, '_>,
    who: Who,
    write: &Tool,
    show: &Call,
) -> Result<Option<(Canary, usize, Answer)>, Halt> {
    let canary = trial.canary(who);
    let fixed = trial.session.profile.fixed(&write.name);
    let wish = Wish { canary: Some(&canary), optional_text: true, fixed };
    let Ok(arguments) = arguments::synthesise(&write.input, &wish) else { return Ok(None) };
    if !canary.is_in(&Value::Object(arguments.clone()).to_string()) {
        return Ok(None);
    }
    let written = trial.complete("keep", who, &discovery::tool_call(write, arguments)).await?;
    if let Some(halt) = written.unclear() {
        return Err(halt);
    }
    let shown = trial.complete("show", who, show).await?;
    if let Some(halt) = shown.unclear() {
        return Err(halt);
    }
    let sees = written.disposition == Disposition::Accepted
        && shown.disposition == Disposition::Accepted
        && errand::shown(&shown, &canary);
    Ok(sees.then_some((canary, written.step, shown)))
}

/// The word by which a tool says that what it is given, or shows, is everybody's.
fn meant_for_all(tool: &Tool) -> Option<String> {
    let described = names::words(&tool.description);
    let words = names::words(&tool.name);
    words
        .into_iter()
        .find(|word| PUBLISHING.contains(&word.as_str()))
        .or_else(|| described.into_iter().find(|word| EVERYBODY.contains(&word.as_str())))
}

const PUBLISHING: [&str; 17] = [
    "post",
    "broadcast",
    "publish",
    "share",
    "shared",
    "feedback",
    "announce",
    "announcement",
    "comment",
    "comments",
    "vote",
    "chat",
    "message",
    "messages",
    "board",
    "public",
    "global",
];
const EVERYBODY: [&str; 11] = [
    "everybody",
    "everyone",
    "public",
    "publicly",
    "shared",
    "publishes",
    "broadcasts",
    "team",
    "community",
    "global",
    "anybody",
];
