//! `session-guessable`: can the next id be foretold? Which it will be is said first; then B opens a session.

mod object_ids;
mod series;
mod views;

use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    disposition::Disposition,
    errand::Errand,
    identity::Who,
    owasp,
    target::session::Verb,
    trial::Trial,
    verdict::{Controls, Halt, Judgement, Observation, Reason, Row, Severity},
};

use super::scene;
use series::Series;
use views::{VIEWS, View};

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
    cvss: &[cvss::TAKEN_WITH_LUCK, cvss::HARDENING],
    owasp: &[owasp::MCP07, owasp::API2],
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

    let (mut rows, mut observations) = (Vec::new(), Vec::new());
    for entry in [NEXT, ENDED] {
        let outcome = match entry {
            NEXT => next(trial, &controls, &errand, &mut observations).await,
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
    Ok(Judgement::over(rows, observations))
}

/// Counters, fixed steps, addresses, times: the next id is a little more than the last.
async fn next(
    trial: &mut Trial<'_, '_>,
    controls: &Controls,
    errand: &Errand,
    observations: &mut Vec<Observation>,
) -> Result<Row, Halt> {
    let mut ids = Vec::new();
    for _ in 0..SAMPLE {
        ids.push(scene::open(trial, Who::A).await?);
    }
    if object_ids::are_object_ids(&ids)
        && let Some(found) = next_object_ids(trial).await?
    {
        let how = "each id is the time, what stays the same, and a counter";
        let candidates = u128::from(object_ids::MOST_SECONDS) + 1;
        return confirmed(trial, controls, NEXT, how, candidates, &found, errand).await;
    }
    if ids.iter().all(|id| *id == ids[0]) {
        return always_the_same(trial, controls, &ids[0], errand).await;
    }
    let mut seen = None;
    for view in &VIEWS {
        let read: Option<Vec<String>> = ids.iter().map(|id| (view.read)(id)).collect();
        let Some(series) = read.and_then(|ids| Series::of(&ids)).filter(Series::is_a_habit) else { continue };
        if let Some(step) = series.step()
            && let Some(found) = foretold(trial, view, &series, Some(step), Who::B).await?
        {
            let how = format!("each id{} is {step} more than the last", view.how);
            return confirmed(trial, controls, NEXT, &how, 1, &found, errand).await;
        }
        if let Some(found) = foretold(trial, view, &series, None, Who::B).await? {
            let how = format!("each id{} is a little more than the last, as counters and clocks are", view.how);
            return confirmed(trial, controls, NEXT, &how, CANDIDATES, &found, errand).await;
        }
        seen = Some((view, series));
    }
    if let Some((view, series)) = seen {
        return each_their_own(trial, controls, view, &series).await;
    }
    let bits = views::bits(&ids);
    if bits < GUESSED_BITS {
        let detail = format!(
            "the part in which {SAMPLE} ids differ has no more than {bits:.0} bits: whoever tries them out finds one"
        );
        return Ok(Row::confirmed(controls, NEXT, Reason::FewIdsPossible, Severity::Low, detail));
    }
    if bits < FEWEST_BITS {
        let text = format!("the part of the ids that differs has no more than {bits:.0} bits: they can be tried out");
        observations.push(Observation { id: "few-ids-possible", text });
    }
    let detail = format!(
        "{SAMPLE} ids were opened, and the next one could not be told from them by any counter, step, address, time or ObjectId that the probe knows"
    );
    Ok(Row::refuted(controls, NEXT, Reason::SessionGuardHeld, detail))
}

/// Every `initialize` of A's is answered with one id. That may be the session that A has already, under an id that nobody could
/// foretell: only one that comes back after its end is the caller's for ever.
async fn always_the_same(
    trial: &mut Trial<'_, '_>,
    controls: &Controls,
    id: &str,
    errand: &Errand,
) -> Result<Row, Halt> {
    for _ in 0..ROUNDS {
        let end = scene::present(trial, "end", Who::A, Verb::Delete, Some(id), errand).await?;
        let next = scene::open(trial, Who::A).await?;
        if end.disposition != Disposition::Accepted || next != id {
            let detail =
                "a caller is given the session that there is already, so that the ids of several were not seen";
            return Err(Halt::skipped(Reason::SessionWitnessUnusable, detail));
        }
    }
    let detail = format!(
        "every session of one caller is given the same id, {ROUNDS} times of {ROUNDS} also after its end: whoever has seen one knows them all"
    );
    Ok(Row::confirmed(controls, NEXT, Reason::SessionForetold, Severity::Low, detail))
}

/// A's ids are a series, and B's are not in it: each caller may have a series of their own.
async fn each_their_own(
    trial: &mut Trial<'_, '_>,
    controls: &Controls,
    view: &View,
    series: &Series,
) -> Result<Row, Halt> {
    if foretold(trial, view, series, series.step(), Who::A).await?.is_some() {
        let detail = format!(
            "the ids of one caller{} are a series of their own: {ROUNDS} times of {ROUNDS} the next one of A's was named before",
            view.how
        );
        return Ok(Row::confirmed(controls, NEXT, Reason::SessionForetold, Severity::Low, detail));
    }
    let detail = "the ids look like a series, but none of the next was named before";
    Err(Halt::skipped(Reason::SessionWitnessUnusable, detail))
}

/// The same for ObjectIds.
async fn next_object_ids(trial: &mut Trial<'_, '_>) -> Result<Option<Vec<String>>, Halt> {
    let mut found = Vec::new();
    for _ in 0..ROUNDS {
        let candidates = object_ids::candidates(&scene::open(trial, Who::A).await?);
        let of_b = scene::open(trial, Who::B).await?;
        if !candidates.contains(&of_b) {
            return Ok(None);
        }
        found.push(of_b);
    }
    Ok(Some(found))
}

/// Three times: an id of A's is the last, the candidates are named, and B opens a session. The ids that B got, if each was
/// a candidate.
async fn foretold(
    trial: &mut Trial<'_, '_>,
    view: &View,
    series: &Series,
    step: Option<u128>,
    next_by: Who,
) -> Result<Option<Vec<String>>, Halt> {
    let mut found = Vec::new();
    for _ in 0..ROUNDS {
        let Some(last) = (view.read)(&scene::open(trial, Who::A).await?) else { return Ok(None) };
        let candidate = step.and_then(|step| series.after(&last, step));
        let of_b = scene::open(trial, next_by).await?;
        let hit = match ((view.read)(&of_b), candidate) {
            (Some(next), Some(candidate)) => candidate == next,
            (Some(next), None) => step.is_none() && series.is_roomy() && series.follows(&next, &last, CANDIDATES),
            (None, _) => false,
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
/// What is tried out within days at a thousand a second.
const GUESSED_BITS: f64 = 32.0;
/// As many as the Session Management Cheat Sheet of OWASP asks for.
const FEWEST_BITS: f64 = 64.0;
