//! `response-misrouted`: does an answer go astray where two clients use the same request id at once?

use crate::{
    check::{Check, Level, Running},
    checks::{
        self, apart,
        handle::{
            kinds,
            showing::{Showing, Shown},
        },
    },
    cvss,
    discovery::{self, Kind},
    disposition::Disposition,
    errand,
    identity::Who,
    marker::{self, Naming},
    owasp,
    target::Call,
    trial::{Answer, Trial},
    verdict::{ControlPlan, Controls, Halt, Judgement, Observation, Reason, Row, Severity},
};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "response-misrouted",
    title: "Answers go to whoever uses the same request id",
    claim: "Of two users who send requests under the same JSON-RPC id at the same time, one is given the other's answer.",
    spec: "Result responses MUST include the same ID as the request they correspond to.",
    spec_url: "https://modelcontextprotocol.io/specification/2026-07-28/basic",
    help: include_str!("misrouted.md"),
    level: Level::Must,
    severity: Severity::High,
    cwe: &[488, 362],
    cvss: &[cvss::TAKEN_WITH_LUCK],
    owasp: &[owasp::MCP10, owasp::API1],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = judge(trial).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

async fn judge(trial: &mut Trial<'_, '_>) -> Result<Judgement, Halt> {
    if trial.session.target.transport() != "http" {
        return Err(Halt::skipped(Reason::NeedsHttp, "over stdio there is one connection, which carries no id twice"));
    }
    // An object of each, where there are any; else what the server calls its callers.
    let of_objects = kinds::of_each(trial, of_kind).await;
    if let Ok((rows, observations)) = &of_objects
        && rows.iter().any(|row| row.verdict != crate::verdict::Verdict::Skipped)
    {
        return Ok(Judgement::over(rows.clone(), observations.clone()));
    }
    if let Some(row) = of_names(trial).await? {
        return Ok(Judgement::over(vec![row], Vec::new()));
    }
    of_objects.map(|(rows, observations)| Judgement::over(rows, observations))
}

async fn of_kind(
    trial: &mut Trial<'_, '_>,
    kind: &Kind,
    observations: &mut Vec<Observation>,
) -> Result<Vec<Row>, Halt> {
    // Connections are mixed up whatever is asked by them: one kind is enough.
    if trial.session.map.kinds.first().is_some_and(|first| first.mint != kind.mint) {
        return Ok(Vec::new());
    }
    let mut plan = ControlPlan::default();
    let (showing, owner) = Showing::find(trial, kind, &mut plan, observations).await?;
    let Some(theirs) = showing.of_stranger(trial, kind).await? else {
        let detail = "B does not see what it planted in an object of its own";
        return Err(Halt::skipped(Reason::SecondIdentityNotLive, detail));
    };
    let objects = [&owner.object, &theirs.object];
    let mut calls = Vec::new();
    for (who, object) in [(Who::A, &owner.object), (Who::B, &theirs.object)] {
        let made = discovery::entry_call(trial, who, &showing.entry, &object.handle).await?;
        let (call, _) = made.map_err(|reason| Halt::skipped(Reason::ControlFailed, reason))?;
        calls.push(call);
    }
    let [one, other] = &calls[..] else { return Ok(Vec::new()) };
    let sees = |answer: &Answer, at: usize| objects[at].marked(answer).is_some();
    let row = together(trial, &showing.entry.to_string(), [one, other], plan, &sees).await?;
    Ok(vec![row])
}

/// The same by the tool that tells its caller who it is.
async fn of_names(trial: &mut Trial<'_, '_>) -> Result<Option<Row>, Halt> {
    let session = &trial.session;
    let Some(call) = errand::who_am_i(&session.surface.tools, |tool| session.may_call(tool)) else { return Ok(None) };
    let Naming::Apart { a, b, .. } = apart::who_am_i(trial).await? else { return Ok(None) };
    let names = [a, b];
    let sees = |answer: &Answer, at: usize| {
        answer.result().is_some_and(|result| marker::find_name(result, &names[at], &[]).is_some())
    };
    let mut plan = ControlPlan::default();
    let alone = trial.call("owner-use", Who::A, &call).await?;
    plan.accepts(&alone, |said| Halt::skipped(Reason::ControlFailed, said))?;
    together(trial, &call.title(), [&call, &call], plan, &sees).await.map(Some)
}

