//! `state-replayed`: does a state that has done its work do it again? The same retry, to the byte, is sent once more, and
//! twice at the same moment; what is done by it is counted in the answers.

use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    discovery::emitted,
    disposition::Disposition,
    effect::Counters,
    identity::Who,
    owasp,
    trial::{Answer, Trial},
    verdict::{Halt, Observation, Reason, Row, Severity},
};
use serde_json::Value;

use super::{
    flow::{Flow, Outcome, Played, story},
    loan::{Waiting, soft},
    rounds::{self, Rounds},
    view::View,
};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "state-replayed",
    title: "States can be used again",
    claim: "A requestState that was accepted, sent once more with the same answers, does its work a second time.",
    spec: "Servers for which a given `requestState` must be consumed at most once (e.g., one-time redemptions) MUST enforce that invariant server-side.",
    spec_url: "https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr",
    help: include_str!("replayed.md"),
    level: Level::Hardening,
    severity: Severity::Medium,
    cwe: &[294],
    cvss: &[cvss::UNSHOWN, cvss::HARDENING],
    owasp: &[owasp::ASI07, owasp::MCP07],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        // A round before the last one only asks once more, and is asked for an answer once more.
        let outcome = rounds::judge(trial, Rounds::Last, of_round).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

/// What came of a state that was used before.
enum Again {
    Refused(String),
    /// Accepted; whether something was done again, where that shows.
    Accepted(Box<Played>, Option<Effect>),
}

/// What is seen of the second time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// A number went up once more.
    Counted,
    /// There is a second object.
    Object,
    /// A number did not go up once more.
    Nothing,
}

impl Effect {
    fn is_a_second(self) -> bool {
        self != Self::Nothing
    }

    fn word(self) -> &'static str {
        match self {
            Self::Counted => "a number went up once more",
            Self::Object => "a second object was made",
            Self::Nothing => "nothing was done again",
        }
    }
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
    let scene = Scene { flow, own, random: &random, counting: Counting::begin(trial, flow).await? };
    let first = scene.once_more(trial).await?;
    let (played, effect) = match first {
        Again::Refused(refusal) => {
            flow.still_works(trial).await?;
            return scene.race(trial, &controls, &refusal, observations).await;
        }
        Again::Accepted(played, effect) => (played, effect),
    };
    let second = scene.once_more(trial).await?;
    let Again::Accepted(_, again) = second else {
        return Err(Halt::errored(Reason::Unstable, "a state that was used was accepted once, and once not"));
    };
    flow.still_refuses(trial, own).await?;
    let said = trial.clean(&played.answer.said());
    match (effect, again) {
        (Some(effect), Some(again)) if effect.is_a_second() && again.is_a_second() => {
            let shown = effect.word();
            let detail = format!("a state that was used was accepted once more, and {shown}: {said}");
            let mut row = Row::confirmed(&controls, &entry, Reason::StateUsedAgain, CHECK.severity, detail);
            row.facts.insert("shown_by".into(), shown.into());
            row.facts.insert("sent".into(), "one after the other".into());
            row.story = story(&[own, &random, &played]);
            Ok(row)
        }
        _ => {
            let shown = match effect.or(again) {
                Some(_) => "done once all the same",
                None => "nothing shows whether anything was done again",
            };
            let text = format!("{entry}: a state that was used was accepted once more: {shown}: {said}");
            observations.push(Observation { id: Reason::StateAcceptedTwice.slug(), text: text.clone() });
            Ok(Row::refuted(&controls, &entry, Reason::StateAcceptedTwice, text))
        }
    }
}

/// Uses of one object, as its answers count them, or what shows the object.
struct Counting {
    counters: Counters,
    /// The call on that object; none where it is used up, or nothing is counted.
    call: Option<crate::target::Call>,
    /// Where the count stands, if not in the answers.
    view: Option<View>,
}

