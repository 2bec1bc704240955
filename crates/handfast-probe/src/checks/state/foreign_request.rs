//! `state-foreign-request`: does a state that was issued for one request do for another one of the same caller? One respect
//! differs from the other request's own retry: the state.

mod whose;

use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    effect::Marks,
    identity::Who,
    owasp,
    trial::{Trial, strings_in},
    verdict::{Halt, Observation, Reason, Row, Severity},
};

use super::{
    flow::{Flow, Outcome, Played, story},
    loan::soft,
    rounds::{self, Rounds},
};
use serde_json::Value;
use whose::{Pair, Whose};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "state-foreign-request",
    title: "States are not bound to their request",
    claim: "A requestState that the server issued for one request is accepted on another request, and that one is carried out.",
    spec: "To prevent replay, servers SHOULD include the following inside the integrity-protected `requestState` payload and verify each on receipt: an identifier for the originating request, e.g. the method name and a digest of its salient parameters, rejecting state presented on a request that does not match.",
    spec_url: "https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr",
    help: include_str!("foreign_request.md"),
    level: Level::Should,
    severity: Severity::High,
    cwe: &[345],
    cvss: &[cvss::TAKEN, cvss::UNSHOWN],
    owasp: &[owasp::ASI02, owasp::MCP07],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = rounds::judge(trial, Rounds::All, of_round).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

/// A request that the state was not issued for.
struct Rival {
    flow: Flow,
    /// What it is answered with when all is in order.
    baseline: Played,
    /// On another object than the state's own request.
    fresh: bool,
}

/// What came of a state under another request.
enum Came {
    /// There is no such request, or it has the same state.
    Nowhere,
    Refused(String),
    AskedAgain,
    Unclear(String),
    Taken {
        played: Box<Played>,
        whose: Whose,
        differs: &'static str,
    },
}

async fn of_round(
    trial: &mut Trial<'_, '_>,
    flow: &Flow,
    own: &Played,
    observations: &mut Vec<Observation>,
) -> Result<Row, Halt> {
    let entry = flow.entry();
    let (controls, random) = flow.controls(trial, own).await?;
    if let Some(row) = flow.unconsulted(&controls) {
        return Ok(row);
    }
    let (mut refused, mut asked_again, mut unclear, mut unshown) = (None, false, None, None);
    for rival in rivals(trial, flow, own).await? {
        let marks = if rival.fresh { marks(trial, &rival.flow).await? } else { None };
        match present(trial, flow, &rival, [own, &random], marks.as_ref()).await? {
            Came::Nowhere => {}
            Came::Refused(said) => refused = Some(said),
            Came::AskedAgain => asked_again = true,
            Came::Unclear(said) => unclear = unclear.or(Some(said)),
            Came::Taken { played, whose: Whose::Others(by), differs } => {
                let again = present(trial, flow, &rival, [own, &random], marks.as_ref()).await?;
                if !matches!(again, Came::Taken { whose: Whose::Others(_), .. }) {
                    let detail = "a state was taken for another request once, and once not";
                    return Err(Halt::errored(Reason::Unstable, detail));
                }
                flow.still_refuses(trial, own).await?;
                let said = trial.clean(&played.answer.said());
                let detail = format!(
                    "a state that was issued for one request was accepted on another ({differs}), and a random one is not: {said}"
                );
                let severity = if differs == OTHER_TEXT { Severity::Medium } else { CHECK.severity };
                let mut row = Row::confirmed(&controls, &entry, Reason::StateNotBound, severity, detail);
                row.facts.insert("request".into(), rival.flow.entry().into());
                row.facts.insert("differs".into(), differs.into());
                row.facts.insert("shown_by".into(), by.into());
                row.story = story(&[own, &random, &played]);
                return Ok(row);
            }
            Came::Taken { played, whose, .. } => unshown = unshown.or(Some((whose, played.answer.said()))),
        }
    }
    if let Some(said) = unclear {
        return Err(Halt::errored(Reason::Unclear, said));
    }
    if refused.is_none() && unshown.is_none() && !asked_again {
        let detail = "no second request of A's could be made that gets a state of its own";
        return Err(Halt::skipped(Reason::NoOtherRequest, detail));
    }
    flow.still_works(trial).await?;
    let (reason, text) = match (unshown, refused) {
        (Some((Whose::Own, said)), _) => (
            Reason::StateCarriesItsRequest,
            format!("a state was accepted on another request, and did what it was issued for: {said}"),
        ),
        (Some((_, said)), _) => (
            Reason::ForeignRequestUnattributable,
            format!(
                "a state was accepted on another request, and nothing shows which of the two was carried out: {said}"
            ),
        ),
        (None, Some(said)) => {
            let detail = format!("a state is refused on a request that it was not issued for: {}", trial.clean(&said));
            let mut row = Row::refuted(&controls, &entry, Reason::StateBound, detail);
            row.story = story(&[own, &random]);
            return Ok(row);
        }
        (None, None) => (
            Reason::BadStateIgnored,
            "a state was neither accepted on another request nor refused: the server asked again".to_owned(),
        ),
    };
    let text = format!("{entry}: {}", trial.clean(&text));
    observations.push(Observation { id: reason.slug(), text: text.clone() });
    Ok(Row::refuted(&controls, &entry, reason, text))
}

