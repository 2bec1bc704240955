//! `handle-foreign-principal`: is a handle bound to the principal who minted it? The page beside this file says how it is
//! tested; this file is that text, step by step.

mod identities;
mod one_shot;

use serde_json::Value;

use crate::{
    canary::Canary,
    check::{Check, Level, Running},
    discovery::{self, Entry, Kind, emitted, names},
    disposition::Disposition,
    forge,
    identity::Who,
    marker,
    trial::{Answer, Trial},
    verdict::{ControlPlan, Controls, Halt, Judgement, Negative, Observation, Reason, Row, Severity, Verdict},
};

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
    let kinds = trial.session.map.kinds.clone();
    if kinds.is_empty() {
        return Err(nothing_to_test(trial));
    }
    let (mut rows, mut observations) = (Vec::new(), Vec::new());
    for kind in &kinds {
        // One kind that cannot be tested does not hide another that can.
        match of_kind(trial, kind, &mut observations).await {
            Ok(found) => rows.extend(found),
            Err(halt) => {
                let over = is_final(&halt);
                rows.push(Row::halted(&format!("tools/call {}", kind.mint), halt));
                if over {
                    break;
                }
            }
        }
    }
    Ok(conclude(rows, observations))
}

/// Whether no further experiment makes sense.
fn is_final(halt: &Halt) -> bool {
    matches!(halt.reason, Reason::TimedOut | Reason::Unreachable | Reason::CallLimit)
}

fn nothing_to_test(trial: &Trial<'_, '_>) -> Halt {
    let surface = &trial.session.surface;
    let arguments = surface.tools.iter().flat_map(|tool| {
        tool.input.get("properties").and_then(Value::as_object).into_iter().flat_map(|properties| properties.keys())
    });
    let consumes = arguments.into_iter().any(|name| names::names_a_handle(name));
    let map = &trial.session.map;
    let left_out = match map.left_out.len() {
        0 => String::new(),
        count => format!("; {count} tools were left out as destructive (--include-destructive calls them)"),
    };
    let called = map.barren.len() + map.without_arguments.len();
    if consumes {
        let detail = format!(
            "{called} of {} tools were tried, and none hands out a value that another accepts{left_out}",
            surface.tools.len()
        );
        Halt::skipped(Reason::NoToolMintsAHandle, detail)
    } else {
        let detail = format!("none of {} tools takes an argument that names a handle{left_out}", surface.tools.len());
        Halt::skipped(Reason::NoToolConsumesAHandle, detail)
    }
}

/// Entry points where not even the owner's own use worked were not tested. That is an error only where nothing else was.
fn conclude(mut rows: Vec<Row>, mut observations: Vec<Observation>) -> Judgement {
    let is_untested = |row: &Row| row.verdict == Verdict::Skipped && row.reason == Reason::ControlFailed;
    let judged = rows.iter().any(|row| !is_untested(row));
    if judged {
        for row in rows.iter().filter(|row| is_untested(row)) {
            observations
                .push(Observation { id: "entry-point-untested", text: format!("{}: {}", row.entry, row.detail) });
        }
    } else {
        for row in &mut rows {
            row.verdict = Verdict::Errored;
        }
    }
    let mut judgement = Judgement::over(rows, observations);
    let confirmed = judgement.rows.iter().filter(|row| row.verdict == Verdict::Confirmed).count();
    if confirmed > 1 {
        judgement.detail = format!("{} (and {} more entry points)", judgement.detail, confirmed - 1);
    }
    judgement
}

/// What somebody minted.
#[derive(Debug, Clone)]
struct Minted {
    handle: Value,
    /// What the owner planted in the object: by minting it, and by writing to it.
    marks: Vec<Canary>,
    answer: Answer,
}

impl Minted {
    /// Where any of the owner's marks stands in an answer, and which.
    fn marked(&self, answer: &Answer) -> Option<(&Canary, String)> {
        let result = answer.result()?;
        self.marks.iter().find_map(|mark| Some((mark, marker::find_canary(result, mark, &answer.sent)?)))
    }
}

/// A handle of A, one of B, and one that nobody minted.
#[derive(Debug, Clone)]
struct Handles {
    a: Minted,
    b: Minted,
    forged: Value,
}

/// What is known of a kind while its entry points are tested.
struct Experiment<'k> {
    kind: &'k Kind,
    handles: Handles,
    /// How the server names A and B, where it does.
    names: Option<(String, String)>,
    /// An entry point that shows the owner the content of the object.
    reader: Option<Entry>,
}

