//! `state-foreign-principal`: does a state that was issued to A do for B? One respect differs from A's own retry: who presents
//! it; and from B's own: whose state it is.

use crate::{
    check::{Check, Level, Running},
    checks::{self, apart},
    counts::Counts,
    cvss,
    disposition::Disposition,
    identity::Who,
    marker::Naming,
    owasp,
    trial::Trial,
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
    cvss: &[cvss::TAKEN],
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

    let (mut refused, mut asked_again) = (String::new(), false);
    // A's very request, and then B's own: the one may be refused for A's handle in it, the other for not being A's request.
    for step in ["subject", "subject-own-request"] {
        let mut accepted = Vec::new();
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
                [Outcome::Refused(refusal), _] => refused = refusal.to_string(),
                [Outcome::Unlike(said), _] => refused = said,
                [Outcome::AskedAgain, _] => asked_again = true,
                [Outcome::Unclear(said), _] => return Err(Halt::errored(Reason::Unclear, said)),
                [Outcome::Accepted, _] => {}
            }
            if accepted.is_empty() {
                break;
            }
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
                row.facts.insert("request".into(), if step == "subject" { "A's" } else { "B's own" }.into());
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

/// A finding must not be a fluke.
const TWICE: usize = 2;
