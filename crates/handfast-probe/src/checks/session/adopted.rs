//! `session-adopted`: who chooses the id? If a client can, whoever chose it for somebody else is already inside.

use crate::{
    check::{Check, Level, Running},
    checks, cvss,
    disposition::Disposition,
    errand::{self, Errand},
    forge,
    identity::Who,
    owasp,
    target::session::Verb,
    trial::Trial,
    verdict::{ControlPlan, Halt, Judgement, Observation, Reason, Row, Severity},
};

use super::scene;

/// The check.
pub(super) static CHECK: Check = Check {
    id: "session-adopted",
    title: "Clients choose their session ids",
    claim: "A session works under an id that the client chose and the server never issued.",
    spec: "MCP servers MUST use secure, non-deterministic session IDs.",
    spec_url: "https://modelcontextprotocol.io/specification/2025-11-25/basic/security_best_practices",
    help: include_str!("adopted.md"),
    level: Level::Must,
    severity: Severity::High,
    cwe: &[384],
    cvss: &[cvss::TAKEN_BY_LURE],
    owasp: &[owasp::MCP07, owasp::API2],
    run,
};

fn run<'r>(trial: &'r mut Trial<'_, '_>) -> Running<'r> {
    Box::pin(async move {
        let outcome = judge(trial).await;
        checks::finish(trial, &CHECK, outcome).await
    })
}

async fn judge(trial: &mut Trial<'_, '_>) -> Result<Judgement, Halt> {
    let errand = scene::enter(trial).await?;
    let (mut rows, mut observations) = (Vec::new(), Vec::new());
    let opened = at_initialize(trial, &errand).await;
    rows.push(opened.unwrap_or_else(|halt| Row::halted(AT_INITIALIZE, halt)));
    if !scene::is_over(&rows) {
        let later = at_any_call(trial, &errand, &mut observations).await;
        rows.push(later.unwrap_or_else(|halt| Row::halted(AT_ANY_CALL, halt)));
    }
    if !scene::is_over(&rows) {
        match resigned(trial, &errand).await {
            Ok(row) => rows.extend(row),
            Err(halt) => rows.push(Row::halted(RESIGNED, halt)),
        }
    }
    Ok(Judgement::over(rows, observations))
}

/// `initialize` with an id of the client's own: does that id work afterwards, while another does not?
async fn at_initialize(trial: &mut Trial<'_, '_>, errand: &Errand) -> Result<Row, Halt> {
    let a = scene::live(trial, Who::A, errand).await?;
    let chosen = scene::made_up(trial, &a);
    let before = scene::present(trial, "chosen-id-before", Who::A, Verb::Post, Some(&chosen), errand).await?;
    let mut plan = ControlPlan::default();
    plan.accepts(&a.answer, |said| Halt::errored(Reason::ControlFailed, said))?;
    plan.presents_unissued(&before, std::slice::from_ref(&chosen))?;
    let controls = plan.hold()?;
    if before.disposition == Disposition::Accepted {
        let text = "ids that nobody issued work without any `initialize`";
        return Err(Halt::skipped(Reason::UnknownSessionServed, text));
    }

    let opening = trial.session.target.opening();
    let opened = scene::post(trial, "open-under-chosen-id", Who::A, Some(&chosen), &opening).await?;
    let subject = scene::present(trial, "subject", Who::A, Verb::Post, Some(&chosen), errand).await?;
    let again = scene::present(trial, "subject-again", Who::A, Verb::Post, Some(&chosen), errand).await?;
    let other = scene::unissued(trial, Who::A, Verb::Post, &a, errand).await?;

    if let Some(halt) = [&subject, &again, &other.answer].into_iter().find_map(|answer| answer.unclear()) {
        return Err(halt);
    }
    if subject.disposition.word() != again.disposition.word() {
        return Err(Halt::errored(Reason::Unstable, "the chosen id was served once and refused once"));
    }
    let mut row = if subject.disposition == Disposition::Accepted && !other.is_honoured() {
        let echoed = opened.issued.as_deref() == Some(chosen.as_str());
        let how =
            if echoed { "the server took it over in its answer" } else { "the server named another in its answer" };
        let detail = format!(
            "the id that the client sent with `initialize` was refused before and works afterwards, while others that nobody issued are refused; {how}"
        );
        Row::confirmed(&controls, AT_INITIALIZE, Reason::ClientChosenSession, CHECK.severity, detail)
    } else {
        let said = trial.clean(&subject.said());
        let detail = format!("the id that the client sent with `initialize` does not work afterwards: {said}");
        Row::refuted(&controls, AT_INITIALIZE, Reason::SessionGuardHeld, detail)
    };
    row.story = [&a.answer, &before, &opened, &subject, &other.answer].map(|answer| answer.step).to_vec();
    Ok(row)
}