/// Both at once, again and again. `sees` says whether an answer shows what is A's (0) or B's (1).
async fn together(
    trial: &mut Trial<'_, '_>,
    entry: &str,
    calls: [&Call; 2],
    mut plan: ControlPlan,
    sees: &dyn Fn(&Answer, usize) -> bool,
) -> Result<Row, Halt> {
    // The controls: one after the other, each gets its own and nothing of the other's.
    alone(trial, calls, sees).await?;
    plan.refused_in_words("one after the other, neither sees anything of the other's");
    let controls: Controls = plan.hold()?;
    let (mut astray, mut whole, mut lost) = (Vec::new(), 0, None);
    for round in 0..MOST_ROUNDS {
        let answers = trial.call_together("subject", [(Who::A, calls[0]), (Who::B, calls[1])]).await?;
        let swapped = [sees(&answers[0], 1), sees(&answers[1], 0)];
        if let Some(at) = swapped.iter().position(|swapped| *swapped) {
            astray.push((at, answers[at].step, trial.clean(&answers[at].said())));
        } else if sees(&answers[0], 0) && sees(&answers[1], 1) {
            whole += 1;
        } else {
            lost = lost.or_else(|| answers.iter().find_map(Answer::unclear));
        }
        // One that went astray calls for more rounds: twice is no fluke.
        if astray.len() == TWICE || (astray.is_empty() && round + 1 == ROUNDS) {
            break;
        }
    }
    let mut row = match &astray[..] {
        [(at, _, said), _, ..] => {
            let (to, from) = if *at == 0 { ("A", "B") } else { ("B", "A") };
            let detail = format!("under the same request id, {to} was given {from}'s answer: {said}");
            Row::confirmed(&controls, entry, Reason::ResponseMisrouted, CHECK.severity, detail)
        }
        [_] => return Err(Halt::errored(Reason::Unstable, "one answer went astray, and no second one")),
        [] if whole == 0 => {
            let gone = "no two answers came back where both were asked for at once";
            return Err(lost.unwrap_or_else(|| Halt::errored(Reason::ControlFailed, gone)));
        }
        [] => {
            // What was given to nobody is no leak; that the instrument is still live is shown once more.
            alone(trial, calls, sees).await?;
            let detail = format!("{whole} times of {ROUNDS} each was given its own answer under the same request id");
            Row::refuted(&controls, entry, Reason::ResponsesRouted, detail)
        }
    };
    row.story = astray.iter().map(|(_, step, _)| *step).collect();
    Ok(row)
}

async fn alone(
    trial: &mut Trial<'_, '_>,
    calls: [&Call; 2],
    sees: &dyn Fn(&Answer, usize) -> bool,
) -> Result<(), Halt> {
    for (at, (who, step)) in [(Who::A, "owner-use"), (Who::B, "stranger-own-use")].into_iter().enumerate() {
        let answer = trial.call(step, who, calls[at]).await?;
        if let Some(halt) = answer.unclear() {
            return Err(halt);
        }
        let own = answer.disposition == Disposition::Accepted && sees(&answer, at);
        if !own || sees(&answer, 1 - at) {
            let detail = format!("{} alone is not shown its own, and that alone: {}", who.label(), answer.said());
            return Err(Halt::skipped(Reason::ControlFailed, detail));
        }
    }
    Ok(())
}

impl Showing {
    /// An object of B's that shows B what it planted.
    async fn of_stranger(&self, trial: &mut Trial<'_, '_>, kind: &Kind) -> Result<Option<Shown>, Halt> {
        let shown = self.fresh(trial, kind, Who::B).await?;
        let sees = shown.object.marked(&shown.view).is_some() && shown.view.disposition == Disposition::Accepted;
        Ok(sees.then_some(shown))
    }
}

/// How often both send at once.
const ROUNDS: usize = 8;
/// How often at most, where one answer went astray.
const MOST_ROUNDS: usize = 24;
const TWICE: usize = 2;
