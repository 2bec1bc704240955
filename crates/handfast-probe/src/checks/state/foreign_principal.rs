//! `state-foreign-principal`: does a state that was issued to A do for B? One respect differs from A's own retry: who presents
//! it; and from B's own: whose state it is.

use std::borrow::Cow;

use serde_json::Value;

use crate::{
    canary::Canary,
    check::{Check, Level, Running},
    checks::{self, apart},
    counts::Counts,
    cvss,
    disposition::Disposition,
    identity::Who,
    marker::{self, Naming},
    owasp,
    trial::{Answer, Trial},
    verdict::{ControlPlan, Halt, Judgement, Negative, Observation, Reason, Row, Severity},
};

use super::{
    flow::{Flow, Outcome, Played, story},
    origins,
};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "state-foreign-principal",
    title: "States are not bound to their principal",
    claim: "A requestState that the server issued to one principal is accepted when another principal presents it.",
    spec: "To prevent replay, servers SHOULD include the following inside the integrity-protected `requestState` payload and verify each on receipt: the authenticated principal, rejecting state presented by a different principal.",
    spec_url: "https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr",
    help: include_str!("foreign_principal.md"),
    level: Level::Should,
    severity: Severity::High,
    cwe: &[639, 294],
    cvss: &[cvss::TAKEN, cvss::TOUCHED],
    owasp: &[owasp::MCP07, owasp::API1, owasp::ASI03],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = judge(trial).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

async fn judge(trial: &mut Trial<'_, '_>) -> Result<Judgement, Halt> {
    let (origins, unfinished) = origins::find(trial).await?;
    let (mut rows, mut observations) = (trial.unlisted_rows(), Vec::new());
    rows.extend(unfinished.map(|halt| Row::halted("search", halt)));
    for origin in origins {
        let mut flow = Flow::new(origin);
        match of_flow(trial, &mut flow, &mut observations).await {
            Ok(found) => rows.extend(found),
            Err(halt) => {
                let over = halt.is_final();
                rows.push(Row::halted(&flow.origin.entry, halt));
                if over {
                    break;
                }
            }
        }
    }
    Ok(Judgement::over(rows, observations))
}

async fn of_flow(
    trial: &mut Trial<'_, '_>,
    flow: &mut Flow,
    observations: &mut Vec<Observation>,
) -> Result<Vec<Row>, Halt> {
    let own = flow.honest(trial, &mut Vec::new()).await?;
    let others = flow.play(trial, Who::B, "stranger-own-flow", None).await?;
    if others.answer.disposition != Disposition::Accepted {
        let detail = format!("B could not finish a flow of its own: {}", others.answer.said());
        let skipped = || Halt::skipped(Reason::SecondIdentityNotLive, detail);
        return Err(others.answer.unclear().unwrap_or_else(skipped));
    }
    let results = [&own, &others].into_iter().filter_map(|played| played.answer.result());
    flow.counts = results.fold(Counts::default(), Counts::with);
    told_apart(trial, flow, &own, &others).await?;
    let mut rows = Vec::new();
    for round in (0..own.rounds.len()).filter(|&round| own.rounds[round].state.is_some()) {
        flow.round = round;
        let entry = flow.entry();
        let outcome = of_round(trial, flow, &own, &others, observations).await;
        let over = outcome.as_ref().is_err_and(Halt::is_final);
        rows.push(outcome.unwrap_or_else(|halt| Row::halted(&entry, halt)));
        if over {
            break;
        }
    }
    if rows.is_empty() {
        return Err(Halt::skipped(Reason::NothingReturnedInputRequired, "no round carried a requestState"));
    }
    Ok(rows)
}

/// If A and B are one caller to this server, B's use of A's state says nothing.
async fn told_apart(trial: &mut Trial<'_, '_>, flow: &Flow, own: &Played, others: &Played) -> Result<(), Halt> {
    let mut alike = None;
    match apart::named(trial, &own.answer, &others.answer) {
        Naming::Apart { at, a, .. } => {
            let again = flow.play(trial, Who::A, "untouched-again", None).await?;
            if apart::keeps(&again.answer, &at, &a) {
                return Ok(());
            }
        }
        Naming::Alike(name) => alike = Some(name),
        Naming::Silent => {}
    }
    match apart::who_am_i(trial).await? {
        Naming::Apart { .. } => return Ok(()),
        Naming::Alike(name) => alike = Some(name),
        Naming::Silent => {}
    }
    if let Some(name) = alike {
        let detail = format!("the server names both A and B `{}`: to it they are one caller", trial.clean(&name));
        return Err(Halt::skipped(Reason::IdentitiesNotDistinguished, detail));
    }
    if trial.session.target.identities().given() {
        let refused = [flow.is_refused(trial, Who::Nobody).await?, flow.is_refused(trial, Who::Impostor).await?];
        if refused == [true, true] {
            return Ok(());
        }
    }
    let detail =
        "nothing shows that the server tells A and B apart: it names neither, and answers callers that nobody knows";
    Err(Halt::skipped(Reason::IdentitiesNotDistinguished, detail))
}

