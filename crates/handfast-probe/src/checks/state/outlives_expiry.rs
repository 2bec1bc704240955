//! `state-outlives-expiry`: is a state still accepted after the time at which it says that it ends? A fresh one, at the same
//! moment, differs from it in its age alone.

use std::time::Duration;

use crate::{
    check::{Check, Level, Running},
    checks, clock, cvss,
    disposition::Disposition,
    identity::Who,
    owasp,
    state::{envelope::Envelope, expiry},
    trial::Trial,
    verdict::{Controls, Halt, Observation, Reason, Row, Severity},
};

use super::{
    flow::{Flow, Outcome, Played, story},
    loan::Waiting,
    rounds::{self, Rounds},
};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "state-outlives-expiry",
    title: "States do not end",
    claim: "A requestState is accepted after the time at which it says that it ends.",
    spec: "To prevent replay, servers SHOULD include the following inside the integrity-protected `requestState` payload and verify each on receipt: a short expiry (TTL), rejecting state presented after it lapses.",
    spec_url: "https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr",
    help: include_str!("outlives_expiry.md"),
    level: Level::Should,
    severity: Severity::Medium,
    cwe: &[613],
    cvss: &[cvss::UNSHOWN, cvss::HARDENING],
    owasp: &[owasp::MCP07, owasp::ASI07],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = rounds::judge(trial, Rounds::All, of_round).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

async fn of_round(
    trial: &mut Trial<'_, '_>,
    flow: &Flow,
    own: &Played,
    observations: &mut Vec<Observation>,
) -> Result<Row, Halt> {
    let (controls, random) = flow.controls(trial, own).await?;
    if let Some(row) = flow.unconsulted(&controls) {
        return Ok(row);
    }
    let scene = Scene { flow, own, random: &random, controls: &controls };
    let issued = own.rounds[flow.round].state.clone().unwrap_or_default();
    if let Some((field, _)) = expiry::stated(&issued) {
        return scene.after_its_time(trial, &field).await;
    }
    if Envelope::read(&issued).is_some() {
        let text = format!("{}: the state can be read, and does not say until when it is good", flow.entry());
        observations.push(Observation { id: "state-without-expiry", text });
    }
    scene.at_growing_ages(trial).await
}

/// What the subjects of one round are measured against.
struct Scene<'s> {
    flow: &'s Flow,
    own: &'s Played,
    random: &'s Played,
    controls: &'s Controls,
}

