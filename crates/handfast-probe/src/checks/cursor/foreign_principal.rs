//! `cursor-foreign-principal`: does a cursor of A's go on with A's list when B shows it? One respect differs from B's own
//! request: whose cursor it is.

use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    disposition::Disposition,
    echo,
    identity::Who,
    likeness, marker, owasp,
    trial::{Answer, Trial},
    verdict::{ControlPlan, Halt, Judgement, Reason, Row, Severity},
};

use super::scene::{self, Came, List, Pages};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "cursor-foreign-principal",
    title: "Cursors are not bound to their principal",
    claim: "A cursor that one principal was given brings that principal's items to another who shows it.",
    spec: "Invalid cursors SHOULD result in an error with code -32602 (Invalid params).",
    spec_url: "https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/pagination",
    help: include_str!("foreign_principal.md"),
    level: Level::Hardening,
    severity: Severity::Medium,
    cwe: &[639],
    cvss: &[cvss::TOUCHED, cvss::HARDENING],
    owasp: &[owasp::API1, owasp::MCP07],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = judge(trial).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

async fn judge(trial: &mut Trial<'_, '_>) -> Result<Judgement, Halt> {
    let mut rows = Vec::new();
    for list in scene::lists(trial)? {
        let outcome = of_list(trial, &list).await;
        let over = outcome.as_ref().is_err_and(Halt::is_final);
        rows.push(outcome.unwrap_or_else(|halt| Row::halted(&list.entry(), halt)));
        if over {
            break;
        }
    }
    Ok(Judgement::over(rows, Vec::new()))
}

async fn of_list(trial: &mut Trial<'_, '_>, list: &List) -> Result<Row, Halt> {
    let entry = list.entry();
    let of_a = list.pages(trial, Who::A).await?;
    let of_b = list.pages(trial, Who::B).await?;
    let own = whole(trial, list, &of_b).await?;
    if of_a.first.holds == of_b.first.holds || own.iter().any(|page| of_as(page, &of_a, &[]).is_some()) {
        let detail = "A and B are shown the same list, or parts of it: nothing on it is A's alone";
        return Err(Halt::skipped(Reason::CursorWitnessUnusable, detail));
    }
    if of_a.cursor == of_b.cursor {
        let detail = "A and B are given the same cursor: it says where, and not whose";
        return Err(Halt::skipped(Reason::CursorWitnessUnusable, detail));
    }
    let mut plan = ControlPlan::default();
    plan.accepts(&of_a.second.answer, |said| Halt::skipped(Reason::CursorWitnessUnusable, said))?;
    plan.accepts(&of_b.second.answer, |said| Halt::skipped(Reason::SecondIdentityNotLive, said))?;
    let (unissued, _) = scene::unissued(trial, list, Who::B, &of_b, &mut plan).await?;
    let controls = plan.hold()?;
    let everybodys = of_as(&unissued, &of_a, &own).is_some();

    let mut found = Vec::new();
    for _ in 0..TWICE {
        let subject = list.page(trial, "subject", Who::B, Some(&of_a.cursor)).await?;
        match of_as(&subject, &of_a, &own) {
            Some(at) if !everybodys => found.push((at, subject)),
            _ if !found.is_empty() => {
                return Err(Halt::errored(Reason::Unstable, "A's cursor brought A's items to B once, and once not"));
            }
            _ => {
                let detail = match scene::came_to(subject, &of_b)? {
                    Came::Refused(said) => format!("A's cursor is refused to B: {}", trial.clean(&said)),
                    Came::Ignored => "A's cursor is ignored: B is shown B's first page".to_owned(),
                    _ => "A's cursor brings nothing of A's to B".to_owned(),
                };
                scene::still_works(trial, list, Who::A, &of_a).await?;
                scene::still_works(trial, list, Who::B, &of_b).await?;
                let mut row = Row::refuted(&controls, &entry, Reason::CursorHeld, detail);
                row.story = vec![of_a.second.answer.step, of_b.second.answer.step];
                return Ok(row);
            }
        }
    }
    let Some((at, subject)) = found.pop() else {
        return Err(Halt::errored(Reason::ProbeBug, "nothing was tried"));
    };
    let (form, severity) = match subject.disposition {
        Disposition::Accepted => ("", CHECK.severity),
        _ => (", in an answer that calls itself an error", CHECK.severity.lower()),
    };
    let detail = format!("A's cursor brought something of A's to B: {}{form}", trial.clean(&at));
    let mut row = Row::confirmed(&controls, &entry, Reason::CursorNotBound, severity, detail);
    row.facts.insert("marker".into(), trial.clean(&at).into());
    row.story = vec![of_a.second.answer.step, of_b.second.answer.step, subject.step];
    Ok(row)
}

/// B's own list, page by page, as far as it is read.
async fn whole(trial: &mut Trial<'_, '_>, list: &List, pages: &Pages) -> Result<Vec<Answer>, Halt> {
    let mut own = vec![pages.first.answer.clone(), pages.second.answer.clone()];
    let (mut next, mut known) = (pages.second.next.clone(), vec![pages.cursor.clone()]);
    while let Some(cursor) = next.filter(|cursor| !known.contains(cursor) && own.len() < MOST_PAGES) {
        let answer = list.page(trial, "stranger-own-list", Who::B, Some(&cursor)).await?;
        known.push(cursor);
        next = scene::next_of(&answer);
        own.push(answer);
    }
    Ok(own)
}

/// Where something of A's stands in an answer: a canary of A's, or a value of A's second page that is on none of B's own.
fn of_as(answer: &Answer, of_a: &Pages, own: &[Answer]) -> Option<String> {
    let body = answer.body()?;
    if let Some(at) = of_a.canaries.iter().find_map(|canary| marker::find_canary(&body, canary, &answer.sent)) {
        return Some(at);
    }
    let result = answer.result()?;
    let values = |answer: &Answer| answer.result().map(likeness::particular_values).unwrap_or_default();
    // Two users may well have a value in common; a page is more than that.
    let (of_a, here) = (values(&of_a.second.answer), likeness::particular_values(result));
    let of_b: Vec<_> = own.iter().map(values).collect();
    let echo = |value: &String| echo::repeats(&answer.sent, value);
    let alone = |value: &&String| !own.is_empty() && !of_b.iter().any(|page| page.contains(*value)) && !echo(value);
    of_a.intersection(&here).find(alone).cloned()
}

const TWICE: usize = 2;
const MOST_PAGES: usize = 10;
