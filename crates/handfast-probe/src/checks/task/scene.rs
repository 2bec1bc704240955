//! What the checks of tasks begin with: a tool that answers with a task, tasks of A's and of B's that work, and an id that
//! nobody was given.

use std::{collections::BTreeMap, time::Duration};

use handfast_wire::{
    message::Object,
    result::{self, Task},
};

use crate::{
    arguments::{self, Wish},
    canary::Canary,
    checks::apart,
    discovery::{self, names},
    disposition::Disposition,
    echo, forge,
    identity::Who,
    likeness,
    marker::{self, Naming},
    surface::Tool,
    target::{Call, Era},
    trial::{Answer, Trial},
    verdict::{ControlPlan, Halt, Reason},
};

/// A task that somebody began.
pub(super) struct Begun {
    pub(super) id: String,
    pub(super) canary: Canary,
    pub(super) step: usize,
    /// What was sent to begin it.
    pub(super) sent: Vec<String>,
    poll: Duration,
}

/// A tool that answers with a task, for which a task can be begun at once.
///
/// # Errors
/// [`Reason::NoTaskReturned`] where there is none.
pub(super) async fn find(trial: &mut Trial<'_, '_>) -> Result<Tool, Halt> {
    let none = |detail: &str| Halt::skipped(Reason::NoTaskReturned, detail);
    if trial.session.target.era() != &Era::Modern {
        return Err(none("the extension is one of the stateless revision"));
    }
    let session = &trial.session;
    let may_call = |tool: &&Tool| session.may_call(tool);
    let seen: Vec<Tool> = session
        .surface
        .tools
        .iter()
        .filter(may_call)
        .filter(|tool| session.answered_by_task.contains(&tool.name))
        .cloned()
        .collect();
    // Nothing was answered with a task so far, and the server does not even say that it might be.
    let candidates = match (seen.is_empty(), session.surface.tasks) {
        (true, false) => return Err(none("no call was answered with a task")),
        (true, true) => session.surface.tools.iter().filter(may_call).cloned().collect(),
        (false, _) => seen,
    };
    let mut candidates: Vec<Tool> = candidates;
    // What ends a thing leaves nothing to begin a task about.
    candidates.sort_by_key(|tool| names::names_an_end(&tool.name));
    let mut refused = Vec::new();
    // Nothing is tried on what was ended before.
    trial.session.purse.clear();
    for tool in candidates.into_iter().take(MOST_TRIED) {
        match begin(trial, Who::A, &tool).await? {
            Ok(_) => return Ok(tool),
            Err((false, said)) => refused.push(format!("{}: {said}", tool.name)),
            Err((true, _)) => {}
        }
        if names::names_an_end(&tool.name) {
            trial.session.purse.clear();
        }
    }
    let detail = match refused.is_empty() {
        true => "no call was answered with a task".to_owned(),
        false => format!(
            "no call was answered with a task, and these were not carried out: {} (a profile gives arguments)",
            trial.clean(&refused.join("; "))
        ),
    };
    Err(none(&detail))
}

/// Begins a task as somebody. The inner error says whether it was carried out without one, and what came instead.
pub(super) async fn begin(
    trial: &mut Trial<'_, '_>,
    who: Who,
    tool: &Tool,
) -> Result<Result<Begun, (bool, String)>, Halt> {
    let canary = trial.canary(who);
    let fixed = discovery::supply(trial, who, tool, &BTreeMap::new()).await?;
    let wish = Wish { canary: Some(&canary), fixed, optional_text: true };
    let Ok(arguments) = arguments::synthesise(&tool.input, &wish) else {
        return Ok(Err((false, "no arguments satisfy its schema".to_owned())));
    };
    let call = discovery::tool_call(tool, arguments);
    let mut answer = trial.call_once("begin", who, &call).await?;
    let mut sent = answer.sent.clone();
    for _ in 0..MOST_ROUNDS {
        let Disposition::Asked(asked) = answer.disposition.clone() else { break };
        let retry = trial.retry(&call, &asked, asked.state.clone(), &canary);
        answer = trial.call_once("begin", who, &retry).await?;
        sent.extend(answer.sent.iter().cloned());
    }
    if let Some(halt) = answer.lost() {
        return Err(halt);
    }
    let Disposition::Task(task) = &answer.disposition else {
        return Ok(Err((answer.disposition == Disposition::Accepted, answer.said())));
    };
    let poll = Duration::from_millis(task.poll_interval_ms.unwrap_or(0)).min(LONGEST_PAUSE);
    Ok(Ok(Begun { id: task.id.clone(), canary, step: answer.step, sent, poll }))
}

