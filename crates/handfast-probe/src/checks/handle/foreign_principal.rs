//! `handle-foreign-principal`: is a handle bound to the principal who minted it? The page beside this file says how it is
//! tested; this file is that text, step by step.

mod exchange;
mod one_shot;
mod otherwise;
mod witness;

use super::{
    handles::{Handles, Manner, Minted, in_order, mint_both, use_handle, write_marks},
    identities, kinds,
};
use crate::{
    arguments::{self, Wish},
    check::{Check, Level, Running},
    cvss,
    discovery::{self, Entry, Kind, emitted, names},
    disposition::Disposition,
    identity::Who,
    owasp,
    surface::Tool,
    trial::{Answer, Trial},
    verdict::{ControlPlan, Halt, Judgement, Observation, Reason, Row, Severity, Verdict},
};
use exchange::Exchange;
use witness::{Doubt, Seen, Witness, are_alike, says_no};

/// The check.
pub(super) static CHECK: Check = Check {
    id: "handle-foreign-principal",
    title: "Handles are not bound to their owner",
    claim: "A handle that the server minted for one principal is honoured when another principal presents it.",
    spec: "MUST NOT treat possession of a state handle as authentication.",
    spec_url: "https://modelcontextprotocol.io/docs/2026-07-28/tutorials/security/security_best_practices",
    help: include_str!("foreign_principal.md"),
    level: Level::Must,
    severity: Severity::High,
    cwe: &[639, 863],
    cvss: &[cvss::TAKEN, cvss::TOUCHED],
    owasp: &[owasp::MCP07, owasp::API1, owasp::ASI03],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let mut judgement = judge(trial).await.unwrap_or_else(Judgement::halted);
        judgement.cwe = CHECK.cwe.to_vec();
        judgement.steps = trial.finish();
        judgement
    })
}

async fn judge(trial: &mut Trial<'_, '_>) -> Result<Judgement, Halt> {
    let (rows, observations) = kinds::of_each(trial, of_kind).await?;
    Ok(conclude(rows, observations))
}

/// Entry points where not even the owner's own use worked were not tested. That is an error only where nothing else was.
fn conclude(mut rows: Vec<Row>, mut observations: Vec<Observation>) -> Judgement {
    let is_untested = |row: &Row| row.verdict == Verdict::Skipped && row.reason == Reason::ControlFailed;
    let judged = rows.iter().any(|row| !is_untested(row));
    let untested = rows.iter().filter(|row| is_untested(row)).count();
    // Where every refutation is a doubtful one, what was not tested weighs as much.
    let shown = rows.iter().any(|row| row.verdict == Verdict::Confirmed || row.reason == Reason::HandleBound);
    if judged && (shown || untested == 0) {
        for row in rows.iter().filter(|row| is_untested(row)) {
            observations
                .push(Observation { id: "entry-point-untested", text: format!("{}: {}", row.entry, row.detail) });
        }
    } else {
        for row in rows.iter_mut().filter(|row| is_untested(row)) {
            row.verdict = Verdict::Errored;
        }
    }
    let mut judgement = Judgement::over(rows, observations);
    if judged && untested > 0 {
        judgement.detail =
            format!("{}; {untested} of {} entry points could not be tested", judgement.detail, judgement.rows.len());
    }
    let confirmed = judgement.rows.iter().filter(|row| row.verdict == Verdict::Confirmed).count();
    if confirmed > 1 {
        judgement.detail = format!("{} (and {} more entry points)", judgement.detail, confirmed - 1);
    }
    judgement
}

/// What is known of a kind while its entry points are tested.
struct Experiment<'k> {
    kind: &'k Kind,
    handles: Handles,
    /// How the server names A and B, where it does.
    names: Option<(String, String)>,
    /// An entry point that shows the owner what it planted.
    reader: Option<Entry>,
    /// An entry point that shows the owner something of the object.
    viewer: Option<Entry>,
    /// B sees A's object in a listing, without any handle.
    listed: bool,
    /// The entry point under test only shows something.
    reads: bool,
}

