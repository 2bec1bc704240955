//! `handle-outlives-expiry`: does a handle still work when the time is over that the server itself gives it?

use super::{
    endings,
    handles::{unissued, use_handle},
    kinds,
    showing::{After, Showing, after},
};
use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    discovery::{Kind, emitted},
    identity::Who,
    owasp,
    trial::Trial,
    verdict::{ControlPlan, Halt, Judgement, Observation, Reason, Row, Severity},
};
use std::time::Duration;

/// The check.
pub(super) static CHECK: Check = Check {
    id: "handle-outlives-expiry",
    title: "Handles work after their time is over",
    claim: "A handle still opens its object when the lifetime that the server states for it is over.",
    spec: "Avoid predictable or sequential identifiers that could be guessed by an attacker. Expiring handles can also reduce the risk.",
    spec_url: "https://modelcontextprotocol.io/docs/2026-07-28/tutorials/security/security_best_practices",
    help: include_str!("outlives_expiry.md"),
    level: Level::Hardening,
    severity: Severity::Medium,
    cwe: &[613, 672],
    cvss: &[cvss::UNSHOWN],
    owasp: &[owasp::API2, owasp::MCP07],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = kinds::of_each(trial, of_kind).await.map(|(rows, seen)| Judgement::over(rows, seen));
        checks::finish(trial, &CHECK, outcome).await
    })
}

async fn of_kind(
    trial: &mut Trial<'_, '_>,
    kind: &Kind,
    observations: &mut Vec<Observation>,
) -> Result<Vec<Row>, Halt> {
    if let Some(lifetime) = endings::lifetime_of(trial, kind, None) {
        endings::wait_for(trial, lifetime)?;
    }
    let mut plan = ControlPlan::default();
    let (showing, owner) = Showing::find(trial, kind, &mut plan, observations).await?;
    let Some(lifetime) = endings::lifetime_of(trial, kind, Some(&owner.object.answer)) else {
        let detail = format!("neither the description of {} nor its result says how long a handle lives", kind.mint);
        return Err(Halt::skipped(Reason::NoLifetimeStated, detail));
    };
    let wait = endings::wait_for(trial, lifetime)?;
    let entry = showing.entry.to_string();
    let objects = [showing.mint(trial, kind, Who::A).await?, showing.mint(trial, kind, Who::A).await?];
    let forged = unissued(trial, kind, &objects[0].handle, &[]);
    trial.pause(wait).await?;

    let (mut served, mut steps, mut said) = (Vec::new(), vec![owner.view.step], String::new());
    for object in &objects {
        let answer = showing.show(trial, "subject", Who::A, &object.handle).await?;
        steps.extend([object.answer.step, answer.step]);
        said = answer.said();
        match after(object, &answer, &owner.view)? {
            After::Served(marker) => served.push((object, marker)),
            After::Told => {
                let text = format!("{entry}: after its time the object is still shown, in other words than before");
                observations.push(Observation { id: "ended-object-shown", text });
            }
            After::Refused => {}
        }
        if served.is_empty() {
            break;
        }
        // What is only cleared away from time to time may be gone a little later.
        trial.pause(LATER).await?;
    }
    let (unminted, _) = use_handle(trial, "forged-handle", Who::A, &showing.entry, &forged).await?;
    plan.presents_unissued(&unminted, &[emitted::text_of(&forged)])?;
    let controls = plan.hold()?;
    showing.still_shows(trial, kind).await?;

    let lived = format!("{} ms after it was minted for {} ms", wait.as_millis(), lifetime.as_millis());
    let mut row = match &served[..] {
        [(object, _), ..] if object.marked(&unminted).is_some() => {
            let detail = "a handle that nobody minted brings A's object as well";
            Row::halted(&entry, Halt::skipped(Reason::HandleWitnessUnusable, detail))
        }
        [(_, marker), _] => {
            let detail = trial.clean(&format!("A's handle still brings {marker}, {lived}"));
            Row::confirmed(&controls, &entry, Reason::EndedHandleServed, CHECK.severity, detail)
        }
        _ => {
            let detail = format!("A's handle is refused, {lived}: {}", trial.clean(&said));
            Row::refuted(&controls, &entry, Reason::EndedHandleRefused, detail)
        }
    };
    row.facts.insert("lifetime_ms".into(), u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX).into());
    row.story = steps;
    Ok(vec![row])
}

const LATER: Duration = Duration::from_secs(1);
