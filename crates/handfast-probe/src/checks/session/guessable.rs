//! `session-guessable`: can the next id be foretold? Which it will be is said first; then B opens a session.

mod object_ids;
mod series;

use crate::{
    check::{Check, Level, Running},
    checks,
    disposition::Disposition,
    errand::Errand,
    identity::Who,
    target::session::Verb,
    trial::Trial,
    verdict::{Controls, Halt, Judgement, Reason, Row, Severity},
};

use super::scene;
use series::Series;

/// The check.
pub(super) static CHECK: Check = Check {
    id: "session-guessable",
    title: "Session ids can be foretold",
    claim: "The session id that the next user will be given can be foretold from ids that were given to others.",
    spec: "MCP servers MUST use secure, non-deterministic session IDs.",
    spec_url: "https://modelcontextprotocol.io/specification/2025-11-25/basic/security_best_practices",
    help: include_str!("guessable.md"),
    level: Level::Must,
    severity: Severity::High,
    cwe: &[340, 330],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = judge(trial).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

async fn judge(trial: &mut Trial<'_, '_>) -> Result<Judgement, Halt> {
    let errand = scene::enter(trial).await?;
    let a = scene::live(trial, Who::A, &errand).await?;
    let (unissued, controls) = scene::controlled(trial, &a, &errand).await?;
    unissued.must_be_worthless()?;

    let mut rows = Vec::new();
    for entry in [NEXT, ENDED] {
        let outcome = match entry {
            NEXT => next(trial, &controls, &errand).await,
            _ => ended(trial, &controls, &errand).await,
        };
        trial.session.target.end_visits().await;
        rows.push(outcome.unwrap_or_else(|halt| Row::halted(entry, halt)));
        if scene::is_over(&rows) {
            break;
        }
    }
    for row in &mut rows {
        row.story.splice(0..0, [a.answer.step, unissued.answer.step]);
    }
    Ok(Judgement::over(rows, Vec::new()))
}

/// Counters, fixed steps, addresses, times: the next id is a little more than the last.
async fn next(trial: &mut Trial<'_, '_>, controls: &Controls, errand: &Errand) -> Result<Row, Halt> {
    let mut ids = Vec::new();
    for _ in 0..SAMPLE {
        ids.push(scene::open(trial, Who::A).await?);
    }
    if object_ids::are_object_ids(&ids) {
        let mut found = Vec::new();
        for _ in 0..ROUNDS {
            let last = scene::open(trial, Who::A).await?;
            let candidates = object_ids::candidates(&last);
            let of_b = scene::open(trial, Who::B).await?;
            if !candidates.contains(&of_b) {
                let detail = "the ids look like ObjectIds, but the next was not the one that comes next".to_owned();
                return Ok(Row::refuted(controls, NEXT, Reason::SessionGuardHeld, detail));
            }
            found.push(of_b);
        }
        let how = "each id is the time, what stays the same, and a counter";
        return confirmed(trial, controls, NEXT, how, u128::from(object_ids::MOST_SECONDS) + 1, &found, errand).await;
    }
    let Some(series) = Series::of(&ids).filter(Series::is_a_habit) else {
        let detail = format!(
            "{SAMPLE} ids were opened, and they follow no counter, step, address, time or ObjectId that the probe knows"
        );
        return Ok(Row::refuted(controls, NEXT, Reason::SessionGuardHeld, detail));
    };
    if let Some(step) = series.step() {
        let how = format!("each id is {step} more than the last");
        if let Some(found) = foretold(trial, &series, Some(step)).await? {
            return confirmed(trial, controls, NEXT, &how, 1, &found, errand).await;
        }
    }
    let how = "each id is a little more than the last, as counters and clocks are";
    match foretold(trial, &series, None).await? {
        Some(found) => confirmed(trial, controls, NEXT, how, CANDIDATES, &found, errand).await,
        None => {
            let detail = format!(
                "the ids look like a series, but the next was not among {CANDIDATES} candidates {ROUNDS} times of {ROUNDS}"
            );
            Ok(Row::refuted(controls, NEXT, Reason::SessionGuardHeld, detail))
        }
    }
}

/// Three times: an id of A's is the last, the candidates are named, and B opens a session. The ids that B got, if each was
/// a candidate.
async fn foretold(trial: &mut Trial<'_, '_>, series: &Series, step: Option<u128>) -> Result<Option<Vec<String>>, Halt> {
    let mut found = Vec::new();
    for _ in 0..ROUNDS {
        let last = scene::open(trial, Who::A).await?;
        let candidate = step.and_then(|step| series.after(&last, step));
        let of_b = scene::open(trial, Who::B).await?;
        let hit = match candidate {
            Some(candidate) => candidate == of_b,
            None => step.is_none() && series.is_roomy() && series.follows(&of_b, &last, CANDIDATES),
        };
        if !hit {
            return Ok(None);
        }
        found.push(of_b);
    }
    Ok(Some(found))
}

/// Whether B is given the id of a session that A has just ended.
async fn ended(trial: &mut Trial<'_, '_>, controls: &Controls, errand: &Errand) -> Result<Row, Halt> {
    let mut found = Vec::new();
    for _ in 0..ROUNDS {
        let freed = scene::open(trial, Who::A).await?;
        let end = scene::present(trial, "end", Who::A, Verb::Delete, Some(&freed), errand).await?;
        if end.disposition != Disposition::Accepted {
            let detail = format!("the server does not let its clients end a session: {}", end.said());
            return Err(end.lost().unwrap_or_else(|| Halt::skipped(Reason::VerbNotOffered, detail)));
        }
        let of_b = scene::open(trial, Who::B).await?;
        if of_b != freed {
            let detail = "the id of an ended session is not given out again at once".to_owned();
            return Ok(Row::refuted(controls, ENDED, Reason::SessionGuardHeld, detail));
        }
        found = vec![of_b];
    }
    let how = "the id of a session that A ended is given to B";
    confirmed(trial, controls, ENDED, how, 1, &found, errand).await
}

/// How bad it is depends on what a guess is worth: whether the foretold id serves A as well.
async fn confirmed(
    trial: &mut Trial<'_, '_>,
    controls: &Controls,
    entry: &str,
    how: &str,
    candidates: u128,
    found: &[String],
    errand: &Errand,
) -> Result<Row, Halt> {
    let mut story = Vec::new();
    let mut served = false;
    if let Some(id) = found.last() {
        let own = scene::present(trial, "stranger-own-session", Who::B, Verb::Post, Some(id), errand).await?;
        let guess = scene::present(trial, "guess", Who::A, Verb::Post, Some(id), errand).await?;
        served = guess.disposition == Disposition::Accepted;
        story.extend([own.step, guess.step]);
    }
    let (severity, worth) = match served {
        true => (CHECK.severity, "and A is served with it"),
        false => (Severity::Low, "though it is refused to A: sessions are bound"),
    };
    let detail = format!(
        "{how}: {ROUNDS} times of {ROUNDS} the id that B was given was among {candidates} named before, {worth}"
    );
    let mut row = Row::confirmed(controls, entry, Reason::SessionForetold, severity, detail);
    row.facts.insert("candidates".into(), u64::try_from(candidates).unwrap_or(u64::MAX).into());
    row.story = story;
    Ok(row)
}

const NEXT: &str = "the next id";
const ENDED: &str = "the id of an ended session";
const SAMPLE: usize = 24;
const ROUNDS: usize = 3;
const CANDIDATES: u128 = 4096;
