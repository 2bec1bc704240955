//! `session-guessable`: can the next id be foretold? Which it will be is said first; then B opens a session.

use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    disposition::Disposition,
    errand::Errand,
    identity::Who,
    owasp,
    predict::{self, Choice, Finding, Foretold, Id, ROUNDS, SAMPLE, Source},
    target::session::Verb,
    trial::Trial,
    verdict::{Controls, Halt, Judgement, Observation, Reason, Row, Severity},
};

use super::scene;

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
    let (ids, finding) = predict::look(trial, &Opened).await?;
    match finding {
        Finding::Foretold(found) => return confirmed(trial, controls, NEXT, &found, errand).await,
        Finding::Same(id) => return always_the_same(trial, controls, &id, errand).await,
        Finding::OfTheirOwn(how) => {
            let detail = format!(
                "the ids of one caller are a series of their own ({how}): {ROUNDS} times of {ROUNDS} the next one of A's was named before"
            );
            return Ok(Row::confirmed(controls, NEXT, Reason::SessionForetold, Severity::Low, detail));
        }
        Finding::Unnamed => {
            let detail = "the ids look like a series, but none of the next was named before";
            return Err(Halt::skipped(Reason::SessionWitnessUnusable, detail));
        }
        Finding::NoHabit => {}
    }
    let choice = Choice::of(&ids);
    let bits = choice.bits;
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
    Ok(Row::refuted(controls, NEXT, Reason::SessionGuardHeld, choice.untold("ids were opened")))
}

/// Sessions that are opened.
struct Opened;

impl Source for Opened {
    async fn next(&self, trial: &mut Trial<'_, '_>, who: Who) -> Result<Id, Halt> {
        Ok(Id { text: scene::open(trial, who).await?, sent: Vec::new() })
    }
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
    let how = "the id of a session that A ended is given to B".to_owned();
    confirmed(trial, controls, ENDED, &Foretold { how, candidates: 1, ids: found }, errand).await
}

/// How bad it is depends on what a guess is worth: whether the foretold id serves A as well.
async fn confirmed(
    trial: &mut Trial<'_, '_>,
    controls: &Controls,
    entry: &str,
    found: &Foretold,
    errand: &Errand,
) -> Result<Row, Halt> {
    let mut story = Vec::new();
    let mut served = false;
    if let Some(id) = found.ids.last() {
        let own = scene::present(trial, "stranger-own-session", Who::B, Verb::Post, Some(id), errand).await?;
        let guess = scene::present(trial, "guess", Who::A, Verb::Post, Some(id), errand).await?;
        served = guess.disposition == Disposition::Accepted;
        story.extend([own.step, guess.step]);
    }
    let (severity, worth) = match served {
        true => (CHECK.severity, "and A is served with it"),
        false => (Severity::Low, "though it is refused to A: sessions are bound"),
    };
    let Foretold { how, candidates, .. } = found;
    let detail = format!(
        "{how}: {ROUNDS} times of {ROUNDS} the id that B was given was among {candidates} named before, {worth}"
    );
    let mut row = Row::confirmed(controls, entry, Reason::SessionForetold, severity, detail);
    row.facts.insert("candidates".into(), u64::try_from(*candidates).unwrap_or(u64::MAX).into());
    row.story = story;
    Ok(row)
}

const NEXT: &str = "the next id";
const ENDED: &str = "the id of an ended session";
/// What is tried out within days at a thousand a second.
const GUESSED_BITS: f64 = 32.0;
/// As many as the Session Management Cheat Sheet of OWASP asks for.
const FEWEST_BITS: f64 = 64.0;
