//! `state-tampered`: is an echoed `requestState` still the one that the server issued? The page beside this file says how it
//! is tested; this file is that text, step by step.

mod subjects;
mod transplants;

use super::{
    flow::{Flow, Outcome, Played, story},
    origins,
};
use subjects::{Attempt, Tried};

use crate::{
    check::{Check, Level, Running},
    cvss,
    identity::Who,
    owasp,
    trial::Trial,
    verdict::{Controls, Halt, Judgement, Observation, Reason, Row, Severity},
};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "state-tampered",
    title: "requestState is not integrity-protected",
    claim: "A requestState that was altered after the server issued it is accepted on the retry.",
    spec: "If `requestState` influences authorization, resource access, or business logic, servers MUST protect its integrity (e.g. HMAC or AEAD) and MUST reject state that fails verification.",
    spec_url: "https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr",
    help: include_str!("tampered.md"),
    level: Level::Must,
    severity: Severity::High,
    cwe: &[353, 347, 649, 642, 565],
    cvss: &[cvss::TAKEN, cvss::UNSHOWN],
    owasp: &[owasp::MCP07, owasp::ASI02],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let mut judgement = judge(trial).await.unwrap_or_else(Judgement::halted);
        if judgement.cwe.is_empty() {
            judgement.cwe = CHECK.cwe.to_vec();
        }
        judgement.steps = trial.finish();
        judgement
    })
}

async fn judge(trial: &mut Trial<'_, '_>) -> Result<Judgement, Halt> {
    let (origins, unfinished) = origins::find(trial).await?;
    let (mut rows, mut observations, mut cwe) = (trial.unlisted_rows(), Vec::new(), None);
    // What was not looked at forbids a refutation.
    rows.extend(unfinished.map(|halt| Row::halted("search", halt)));
    for origin in origins {
        let mut flow = Flow::new(origin);
        match of_flow(trial, &mut flow, &mut observations).await {
            Ok(found) => {
                for (row, weakness) in found {
                    cwe = cwe.or(weakness);
                    rows.push(row);
                }
            }
            Err(halt) => {
                let over = halt.is_final();
                rows.push(Row::halted(&flow.origin.entry, halt));
                if over {
                    break;
                }
            }
        }
    }
    let mut judgement = Judgement::over(rows, observations);
    judgement.cwe = cwe.map(|primary| [primary, 642, 565].to_vec()).unwrap_or_default();
    Ok(judgement)
}

/// Every round of one flow that carries a state, each with controls of its own.
async fn of_flow(
    trial: &mut Trial<'_, '_>,
    flow: &mut Flow,
    observations: &mut Vec<Observation>,
) -> Result<Vec<(Row, Option<u32>)>, Halt> {
    let baseline = flow.honest(trial, observations).await?;
    let baseline = flow.compared(trial, baseline).await?;
    let mut rows = Vec::new();
    for round in 0..baseline.rounds.len() {
        if baseline.rounds[round].state.is_none() {
            continue;
        }
        flow.round = round;
        let entry = flow.entry();
        match of_round(trial, flow, &baseline, observations).await {
            Ok(found) => rows.push(found),
            Err(halt) if halt.is_final() => {
                rows.push((Row::halted(&entry, halt), None));
                break;
            }
            Err(halt) => rows.push((Row::halted(&entry, halt), None)),
        }
    }
    if rows.is_empty() {
        return Err(Halt::skipped(Reason::NothingReturnedInputRequired, "no round carried a requestState"));
    }
    Ok(rows)
}

async fn of_round(
    trial: &mut Trial<'_, '_>,
    flow: &mut Flow,
    baseline: &Played,
    observations: &mut Vec<Observation>,
) -> Result<(Row, Option<u32>), Halt> {
    let entry = flow.entry();
    let (controls, random) = flow.controls(trial, baseline).await?;
    if let Some(row) = flow.unconsulted(&controls) {
        observations.push(Observation { id: Reason::RandomStateAccepted.slug(), text: row.detail.clone() });
        return Ok((row, None));
    }

    let issued = baseline.rounds[flow.round].state.clone().unwrap_or_default();
    let mut tally = Tally::default();
    let mut unseen = None;
    for attempt in subjects::attempts(trial, flow, baseline, &issued).await? {
        if unseen.is_some() && !attempt.is_of_a_field() {
            break;
        }
        let tried = subjects::attempt(trial, flow, [baseline, &random], &attempt).await?;
        let Some(accepted) = tally.count(tried) else { continue };
        let observed = attempt.observed_in(flow, &accepted.answer, &baseline.answer);
        if !observed && attempt.is_harmless(&issued) {
            // Nothing that matters is in the state, and nothing came of the change: tampering does nothing here.
            tally.harmless.push(attempt.told.clone());
            continue;
        }
        if attempt.is_of_a_field() && !observed {
            // Accepted, but nothing shows that the field was used. Perhaps another one shows it.
            unseen.get_or_insert((attempt, accepted));
            continue;
        }
        return confirm(trial, flow, [baseline, &random], &controls, &attempt, &accepted).await;
    }
    if let Some((attempt, accepted)) = unseen {
        return confirm(trial, flow, [baseline, &random], &controls, &attempt, &accepted).await;
    }
    let mut row = tally.conclude(&controls, &entry, subjects::envelope_of(&issued) == "opaque", observations);
    row.facts.insert("envelope".into(), subjects::envelope_of(&issued).into());
    row.facts.insert("attempts".into(), tally.attempts.into());
    row.story = story(&[baseline, &random]);
    if row.verdict == crate::verdict::Verdict::Refuted {
        flow.still_works(trial).await?;
    }
    Ok((row, None))
}

