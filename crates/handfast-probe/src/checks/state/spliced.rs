//! `state-spliced`: does a state need its own signature? What it says stays as issued; the signature is another state's, is
//! cut, or is gone.

use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    discovery::emitted,
    identity::Who,
    likeness, marker, owasp,
    state::{envelope::Envelope, fields, seams, tag::Recipe},
    trial::Trial,
    verdict::{Halt, Observation, Reason, Row, Severity},
};

use super::{
    flow::{Flow, Outcome, Played, story},
    rounds::{self, Rounds},
};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "state-spliced",
    title: "States need no signature of their own",
    claim: "A requestState is accepted without its signature, with a part of it, or with the signature of another state.",
    spec: "If `requestState` influences authorization, resource access, or business logic, servers MUST protect its integrity (e.g. HMAC or AEAD) and MUST reject state that fails verification.",
    spec_url: "https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr",
    help: include_str!("spliced.md"),
    level: Level::Must,
    severity: Severity::High,
    cwe: &[347, 354],
    cvss: &[cvss::TAKEN, cvss::UNSHOWN],
    owasp: &[owasp::MCP07, owasp::ASI02],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = rounds::judge(trial, Rounds::All, of_round).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

/// What the signature of a fresh state becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seam {
    /// Done away with, in one of several ways.
    Without(usize),
    /// That of another state of A's.
    Others,
}

/// A change to the document besides, so that an acceptance can show what it is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Besides {
    Nothing,
    Field(usize),
}

enum Tried {
    /// A fresh state could not be altered in this way.
    Impossible,
    Accepted {
        played: Box<Played>,
        seen: bool,
    },
    Refused(String),
    Crashed(String),
    AskedAgain,
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
    let issued = own.rounds[flow.round].state.clone().unwrap_or_default();
    if !Envelope::read(&issued).is_some_and(|envelope| envelope.is_signed()) {
        let detail = "no signature is seen in the state that could be cut off, or exchanged for another one's";
        return Err(Halt::skipped(Reason::NoSignatureSeen, detail));
    }
    if let Some(recipe) = Recipe::of(&issued) {
        let detail =
            format!("what stands beside the document is its {}, which takes no key: no signature", recipe.name());
        return Err(Halt::skipped(Reason::NoSignatureSeen, detail));
    }
    let scene = Scene { flow, own, random: &random };
    let without = seams::without_signature(&issued).into_iter().enumerate();
    let seams: Vec<(Seam, &str)> = std::iter::once((Seam::Others, "the signature of another state"))
        .chain(without.map(|(index, (told, _))| (Seam::Without(index), told)))
        .collect();
    let (mut refused, mut crashed, mut asked_again) = (None, None, false);
    for (seam, told) in seams {
        match scene.attempt(trial, seam, Besides::Nothing).await? {
            Tried::Impossible => {}
            Tried::Refused(said) => refused = Some(said),
            Tried::Crashed(said) => crashed = Some(said),
            Tried::AskedAgain => asked_again = true,
            Tried::Accepted { played, .. } => {
                if !matches!(scene.attempt(trial, seam, Besides::Nothing).await?, Tried::Accepted { .. }) {
                    let detail = format!("a state with {told} was accepted once, and once not");
                    return Err(Halt::errored(Reason::Unstable, detail));
                }
                flow.still_refuses(trial, own).await?;
                let worth = scene.worth(trial, seam, &issued).await?;
                let (severity, shown) = match &worth {
                    Some(field) => {
                        (CHECK.severity, format!("; so was one with {field} changed besides, and the change came back"))
                    }
                    None => (Severity::Medium, "; no change besides came back in an answer".to_owned()),
                };
                let detail = format!(
                    "a state with {told} was accepted, while the untouched one is accepted and a random one is not{shown}"
                );
                let mut row = Row::confirmed(&controls, &entry, Reason::StateNotAuthenticated, severity, detail);
                row.facts.insert("alteration".into(), told.into());
                row.facts.extend(worth.map(|field| ("changed_besides".to_owned(), field.into())));
                row.facts.insert("answer".into(), trial.clean(&played.answer.said()).into());
                row.story = story(&[own, &random, &played]);
                return Ok(row);
            }
        }
    }
    scene.spellings(trial, &issued, observations).await?;
    flow.still_works(trial).await?;
    if let Some(said) = &crashed {
        let text =
            format!("{entry}: a state without a signature of its own made the server fall over: {}", trial.clean(said));
        observations.push(Observation { id: Reason::RefusedByCrash.slug(), text });
    }
    if let Some(said) = refused {
        let detail = format!("states without a signature of their own are refused: {}", trial.clean(&said));
        let mut row = Row::refuted(&controls, &entry, Reason::StateIntegrityHeld, detail);
        row.story = story(&[own, &random]);
        return Ok(row);
    }
    if asked_again {
        let text = format!(
            "{entry}: states without a signature of their own were neither accepted nor refused: the server asked again"
        );
        observations.push(Observation { id: Reason::BadStateIgnored.slug(), text: text.clone() });
        return Ok(Row::refuted(&controls, &entry, Reason::BadStateIgnored, text));
    }
    Err(Halt::errored(Reason::Unclear, "no state without a signature of its own was refused by a decision"))
}