impl Counting {
    /// Three uses in a row, with a refused one among them, which must not count.
    async fn begin(trial: &mut Trial<'_, '_>, flow: &Flow) -> Result<Self, Halt> {
        let one = flow.wait_afresh(trial, Who::A).await?;
        let call = one.call.clone();
        let view = View::of(trial, &call);
        let (mut uses, mut views) = (Vec::new(), Vec::new());
        for number in 0..3 {
            let used = match number {
                0 => Some(flow.present(trial, "untouched-flow", Who::A, &one, &call).await?),
                _ => soft(flow.carry_out(trial, Who::A, &call).await)?,
            };
            uses.extend(used.and_then(|played| played.answer.result().cloned()));
            if number == 1
                && let Some(forged) = soft(flow.wait_on(trial, Who::A, &call).await)?
            {
                flow.present(trial, "random-state", Who::A, &forged.forged()?, &call).await?;
            }
            if let Some(view) = &view {
                views.extend(view.look(trial).await?);
            }
        }
        let of = |seen: &[Value]| match seen {
            [first, second, third] => Counters::of([first, second, third]),
            _ => Counters::default(),
        };
        let (told, shown) = (of(&uses), of(&views));
        let (counters, view) = if told.is_empty() { (shown, view) } else { (told, None) };
        let call = (!counters.is_empty()).then_some(call);
        Ok(Self { counters, call, view })
    }

    /// What the count is read in after a use.
    async fn reading(&self, trial: &mut Trial<'_, '_>, used: &Played) -> Result<Option<Value>, Halt> {
        match &self.view {
            Some(view) => view.look(trial).await,
            None => Ok(used.answer.result().cloned()),
        }
    }
}

struct Scene<'s> {
    flow: &'s Flow,
    own: &'s Played,
    random: &'s Played,
    counting: Counting,
}

