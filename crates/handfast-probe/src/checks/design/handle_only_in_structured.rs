//! `design-handle-only-in-structured`: does a handle stand only where a program reads it?

use super::{ADVICE, Advice, Seen, of_each, places::places};
use crate::{
    check::{Check, Level, Running},
    checks, cvss, owasp,
    trial::Trial,
    verdict::{Halt, Severity},
};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "design-handle-only-in-structured",
    title: "Handles stand only in structured content",
    claim: "A minted handle stands in the structured content of the result and in none of its text, so that a model that is shown the text never learns it.",
    spec: "For backwards compatibility, a tool that returns structured content SHOULD also return the serialized JSON in a TextContent block.",
    spec_url: ADVICE,
    help: include_str!("handle_only_in_structured.md"),
    level: Level::Should,
    severity: Severity::Info,
    cwe: &[1116],
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

fn look(_: &Trial<'_, '_>, seen: &Seen<'_>) -> Result<Advice, Halt> {
    let places = places(&seen.minted)?;
    Ok(match places.in_text {
        true => Advice::Followed("the handle stands in the text".to_owned()),
        false => Advice::NotFollowed(format!("the handle that {} mints stands in no text", seen.tool.name)),
    })
}