/// The same where a task has to come: it came before.
pub(super) async fn begun(trial: &mut Trial<'_, '_>, who: Who, tool: &Tool) -> Result<Begun, Halt> {
    let began = begin(trial, who, tool).await?;
    began.map_err(|(_, said)| {
        let detail = format!("a call of {}'s that should begin a task is answered otherwise: {said}", who.label());
        match who {
            Who::A => Halt::errored(Reason::ControlFailed, detail),
            _ => Halt::skipped(Reason::SecondIdentityNotLive, detail),
        }
    })
}

/// One request about a task.
pub(super) async fn ask(
    trial: &mut Trial<'_, '_>,
    step: &str,
    who: Who,
    method: &str,
    id: &str,
) -> Result<Answer, Halt> {
    let mut params = Object::new();
    params.insert("taskId".into(), id.into());
    if method == UPDATE {
        params.insert("inputResponses".into(), Object::new().into());
    }
    let mut answer = trial.call_once(step, who, &Call::new(method, params)).await?;
    // Some call the state of a task a task, as if it were begun once more.
    if method == GET && matches!(answer.disposition, Disposition::Task(_)) {
        answer.disposition = Disposition::Accepted;
    }
    Ok(answer)
}

/// Looks at a task until it has ended, or for a while.
pub(super) async fn settled(trial: &mut Trial<'_, '_>, step: &str, who: Who, task: &Begun) -> Result<Answer, Halt> {
    let mut answer = ask(trial, step, who, GET, &task.id).await?;
    for _ in 0..MOST_LOOKS {
        if shown(&answer).is_none_or(|seen| seen.status != "working") {
            break;
        }
        if !task.poll.is_zero() {
            tokio::time::sleep(task.poll).await;
        }
        answer = ask(trial, step, who, GET, &task.id).await?;
    }
    Ok(answer)
}

/// The task in an answer to `tasks/get`; `None` for every kind of no.
pub(super) fn shown(answer: &Answer) -> Option<Task> {
    answer.result().filter(|_| answer.disposition == Disposition::Accepted).and_then(result::task)
}

/// A task of the owner's as the owner sees it; a control.
pub(super) async fn own(trial: &mut Trial<'_, '_>, step: &str, who: Who, task: &Begun) -> Result<Answer, Halt> {
    let answer = settled(trial, step, who, task).await?;
    if shown(&answer).is_some() {
        return Ok(answer);
    }
    let detail = format!("{}'s own task cannot be looked at: {}", who.label(), answer.said());
    let halt = match who {
        Who::A => Halt::errored(Reason::ControlFailed, detail),
        _ => Halt::skipped(Reason::SecondIdentityNotLive, detail),
    };
    Err(answer.unclear().unwrap_or(halt))
}

/// An id of the same shape that nobody was given.
pub(super) fn forged(trial: &mut Trial<'_, '_>, one: &Begun, other: &Begun) -> String {
    let ids = [one, other].map(|task| task.id.clone().into());
    let forged = forge::handle(&ids[0], &ids[1], &ids, None);
    trial.shorten(&forged);
    forged.as_str().unwrap_or_default().to_owned()
}

