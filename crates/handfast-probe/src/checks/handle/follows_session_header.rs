//! `handle-follows-session-header`: does it matter to a handle which `Mcp-Session-Id` a request of the stateless revision
//! carries?

use handfast_wire::headers;
use serde_json::Value;

use super::{
    handles::{Minted, unissued, use_handle},
    kinds,
    showing::Showing,
};
use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    discovery::{self, Kind, emitted},
    disposition::Disposition,
    identity::Who,
    owasp, random,
    target::{Era, session::Issues},
    trial::{Answer, Trial},
    verdict::{ControlPlan, Halt, Judgement, Observation, Reason, Row, Severity},
};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "handle-follows-session-header",
    title: "Handles depend on a session header",
    claim: "What a handle opens depends on the Mcp-Session-Id of the request, which the stateless revision does not have.",
    spec: "A server that supports only this revision and receives such traffic from an older client SHOULD respond as follows: … An `Mcp-Session-Id` header on a request: ignore it, and do not mint or echo session IDs.",
    spec_url: "https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http",
    help: include_str!("follows_session_header.md"),
    level: Level::Should,
    severity: Severity::Medium,
    cwe: &[642, 384],
    cvss: &[cvss::TOUCHED, cvss::LOST],
    owasp: &[owasp::API2, owasp::API8],
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
        return Err(Halt::skipped(Reason::NeedsHttp, "over stdio there are no headers"));
    }
    let (rows, observations) = kinds::of_each(trial, of_kind).await?;
    Ok(Judgement::over(rows, observations))
}

/// Ways to use a handle: under which header it was minted, and under which it is used.
type Way<'w> = (Option<&'w str>, Option<&'w str>);

