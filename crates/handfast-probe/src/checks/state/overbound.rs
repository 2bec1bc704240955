//! `state-overbound`: does A's state still serve A, once A has a new token? A fault of availability: nobody else gains.

use crate::{
    check::{Check, Level, Running},
    checks::{self, apart},
    cvss,
    disposition::Disposition,
    identity::Who,
    marker::Naming,
    owasp,
    trial::Trial,
    verdict::{Halt, Observation, Reason, Row, Severity},
};

use super::{
    flow::{Flow, Outcome, Played, story},
    loan::{Waiting, soft},
    rounds::{self, Rounds},
};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "state-overbound",
    title: "States are bound to more than their principal",
    claim: "A requestState is refused to the principal that it was issued to as soon as that one comes with a new access token.",
    spec: "To prevent replay, servers SHOULD include the following inside the integrity-protected `requestState` payload and verify each on receipt: the authenticated principal, rejecting state presented by a different principal.",
    spec_url: "https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr",
    help: include_str!("overbound.md"),
    level: Level::Should,
    severity: Severity::Low,
    cwe: &[1220],
    cvss: &[cvss::LOST],
    owasp: &[owasp::API2, owasp::MCP07],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = rounds::judge(trial, Rounds::All, of_round).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

async fn of_round(trial: &mut Trial<'_, '_>, flow: &Flow, own: &Played, _: &mut Vec<Observation>) -> Result<Row, Halt> {
    let entry = flow.entry();
    let identities = trial.session.target.identities();
    let [old, new] = [Who::A, Who::NewToken].map(|who| identities.of(who).credential());
    if !identities.has(Who::NewToken) || old == new {
        let detail = "the profile names no new token of A's (`[identities.a-new-token]`)";
        return Err(Halt::skipped(Reason::NeedsIdentityNewToken, detail));
    }
    let (controls, random) = flow.controls(trial, own).await?;
    if let Some(row) = flow.unconsulted(&controls) {
        return Ok(row);
    }
    let live = live(trial, flow, own).await?;
    let mut refused: Vec<(String, Played)> = Vec::new();
    for _ in 0..TWICE {
        let issued = flow.wait_afresh(trial, Who::A).await?;
        let played = flow.present(trial, "subject", Who::NewToken, &issued, &issued.call).await?;
        let said = match played.outcome(flow, own) {
            Outcome::Accepted if refused.is_empty() => {
                let detail = format!("with a new token A goes on as before: {}", trial.clean(&played.answer.said()));
                let mut row = Row::refuted(&controls, &entry, Reason::FollowsItsOwner, detail);
                row.story = story(&[own, &random, &played]);
                return Ok(row);
            }
            Outcome::Accepted => {
                let detail = "A's state was refused with the new token once, and once not";
                return Err(Halt::errored(Reason::Unstable, detail));
            }
            Outcome::Refused(refusal) => refusal.to_string(),
            Outcome::AskedAgain => "the server asked again".to_owned(),
            Outcome::Unlike(said) if played.is_a_no(flow, [own, &random]) => said,
            Outcome::Unlike(said) => {
                return Err(Halt::errored(Reason::Unclear, format!("a complete result unlike any honest one: {said}")));
            }
            Outcome::Unclear(said) => {
                return Err(played.answer.lost().unwrap_or_else(|| Halt::errored(Reason::Unclear, said)));
            }
        };
        still_good(trial, flow, &issued).await?;
        refused.push((said, played));
    }
    // The refusals may have been a limit on the new token.
    let again = self::live(trial, flow, own).await?;
    let (said, first) = &refused[0];
    let detail = format!(
        "with a new token A carries out flows of its own, and is refused the state that A had: {}",
        trial.clean(said)
    );
    let mut row = Row::confirmed(&controls, &entry, Reason::Overbound, CHECK.severity, detail);
    row.story = story(&[own, &random, &live, first, &again]);
    Ok(row)
}

/// A's own request, carried out from its beginning with the new token: then only the state can make a difference.
async fn live(trial: &mut Trial<'_, '_>, flow: &Flow, own: &Played) -> Result<Played, Halt> {
    let of_a = flow.wait_afresh(trial, Who::A).await?;
    let Some(live) = soft(flow.carry_out(trial, Who::NewToken, &of_a.call).await)?
        .filter(|live| live.answer.disposition == Disposition::Accepted)
    else {
        let whole = soft(flow.play(trial, Who::NewToken, "renewed-own-flow", None).await)?;
        let works = whole.is_some_and(|played| played.answer.disposition == Disposition::Accepted);
        let detail = match works {
            true => {
                "A's request is refused with the new token before there is any state (`handle-overbound` looks at that)"
            }
            false => "with the new token no flow comes to its end",
        };
        return Err(Halt::skipped(Reason::SecondIdentityNotLive, detail));
    };
    if let Naming::Apart { a, b, .. } = apart::named(trial, &own.answer, &live.answer) {
        let detail = format!("the new token is of another user: `{}` and not `{}`", trial.clean(&b), trial.clean(&a));
        return Err(Halt::skipped(Reason::NeedsIdentityNewToken, detail));
    }
    Ok(live)
}

/// What was refused to the new token is accepted from the old one.
async fn still_good(trial: &mut Trial<'_, '_>, flow: &Flow, issued: &Waiting) -> Result<(), Halt> {
    let after = flow.present(trial, "owner-after", Who::A, issued, &issued.call).await?;
    if after.answer.disposition == Disposition::Accepted {
        return Ok(());
    }
    let detail = format!(
        "the state that was refused with the new token is refused with the old one as well: {}",
        after.answer.said()
    );
    Err(after.answer.unclear().unwrap_or_else(|| Halt::errored(Reason::ControlFailed, detail)))
}

/// A finding must not be a fluke.
const TWICE: usize = 2;