/// Puts what such an id came to into the plan: a result without a task in it is a no in other words.
pub(super) fn as_negative(plan: &mut ControlPlan, answer: &Answer, forged: &str) -> Result<(), Halt> {
    if answer.disposition == Disposition::Accepted && shown(answer).is_none() {
        plan.refused_in_words(&answer.said());
        return Ok(());
    }
    plan.presents_unissued(answer, &[forged.to_owned()])
}

/// If A and B are one caller to this server, B's look at A's task says nothing.
pub(super) async fn told_apart(
    trial: &mut Trial<'_, '_>,
    (task, a): (&Begun, &Answer),
    b: &Answer,
) -> Result<Naming, Halt> {
    let naming = match apart::named(trial, a, b) {
        Naming::Apart { at, a: name, b: other } => {
            let again = ask(trial, "own-again", Who::A, GET, &task.id).await?;
            let keeps = apart::keeps(&again, &at, &name);
            if keeps { Naming::Apart { at, a: name, b: other } } else { Naming::Silent }
        }
        naming => naming,
    };
    let naming = match naming {
        Naming::Apart { .. } => return Ok(naming),
        other => match apart::who_am_i(trial).await? {
            Naming::Silent => other,
            naming => naming,
        },
    };
    match naming {
        Naming::Apart { .. } => return Ok(naming),
        Naming::Alike(name) => {
            let detail = format!("the server names both A and B `{}`: to it they are one caller", trial.clean(&name));
            return Err(Halt::skipped(Reason::IdentitiesNotDistinguished, detail));
        }
        Naming::Silent => {}
    }
    if trial.session.target.identities().given() {
        let mut refused = 0;
        for who in [Who::Nobody, Who::Impostor] {
            let answer = ask(trial, "without-identity", who, GET, &task.id).await?;
            refused += usize::from(matches!(answer.disposition, Disposition::Refused(_)));
        }
        if refused == 2 && shown(&ask(trial, "own-again", Who::A, GET, &task.id).await?).is_some() {
            return Ok(Naming::Silent);
        }
    }
    let detail =
        "nothing shows that the server tells A and B apart: it names neither, and answers callers that nobody knows";
    Err(Halt::skipped(Reason::IdentitiesNotDistinguished, detail))
}

/// Where something of A's stands in B's answer: A's canary, A's name, or a value that stands in A's own answer and not in B's own.
pub(super) fn marker(answer: &Answer, task: &Begun, own: &Answer, others: &Answer, naming: &Naming) -> Option<String> {
    let result = answer.result()?;
    if let Some(at) = marker::find_canary(result, &task.canary, &answer.sent) {
        return Some(at);
    }
    if let Naming::Apart { a, .. } = naming
        && let Some(at) = marker::find_name(result, a, &answer.sent)
    {
        return Some(at);
    }
    let values = |answer: &Answer| answer.result().map(likeness::particular_values).unwrap_or_default();
    let (of_a, of_b, here) = (values(own), values(others), values(answer));
    let echo = |value: &String| {
        task.canary.is_in(value) || [&answer.sent, &task.sent].iter().any(|sent| echo::repeats(sent, value))
    };
    of_a.intersection(&here).find(|value| !of_b.contains(*value) && !echo(value)).cloned()
}

/// Where A's canary stands in an answer of whatever kind: a refusal that quotes it gives it away all the same.
pub(super) fn quoted(answer: &Answer, task: &Begun) -> Option<String> {
    let at = marker::find_canary(&*answer.body()?, &task.canary, &answer.sent)?;
    Some(format!("A's canary `{}` at {at}", task.canary.long))
}

pub(super) const GET: &str = "tasks/get";
pub(super) const UPDATE: &str = "tasks/update";
pub(super) const CANCEL: &str = "tasks/cancel";
const MOST_TRIED: usize = 20;
const MOST_ROUNDS: usize = 6;
const MOST_LOOKS: usize = 10;
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