async fn of_kind(
    trial: &mut Trial<'_, '_>,
    kind: &Kind,
    observations: &mut Vec<Observation>,
) -> Result<Vec<Row>, Halt> {
    if *trial.session.target.era() != Era::Modern {
        let text = "the server does not speak the stateless revision: there the header means a session";
        return Err(Halt::skipped(Reason::NotStateless, text));
    }
    let mut plan = ControlPlan::default();
    let (showing, owner) = Showing::find(trial, kind, &mut plan, observations).await?;
    let entry = showing.entry.to_string();
    let forged = unissued(trial, kind, &owner.object.handle, &[]);
    let (unminted, _) = use_handle(trial, "forged-handle", Who::A, &showing.entry, &forged).await?;
    plan.presents_unissued(&unminted, &[emitted::text_of(&forged)])?;
    let controls = plan.hold()?;

    let has_sessions = matches!(trial.session.target.issues_sessions().await, Issues::Ids(_));
    let (one, other) = (made_up(), made_up());
    let mut issued = None;
    let ways: [Way<'_>; 2] = [(None, Some(&one)), (Some(&one), Some(&other))];
    let mut rows = Vec::new();
    for (minted_under, used_under) in ways {
        let object = match showing.mint_under(trial, kind, minted_under).await {
            Ok(object) => object,
            Err(halt) if halt.is_final() || rows.is_empty() => return Err(halt),
            // What is refused under any such header is told already.
            Err(_) => break,
        };
        let other_object = match showing.mint_under(trial, kind, used_under).await {
            Err(halt) if halt.is_final() => return Err(halt),
            minted => minted.ok(),
        };
        // By turns, twice: only the header differs.
        let mut seen = Vec::new();
        for session in [minted_under, used_under, minted_under, used_under, minted_under] {
            let step = if session == minted_under { "owner-use" } else { "subject" };
            let answer = showing.show_under(trial, step, &object.handle, session).await?;
            issued = issued.or_else(|| trial.session.target.issued().map(str::to_owned));
            if let Some(halt) = answer.unclear() {
                return Err(halt);
            }
            seen.push(answer);
            // Where the answer is the same at once there is no difference to be repeated.
            if seen.len() == 2 && outcome(&object, other_object.as_ref(), &seen[1]) == Outcome::Own {
                break;
            }
        }
        let outcomes: Vec<Outcome> =
            seen.iter().map(|answer| outcome(&object, other_object.as_ref(), answer)).collect();
        let subjects: Vec<Outcome> = outcomes.iter().copied().skip(1).step_by(2).collect();
        let owners = outcomes.iter().step_by(2).all(|outcome| *outcome == Outcome::Own);
        let how = match minted_under {
            None => "without the header is, with an Mcp-Session-Id that nobody issued,",
            Some(_) => "under one Mcp-Session-Id is under another one",
        };
        let said = trial.clean(&seen[1].said());
        let mut row = match (owners, &subjects[..]) {
            (_, [Outcome::Own]) => continue,
            // What can be used once cannot be used under two headers.
            (false, _) => Row::halted(
                &entry,
                Halt::skipped(
                    Reason::ControlFailed,
                    "A could not use its own handle under the header of its minting, again and again",
                ),
            ),
            (true, [Outcome::Another, Outcome::Another]) => {
                let detail = format!("A's handle minted {how} that of another object: {said}");
                Row::confirmed(&controls, &entry, Reason::SessionHeaderHeeded, Severity::Medium, detail)
            }
            // Whoever speaks the older revisions as well may take the header for one of theirs.
            (true, [Outcome::Nothing, Outcome::Nothing]) if has_sessions => {
                let text = format!(
                    "the server has sessions of the older revisions, and refuses what names none of them: {said}"
                );
                Row::halted(&entry, Halt::skipped(Reason::NotStateless, text))
            }
            (true, [Outcome::Nothing, Outcome::Nothing]) => {
                let detail = format!("A's handle minted {how} worth nothing: {said}");
                Row::confirmed(&controls, &entry, Reason::SessionHeaderHeeded, Severity::Low, detail)
            }
            (true, _) => {
                Row::halted(&entry, Halt::errored(Reason::Unstable, "the same request was answered in several ways"))
            }
        };
        let header = used_under.map(|_| "made up, and never issued");
        row.facts.insert("session_header".into(), header.into());
        row.story = [owner.view.step].into_iter().chain(seen.iter().map(|answer| answer.step)).collect();
        rows.push(row);
    }
    if let Some(id) = issued {
        let text = format!(
            "{entry}: an answer carries an Mcp-Session-Id ({}), which this revision neither mints nor echoes",
            if id == one || id == other { "the one that the request made up" } else { "one of the server's" }
        );
        observations.push(Observation { id: "session-id-minted", text });
    }
    if rows.is_empty() {
        let detail = "A's handle opens the same whatever Mcp-Session-Id comes with it".to_owned();
        rows.push(Row::refuted(&controls, &entry, Reason::SessionHeaderIgnored, detail));
    }
    Ok(rows)
}

/// What an answer shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Own,
    Another,
    Nothing,
}

fn outcome(object: &Minted, other: Option<&Minted>, answer: &Answer) -> Outcome {
    let accepted = answer.disposition == Disposition::Accepted;
    match () {
        () if accepted && object.marked(answer).is_some() => Outcome::Own,
        () if accepted && other.is_some_and(|other| other.marked(answer).is_some()) => Outcome::Another,
        () => Outcome::Nothing,
    }
}

/// A session id that nobody issued.
fn made_up() -> String {
    random::hex(16)
}

impl Showing {
    /// A fresh object of A's, minted under a session header.
    async fn mint_under(&self, trial: &mut Trial<'_, '_>, kind: &Kind, session: Option<&str>) -> Result<Minted, Halt> {
        trial.session.target.add_header(headers::SESSION_ID, session);
        let minted = self.mint(trial, kind, Who::A).await;
        trial.session.target.add_header(headers::SESSION_ID, None);
        minted
    }

    async fn show_under(
        &self,
        trial: &mut Trial<'_, '_>,
        step: &str,
        handle: &Value,
        session: Option<&str>,
    ) -> Result<Answer, Halt> {
        let made = discovery::entry_call(trial, Who::A, &self.entry, handle).await?;
        let (call, _) = made
            .map_err(|reason| Halt::skipped(Reason::ControlFailed, format!("no arguments could be made: {reason}")))?;
        trial.session.target.add_header(headers::SESSION_ID, session);
        let answer = trial.complete(step, Who::A, &call).await;
        trial.session.target.add_header(headers::SESSION_ID, None);
        answer
    }
}