/// Any other call with an id of the client's own: is what is kept under it there afterwards, and under no other id?
async fn at_any_call(
    trial: &mut Trial<'_, '_>,
    errand: &Errand,
    observations: &mut Vec<Observation>,
) -> Result<Row, Halt> {
    let a = scene::live(trial, Who::A, errand).await?;
    let chosen = scene::unissued(trial, Who::A, Verb::Post, &a, errand).await?;
    let mut plan = ControlPlan::default();
    plan.accepts(&a.answer, |said| Halt::errored(Reason::ControlFailed, said))?;
    plan.presents_unissued(&chosen.answer, std::slice::from_ref(&chosen.id))?;
    let controls = plan.hold()?;
    if let Some(again) = &chosen.opened_by_refusal {
        let detail = format!(
            "an id of the client's own was refused ({}), and works from then on: {}",
            trial.clean(&chosen.answer.said()),
            trial.clean(&again.said())
        );
        let mut row = Row::confirmed(&controls, AT_ANY_CALL, Reason::ClientChosenSession, CHECK.severity, detail);
        row.story = vec![a.answer.step, chosen.answer.step, again.step];
        return Ok(row);
    }
    if !chosen.is_honoured() {
        let detail = format!("an id of the client's own is refused: {}", trial.clean(&chosen.answer.said()));
        let mut row = Row::refuted(&controls, AT_ANY_CALL, Reason::SessionGuardHeld, detail);
        row.story = vec![a.answer.step, chosen.answer.step];
        return Ok(row);
    }
    let text = "a request with an id that nobody issued is carried out: see session-revived";
    observations.push(Observation { id: "unknown-session-served", text: text.to_owned() });
    let canary = trial.canary(Who::A);
    let Some((memory, keep)) = errand.memory.as_ref().and_then(|memory| Some((memory, memory.write(&canary)?))) else {
        let detail = "ids that nobody issued are honoured, but no tool keeps anything in a session, so that nothing shows whether one is kept";
        return Err(Halt::skipped(Reason::SessionWitnessUnusable, detail));
    };

    let kept = scene::post(trial, "keep", Who::A, Some(&chosen.id), &keep).await?;
    let subject = scene::post(trial, "subject", Who::A, Some(&chosen.id), &memory.read).await?;
    let other = scene::made_up(trial, &a);
    let elsewhere = scene::post(trial, "show-elsewhere", Who::A, Some(&other), &memory.read).await?;

    if let Some(halt) = [&kept, &subject, &elsewhere].into_iter().find_map(|answer| answer.unclear()) {
        return Err(halt);
    }
    // A new id in the answer is a session of the server's choosing.
    let renamed = kept.issued.as_ref().is_some_and(|issued| *issued != chosen.id);
    let mut row = if errand::shown(&subject, &canary) && !errand::shown(&elsewhere, &canary) && !renamed {
        let detail = format!(
            "what was kept under an id of the client's own (`{}`) is shown under it afterwards, and under no other",
            canary.long
        );
        Row::confirmed(&controls, AT_ANY_CALL, Reason::ClientChosenSession, CHECK.severity, detail)
    } else {
        let detail = "nothing that was kept under an id of the client's own is shown under it afterwards".to_owned();
        Row::refuted(&controls, AT_ANY_CALL, Reason::SessionGuardHeld, detail)
    };
    row.story = [&a.answer, &chosen.answer, &kept, &subject, &elsewhere].map(|answer| answer.step).to_vec();
    Ok(row)
}

/// An id that bears a signature: does it work with another, or with none? Then anybody writes ids. `None` where none is seen.
async fn resigned(trial: &mut Trial<'_, '_>, errand: &Errand) -> Result<Option<Row>, Halt> {
    let others = [scene::live(trial, Who::A, errand).await?, scene::live(trial, Who::A, errand).await?];
    let a = scene::live(trial, Who::A, errand).await?;
    let forged: Vec<String> = [forge::resigned(&a.id), forge::unsigned(&a.id, "none")].into_iter().flatten().collect();
    // What is the same in several ids is the name of a process, and no signature.
    if forged.is_empty() || !others.iter().all(|other| forge::signatures_differ(&other.id, &a.id)) {
        return Ok(None);
    }
    let (unissued, controls) = scene::controlled(trial, &a, errand).await?;
    unissued.must_be_worthless()?;
    let mut story = vec![a.answer.step, unissued.answer.step];
    let mut taken = None;
    for id in &forged {
        trial.session.redactor.name_session(id);
        let subject = scene::present(trial, "subject", Who::A, Verb::Post, Some(id), errand).await?;
        let again = scene::present(trial, "subject-again", Who::A, Verb::Post, Some(id), errand).await?;
        if let Some(halt) = subject.unclear().or_else(|| again.unclear()) {
            return Err(halt);
        }
        story.push(subject.step);
        if subject.disposition == Disposition::Accepted && again.disposition == Disposition::Accepted {
            taken = Some(subject);
            break;
        }
    }
    scene::still_live(trial, &a, errand).await?;
    let mut row = match taken {
        Some(subject) => {
            let detail = format!(
                "A's id is served with a signature that the server did not make, while ids that nobody issued are refused: whoever knows their form writes them: {}",
                trial.clean(&subject.said())
            );
            Row::confirmed(&controls, RESIGNED, Reason::ClientChosenSession, CHECK.severity, detail)
        }
        None => {
            let detail = "ids with another signature, or with none, are refused".to_owned();
            Row::refuted(&controls, RESIGNED, Reason::SessionGuardHeld, detail)
        }
    };
    row.story = story;
    Ok(Some(row))
}

const RESIGNED: &str = "an id with another signature";
const AT_INITIALIZE: &str = "initialize";
const AT_ANY_CALL: &str = "any other call";
