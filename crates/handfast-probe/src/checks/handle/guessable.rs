//! `handle-guessable`: can the next handle be foretold? Which it will be is said first; then B mints one. What a guess is
//! worth is tried as well: where handles are bound to their owner, it is worth nothing.

use super::{
    handles::{Minted, mint, most_allowed, use_handle, way_in},
    kinds,
};
use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    discovery::{Entry, Kind, emitted},
    disposition::Disposition,
    forge,
    identity::Who,
    owasp,
    predict::{self, Choice, Finding, Foretold, Id, ROUNDS, SAMPLE, Source},
    trial::{Answer, Trial},
    verdict::{ControlPlan, Controls, Halt, Judgement, Observation, Reason, Row, Severity},
};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "handle-guessable",
    title: "Handles can be foretold",
    claim: "The handle that the next user will be given can be foretold, and serves whoever foretells it.",
    spec: "MCP servers SHOULD use secure, non-deterministic handles generated with secure random number generators. Avoid predictable or sequential identifiers that could be guessed by an attacker.",
    spec_url: "https://modelcontextprotocol.io/docs/2026-07-28/tutorials/security/security_best_practices",
    help: include_str!("guessable.md"),
    level: Level::Should,
    severity: Severity::High,
    cwe: &[340, 330],
    cvss: &[cvss::TAKEN_WITH_LUCK, cvss::UNSHOWN],
    owasp: &[owasp::MCP07, owasp::API1],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = kinds::of_each(trial, of_kind).await;
        let outcome = outcome.map(|(rows, observations)| Judgement::over(rows, observations));
        checks::finish(trial, &CHECK, outcome).await
    })
}

/// Handles of one kind.
struct Handles<'k>(&'k Kind);

impl Source for Handles<'_> {
    async fn next(&self, trial: &mut Trial<'_, '_>, who: Who) -> Result<Id, Halt> {
        let minted = mint(trial, who, self.0).await??;
        Ok(Id { text: emitted::text_of(&minted.handle), sent: minted.answer.sent })
    }
}

async fn of_kind(
    trial: &mut Trial<'_, '_>,
    kind: &Kind,
    observations: &mut Vec<Observation>,
) -> Result<Vec<Row>, Halt> {
    let name = format!("tools/call {}", kind.mint);
    let entry = way_in(trial, kind).await?;
    let (controls, mut story) = controlled(trial, kind, &entry).await?;
    let (ids, finding) = predict::look(trial, &Handles(kind)).await?;
    let mut observe =
        |text: String| observations.push(Observation { id: "handle-foretold", text: format!("{name}: {text}") });
    let mut row = match finding {
        Finding::Foretold(found) => {
            let (row, steps) = worth(trial, kind, &entry, &controls, &name, &found, &mut observe).await?;
            story.extend(steps);
            row
        }
        Finding::Same(_) => {
            let detail = "every handle of one caller is the same, so that there is no next one";
            return Err(Halt::skipped(Reason::HandleWitnessUnusable, detail));
        }
        Finding::OfTheirOwn(how) => {
            observe(format!("the handles of one caller are a series of their own ({how})"));
            let detail = format!("A's own next handle can be named before ({how}), and nobody else's");
            Row::refuted(&controls, &name, Reason::ForetoldForNobody, detail)
        }
        Finding::Unnamed => {
            let detail = "the handles look like a series, but none of the next was named before";
            return Err(Halt::skipped(Reason::HandleWitnessUnusable, detail));
        }
        Finding::NoHabit => {
            let choice = Choice::of(&ids);
            let bits = choice.bits;
            if bits < GUESSED_BITS {
                let detail = format!(
                    "no rule is known by which the handles are made, but the part in which {SAMPLE} of them differ has no more than {bits:.0} bits: they can be tried out"
                );
                return Err(Halt::skipped(Reason::FewIdsPossible, detail));
            }
            if bits < FEWEST_BITS {
                let text = format!(
                    "the part in which {SAMPLE} handles differ has no more than {bits:.0} bits: they can be tried out"
                );
                observations.push(Observation { id: "few-ids-possible", text: format!("{name}: {text}") });
            }
            Row::refuted(&controls, &name, Reason::ForetoldForNobody, choice.untold("handles were minted"))
        }
    };
    row.facts.insert("sample".into(), SAMPLE.into());
    row.story = story;
    Ok(vec![row])
}