impl Scene<'_> {
    /// States that say when they end, after that.
    async fn after_its_time(&self, trial: &mut Trial<'_, '_>, field: &str) -> Result<Row, Halt> {
        // One for the moment after the end, one to repeat it, and one for when no leeway excuses it.
        let mut waiting = Vec::new();
        for _ in 0..3 {
            waiting.push(self.flow.wait_afresh(trial, Who::A).await?);
        }
        let mut end = Duration::ZERO;
        for one in &waiting {
            let (_, at) = expiry::stated(one.state()?).ok_or_else(|| {
                Halt::errored(Reason::Unstable, "a state said when it ends, and another one does not")
            })?;
            end = end.max(at);
        }
        let ahead = trial.session.target.clock_ahead();
        let left = end.as_secs_f64() + GRACE - clock::since_1970().as_secs_f64() - ahead.unwrap_or(-UNKNOWN_CLOCK);
        let left = Duration::try_from_secs_f64(left).unwrap_or_default();
        let may_wait = trial.session.max_wait.max(NEAR);
        if left > may_wait {
            let detail = format!(
                "the state says that it ends in {} s: {} tells whether it does",
                left.as_secs() + 1,
                trial.session.option_to_wait(left)
            );
            return Err(Halt::skipped(Reason::NeedsWait, detail));
        }
        trial.pause(left).await?;
        let mut accepted = Vec::new();
        for one in &waiting[..2] {
            match self.present(trial, one).await? {
                Ok(played) => accepted.push(played),
                Err(refusal) if accepted.is_empty() => return self.ended(trial, one, refusal, None).await,
                Err(_) => {
                    return Err(Halt::errored(Reason::Unstable, "one state was accepted after its time, and one not"));
                }
            }
        }
        self.flow.still_refuses(trial, self.own).await?;
        let mut severity = Severity::Low;
        let mut overtime = "a little later";
        let leeway = trial.session.run.leeway;
        if left + leeway <= trial.session.max_wait {
            trial.pause(leeway).await?;
            if self.present(trial, &waiting[2]).await?.is_ok() {
                (severity, overtime) = (CHECK.severity, "also when no difference of clocks excuses it");
            }
        }
        let said = trial.clean(&accepted[0].answer.said());
        let detail = format!(
            "a state that says in {field} when it ends was accepted after that ({overtime}), and a random one is not: {said}"
        );
        let mut row = Row::confirmed(self.controls, &self.flow.entry(), Reason::StateOutlivedExpiry, severity, detail);
        row.facts.insert("field".into(), field.into());
        row.facts.insert("ends_at".into(), end.as_secs().into());
        row.facts.insert("accepted".into(), overtime.into());
        row.story = story(&[self.own, self.random, &accepted[0]]);
        Ok(row)
    }

    /// States that do not say when they end: each is presented once, at twice the age of the one before.
    async fn at_growing_ages(&self, trial: &mut Trial<'_, '_>) -> Result<Row, Halt> {
        let ages: Vec<u64> =
            (0..u64::BITS).map(|power| 1 << power).take_while(|age| *age <= trial.session.max_wait.as_secs()).collect();
        if ages.is_empty() {
            let detail = "the state does not say when it ends: --max-wait lets it be presented at growing ages";
            return Err(Halt::skipped(Reason::NeedsWait, detail));
        }
        let mut waiting = Vec::new();
        for _ in &ages {
            waiting.push(self.flow.wait_afresh(trial, Who::A).await?);
        }
        let opened = clock::since_1970();
        let mut honoured = 0;
        for (one, age) in waiting.iter().zip(ages) {
            let past = clock::since_1970().saturating_sub(opened);
            trial.pause(Duration::from_secs(age).saturating_sub(past)).await?;
            match self.present(trial, one).await? {
                Ok(_) => honoured = age,
                Err(refusal) => return self.ended(trial, one, refusal, Some([honoured, age])).await,
            }
        }
        let detail = format!(
            "the state does not say when it ends, and is still accepted after {honoured} s: a longer --max-wait may tell"
        );
        Err(Halt::skipped(Reason::NeedsWait, detail))
    }

    /// Presents a state under its own request: accepted, or refused in these words.
    async fn present(&self, trial: &mut Trial<'_, '_>, issued: &Waiting) -> Result<Result<Played, String>, Halt> {
        let played = self.flow.present(trial, "subject", Who::A, issued, &issued.call).await?;
        match played.outcome(self.flow, self.own) {
            Outcome::Accepted => Ok(Ok(played)),
            Outcome::Refused(refusal) => Ok(Err(refusal.to_string())),
            Outcome::AskedAgain => Ok(Err("the server asked again".to_owned())),
            Outcome::Unlike(said) if played.is_a_no(self.flow, [self.own, self.random]) => Ok(Err(said)),
            Outcome::Unlike(said) => {
                Err(Halt::errored(Reason::Unclear, format!("a complete result unlike any honest one: {said}")))
            }
            Outcome::Unclear(said) => Err(played.answer.lost().unwrap_or_else(|| Halt::errored(Reason::Unclear, said))),
        }
    }

    /// Refused: the fault is the state's if the same request, with a fresh one, is accepted at the same moment.
    async fn ended(
        &self,
        trial: &mut Trial<'_, '_>,
        old: &Waiting,
        refusal: String,
        ages: Option<[u64; 2]>,
    ) -> Result<Row, Halt> {
        let fresh = self.flow.carry_out(trial, Who::A, &old.call).await?;
        if fresh.answer.disposition != Disposition::Accepted {
            let detail = format!("a fresh state for the same request is not accepted either: {}", fresh.answer.said());
            return Err(fresh.answer.unclear().unwrap_or_else(|| Halt::errored(Reason::ControlFailed, detail)));
        }
        let when = match ages {
            Some([_, age]) => format!("after {age} s"),
            None => "after its time".to_owned(),
        };
        let detail = format!("a state is refused {when}, and a fresh one is accepted: {}", trial.clean(&refusal));
        let mut row = Row::refuted(self.controls, &self.flow.entry(), Reason::StateEnds, detail);
        if let Some([honoured, refused]) = ages {
            row.facts.insert("honoured_after_seconds".into(), honoured.into());
            row.facts.insert("refused_after_seconds".into(), refused.into());
        }
        row.story = story(&[self.own, self.random, &fresh]);
        Ok(row)
    }
}

/// Whole seconds may be good to their end; and a little for the way.
const GRACE: f64 = 1.05;
/// What is to be over so soon is waited for without being asked.
const NEAR: Duration = Duration::from_millis(2200);
/// How far behind ours a clock may be that nothing is known of.
const UNKNOWN_CLOCK: f64 = 300.0;