impl Scene<'_> {
    /// A flow that waits for its last retry, with the counters as they stand.
    async fn begin(&self, trial: &mut Trial<'_, '_>) -> Result<(Waiting, Counters), Halt> {
        let Some(call) = &self.counting.call else {
            return Ok((self.flow.wait_afresh(trial, Who::A).await?, Counters::default()));
        };
        let now = self.flow.carry_out(trial, Who::A, call).await?;
        let reading = self.counting.reading(trial, &now).await?;
        let counters = reading.map(|result| self.counting.counters.from_here(&result)).unwrap_or_default();
        Ok((self.flow.wait_on(trial, Who::A, call).await?, counters))
    }

    /// One retry, and the same once more.
    async fn once_more(&self, trial: &mut Trial<'_, '_>) -> Result<Again, Halt> {
        let (issued, counters) = self.begin(trial).await?;
        let canary = trial.canary(Who::A);
        let retry = trial.retry(&issued.call, &issued.asked, issued.asked.state.clone(), &canary);
        let first = self.flow.send(trial, "untouched-retry", Who::A, &issued, &retry).await?;
        if first.answer.disposition != Disposition::Accepted {
            let detail = format!("an honest retry is no longer accepted: {}", first.answer.said());
            return Err(first.answer.unclear().unwrap_or_else(|| Halt::errored(Reason::ControlFailed, detail)));
        }
        let again = self.flow.send(trial, "subject", Who::A, &issued, &retry).await?;
        Ok(match again.outcome(self.flow, self.own) {
            Outcome::Refused(refusal) => Again::Refused(refusal.to_string()),
            Outcome::AskedAgain => Again::Refused("the server asked again".to_owned()),
            Outcome::Unlike(said) if again.is_a_no(self.flow, [self.own, self.random]) || says_used(&said) => {
                Again::Refused(said)
            }
            Outcome::Unlike(said) => {
                let detail = format!("a complete result unlike any honest one: {said}");
                return Err(Halt::errored(Reason::Unclear, detail));
            }
            Outcome::Unclear(said) => {
                return Err(again.answer.lost().unwrap_or_else(|| Halt::errored(Reason::Unclear, said)));
            }
            Outcome::Accepted => {
                let effect = self.effect(trial, &issued, &counters, [&first.answer, &again.answer]).await?;
                Again::Accepted(Box::new(again), effect)
            }
        })
    }

    /// What is seen of the second time: after one use and this last one, two are counted, or three.
    async fn effect(
        &self,
        trial: &mut Trial<'_, '_>,
        issued: &Waiting,
        counters: &Counters,
        answers: [&Answer; 2],
    ) -> Result<Option<Effect>, Halt> {
        if let [Some(one), Some(other)] = answers.map(|answer| minted(trial, issued, answer))
            && one != other
        {
            return Ok(Some(Effect::Object));
        }
        if counters.is_empty() {
            return Ok(None);
        }
        let after = soft(self.flow.carry_out(trial, Who::A, &issued.call).await)?;
        let Some(after) = after else { return Ok(None) };
        let reading = self.counting.reading(trial, &after).await?;
        Ok(match reading.and_then(|result| counters.uses_until(&result)) {
            Some(2) => Some(Effect::Nothing),
            Some(3) => Some(Effect::Counted),
            _ => None,
        })
    }

    /// Used states are refused. But of two that come at once?
    async fn race(
        &self,
        trial: &mut Trial<'_, '_>,
        controls: &crate::verdict::Controls,
        refusal: &str,
        observations: &mut Vec<Observation>,
    ) -> Result<Row, Halt> {
        let entry = self.flow.entry();
        let (mut both, mut done) = (0, Vec::new());
        // Over stdio one message comes after the other.
        let races = if trial.session.target.transport() == "http" { RACES } else { 0 };
        for _ in 0..races {
            let (issued, counters) = self.begin(trial).await?;
            let canary = trial.canary(Who::A);
            let retry = trial.retry(&issued.call, &issued.asked, issued.asked.state.clone(), &canary);
            let [one, other] = trial.call_together("subject-at-once", [(Who::A, &retry), (Who::A, &retry)]).await?;
            let accepted = |answer: &Answer| {
                let alike = answer.result().zip(self.own.answer.result());
                answer.disposition == Disposition::Accepted
                    && alike.is_some_and(|(result, honest)| self.flow.is_like(result, honest))
            };
            if !accepted(&one) || !accepted(&other) {
                continue;
            }
            both += 1;
            let effect = self.effect(trial, &issued, &counters, [&one, &other]).await?;
            done.extend(effect.filter(|effect| effect.is_a_second()).map(|effect| (effect, other.step)));
            if done.len() > 1 {
                break;
            }
        }
        if let [(effect, step), _, ..] = done[..] {
            let shown = effect.word();
            let detail = format!(
                "a state that was used is refused; sent twice at once it was accepted twice, {both} times of no more than {RACES}, and {shown}"
            );
            let mut row = Row::confirmed(controls, &entry, Reason::StateUsedAgain, Severity::Low, detail);
            row.facts.insert("shown_by".into(), shown.into());
            row.facts.insert("sent".into(), "twice at once".into());
            row.story = story(&[self.own, self.random]);
            row.story.push(step);
            return Ok(row);
        }
        if both > 0 {
            let text =
                format!("{entry}: a state that was sent twice at once was accepted twice, {both} times of {RACES}");
            observations.push(Observation { id: Reason::StateAcceptedTwice.slug(), text: text.clone() });
            return Ok(Row::refuted(controls, &entry, Reason::StateAcceptedTwice, text));
        }
        let detail = format!("a state that was used is refused: {}", trial.clean(refusal));
        let mut row = Row::refuted(controls, &entry, Reason::StateSingleUse, detail);
        row.story = story(&[self.own, self.random]);
        Ok(row)
    }
}

/// The handle that this call mints, where it is one that does.
fn minted(trial: &Trial<'_, '_>, issued: &Waiting, answer: &Answer) -> Option<Value> {
    let name = issued.call.params.get("name")?.as_str()?;
    let result = answer.result()?;
    trial
        .session
        .map
        .kinds
        .iter()
        .filter(|kind| kind.mint == name)
        .find_map(|kind| emitted::again(result, &kind.spot, &answer.sent, None))
}

/// "That was done already" is no error, and no second time.
fn says_used(text: &str) -> bool {
    let text = text.to_lowercase();
    ["already", "used", "consumed", "redeemed", "duplicate", "only once"].iter().any(|word| text.contains(word))
}

const RACES: usize = 5;