/// A's own handle works, and one that nobody minted is refused or remembered.
async fn controlled(trial: &mut Trial<'_, '_>, kind: &Kind, entry: &Entry) -> Result<(Controls, Vec<usize>), Halt> {
    let mut plan = ControlPlan::default();
    let a = mint(trial, Who::A, kind).await??;
    let b = mint(trial, Who::B, kind).await??;
    let (owner, _) = use_handle(trial, "owner-use", Who::A, entry, &a.handle).await?;
    plan.accepts(&owner, |said| Halt::skipped(Reason::ControlFailed, format!("A could not use its own: {said}")))?;
    let taken = [a.handle.clone(), b.handle.clone()];
    let forged = forge::handle(&a.handle, &b.handle, &taken, most_allowed(trial, kind));
    trial.shorten(&forged);
    let (unissued, _) = use_handle(trial, "forged-handle", Who::A, entry, &forged).await?;
    plan.presents_unissued(&unissued, &[emitted::text_of(&forged)])?;
    Ok((plan.hold()?, vec![a.answer.step, owner.step, unissued.step]))
}

/// What a foretold handle is worth: B mints one more and marks it, and A, who could have named it, uses it.
async fn worth(
    trial: &mut Trial<'_, '_>,
    kind: &Kind,
    entry: &Entry,
    controls: &Controls,
    name: &str,
    found: &Foretold,
    observe: &mut dyn FnMut(String),
) -> Result<(Row, Vec<usize>), Halt> {
    let Foretold { how, candidates, .. } = found;
    let named =
        format!("{how}: {ROUNDS} times of {ROUNDS} the handle that B was given was among {candidates} named before");
    let (mut steps, mut guesses) = (Vec::new(), Vec::new());
    for step in ["guess", "guess-again"] {
        // A fresh one each time, and A first: a use may use a handle up.
        let b = mint(trial, Who::B, kind).await??;
        let (guess, _) = use_handle(trial, step, Who::A, entry, &b.handle).await?;
        let (own, _) = use_handle(trial, "stranger-own-use", Who::B, entry, &b.handle).await?;
        steps.extend([b.answer.step, guess.step, own.step]);
        guesses.push(Guess::of(&b, &guess, &own)?);
    }
    let mut row = match &guesses[..] {
        [Guess::Marked(mark), Guess::Marked(_)] => {
            let detail = format!("{named}, and it brings A {mark}");
            Row::confirmed(controls, name, Reason::HandleForetold, Severity::High, trial.clean(&detail))
        }
        [Guess::Served, Guess::Served] => {
            let detail = format!("{named}, and A is served with it, though nothing of B's comes back");
            Row::confirmed(controls, name, Reason::HandleForetold, Severity::Medium, detail)
        }
        [Guess::Refused(said), Guess::Refused(_)] => {
            observe(named.clone());
            let detail = format!("{named}; it is worth nothing, because it is refused to A: {}", trial.clean(said));
            Row::refuted(controls, name, Reason::ForetoldForNobody, detail)
        }
        _ => return Err(Halt::errored(Reason::Unstable, "B's handle was taken from A once, and once not")),
    };
    row.facts.insert("candidates".into(), u64::try_from(*candidates).unwrap_or(u64::MAX).into());
    Ok((row, steps))
}

/// What B's handle brings A, who could have named it.
enum Guess {
    Marked(String),
    Served,
    Refused(String),
}

impl Guess {
    fn of(b: &Minted, guess: &Answer, own: &Answer) -> Result<Self, Halt> {
        if let Some(halt) = guess.unclear().or_else(|| own.unclear()) {
            return Err(halt);
        }
        if let Some((mark, at)) = b.marked(guess) {
            return Ok(Self::Marked(format!("B's canary `{}` at {at}", mark.long)));
        }
        match (&guess.disposition, &own.disposition) {
            (Disposition::Accepted, Disposition::Accepted) if guess.is_unlike(own) => Ok(Self::Refused(guess.said())),
            (Disposition::Accepted, _) => Ok(Self::Served),
            (_, Disposition::Accepted) => Ok(Self::Refused(guess.said())),
            _ => Err(Halt::errored(Reason::ControlFailed, format!("B could not use its own handle: {}", own.said()))),
        }
    }
}

/// Fewer can be tried out, one after the other.
const GUESSED_BITS: f64 = 32.0;
/// As many as the Session Management Cheat Sheet of OWASP asks for.
const FEWEST_BITS: f64 = 64.0;
