//! Entry points that use a handle up (`close_basket`, `checkout`): the same experiment with a fresh handle for each use, and
//! the owner's own use afterwards as the witness.

use super::{
    super::handles::{Handles, mint, most_allowed, use_handle},
    Experiment,
    exchange::Exchange,
    witness::{Seen, says_no},
};
use crate::{
    discovery::{Entry, emitted},
    disposition::Disposition,
    forge,
    identity::Who,
    trial::Trial,
    verdict::{ControlPlan, Halt, Observation, Reason, Row, Severity},
};

/// Tests one entry point, minting for each use.
pub(super) async fn of_entry(
    trial: &mut Trial<'_, '_>,
    experiment: &Experiment<'_>,
    entry: &Entry,
    observations: &mut Vec<Observation>,
) -> Result<Row, Halt> {
    let (kind, reads) = (experiment.kind, experiment.reads);
    let mut plan = ControlPlan::default();
    let failed = |who: &str, said: String| {
        Halt::errored(Reason::ControlFailed, format!("{who} could not use a fresh handle: {said}"))
    };

    let untouched = mint(trial, Who::A, kind).await??;
    let (owner, _) = use_handle(trial, "owner-use", Who::A, entry, &untouched.handle).await?;
    plan.accepts(&owner, |said| failed("A", said))?;
    let b = mint(trial, Who::B, kind).await??;
    let (own, _) = use_handle(trial, "stranger-own-use", Who::B, entry, &b.handle).await?;
    plan.accepts(&own, |said| failed("B", said))?;

    let a = mint(trial, Who::A, kind).await??;
    let forged = forge::handle(
        &a.handle,
        &b.handle,
        &[a.handle.clone(), b.handle.clone(), untouched.handle.clone()],
        most_allowed(trial, kind),
    );
    trial.shorten(&forged);
    let (unissued, _) = use_handle(trial, "forged-handle", Who::B, entry, &forged).await?;
    plan.presents_unissued(&unissued, &[emitted::text_of(&forged)])?;
    let controls = plan.hold()?;

    let (subject, _) = use_handle(trial, "subject", Who::B, entry, &a.handle).await?;
    let (after, _) = use_handle(trial, "owner-again", Who::A, entry, &a.handle).await?;
    if let Some(halt) = after.unclear() {
        return Err(halt);
    }
    let witness = experiment.witness(&a, &owner, [&own, &unissued]);
    let gone = matches!(after.disposition, Disposition::Refused(_)) || says_no(&after, &owner, &unissued, reads);
    let still = after.disposition == Disposition::Accepted && !gone;
    let seen = match witness.look(&subject)? {
        // It is gone, and not by B: whether B had been let in is not known.
        Seen::Accepted if gone && says_no(&subject, &own, &unissued, reads) => return Err(failed("A", after.said())),
        Seen::Accepted if gone => {
            let marker = "its effect: A's own first use of the handle is refused after B's".to_owned();
            Seen::Marked { marker, severity: Severity::High }
        }
        Seen::Refused if !still => return Err(failed("A", after.said())),
        seen => seen,
    };
    let handles = Handles { a, b, forged };
    let exchange =
        Exchange { entry, handles: &handles, controls: &controls, answers: [&owner, &own, &unissued, &subject], reads };
    Ok(exchange.row(trial, seen, observations))
}