async fn of_kind(
    trial: &mut Trial<'_, '_>,
    kind: &Kind,
    observations: &mut Vec<Observation>,
) -> Result<Vec<Row>, Halt> {
    let handles = mint_both(trial, kind).await?;
    let names = identities::told_apart(trial, kind, &handles).await?;
    let mut experiment = Experiment { kind, handles, names, reader: None };
    let mut rows = Vec::new();
    let entries = in_order(trial, &kind.entries, observations);
    write_marks(trial, &mut experiment, &entries).await?;
    for (_, entry) in entries {
        let row = match of_entry(trial, &mut experiment, &entry, observations).await {
            Ok(row) => row,
            Err(halt) => {
                let over = is_final(&halt);
                rows.push(Row::halted(&entry.to_string(), halt));
                if over {
                    break;
                }
                continue;
            }
        };
        rows.push(row);
    }
    if rows.is_empty() {
        return Err(Halt::skipped(
            Reason::NoToolConsumesAHandle,
            "every entry point for this handle was left out as destructive",
        ));
    }
    Ok(rows)
}

/// Readers first, because they tell what an object holds; what ends an object last. What must not be called is left out.
fn in_order(trial: &Trial<'_, '_>, entries: &[Entry], observations: &mut Vec<Observation>) -> Vec<(Manner, Entry)> {
    let mut ordered: Vec<(Manner, Entry)> = Vec::new();
    for entry in entries {
        let Entry::Tool { tool, .. } = entry else {
            ordered.push((Manner::Reads, entry.clone()));
            continue;
        };
        let Some(tool) = trial.session.surface.tool(tool) else { continue };
        if !trial.session.may_call(tool) {
            let why = tool.destructive.clone().unwrap_or_else(|| "denied by the profile".to_owned());
            observations.push(Observation { id: "entry-point-left-out", text: format!("{entry}: {why}") });
            continue;
        }
        let words = names::words(&tool.name);
        let has = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
        let manner = match () {
            () if has(&ENDERS) => Manner::Ends,
            () if tool.read_only || has(&READERS) => Manner::Reads,
            () => Manner::Writes,
        };
        ordered.push((manner, entry.clone()));
    }
    ordered.sort_by_key(|(manner, _)| *manner);
    ordered.truncate(MOST_ENTRIES);
    ordered
}

/// What an entry point seems to do with an object, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Manner {
    Reads,
    Writes,
    Ends,
}

/// A writes into its own object wherever text is taken: where the mint takes none, nothing else would show whose it is.
async fn write_marks(
    trial: &mut Trial<'_, '_>,
    experiment: &mut Experiment<'_>,
    entries: &[(Manner, Entry)],
) -> Result<(), Halt> {
    let writers = entries.iter().filter(|(manner, _)| *manner == Manner::Writes).take(MOST_MARKS);
    for (_, entry) in writers {
        let handle = experiment.handles.a.handle.clone();
        match use_handle(trial, "owner-mark", Who::A, entry, &handle).await {
            Ok((answer, mark)) if answer.disposition == Disposition::Accepted => experiment.handles.a.marks.push(mark),
            // What A cannot do here is told when the entry point is tested.
            Ok(_) => {}
            Err(halt) if is_final(&halt) => return Err(halt),
            Err(_) => {}
        }
    }
    Ok(())
}

async fn mint(trial: &mut Trial<'_, '_>, who: Who, kind: &Kind) -> Result<Result<Minted, Halt>, Halt> {
    let Some(tool) = trial.session.surface.tool(&kind.mint).cloned() else {
        return Err(Halt::errored(Reason::ControlFailed, format!("the server lists no tool `{}`", kind.mint)));
    };
    let refused = |detail: String| match who {
        Who::B => Halt::skipped(Reason::SecondIdentityNotLive, format!("B could not mint a handle: {detail}")),
        _ => Halt::errored(Reason::ControlFailed, format!("A could not mint a handle: {detail}")),
    };
    let (canary, answer) = match discovery::mint_call(trial, who, &tool).await? {
        Ok(made) => made,
        Err(reason) => return Ok(Err(refused(reason))),
    };
    if let Some(halt) = answer.unclear() {
        return Ok(Err(halt));
    }
    let accepted = answer.disposition == Disposition::Accepted;
    let handle =
        answer.result().filter(|_| accepted).and_then(|result| emitted::again(result, &kind.spot, &answer.sent));
    Ok(match handle {
        Some(handle) => {
            trial.shorten(&handle);
            Ok(Minted { handle, marks: vec![canary], answer })
        }
        None if accepted => Err(refused(format!("no handle at {}", kind.spot.shown()))),
        None => Err(refused(answer.said())),
    })
}

