//! `answers-cross`: does an answer that was given to the question about one object do for another? One respect differs from Y's
//! honest retry: what the answer names. The state is Y's own and fresh.

use handfast_wire::result::InputRequired;
use serde_json::Value;

use crate::{
    answers::No,
    arguments,
    check::{Check, Level, Running},
    checks::{self, state::flow::Flow},
    cvss,
    identity::Who,
    owasp,
    target::Call,
    trial::{Answer, Trial},
    verdict::{ControlPlan, Halt, Observation, Reason, Row, Severity},
};

use super::scene::{self, End, Judged, Scene};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "answers-cross",
    title: "An answer about one object is taken for another",
    claim: "An answer that names one object, as the question about that object wanted it, is accepted for a question about another object.",
    spec: "Servers SHOULD validate received data matches the requested schema.",
    spec_url: "https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation",
    help: include_str!("answers_cross.md"),
    level: Level::Should,
    severity: Severity::Medium,
    cwe: &[345, 20],
    cvss: &[cvss::TOUCHED],
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
        let mut rows = Vec::new();
        for round in scene.approvals() {
            scene.flow.round = round;
            let entry = scene.flow.entry();
            let outcome = of_round(trial, &scene).await;
            let over = outcome.as_ref().is_err_and(Halt::is_final);
            rows.push(outcome.unwrap_or_else(|halt| Row::halted(&entry, halt)));
            if over {
                break;
            }
        }
        Ok(rows)
    })
}

async fn of_round(trial: &mut Trial<'_, '_>, scene: &Scene) -> Result<Row, Halt> {
    let entry = scene.flow.entry();
    let mut taken = Vec::new();
    let mut refused = None;
    for _ in 0..TWICE {
        let (x, y) = (of_its_own(trial, scene).await?, of_its_own(trial, scene).await?);
        let (for_x, for_y) = (scene::honest(trial, &x.0, &x.1), scene::honest(trial, &y.0, &y.1));
        let Some(crossed) = crossed(&x.1, &for_x, &y.1, &for_y) else {
            let detail = "an honest answer about one object is an honest answer about every other";
            return Err(Halt::skipped(Reason::QuestionsNameNothing, detail));
        };
        let answer = trial.call("subject", Who::A, &crossed).await?;
        let ended = scene.ended(trial, &y.0, &y.1, answer).await?;
        match scene.end(&ended) {
            End::Done => taken.push(ended.answer),
            End::Undone(said) => {
                refused = Some((said, ended.answer.step));
                break;
            }
            End::Unclear(said) => {
                return Err(ended.answer.unclear().unwrap_or_else(|| Halt::errored(Reason::Unclear, said)));
            }
        }
    }
    let after = scene.still_works(trial).await?;
    let mut plan = ControlPlan::default();
    plan.accepts(&after.answer, |said| Halt::errored(Reason::ControlFailed, said))?;
    match (taken.first(), refused) {
        (None, Some((said, step))) => {
            plan.refused_in_words(&said);
            let controls = plan.hold()?;
            let detail = format!("an answer about another object does nothing: {}", trial.clean(&said));
            let mut row = Row::refuted(&controls, &entry, Reason::ApprovalHeld, detail);
            row.story = vec![after.first_step, step, after.answer.step];
            Ok(row)
        }
        (Some(answer), None) => {
            let (step, said) = undone(trial, scene).await?;
            plan.refused_in_words(&said);
            let controls = plan.hold()?;
            let said = trial.clean(&answer.said());
            let detail = format!("the answer named another object than the question, and it was done: {said}");
            let mut row = Row::confirmed(&controls, &entry, Reason::ForeignAnswerTaken, CHECK.severity, detail);
            row.story = vec![after.first_step, after.answer.step, step, answer.step];
            Ok(row)
        }
        _ => Err(Halt::errored(Reason::Unstable, "an answer about another object was taken once, and once not")),
    }
}