struct Scene<'s> {
    flow: &'s Flow,
    own: &'s Played,
    random: &'s Played,
}

impl Scene<'_> {
    async fn attempt(&self, trial: &mut Trial<'_, '_>, seam: Seam, besides: Besides) -> Result<Tried, Halt> {
        let Self { flow, own, random } = self;
        let issued = flow.wait_afresh(trial, Who::A).await?;
        let state = issued.state()?.to_owned();
        let spliced = match seam {
            Seam::Without(index) => seams::without_signature(&state).into_iter().nth(index).map(|(_, state)| state),
            Seam::Others => seams::crossed(&state, flow.wait_afresh(trial, Who::A).await?.state()?),
        };
        let Some(spliced) = spliced else { return Ok(Tried::Impossible) };
        let mut mutation = None;
        if let Besides::Field(index) = besides {
            let canary = trial.canary(Who::A);
            mutation = fields::mutations(&spliced, &canary).into_iter().nth(index);
            if mutation.is_none() {
                return Ok(Tried::Impossible);
            }
        }
        let presented = mutation.as_ref().map_or(spliced, |mutation| mutation.state.clone());
        let forged = issued.with_state(presented.clone());
        let played = flow.present(trial, "spliced-state", Who::A, &forged, &issued.call).await?;
        let seen = mutation.as_ref().zip(played.answer.result()).is_some_and(|(mutation, result)| {
            let after = emitted::text_of(&mutation.after);
            let honest = own.answer.result();
            let is_word = after.len() >= SHORTEST_SHOWN
                && marker::find_name(result, &after, std::slice::from_ref(&presented)).is_some()
                && honest.is_some_and(|honest| marker::find_name(honest, &after, &[]).is_none());
            is_word || honest.is_some_and(|honest| likeness::became(honest, result, &mutation.before, &mutation.after))
        });
        match played.outcome(flow, own) {
            Outcome::Accepted => Ok(Tried::Accepted { played: Box::new(played), seen }),
            Outcome::Refused(refusal) if refusal.reads_like_a_crash() => Ok(Tried::Crashed(refusal.to_string())),
            Outcome::Refused(refusal) => Ok(Tried::Refused(refusal.to_string())),
            Outcome::AskedAgain => Ok(Tried::AskedAgain),
            Outcome::Unlike(said) if played.is_a_no(flow, [own, random]) => Ok(Tried::Refused(said)),
            Outcome::Unlike(_) if seen => Ok(Tried::Accepted { played: Box::new(played), seen }),
            Outcome::Unlike(said) => {
                Err(Halt::errored(Reason::Unclear, format!("a complete result unlike any honest one: {said}")))
            }
            Outcome::Unclear(said) => Err(played.answer.lost().unwrap_or_else(|| Halt::errored(Reason::Unclear, said))),
        }
    }

    /// A field that can be changed as well, and whose changed value comes back in the answer.
    async fn worth(&self, trial: &mut Trial<'_, '_>, seam: Seam, issued: &str) -> Result<Option<String>, Halt> {
        let canary = trial.canary(Who::A);
        for (index, mutation) in fields::mutations(issued, &canary).into_iter().enumerate().take(MOST_FIELDS) {
            match self.attempt(trial, seam, Besides::Field(index)).await {
                Ok(Tried::Accepted { seen: true, .. }) => return Ok(Some(mutation.field.join(" > "))),
                Err(halt) if halt.is_final() => return Err(halt),
                _ => {}
            }
        }
        Ok(None)
    }

    /// The same state in other words: nobody gains by it, and whoever tells states apart by their text should know.
    async fn spellings(
        &self,
        trial: &mut Trial<'_, '_>,
        issued: &str,
        observations: &mut Vec<Observation>,
    ) -> Result<(), Halt> {
        for (index, (told, _)) in seams::spelt_otherwise(issued).into_iter().enumerate() {
            let waiting = self.flow.wait_afresh(trial, Who::A).await?;
            let Some((_, state)) = seams::spelt_otherwise(waiting.state()?).into_iter().nth(index) else { continue };
            let forged = waiting.with_state(state);
            let played = self.flow.present(trial, "other-spelling", Who::A, &forged, &waiting.call).await?;
            if played.outcome(self.flow, self.own) == Outcome::Accepted {
                let text = format!("{}: a state is also accepted with {told}", self.flow.entry());
                observations.push(Observation { id: "state-spelt-otherwise", text });
            }
        }
        Ok(())
    }
}

const MOST_FIELDS: usize = 12;
const SHORTEST_SHOWN: usize = 4;