async fn mint_both(trial: &mut Trial<'_, '_>, kind: &Kind) -> Result<Handles, Halt> {
    let b = mint(trial, Who::B, kind).await;
    let mut a = mint(trial, Who::A, kind).await??;
    let b = b??;
    // Counters of one's own may give both the same number: mint on until A's is not one of B's.
    for _ in 0..MORE_MINTS {
        if a.handle != b.handle {
            break;
        }
        a = mint(trial, Who::A, kind).await??;
    }
    if a.handle == b.handle {
        let detail = format!("{} gives A and B the same handle, so B's use of it says nothing", kind.mint);
        return Err(Halt::skipped(Reason::HandleWitnessUnusable, detail));
    }
    let forged = forge::handle(&a.handle, &b.handle, &[a.handle.clone(), b.handle.clone()]);
    trial.shorten(&forged);
    Ok(Handles { a, b, forged })
}

/// Somebody uses a handle at an entry point.
async fn use_handle(
    trial: &mut Trial<'_, '_>,
    step: &str,
    who: Who,
    entry: &Entry,
    handle: &Value,
) -> Result<(Answer, Canary), Halt> {
    match discovery::entry_call(trial, who, entry, handle).await? {
        Ok((call, canary)) => Ok((trial.complete(step, who, &call).await?, canary)),
        Err(reason) => Err(Halt::skipped(Reason::ControlFailed, format!("no arguments could be made: {reason}"))),
    }
}

async fn of_entry(
    trial: &mut Trial<'_, '_>,
    experiment: &mut Experiment<'_>,
    entry: &Entry,
    observations: &mut Vec<Observation>,
) -> Result<Row, Halt> {
    let Handles { a, b, forged } = experiment.handles.clone();
    let mut plan = ControlPlan::default();

    let (owner, _) = use_handle(trial, "owner-use", Who::A, entry, &a.handle).await?;
    plan.accepts(&owner, |said| {
        Halt::skipped(Reason::ControlFailed, format!("A could not use its own handle: {said}"))
    })?;
    if a.marked(&owner).is_some() {
        experiment.reader.get_or_insert_with(|| entry.clone());
    }
    let (own, _) = use_handle(trial, "stranger-own-use", Who::B, entry, &b.handle).await?;
    plan.accepts(&own, |said| {
        Halt::skipped(Reason::SecondIdentityNotLive, format!("B could not use its own handle: {said}"))
    })?;
    let (unissued, unissued_canary) = use_handle(trial, "forged-handle", Who::B, entry, &forged).await?;
    plan.presents_unissued(&unissued, &[emitted::text_of(&forged)])?;
    let controls = plan.hold()?;

    let (subject, planted) = use_handle(trial, "subject", Who::B, entry, &a.handle).await?;
    let (again, planted_again) = use_handle(trial, "subject-again", Who::B, entry, &a.handle).await?;

    let (after_a, _) = use_handle(trial, "owner-again", Who::A, entry, &a.handle).await?;
    let (after_b, _) = use_handle(trial, "stranger-own-again", Who::B, entry, &b.handle).await?;
    for (answer, who) in [(&after_a, "A"), (&after_b, "B")] {
        if let Some(halt) = answer.unclear() {
            return Err(halt);
        }
        if answer.disposition != Disposition::Accepted {
            // Either the entry point uses a handle up, or something else broke. Fresh handles tell which.
            let used_up = one_shot::of_entry(trial, experiment, entry, observations).await;
            experiment.handles = mint_both(trial, experiment.kind).await?;
            return used_up.map_err(|halt| Halt {
                detail: format!("{who} could not use its own handle again; with fresh handles: {}", halt.detail),
                ..halt
            });
        }
    }

    let witness =
        Witness { owner: &a, owners_view: &owner, names: experiment.names.as_ref(), innocent: [&own, &unissued] };
    let (first, second) = (witness.look(&subject)?, witness.look(&again)?);
    let effect = match (&first, &experiment.reader) {
        (Seen::Accepted, Some(reader)) => {
            let reader = reader.clone();
            effect(trial, &reader, &a, [&planted, &planted_again], &unissued_canary).await?
        }
        _ => None,
    };
    let exchange = Exchange {
        entry,
        handles: &experiment.handles,
        controls: &controls,
        answers: [&owner, &own, &unissued, &subject],
    };
    if std::mem::discriminant(&first) != std::mem::discriminant(&second) {
        let detail =
            format!("B's use of A's handle was answered in two ways: {} and then {}", first.word(), second.word());
        return Err(Halt::errored(Reason::Unstable, detail));
    }
    let seen = effect.map_or(first, |marker| Seen::Marked { marker, whole: true });
    Ok(exchange.row(trial, seen, observations))
}

