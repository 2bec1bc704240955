//! `design-handle-only-in-text`: does a handle stand only in what a model reads?

use super::{ADVICE, Advice, Seen, of_each, places::places};
use crate::{
    check::{Check, Level, Running},
    checks, cvss, owasp,
    trial::Trial,
    verdict::{Halt, Severity},
};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "design-handle-only-in-text",
    title: "Handles stand only in prose",
    claim: "A minted handle stands in the text of the result and not in its structured content, so that a program has to pick it out of a sentence.",
    spec: "Servers that need to maintain state across calls — a shopping cart, an open browser context, a database transaction — should do so by returning an explicit handle from a creation tool and accepting that handle as an argument on subsequent calls.",
    spec_url: ADVICE,
    help: include_str!("handle_only_in_text.md"),
    level: Level::Hardening,
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
    Ok(match places.in_structured {
        true => Advice::Followed("the handle stands in the structured content".to_owned()),
        false => Advice::NotFollowed(format!("the handle that {} mints stands only in text", seen.tool.name)),
    })
}
