//! `design-no-way-to-end`: can what a handle names come to an end?

use super::{ADVICE, Advice, Seen, of_each};
use crate::{
    check::{Check, Level, Running},
    checks, clock, cvss,
    discovery::{Entry, names},
    lifetime, owasp,
    surface::Tool,
    trial::Trial,
    verdict::{Halt, Severity},
};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "design-no-way-to-end",
    title: "Nothing ends what a handle names",
    claim: "What a tool makes can be ended by no tool, and the server does not say that it ends by itself.",
    spec: "For unauthenticated servers, where the handle is necessarily a bearer token, it should be generated with sufficient entropy (e.g., a UUIDv4) and given a bounded lifetime.",
    spec_url: ADVICE,
    help: include_str!("no_way_to_end.md"),
    level: Level::Hardening,
    severity: Severity::Info,
    cwe: &[772],
    cvss: &[cvss::NOTHING],
    owasp: &[owasp::API8],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = of_each(trial, look).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

fn look(trial: &Trial<'_, '_>, seen: &Seen<'_>) -> Result<Advice, Halt> {
    let takes_it = |tool: &Tool| {
        let takes = |entry: &Entry| matches!(entry, Entry::Tool { tool: name, .. } if *name == tool.name);
        seen.kind.entries.iter().any(takes)
    };
    let tools = &trial.session.surface.tools;
    if let Some(tool) = tools.iter().find(|tool| ends(tool) && takes_it(tool)) {
        return Ok(Advice::Followed(format!("{} ends what the handle names, by its name", tool.name)));
    }
    // A lifetime may be told by any tool that has to do with the handle.
    let told = tools.iter().filter(|tool| tool.name == seen.tool.name || takes_it(tool));
    let result = seen.minted.answer.result();
    let beside = result.and_then(|result| lifetime::in_result(result, &seen.kind.spot, clock::unix_seconds()));
    if beside.is_some() || told.into_iter().any(|tool| lifetime::is_mentioned(&tool.description)) {
        return Ok(Advice::Followed("what the handle names ends by itself".to_owned()));
    }
    Ok(Advice::NotFollowed(format!(
        "no tool ends what {} makes, and nothing says that it ends by itself",
        seen.tool.name
    )))
}

/// By whatever name, and whether it may be called or not.
fn ends(tool: &Tool) -> bool {
    tool.destructive.is_some() || names::names_an_end(&tool.name)
}