/// The same call on another object, with other text, and the other calls that make the server ask.
async fn rivals(trial: &mut Trial<'_, '_>, flow: &Flow, own: &Played) -> Result<Vec<Rival>, Halt> {
    let with_text = Flow { origin: flow.origin.with_text(), ..flow.clone() };
    let mut rivals = vec![
        Rival { flow: flow.clone(), baseline: own.clone(), fresh: true },
        Rival { flow: with_text, baseline: own.clone(), fresh: false },
    ];
    for sibling in flow.siblings.iter().take(MOST_SIBLINGS) {
        let mut flow = Flow { steady: flow.steady, ..Flow::new(sibling.clone()) };
        let Some(baseline) = soft(flow.honest(trial, &mut Vec::new()).await)? else { continue };
        // Its first question may come without a state.
        let Some(round) = baseline.rounds.iter().position(|round| round.state.is_some()) else { continue };
        flow.round = round;
        rivals.push(Rival { flow, baseline, fresh: false });
    }
    Ok(rivals)
}

/// How an object that was used tells itself from one that was not, as far as honest flows show it, and show it again one call
/// later: whoever answers by turns says another thing then.
async fn marks(trial: &mut Trial<'_, '_>, flow: &Flow) -> Result<Option<Marks>, Halt> {
    let Some(marks) = marks_once(trial, flow).await? else { return Ok(None) };
    soft(flow.wait_afresh(trial, Who::A).await)?;
    let again = marks_once(trial, flow).await?;
    Ok(again.map(|again| marks.agreed(&again)))
}

async fn marks_once(trial: &mut Trial<'_, '_>, flow: &Flow) -> Result<Option<Marks>, Halt> {
    let one = flow.wait_afresh(trial, Who::A).await?;
    let Some(first) = soft(flow.present(trial, "untouched-flow", Who::A, &one, &one.call).await)? else {
        return Ok(None);
    };
    let Some(second) = soft(flow.carry_out(trial, Who::A, &one.call).await)? else { return Ok(None) };
    let other = flow.wait_afresh(trial, Who::A).await?;
    // What was refused on an object is no use of it.
    flow.present(trial, "random-state", Who::A, &other.forged()?, &other.call).await?;
    let Some(untouched) = soft(flow.carry_out(trial, Who::A, &other.call).await)? else { return Ok(None) };
    let results = [&first, &second, &untouched].map(|played| played.answer.result());
    let [Some(first), Some(second), Some(untouched)] = results else { return Ok(None) };
    Ok(Some(Marks::of(first, second, untouched)))
}

/// One state under one other request.
async fn present(
    trial: &mut Trial<'_, '_>,
    flow: &Flow,
    rival: &Rival,
    [baseline, random]: [&Played; 2],
    marks: Option<&Marks>,
) -> Result<Came, Halt> {
    let known = trial.session.minted.len();
    let issued = flow.wait(trial, Who::A).await?;
    let waiting = match rival.fresh {
        true => rival.flow.wait_afresh(trial, Who::A).await,
        false => rival.flow.wait(trial, Who::A).await,
    };
    let Some(waiting) = soft(waiting)? else { return Ok(Came::Nowhere) };
    let [params, others] = [&issued, &waiting].map(|waiting| strings_in(&Value::Object(waiting.call.params.clone())));
    if issued.state()? == waiting.state()? || params == others {
        return Ok(Came::Nowhere);
    }
    let held = trial.session.purse.iter().filter(|((letter, _), _)| *letter == Who::A.letter());
    // What is handed to a tool that ends things is held no longer.
    let minted = trial.session.minted.iter().skip(known).filter(|(who, ..)| *who == Who::A);
    let mut handles = held.map(|(_, handle)| handle).chain(minted.map(|(_, _, handle)| handle));
    let is_other = handles.any(|handle| {
        let handle = crate::discovery::emitted::text_of(handle);
        let holds = |texts: &[String]| texts.iter().any(|text| text.contains(&handle));
        holds(&others) && !holds(&params)
    });
    let differs = match (rival.flow.origin.entry == flow.origin.entry, is_other) {
        (false, _) => "another tool, prompt or resource",
        (true, true) => "another object",
        (true, false) => OTHER_TEXT,
    };
    let lent = waiting.with_state_of(&issued);
    let played = rival.flow.present(trial, "subject", Who::A, &lent, &waiting.call).await?;
    Ok(match played.outcome(&rival.flow, &rival.baseline) {
        Outcome::Refused(refusal) => Came::Refused(refusal.to_string()),
        Outcome::AskedAgain => Came::AskedAgain,
        Outcome::Unclear(said) => Came::Unclear(said),
        Outcome::Unlike(said) if played.is_a_no(&rival.flow, [baseline, random]) => Came::Refused(said),
        Outcome::Unlike(said) => Came::Unclear(format!("a complete result unlike any honest one: {said}")),
        Outcome::Accepted => {
            let own = soft(flow.carry_out(trial, Who::A, &issued.call).await)?;
            let others = soft(rival.flow.carry_out(trial, Who::A, &waiting.call).await)?;
            let pair = Pair::new([&issued.call, &waiting.call], [own.as_ref(), others.as_ref()]);
            let whose = pair.whose(&played, marks);
            Came::Taken { played: Box::new(played), whose, differs }
        }
    })
}

/// How many other calls a state is tried on.
const MOST_SIBLINGS: usize = 3;
const OTHER_TEXT: &str = "other arguments for the same object";