/// What leaves it undone: otherwise nothing shows that the answer matters at all.
async fn undone(trial: &mut Trial<'_, '_>, scene: &Scene) -> Result<(usize, String), Halt> {
    let declined = scene.refusing(trial, "declined", No::Decline).await?;
    match declined.map(|ended| (scene.end(&ended), ended.answer)) {
        Some((End::Undone(said), Answer { step, .. })) => Ok((step, said)),
        Some((End::Unclear(said), answer)) => {
            Err(answer.unclear().unwrap_or_else(|| Halt::errored(Reason::Unclear, said)))
        }
        _ => {
            let detail = "what is declined is answered as what is approved: nothing shows that the answer is looked at";
            Err(Halt::skipped(Reason::ApprovalWitnessUnusable, detail))
        }
    }
}

/// A flow for a fresh object, as far as its round.
async fn of_its_own(trial: &mut Trial<'_, '_>, scene: &Scene) -> Result<(Call, InputRequired), Halt> {
    trial.session.purse.retain(|(letter, _), _| *letter != Who::A.letter());
    scene.waiting(trial).await
}

/// Y's retry with the answers that X's question wanted, where they are no answers to Y's: they break its schema. What fits
/// both, a prefilled name that may be edited for one, says nothing.
fn crossed(x: &InputRequired, for_x: &Call, y: &InputRequired, for_y: &Call) -> Option<Call> {
    let answers = |call: &Call| call.params.get("inputResponses").and_then(Value::as_object).cloned();
    let (of_x, mut of_y) = (answers(for_x)?, answers(for_y)?);
    let content = |answer: &Value| answer.get("content").cloned();
    let mut differs = false;
    for (key, answer) in &mut of_y {
        let (Some(wanted), Some(wants), Some(other)) = (schema(x, key), schema(y, key), of_x.get(key)) else {
            continue;
        };
        let (Some(given), Some(own)) = (content(other), content(answer)) else { continue };
        if arguments::satisfies(wanted, &given)
            && arguments::satisfies(wants, &own)
            && !arguments::satisfies(wants, &given)
        {
            *answer = other.clone();
            differs = true;
        }
    }
    let mut crossed = for_y.clone();
    crossed.params.insert("inputResponses".into(), Value::Object(of_y));
    differs.then_some(crossed)
}

fn schema<'a>(asked: &'a InputRequired, key: &str) -> Option<&'a Value> {
    asked.requests.get(key)?.pointer("/params/requestedSchema")
}

/// A finding must not be a fluke.
const TWICE: usize = 2;

#[cfg(test)]
mod tests {
    use handfast_wire::message::Object;
    use serde_json::json;

    use super::*;

    fn round(property: Value, named: &str) -> (InputRequired, Call) {
        let mut requests = Object::new();
        requests.insert(
            "name".into(),
            json!({"method": "elicitation/create", "params": {"requestedSchema":
            {"type": "object", "properties": {"workspace": property}, "required": ["workspace"]}}}),
        );
        let mut call = Call::new("tools/call", Object::new());
        let answers = json!({"name": {"action": "accept", "content": {"workspace": named}}});
        call.params.insert("inputResponses".into(), answers);
        (InputRequired { requests, state: None }, call)
    }

    fn named(x: (InputRequired, Call), y: (InputRequired, Call)) -> Option<String> {
        let crossed = crossed(&x.0, &x.1, &y.0, &y.1)?;
        crossed.params["inputResponses"].pointer("/name/content/workspace")?.as_str().map(str::to_owned)
    }

    #[test]
    fn answers_are_crossed_where_the_question_names_its_object() {
        let of = |name: &str| round(json!({"type": "string", "enum": [name]}), name);
        assert_eq!(named(of("x"), of("y")), Some("x".to_owned()));
        let constant = |name: &str| round(json!({"const": name}), name);
        assert_eq!(named(constant("x"), constant("y")), Some("x".to_owned()));
    }

    #[test]
    fn what_fits_both_questions_is_not_crossed() {
        assert_eq!(named(round(json!({"enum": ["x"]}), "x"), round(json!({"enum": ["x"]}), "x")), None);
        let prefilled = |name: &str| round(json!({"type": "string", "default": name}), name);
        assert_eq!(named(prefilled("x"), prefilled("y")), None);
        assert_eq!(
            named(round(json!({"enum": ["x"]}), "z"), round(json!({"enum": ["y"]}), "y")),
            None,
            "no honest answer to X"
        );
    }
}
