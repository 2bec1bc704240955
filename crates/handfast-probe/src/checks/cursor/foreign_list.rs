//! `cursor-foreign-list`: does a cursor of one list go on in another? One respect differs from the list's own next page: which
//! list the cursor is of.

use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    identity::Who,
    owasp,
    trial::Trial,
    verdict::{ControlPlan, Halt, Judgement, Reason, Row, Severity},
};

use super::scene::{self, Came, List, Pages};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "cursor-foreign-list",
    title: "Cursors are not bound to their list",
    claim: "A cursor of one list is taken for another list.",
    spec: "Invalid cursors SHOULD result in an error with code -32602 (Invalid params).",
    spec_url: "https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/pagination",
    help: include_str!("foreign_list.md"),
    level: Level::Hardening,
    severity: Severity::Info,
    cwe: &[345],
    cvss: &[cvss::NOTHING],
    owasp: &[owasp::API8],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = judge(trial).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

async fn judge(trial: &mut Trial<'_, '_>) -> Result<Judgement, Halt> {
    let lists = scene::lists(trial)?;
    let mut read: Vec<(List, Pages)> = Vec::new();
    let mut rows = Vec::new();
    for list in lists {
        match list.pages(trial, Who::A).await {
            Ok(pages) => read.push((list, pages)),
            Err(halt) if halt.is_final() => return Err(halt),
            Err(halt) => rows.push(Row::halted(&list.entry(), halt)),
        }
    }
    if read.len() < 2 {
        let detail = "fewer than two lists come in pages";
        return Err(Halt::skipped(Reason::NoCursorGiven, detail));
    }
    // Each list with the cursor of the one before it: a server that looks at this at all looks everywhere.
    for at in 0..read.len() {
        let (from, to) = (&read[(at + read.len() - 1) % read.len()], &read[at]);
        let entry = format!("{}, with a cursor of {}", to.0.entry(), from.0.entry());
        let outcome = of_pair(trial, &entry, from, to).await;
        let over = outcome.as_ref().is_err_and(Halt::is_final);
        rows.push(outcome.unwrap_or_else(|halt| Row::halted(&entry, halt)));
        if over {
            break;
        }
    }
    Ok(Judgement::over(rows, Vec::new()))
}

async fn of_pair(
    trial: &mut Trial<'_, '_>,
    entry: &str,
    (_, from): &(List, Pages),
    (list, pages): &(List, Pages),
) -> Result<Row, Halt> {
    if from.cursor == pages.cursor {
        let detail = "both lists give the same cursor: it says where, and not in what";
        return Err(Halt::skipped(Reason::CursorWitnessUnusable, detail));
    }
    let mut plan = ControlPlan::default();
    plan.accepts(&pages.second.answer, |said| Halt::skipped(Reason::CursorWitnessUnusable, said))?;
    let (_, unissued) = scene::unissued(trial, list, Who::A, pages, &mut plan).await?;
    let controls = plan.hold()?;
    if unissued.is_some() {
        let detail = "a cursor that nobody was given brings a page as well: nothing shows what this one does";
        return Err(Halt::skipped(Reason::CursorWitnessUnusable, detail));
    }
    let mut taken = Vec::new();
    for _ in 0..TWICE {
        let subject = list.page(trial, "subject", Who::A, Some(&from.cursor)).await?;
        match scene::came_to(subject, pages)? {
            Came::Other(page) | Came::Same(page) => taken.push(page.answer.step),
            _ if !taken.is_empty() => {
                return Err(Halt::errored(Reason::Unstable, "a cursor of another list was taken once, and once not"));
            }
            came => {
                scene::still_works(trial, list, Who::A, pages).await?;
                let detail = match came {
                    Came::Refused(said) => format!("a cursor of another list is refused: {}", trial.clean(&said)),
                    _ => "a cursor of another list is ignored: the first page comes".to_owned(),
                };
                let mut row = Row::refuted(&controls, entry, Reason::CursorHeld, detail);
                row.story = vec![from.first.answer.step, pages.second.answer.step];
                return Ok(row);
            }
        }
    }
    let detail = "a cursor of another list is taken for one of this".to_owned();
    let mut row = Row::confirmed(&controls, entry, Reason::ForeignCursorTaken, CHECK.severity, detail);
    row.story = vec![from.first.answer.step, pages.second.answer.step];
    row.story.extend(taken.first());
    Ok(row)
}

const TWICE: usize = 2;
