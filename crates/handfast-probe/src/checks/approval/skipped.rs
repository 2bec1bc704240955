//! `approval-skipped`: is something that needs an approval done when the approval comes along unasked? One respect differs from
//! the honest flow: the question was never asked.

use handfast_wire::result::InputRequired;

use crate::{
    answers::No,
    check::{Check, Level, Running},
    checks::{self, state::flow::Flow},
    cvss,
    disposition::Disposition,
    identity::Who,
    owasp,
    target::Call,
    trial::{Answer, Trial},
    verdict::{ControlPlan, Halt, Observation, Reason, Row, Severity},
};

use super::scene::{self, End, Judged, Scene};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "approval-skipped",
    title: "An approval that was never asked for is taken",
    claim: "What the server does only after asking is done without asking, for a first call that already carries the answers.",
    spec: "If a client request contains a `requestState` field, servers MUST treat `requestState` as an attacker-controlled input.",
    spec_url: "https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr",
    help: include_str!("skipped.md"),
    level: Level::Must,
    severity: Severity::Critical,
    cwe: &[862, 306],
    cvss: &[cvss::WITHOUT_CONSENT, cvss::TAKEN],
    owasp: &[owasp::ASI02, owasp::MCP07],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = scene::each(trial, of_flow).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

fn of_flow<'j>(trial: &'j mut Trial<'_, '_>, flow: Flow, observations: &'j mut Vec<Observation>) -> Judged<'j> {
    Box::pin(async move {
        let mut scene = Scene::of(trial, flow, observations).await?;
        scene.flow.round = scene.approvals().first().copied().unwrap_or_default();
        let entry = scene.flow.origin.entry.clone();
        let mut plan = ControlPlan::default();
        plan.accepts(&scene.done.answer, |said| Halt::skipped(Reason::UntouchedRetryDidNotSucceed, said))?;
        let declined = declined(trial, &scene).await?;
        plan.refused_in_words(&declined.1);
        let controls = plan.hold()?;

        let everything = all_questions(&scene);
        let under_another_name = unasked(trial, &scene, "wrong-key", &everything, true).await?;
        let any_name = matches!(came_to(trial, &scene, under_another_name).await?, Came::Done { .. });
        let mut done = Vec::new();
        for _ in 0..TWICE {
            // What is still open between the server and A is closed: the subject is an answer to nothing.
            let before = scene.still_works(trial).await?;
            let subject = unasked(trial, &scene, "subject", &everything, false).await?;
            match came_to(trial, &scene, subject).await? {
                Came::Done { questions, answer } => done.push((before, questions, answer)),
                Came::Not(said) if done.is_empty() => {
                    scene.still_works(trial).await?;
                    let detail = format!("answers that nobody asked for do nothing: {}", trial.clean(&said));
                    return Ok(vec![Row::refuted(&controls, &entry, Reason::ApprovalHeld, detail)]);
                }
                Came::Not(_) => {
                    let detail = "answers that nobody asked for were taken once, and once not";
                    return Err(Halt::errored(Reason::Unstable, detail));
                }
            }
        }
        let Some((before, questions, answer)) = done.pop() else { return Ok(Vec::new()) };
        let skipped = &scene.done.rounds[..scene.done.rounds.len().saturating_sub(questions)];
        if skipped.iter().all(|asked| asked.state.is_none()) {
            // To this server, the subject is the honest retry: the specification leaves it to servers to send a state.
            let detail = "the question carries no requestState: answers that come unasked are the same request as those that \
                          were asked for, and only the client stands between";
            observations
                .push(Observation { id: Reason::QuestionWithoutState.slug(), text: format!("{entry}: {detail}") });
            return Err(Halt::skipped(Reason::QuestionWithoutState, detail));
        }
        let said = trial.clean(&answer.said());
        let (severity, detail) = match questions {
            0 => (Severity::Critical, format!("done at the first call, and nothing was asked: {said}")),
            _ => (Severity::High, format!("done after fewer questions than an honest call is asked: {said}")),
        };
        let mut row = Row::confirmed(&controls, &entry, Reason::ApprovalNotAsked, severity, detail);
        row.facts.insert("questions".into(), questions.into());
        row.facts.insert("anyKey".into(), any_name.into());
        row.story = vec![declined.0, before.first_step, before.answer.step, answer.step];
        Ok(vec![row])
    })
}