/// Whether what B wrote through A's handle is visible to A.
async fn effect(
    trial: &mut Trial<'_, '_>,
    reader: &Entry,
    owner: &Minted,
    planted: [&Canary; 2],
    unissued: &Canary,
) -> Result<Option<String>, Halt> {
    let (view, _) = use_handle(trial, "owner-view", Who::A, reader, &owner.handle).await?;
    let Some(result) = view.result() else { return Ok(None) };
    if marker::find_canary(result, unissued, &view.sent).is_some() {
        // Writes under a handle that nobody minted reach A as well: the place shows nothing about handles.
        return Ok(None);
    }
    let found = planted.into_iter().find_map(|canary| marker::find_canary(result, canary, &view.sent));
    Ok(found.map(|at| format!("what B wrote, in A's own view at {at}")))
}

/// What an answer to B shows of A's object.
enum Seen {
    /// A's marker came back: what it is and where, and whether in an answer like the owner's own.
    Marked { marker: String, whole: bool },
    /// Accepted, but without a marker.
    Accepted,
    /// Refused.
    Refused,
}

impl Seen {
    fn word(&self) -> &'static str {
        match self {
            Self::Marked { .. } => "with A's data",
            Self::Accepted => "accepted",
            Self::Refused => "refused",
        }
    }
}

/// What can tell A's object from any other.
struct Witness<'w> {
    owner: &'w Minted,
    owners_view: &'w Answer,
    names: Option<&'w (String, String)>,
    /// Answers about objects that are not A's: a marker that stands in them as well proves nothing.
    innocent: [&'w Answer; 2],
}

impl Witness<'_> {
    /// Canary first: an answer that carries A's canary gave A's data away, whatever else it says.
    fn look(&self, answer: &Answer) -> Result<Seen, Halt> {
        if let Some(halt) = answer.unclear() {
            return Err(halt);
        }
        let everywhere =
            |find: &dyn Fn(&Answer) -> Option<String>| self.innocent.iter().any(|other| find(other).is_some());
        let whole = answer.disposition == Disposition::Accepted && are_alike(answer, self.owners_view);
        if let Some((mark, at)) = self.owner.marked(answer) {
            let same =
                |other: &Answer| other.result().and_then(|result| marker::find_canary(result, mark, &other.sent));
            if !everywhere(&same) {
                return Ok(Seen::Marked { marker: format!("A's canary `{}` at {at}", mark.long), whole });
            }
        }
        match &answer.disposition {
            Disposition::Refused(_) => Ok(Seen::Refused),
            Disposition::Accepted => {
                let Some((name, _)) = self.names else { return Ok(Seen::Accepted) };
                let named =
                    |answer: &Answer| answer.result().and_then(|result| marker::find_name(result, name, &answer.sent));
                Ok(match named(answer).filter(|_| !everywhere(&named)) {
                    // A polite "this belongs to alice" names A as well.
                    Some(at) if whole => Seen::Marked { marker: format!("A's name `{name}` at {at}"), whole },
                    _ => Seen::Accepted,
                })
            }
            _ => Err(Halt::errored(
                Reason::Unclear,
                format!("B's use of A's handle never came to an end: {}", answer.said()),
            )),
        }
    }
}

fn are_alike(one: &Answer, other: &Answer) -> bool {
    matches!((one.result(), other.result()), (Some(one), Some(other)) if marker::alike(one, other))
}

/// A finished experiment at one entry point, ready to be judged.
struct Exchange<'e> {
    entry: &'e Entry,
    handles: &'e Handles,
    controls: &'e Controls,
    /// Of the owner's use, B's own use, the forged handle, and the subject.
    answers: [&'e Answer; 4],
}