async fn of_round(
    trial: &mut Trial<'_, '_>,
    flow: &Flow,
    own: &Played,
    others: &Played,
    observations: &mut Vec<Observation>,
) -> Result<Row, Halt> {
    let entry = flow.entry();
    let mut plan = ControlPlan::default();
    plan.accepts(&own.answer, |said| Halt::skipped(Reason::UntouchedRetryDidNotSucceed, said))?;
    plan.accepts(&others.answer, |said| Halt::skipped(Reason::SecondIdentityNotLive, said))?;
    let random = flow.with_random(trial, Who::B, "random-state").await?;
    random.as_negative(&mut plan, flow, others)?;
    let controls = plan.hold()?;
    if *controls.negative() == Negative::Honoured {
        let text = format!("{entry}: a random state of the same shape was accepted: the state is not consulted");
        return Ok(Row::refuted(&controls, &entry, Reason::StateWitnessUnusable, text));
    }

    let innocent = [&others.answer, &random.answer];
    let (mut refused, mut asked_again) = (String::new(), false);
    // A's very request, and then B's own: the one may be refused for A's handle in it, the other for not being A's request.
    for step in ["subject", "subject-own-request"] {
        let (mut accepted, mut quoting) = (Vec::new(), Vec::new());
        for _ in 0..TWICE {
            let issued = flow.wait(trial, Who::A).await?;
            let under = match step {
                "subject" => issued.call.clone(),
                _ => flow.wait(trial, Who::B).await?.call,
            };
            let played = flow.present(trial, step, Who::B, &issued, &under).await?;
            let outcomes = [played.outcome(flow, own), played.outcome(flow, others)];
            match outcomes {
                _ if outcomes.contains(&Outcome::Accepted) => accepted.push(played),
                // Under A's request it may be a handle in it that brings what is A's.
                _ if step != "subject" && quoted(trial, &played.answer, innocent).is_some() => quoting.push(played),
                [Outcome::Refused(refusal), _] => refused = refusal.to_string(),
                [Outcome::Unlike(said), _] => refused = said,
                [Outcome::AskedAgain, _] => asked_again = true,
                [Outcome::Unclear(said), _] => return Err(Halt::errored(Reason::Unclear, said)),
                [Outcome::Accepted, _] => {}
            }
            if accepted.is_empty() && quoting.is_empty() {
                break;
            }
        }
        if let [first, _] = &quoting[..]
            && let Some(canary) = quoted(trial, &first.answer, innocent)
        {
            let again = flow.with_random(trial, Who::B, "random-state-again").await?;
            if quoted(trial, &again.answer, innocent).is_some() {
                return Err(Halt::errored(
                    Reason::Unstable,
                    "a random state brought nothing of A's first, and then did",
                ));
            }
            let said = trial.clean(&first.answer.said());
            let detail = format!(
                "B presented a state that was issued to A and got A's canary `{}` in an answer that does not take it: {said}",
                canary.long
            );
            let severity = CHECK.severity.lower();
            let mut row = Row::confirmed(&controls, &entry, Reason::StateNotBound, severity, detail);
            row.facts.insert("request".into(), whose(step).into());
            row.story = story(&[own, others, &random, first]);
            return Ok(row);
        }
        if quoting.len() == 1 {
            return Err(Halt::errored(Reason::Unstable, "what A wrote was quoted to B once, and once not"));
        }
        match &accepted[..] {
            [] => {}
            [_] => return Err(Halt::errored(Reason::Unstable, "A's state was taken from B once, and once not")),
            [first, ..] => {
                let again = flow.with_random(trial, Who::B, "random-state-again");
                if again.await?.outcome(flow, others) == Outcome::Accepted {
                    return Err(Halt::errored(Reason::Unstable, "a random state was refused first and then not"));
                }
                let said = trial.clean(&first.answer.said());
                let detail =
                    format!("a state that was issued to A was accepted from B, and a random one is not: {said}");
                let mut row = Row::confirmed(&controls, &entry, Reason::StateNotBound, CHECK.severity, detail);
                row.facts.insert("request".into(), whose(step).into());
                row.story = story(&[own, others, &random, first]);
                return Ok(row);
            }
        }
    }
    flow.still_works(trial).await?;
    if refused.is_empty() && asked_again {
        let text = format!("{entry}: A's state was neither accepted from B nor refused: the server asked again");
        observations.push(Observation { id: Reason::BadStateIgnored.slug(), text: text.clone() });
        return Ok(Row::refuted(&controls, &entry, Reason::BadStateIgnored, text));
    }
    let detail = format!("a state that was issued to A is refused to B: {}", trial.clean(&refused));
    let mut row = Row::refuted(&controls, &entry, Reason::StateBound, detail);
    row.story = story(&[own, others, &random]);
    Ok(row)
}

/// A canary of A's that an answer to B quotes though B did not send it: that gave A's data away, whatever else the answer says.
/// Where answers about no state of A's quote A as well, it is not the state that brings it.
fn quoted(trial: &Trial<'_, '_>, answer: &Answer, innocent: [&Answer; 2]) -> Option<Canary> {
    let of_a = |answer: &Answer| {
        let found = |body: Cow<'_, Value>| marker::canaries_of(Who::A, &body, &trial.session.canaries, &answer.sent);
        answer.body().map(found).unwrap_or_default()
    };
    let is_known = innocent.iter().any(|other| !of_a(other).is_empty());
    of_a(answer).into_iter().next().filter(|_| !is_known)
}

/// Under whose request the state was presented.
fn whose(step: &str) -> &'static str {
    if step == "subject" { "A's" } else { "B's own" }
}

/// A finding must not be a fluke.
const TWICE: usize = 2;