/// A no that leaves it undone, and its words: without one, a yes cannot be seen to matter.
async fn declined(trial: &mut Trial<'_, '_>, scene: &Scene) -> Result<(usize, String), Halt> {
    for no in [No::Decline, No::Cancel, No::Boolean] {
        let Some(ended) = scene.refusing(trial, "declined", no).await? else { continue };
        match scene.end(&ended) {
            End::Undone(said) => return Ok((ended.answer.step, said)),
            End::Unclear(said) => {
                return Err(ended.answer.unclear().unwrap_or_else(|| Halt::errored(Reason::Unclear, said)));
            }
            End::Done => {}
        }
    }
    let detail = "what is declined is answered as what is approved: a yes cannot be seen to matter";
    Err(Halt::skipped(Reason::ApprovalWitnessUnusable, detail))
}

/// What answers that nobody asked for came to.
enum Came {
    /// Done, after this many questions.
    Done {
        questions: usize,
        answer: Box<Answer>,
    },
    Not(String),
}

async fn came_to(trial: &mut Trial<'_, '_>, scene: &Scene, (call, answer): (Call, Answer)) -> Result<Came, Halt> {
    let asked = match &answer.disposition {
        Disposition::Asked(asked) => Some(asked.clone()),
        _ => None,
    };
    let (answer, questions) = match &asked {
        // Asked for what comes later: the first question was taken for answered.
        Some(asked) if !scene.done.rounds.first().is_some_and(|first| scene::asks_the_same(asked, first)) => {
            let mut plain = call;
            plain.params.shift_remove("inputResponses");
            scene::to_the_end(trial, &plain, answer, 0).await?
        }
        _ => (answer, 0),
    };
    match scene.meaning(&answer) {
        End::Done if questions < scene.done.rounds.len() => Ok(Came::Done { questions, answer: Box::new(answer) }),
        End::Done => Ok(Came::Not("the server asks all the same".to_owned())),
        End::Undone(said) => Ok(Came::Not(said)),
        End::Unclear(said) => Err(answer.unclear().unwrap_or_else(|| Halt::errored(Reason::Unclear, said))),
    }
}

/// A first call for an object of its own, with the answers already in it and no state.
async fn unasked(
    trial: &mut Trial<'_, '_>,
    scene: &Scene,
    step: &str,
    asked: &InputRequired,
    under_other_keys: bool,
) -> Result<(Call, Answer), Halt> {
    trial.session.purse.retain(|(letter, _), _| *letter != Who::A.letter());
    let Some(call) = scene.flow.origin.call(trial, Who::A).await? else {
        return Err(Halt::errored(Reason::ControlFailed, "no call could be made any more"));
    };
    let mut asked = asked.clone();
    if under_other_keys {
        let renamed = |(key, request): (String, _)| (format!("{key}_{OTHER}"), request);
        asked.requests = std::mem::take(&mut asked.requests).into_iter().map(renamed).collect();
    }
    let canary = trial.canary(Who::A);
    let with_answers = trial.retry(&call, &asked, None, &canary);
    let answer = trial.call(step, Who::A, &with_answers).await?;
    Ok((with_answers, answer))
}

/// The questions of every round, as if they had been asked at once.
fn all_questions(scene: &Scene) -> InputRequired {
    let mut all = InputRequired { requests: handfast_wire::message::Object::new(), state: None };
    for round in &scene.done.rounds {
        for (key, request) in &round.requests {
            all.requests.entry(key.clone()).or_insert_with(|| request.clone());
        }
    }
    all
}

/// A finding must not be a fluke.
const TWICE: usize = 2;
const OTHER: &str = "handfast";