impl Experiment<'_> {
    /// What tells A's object from any other. `innocent` are answers about objects that are not A's.
    fn witness<'w>(&'w self, owner: &'w Minted, owners_view: &'w Answer, innocent: [&'w Answer; 2]) -> Witness<'w> {
        let (names, listed, reads) = (self.names.as_ref(), self.listed, self.reads);
        Witness { owner, owners_view, names, innocent, listed, reads }
    }
}

/// Whether a tool that lists or searches, and takes no handle, shows A's marks to B.
async fn is_listed(trial: &mut Trial<'_, '_>, experiment: &Experiment<'_>) -> Result<bool, Halt> {
    let lists = |tool: &&Tool| {
        let first = names::words(&tool.name).into_iter().next().unwrap_or_default();
        ["list", "search", "find", "browse"].contains(&first.as_str())
            && trial.session.may_call(tool)
            && discovery::required(tool).iter().all(|name| !names::names_a_handle(name))
    };
    let tools: Vec<Tool> = trial.session.surface.tools.iter().filter(lists).take(MOST_LISTINGS).cloned().collect();
    for tool in tools {
        let Ok(arguments) = arguments::synthesise(&tool.input, &Wish::default()) else { continue };
        let answer = trial.call("stranger-listing", Who::B, &discovery::tool_call(&tool, arguments)).await?;
        if experiment.handles.a.marked(&answer).is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn of_kind(
    trial: &mut Trial<'_, '_>,
    kind: &Kind,
    observations: &mut Vec<Observation>,
) -> Result<Vec<Row>, Halt> {
    let names = {
        let handles = mint_both(trial, kind).await?;
        identities::told_apart(trial, kind, &handles).await?
    };
    // Minted last: a server may keep one object for each user alive.
    let handles = mint_both(trial, kind).await?;
    let mut experiment = Experiment { kind, handles, names, reader: None, viewer: None, listed: false, reads: true };
    let mut rows = Vec::new();
    let mut entries = in_order(trial, kind, observations);
    experiment.viewer = entries.iter().find(|(manner, _)| *manner == Manner::Reads).map(|(_, entry)| entry.clone());
    write_marks(trial, Who::A, &mut experiment.handles.a, &entries).await?;
    experiment.listed = is_listed(trial, &experiment).await?;
    if entries.len() > MOST_ENTRIES {
        let text = format!("{} of {} entry points were not tested", entries.len() - MOST_ENTRIES, entries.len());
        rows.push(Row::halted(&format!("tools/call {}", kind.mint), Halt::errored(Reason::CallLimit, text)));
        entries.truncate(MOST_ENTRIES);
    }
    for (manner, entry) in entries {
        experiment.reads = manner == Manner::Reads;
        let row = match of_entry(trial, &mut experiment, &entry, observations).await {
            Ok(row) => row,
            Err(mut halt) => {
                if kind.is_by_profile() && halt.reason == Reason::ControlFailed {
                    halt.verdict = Verdict::Errored;
                }
                let over = halt.is_final();
                rows.push(Row::halted(&entry.to_string(), halt));
                if over {
                    break;
                }
                continue;
            }
        };
        let is_refuted = row.verdict == Verdict::Refuted;
        rows.push(row);
        if is_refuted {
            match otherwise::of_entry(trial, &experiment, &entry).await {
                Ok(further) => rows.extend(further),
                Err(halt) if halt.is_final() => return Err(halt),
                Err(halt) => rows.push(Row::halted(&entry.to_string(), halt)),
            }
        }
    }
    if rows.is_empty() {
        return Err(Halt::skipped(
            Reason::NoToolConsumesAHandle,
            "every entry point for this handle was left out as destructive",
        ));
    }
    Ok(rows)
}

async fn of_entry(
    trial: &mut Trial<'_, '_>,
    experiment: &mut Experiment<'_>,
    entry: &Entry,
    observations: &mut Vec<Observation>,
) -> Result<Row, Halt> {
    let Handles { a, b, forged } = experiment.handles.clone();
    let mut plan = ControlPlan::default();

    let (mut owner, _) = use_handle(trial, "owner-use", Who::A, entry, &a.handle).await?;
    if matches!(owner.disposition, Disposition::Refused(_)) {
        // Once is chance: an entry point is not given up for one refusal.
        owner = use_handle(trial, "owner-use", Who::A, entry, &a.handle).await?.0;
    }
    plan.accepts(&owner, |said| {
        Halt::skipped(Reason::ControlFailed, format!("A could not use its own handle: {said}"))
    })?;
    if a.seems_shown(&owner) {
        experiment.reader.get_or_insert_with(|| entry.clone());
    }
    let (own, _) = use_handle(trial, "stranger-own-use", Who::B, entry, &b.handle).await?;
    plan.accepts(&own, |said| {
        Halt::skipped(Reason::SecondIdentityNotLive, format!("B could not use its own handle: {said}"))
    })?;
    let (unissued, unissued_canary) = use_handle(trial, "forged-handle", Who::B, entry, &forged).await?;
    if let Err(halt) = plan.presents_unissued(&unissued, &[emitted::text_of(&forged)]) {
        // No verdict without the control; but what B gets from A's handle is worth telling.
        let (subject, _) = use_handle(trial, "subject", Who::B, entry, &a.handle).await?;
        if let Some((mark, at)) = a.marked(&subject) {
            let text = format!("{entry}: B presented A's handle and got A's canary `{}` at {at}", mark.long);
            observations.push(Observation { id: "owner-data-without-control", text });
        }
        return Err(halt);
    }
    let controls = plan.hold()?;

    let (subject, planted) = use_handle(trial, "subject", Who::B, entry, &a.handle).await?;
    let (again, planted_again) = use_handle(trial, "subject-again", Who::B, entry, &a.handle).await?;

    // Before A writes again and covers what B wrote.
    let view = match experiment.reader.clone().filter(|reader| reader != entry) {
        Some(reader) if subject.disposition == Disposition::Accepted => {
            Some(use_handle(trial, "owner-view", Who::A, &reader, &a.handle).await?.0)
        }
        _ => None,
    };
    let (after_a, _) = use_handle(trial, "owner-again", Who::A, entry, &a.handle).await?;
    let (after_b, _) = use_handle(trial, "stranger-own-again", Who::B, entry, &b.handle).await?;
    for (answer, before, who) in [(&after_a, &owner, "A"), (&after_b, &own, "B")] {
        if let Some(halt) = answer.unclear() {
            return Err(halt);
        }
        if answer.disposition != Disposition::Accepted || says_no(answer, before, &unissued, experiment.reads) {
            // Either the entry point uses a handle up, or something else broke. Fresh handles tell which.
            let used_up = one_shot::of_entry(trial, experiment, entry, observations).await;
            experiment.handles = mint_both(trial, experiment.kind).await?;
            return used_up.map_err(|halt| Halt {
                detail: format!("{who} could not use its own handle again; with fresh handles: {}", halt.detail),
                ..halt
            });
        }
    }

    let witness = experiment.witness(&a, &owner, [&own, &unissued]);
    let (first, second) = (witness.look(&subject)?, witness.look(&again)?);
    let exchange = Exchange {
        entry,
        handles: &experiment.handles,
        controls: &controls,
        answers: [&owner, &own, &unissued, &subject],
        reads: experiment.reads,
    };
    if std::mem::discriminant(&first) != std::mem::discriminant(&second) {
        let detail =
            format!("B's use of A's handle was answered in two ways: {} and then {}", first.word(), second.word());
        return Err(Halt::errored(Reason::Unstable, detail));
    }
    // Only an answer like B's own is an acceptance worth doubting; anything else is a "no" in other words.
    if !matches!(first, Seen::Accepted | Seen::Listed) || !are_alike(&subject, &own) {
        return Ok(exchange.row(trial, first, observations));
    }
    let doubt = Doubt {
        entry,
        owners: [&owner, &after_a],
        own: [&own, &after_b],
        unissued: &unissued,
        subjects: [&subject, &again],
        view: view.as_ref(),
        planted: [&planted, &planted_again],
        unissued_planted: &unissued_canary,
        forged_honoured: exchange.is_forged_honoured(),
        listed: matches!(first, Seen::Listed),
    };
    let seen = doubt.resolve(trial, experiment).await?.unwrap_or(first);
    Ok(exchange.row(trial, seen, observations))
}

const MOST_ENTRIES: usize = 200;
const MOST_LISTINGS: usize = 6;
