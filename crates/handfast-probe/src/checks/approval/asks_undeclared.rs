//! `asks-undeclared-client`: is a client asked what it did not declare that it can answer? One respect differs from the call
//! that asks: what the client declares.

use std::collections::BTreeSet;

use handfast_wire::{meta, result::InputRequired};
use serde_json::{Value, json};

use crate::{
    check::{Check, Level, Running},
    checks::{self, state::flow::Flow},
    cvss,
    disposition::Disposition,
    identity::Who,
    owasp,
    target::Call,
    trial::Trial,
    verdict::{ControlPlan, Halt, Observation, Reason, Row, Severity},
};

use super::scene::{self, Judged};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "asks-undeclared-client",
    title: "A client is asked what it cannot answer",
    claim: "The server sends input requests of a kind that the client did not declare in its capabilities.",
    spec: "Servers MUST NOT send an `inputRequests` that the client has not declared support for in its capabilities.",
    spec_url: "https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr",
    help: include_str!("asks_undeclared.md"),
    level: Level::Must,
    severity: Severity::Low,
    cwe: &[358],
    cvss: &[cvss::LOST],
    owasp: &[owasp::API8, owasp::ASI02],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = scene::each(trial, of_flow).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

/// The kinds of questions that a client declares one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Form,
    Url,
    Sampling,
    Roots,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Form => "elicitation (form)",
            Self::Url => "elicitation (url)",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
        }
    }

    /// Everything that a client can declare, but for this.
    fn left_out(self) -> Value {
        let mut capabilities = meta::every_capability();
        let members = capabilities.as_object_mut();
        match (self, members) {
            (Self::Form, Some(members)) => drop(members.insert("elicitation".into(), json!({"url": {}}))),
            (Self::Url, Some(members)) => drop(members.insert("elicitation".into(), json!({"form": {}}))),
            (Self::Sampling, Some(members)) => drop(members.remove("sampling")),
            (Self::Roots, Some(members)) => drop(members.remove("roots")),
            (_, None) => {}
        }
        capabilities
    }
}

/// What kinds of questions a round holds.
fn kinds(asked: &InputRequired) -> BTreeSet<Kind> {
    let of = |request: &Value| match request.get("method").and_then(Value::as_str)? {
        "elicitation/create" if request.pointer("/params/mode").and_then(Value::as_str) == Some("url") => {
            Some(Kind::Url)
        }
        "elicitation/create" => Some(Kind::Form),
        "sampling/createMessage" => Some(Kind::Sampling),
        "roots/list" => Some(Kind::Roots),
        _ => None,
    };
    asked.requests.values().filter_map(of).collect()
}

fn of_flow<'j>(trial: &'j mut Trial<'_, '_>, flow: Flow, observations: &'j mut Vec<Observation>) -> Judged<'j> {
    Box::pin(async move {
        let (call, asked, first) = flow.start(trial, Who::A).await?;
        let mut rows = Vec::new();
        for kind in kinds(&asked) {
            let entry = format!("{} without {}", flow.origin.entry, kind.word());
            let outcome = of_kind(trial, (&call, &asked, first), kind, &entry, observations).await;
            let over = outcome.as_ref().is_err_and(Halt::is_final);
            rows.push(outcome.unwrap_or_else(|halt| Row::halted(&entry, halt)));
            if over {
                break;
            }
        }
        if rows.is_empty() {
            return Err(Halt::skipped(
                Reason::NothingReturnedInputRequired,
                "only a state comes back, and no question",
            ));
        }
        Ok(rows)
    })
}

async fn of_kind(
    trial: &mut Trial<'_, '_>,
    (call, asked, first): (&Call, &InputRequired, usize),
    kind: Kind,
    entry: &str,
    observations: &mut Vec<Observation>,
) -> Result<Row, Halt> {
    let undeclared = call.clone().declaring(kind.left_out());
    let is_asked =
        |disposition: &Disposition| matches!(disposition, Disposition::Asked(asked) if kinds(asked).contains(&kind));
    let subject = trial.call("subject", Who::A, &undeclared).await?;
    if let Some(halt) = subject.unclear() {
        return Err(halt);
    }
    let after = trial.call("declared-again", Who::A, call).await?;
    let mut plan = ControlPlan::default();
    plan.asks(&after, |said| Halt::errored(Reason::ControlFailed, format!("the same call no longer asks: {said}")))?;
    if !is_asked(&subject.disposition) {
        let said = trial.clean(&subject.said());
        if subject.disposition == Disposition::Accepted && scene::is_approval(asked) {
            let text =
                format!("{entry}: a client that cannot be asked for an approval is answered without one: {said}");
            observations.push(Observation { id: "done-for-want-of-a-question", text });
        }
        plan.presents_unissued(&subject, &[])?;
        let controls = plan.hold()?;
        let mut row = Row::refuted(&controls, entry, Reason::DeclaredKindsOnly, format!("not asked: {said}"));
        row.story = vec![first, subject.step, after.step];
        return Ok(row);
    }
    let again = trial.call("subject", Who::A, &undeclared).await?;
    if !is_asked(&again.disposition) {
        return Err(Halt::errored(Reason::Unstable, "asked once what was not declared, and once not"));
    }
    plan.was_asked_again();
    let controls = plan.hold()?;
    let detail =
        format!("asked for {} by a client that did not declare it: {}", kind.word(), trial.clean(&again.said()));
    let mut row = Row::confirmed(&controls, entry, Reason::UndeclaredKindAsked, CHECK.severity, detail);
    row.facts.insert("undeclared".into(), kind.word().into());
    row.story = vec![first, subject.step, after.step];
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_left_out_alone() {
        let every = meta::every_capability();
        for (kind, pointer) in [
            (Kind::Form, "/elicitation/form"),
            (Kind::Url, "/elicitation/url"),
            (Kind::Sampling, "/sampling"),
            (Kind::Roots, "/roots"),
        ] {
            let left = kind.left_out();
            for other in ["/elicitation/form", "/elicitation/url", "/sampling", "/roots", "/extensions"] {
                assert!(every.pointer(other).is_some(), "{other}");
                assert_eq!(left.pointer(other).is_some(), other != pointer, "{kind:?}: {other}");
            }
        }
    }
}