/// An accepted alteration is tried once more, and so is the random state: a finding must not be a fluke.
async fn confirm(
    trial: &mut Trial<'_, '_>,
    flow: &mut Flow,
    [baseline, random]: [&Played; 2],
    controls: &Controls,
    attempt: &Attempt,
    first: &Played,
) -> Result<(Row, Option<u32>), Halt> {
    let again = subjects::attempt(trial, flow, [baseline, random], attempt).await?;
    let random_again = flow.with_random(trial, Who::A, "random-state-again").await?;
    let repeated = matches!(again, Tried::Accepted(_));
    let still_refused = match random_again.outcome(flow, baseline) {
        Outcome::Refused(_) | Outcome::AskedAgain => true,
        Outcome::Unlike(_) => random_again.is_a_no(flow, [baseline, random]),
        Outcome::Accepted | Outcome::Unclear(_) => false,
    };
    if !repeated || !still_refused {
        let what = if repeated {
            "a random state was refused first and then not"
        } else {
            "the same alteration was accepted first and then not"
        };
        return Err(Halt::errored(Reason::Unstable, what));
    }
    let observed = attempt.observed_in(flow, &first.answer, &baseline.answer);
    let shown = match (observed, attempt.is_of_a_field()) {
        (true, _) => "; the changed value came back in the server's answer",
        (false, true) => "; nothing in the answer shows what it did",
        (false, false) => "",
    };
    let told = trial.clean(&attempt.told);
    let detail = format!("{told} was accepted, while the untouched state is accepted and a random one is not{shown}");
    let (reason, severity) = match (attempt.smallest, attempt.is_of_a_field()) {
        (true, _) => (Reason::StateNotAuthenticated, Severity::Medium),
        (false, false) => (Reason::StateNotAuthenticated, Severity::High),
        (false, true) if observed => (Reason::AlteredStateAccepted, Severity::High),
        (false, true) => (Reason::AlteredStateAccepted, Severity::Medium),
    };
    let mut row = Row::confirmed(controls, &flow.entry(), reason, severity, detail);
    row.facts = attempt.facts(trial, first, observed);
    row.story = story(&[baseline, random, first]);
    Ok((row, Some(attempt.cwe)))
}

/// What the alterations that were not accepted came to.
#[derive(Debug, Default)]
struct Tally {
    attempts: usize,
    refused: usize,
    crashed: Vec<String>,
    asked_again: usize,
    unclear: Vec<String>,
    last_refusal: String,
    ignored: Vec<String>,
    harmless: Vec<String>,
}

impl Tally {
    /// Counts one attempt; hands it back if it was accepted.
    fn count(&mut self, tried: Tried) -> Option<Box<Played>> {
        self.attempts += 1;
        match tried {
            Tried::Accepted(played) => return Some(played),
            Tried::Refused(text) => {
                self.refused += 1;
                self.last_refusal = text;
            }
            Tried::Crashed(text) => self.crashed.push(text),
            Tried::AskedAgain => self.asked_again += 1,
            Tried::FieldIgnored(text) => self.ignored.push(text),
            Tried::Unclear(text) => self.unclear.push(text),
            Tried::Impossible => self.attempts -= 1,
        }
        None
    }

    fn conclude(&self, controls: &Controls, entry: &str, opaque: bool, observations: &mut Vec<Observation>) -> Row {
        // No more is said than was shown.
        let how =
            if opaque { " (an opaque state is only tried by flipping characters and replacing names)" } else { "" };
        let observe = |observations: &mut Vec<Observation>, reason: Reason, text: String| {
            observations.push(Observation { id: reason.slug(), text: format!("{entry}: {text}") });
        };
        if let Some(text) = self.crashed.first() {
            let text = format!(
                "{} of {} altered states made the server fall over, which shows nothing about integrity: {text}",
                self.crashed.len(),
                self.attempts
            );
            observe(observations, Reason::RefusedByCrash, text);
        }
        if self.asked_again > 0 {
            let text = format!(
                "{} of {} altered states were ignored and asked for again; the specification says reject",
                self.asked_again, self.attempts
            );
            observe(observations, Reason::BadStateIgnored, text);
        }
        if let Some(text) = self.ignored.first() {
            let text =
                format!("{text} was accepted, and the answer still shows what was issued: the field is not used");
            observations.push(Observation { id: "state-field-ignored", text: format!("{entry}: {text}") });
        }
        if let Some(text) = self.harmless.first() {
            let text =
                format!("{text} was accepted, but no field of the state decides anything that this check knows of");
            observations.push(Observation { id: "no-security-relevant-field", text: format!("{entry}: {text}") });
        }
        if let Some(text) = self.unclear.first() {
            return Row::halted(
                entry,
                Halt::errored(Reason::Unclear, format!("an altered state was answered unclearly: {text}")),
            );
        }
        match (self.refused, self.asked_again) {
            (0, 0) if !self.ignored.is_empty() || !self.harmless.is_empty() => {
                let text = "altered states were accepted, and nothing came of it: what the state says is not used";
                Row::refuted(controls, entry, Reason::StateWitnessUnusable, text.to_owned())
            }
            (0, 0) => {
                let text = "no altered state was refused by a decision: every one made the server fall over, or none could be made";
                Row::halted(entry, Halt::errored(Reason::Unclear, text))
            }
            (0, _) => {
                let text = format!(
                    "{} altered states were neither accepted nor refused: the server asked again",
                    self.asked_again
                );
                Row::refuted(controls, entry, Reason::BadStateIgnored, text)
            }
            _ => {
                let text = format!("{} altered states were refused{how}: {}", self.refused, self.last_refusal);
                Row::refuted(controls, entry, Reason::StateIntegrityHeld, text)
            }
        }
    }
}
