//! `handle-lost`: does A's handle serve A on another connection, and on each replica that the operator names? A fault of
//! availability: nobody else gains.

use super::{
    handles::{Minted, mint, most_allowed, use_handle, used_up, way_in},
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
    target::{Address, Target},
    trial::{Answer, Trial},
    verdict::{ControlPlan, Controls, Halt, Judgement, Observation, Reason, Row, Severity},
};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "handle-lost",
    title: "Handles are lost on another connection",
    claim: "A handle is refused to its owner on another connection, or by another replica, than the one it was minted on.",
    spec: "Servers SHOULD NOT require that a client reuse the same connection or process to perform related operations.",
    spec_url: "https://modelcontextprotocol.io/specification/2026-07-28/basic",
    help: include_str!("lost.md"),
    level: Level::Should,
    severity: Severity::Low,
    cwe: &[672],
    cvss: &[cvss::LOST],
    owasp: &[owasp::API8],
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
        let detail = "over stdio the process is the connection: whatever is kept in memory ends with it";
        return Err(Halt::skipped(Reason::NeedsHttp, detail));
    }
    let (rows, observations) = kinds::of_each(trial, of_kind).await?;
    Ok(Judgement::over(rows, observations))
}

async fn of_kind(trial: &mut Trial<'_, '_>, kind: &Kind, _: &mut Vec<Observation>) -> Result<Vec<Row>, Halt> {
    // On a connection that is kept: what was minted on it may serve nowhere else.
    let address = trial.session.run.address.clone();
    let mut kept = trial.session.connect(&address).await?;
    std::mem::swap(&mut trial.session.target, &mut kept);
    let entry = way_in(trial, kind).await;
    std::mem::swap(&mut trial.session.target, &mut kept);
    Target::close(kept).await;
    let entry = entry?;
    let mut rows = Vec::new();
    let replicas = trial.session.run.replicas.iter().cloned().map(Address::Http);
    let places: Vec<Address> = std::iter::once(trial.session.run.address.clone()).chain(replicas).collect();
    for (at, place) in places.into_iter().enumerate() {
        let name = match at {
            0 => format!("{entry} on another connection"),
            _ => format!("{entry} at {}", place.shown()),
        };
        let outcome = of_place(trial, kind, &entry, &name, &place).await;
        let over = outcome.as_ref().is_err_and(|halt| at == 0 && halt.is_final());
        rows.push(outcome.unwrap_or_else(|halt| Row::halted(&name, halt)));
        if over {
            break;
        }
    }
    Ok(rows)
}

async fn of_place(
    trial: &mut Trial<'_, '_>,
    kind: &Kind,
    entry: &Entry,
    name: &str,
    place: &Address,
) -> Result<Row, Halt> {
    let mut refusals = Vec::new();
    let mut proof: Option<(Controls, Vec<usize>)> = None;
    for _ in 0..TWICE {
        let address = trial.session.run.address.clone();
        let (mut here, mut there) = (trial.session.connect(&address).await?, trial.session.connect(place).await?);
        let seen = both(trial, kind, entry, &mut here, &mut there).await;
        Target::close(here).await;
        Target::close(there).await;
        let (seen, controls, story) = seen?;
        refusals.extend(seen);
        proof.get_or_insert((controls, story));
    }
    let Some((controls, story)) = proof else {
        return Err(Halt::errored(Reason::ProbeBug, "nothing was tried"));
    };
    let mut row = match &refusals[..] {
        [] => {
            let detail = "A's handle serves A there as it does where it was minted".to_owned();
            Row::refuted(&controls, name, Reason::FollowsItsOwner, detail)
        }
        [first, _, ..] => {
            let said = trial.clean(first);
            let detail =
                format!("A's handle is refused to A there, time after time, and serves A where it was minted: {said}");
            Row::confirmed(&controls, name, Reason::Lost, CHECK.severity, detail)
        }
        [_] => return Err(Halt::errored(Reason::Unstable, "A's handle was taken there once, and once not")),
    };
    row.story = story;
    Ok(row)
}

/// Mints and uses in one place, uses in the other, and uses in the first again: the refusal in the other, if it is one.
async fn both(
    trial: &mut Trial<'_, '_>,
    kind: &Kind,
    entry: &Entry,
    here: &mut Target,
    there: &mut Target,
) -> Result<(Option<String>, Controls, Vec<usize>), Halt> {
    let mut plan = ControlPlan::default();
    std::mem::swap(&mut trial.session.target, here);
    let minted = own(trial, kind, entry, "owner-use").await;
    std::mem::swap(&mut trial.session.target, here);
    let (a, owner) = minted?;
    plan.accepts(&owner, |said| Halt::skipped(Reason::ControlFailed, format!("A could not use its own: {said}")))?;

    std::mem::swap(&mut trial.session.target, there);
    let seen = elsewhere(trial, kind, entry, &a).await;
    std::mem::swap(&mut trial.session.target, there);
    let Elsewhere { unissued, subject, live, presented } = seen?;
    plan.accepts(&live, |said| {
        Halt::skipped(Reason::ControlFailed, format!("A could not use a handle that it got there: {said}"))
    })?;
    plan.presents_unissued(&unissued, &[presented])?;

    std::mem::swap(&mut trial.session.target, here);
    let again = use_handle(trial, "owner-again", Who::A, entry, &a.handle).await;
    std::mem::swap(&mut trial.session.target, here);
    let (again, _) = again?;
    if again.disposition != Disposition::Accepted {
        return Err(used_up(trial, kind, entry, &again).await?);
    }
    let refusal = match &subject.disposition {
        Disposition::Refused(refusal) if refusal.reads_like_a_crash() || refusal.reads_like_an_outage() => {
            return Err(Halt::errored(Reason::Unclear, format!("refused as if by a crash or a limit: {refusal}")));
        }
        Disposition::Refused(refusal) => Some(refusal.to_string()),
        Disposition::Accepted => subject.is_unlike(&owner).then(|| subject.said()),
        _ => return Err(subject.unclear().unwrap_or_else(|| Halt::errored(Reason::Unclear, subject.said()))),
    };
    let story = [&a.answer, &owner, &live, &unissued, &subject, &again].map(|answer| answer.step).to_vec();
    Ok((refusal, plan.hold()?, story))
}

async fn own(trial: &mut Trial<'_, '_>, kind: &Kind, entry: &Entry, step: &str) -> Result<(Minted, Answer), Halt> {
    let minted = mint(trial, Who::A, kind).await??;
    let (used, _) = use_handle(trial, step, Who::A, entry, &minted.handle).await?;
    Ok((minted, used))
}

/// What A meets at another place.
struct Elsewhere {
    unissued: Answer,
    subject: Answer,
    live: Answer,
    presented: String,
}

async fn elsewhere(trial: &mut Trial<'_, '_>, kind: &Kind, entry: &Entry, a: &Minted) -> Result<Elsewhere, Halt> {
    let (own, live) = own(trial, kind, entry, "own-use-elsewhere").await?;
    let taken = [a.handle.clone(), own.handle.clone()];
    let forged = forge::handle(&a.handle, &own.handle, &taken, most_allowed(trial, kind));
    trial.shorten(&forged);
    let (unissued, _) = use_handle(trial, "forged-handle", Who::A, entry, &forged).await?;
    let (subject, _) = use_handle(trial, "subject", Who::A, entry, &a.handle).await?;
    Ok(Elsewhere { unissued, subject, live, presented: emitted::text_of(&forged) })
}

/// A finding must not be a fluke.
const TWICE: usize = 2;