impl Exchange<'_> {
    /// The row of `checks.md`: what B saw, against what the forged handle showed.
    fn row(&self, trial: &Trial<'_, '_>, seen: Seen, observations: &mut Vec<Observation>) -> Row {
        let entry = self.entry.to_string();
        let [.., unissued, subject] = self.answers;
        let polite = self.is_polite();
        let forged_honoured = *self.controls.negative() == Negative::Honoured && !polite;
        let mut observe =
            |id: &'static str, text: String| observations.push(Observation { id, text: format!("{entry}: {text}") });
        if forged_honoured {
            observe(
                "forged-handle-honoured",
                format!("a handle that was never minted was honoured: {}", trial.clean(&unissued.said())),
            );
        }
        let subject_said = trial.clean(&subject.said());
        let mut row = match seen {
            Seen::Marked { ref marker, whole } => {
                let form = match (&subject.disposition, whole) {
                    (_, true) => "",
                    (Disposition::Accepted, false) => " in an answer unlike the owner's own",
                    _ => " in an answer that calls itself an error",
                };
                let severity = if whole { Severity::High } else { Severity::Medium };
                let control =
                    if forged_honoured { "a forged one brings nothing of A's" } else { "a forged one is refused" };
                let marker = trial.clean(marker);
                let detail = format!("B presented A's handle and got {marker}{form}, while {control}");
                Row::confirmed(self.controls, &entry, Reason::HandleNotBound, severity, detail)
            }
            Seen::Refused => match self.crashed() {
                Some(text) => Row::halted(
                    &entry,
                    Halt::errored(
                        Reason::Unclear,
                        format!(
                            "A's handle made the server fall over where a forged one did not: {}",
                            trial.clean(&text)
                        ),
                    ),
                ),
                None => Row::refuted(
                    self.controls,
                    &entry,
                    Reason::HandleBound,
                    format!("A's handle was refused to B: {subject_said}"),
                ),
            },
            // A "no" without `isError`, in the words that a forged handle gets.
            Seen::Accepted if polite && are_alike(unissued, subject) => {
                let text = format!("an unknown handle is refused in a result that is no error: {subject_said}");
                observe("refusal-is-no-error", text);
                let detail = format!("A's handle was refused to B as a forged one is: {subject_said}");
                Row::refuted(self.controls, &entry, Reason::HandleBound, detail)
            }
            Seen::Accepted if forged_honoured => Row::refuted(
                self.controls,
                &entry,
                Reason::HandleWitnessUnusable,
                "B's use of A's handle was accepted, as that of a forged one was, and brought nothing of A's"
                    .to_owned(),
            ),
            Seen::Accepted => {
                let text = format!(
                    "B's use of A's handle was accepted while a forged one was refused, but nothing shows that it reached A's object: {subject_said}"
                );
                observe("cross-use-unattributable", text.clone());
                Row::refuted(self.controls, &entry, Reason::CrossUseUnattributable, text)
            }
        };
        let mut fact = |name: &str, value: Value| {
            row.facts.insert(name.to_owned(), value);
        };
        fact("canary_of_a", self.handles.a.marks.first().map(|mark| mark.long.clone()).into());
        fact("handle_of_a", trial.shown(&self.handles.a.handle));
        fact("handle_of_b", trial.shown(&self.handles.b.handle));
        fact("forged_handle", trial.shown(&self.handles.forged));
        fact("forged_handle_control", unissued.disposition.word().into());
        if let Seen::Marked { marker, .. } = seen {
            fact("marker", trial.clean(&marker).into());
        }
        let minted = [&self.handles.a.answer, &self.handles.b.answer];
        row.story = minted.into_iter().chain(self.answers).map(|answer| answer.step).collect();
        row
    }

    /// Whether the forged handle was "honoured" in form only: a complete result, and nothing like what B's own handle brings.
    fn is_polite(&self) -> bool {
        let [_, own, unissued, _] = self.answers;
        *self.controls.negative() == Negative::Honoured && !are_alike(own, unissued)
    }

    /// The words of a refusal that reads like a crash, where the forged handle was refused in other words.
    fn crashed(&self) -> Option<String> {
        let Disposition::Refused(refusal) = &self.answers[3].disposition else { return None };
        let like_the_forged_one = match self.controls.negative() {
            Negative::Refused(words) => refusal.normalised(&[emitted::text_of(&self.handles.a.handle)]) == *words,
            _ => false,
        };
        (refusal.reads_like_a_crash() && !like_the_forged_one).then(|| refusal.text.clone())
    }
}

const MORE_MINTS: usize = 3;
const MOST_ENTRIES: usize = 40;
const MOST_MARKS: usize = 4;
const READERS: [&str; 11] =
    ["get", "read", "show", "view", "list", "describe", "fetch", "find", "status", "summarise", "summarize"];
const ENDERS: [&str; 15] = [
    "close", "end", "finish", "release", "complete", "archive", "submit", "checkout", "cancel", "stop", "leave",
    "finalize", "finalise", "abort", "expire",
];
