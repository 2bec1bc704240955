//! What every check of tokens begins with: a call that shows that A is let in, and a token that nobody issued.

use std::sync::LazyLock;

use handfast_wire::message::Object;
use regex::Regex;
use serde_json::Value;

use crate::{
    arguments::{self, Wish},
    discovery,
    disposition::Disposition,
    errand,
    identity::Who,
    likeness,
    surface::Tool,
    target::{
        Call, Era,
        session::{Issues, Verb, Visit},
    },
    trial::{Answer, Trial},
    verdict::{ControlPlan, Controls, Halt, Negative, Reason, Row, Severity},
};

/// The call that is made at the door, and A's answer to it.
pub(super) struct Door {
    pub(super) call: Call,
    place: Place,
    pub(super) own: Answer,
    /// How a token that nobody issued is answered.
    pub(super) unissued: Answer,
    /// Two answers to A are alike.
    steady: bool,
}

/// Where the call is made.
enum Place {
    /// Everybody comes for the first time, and opens a session on the way where one is wanted.
    Anew,
    /// In a session that A has opened.
    Within(String),
    /// It is the opening itself.
    Opening,
    /// It is the stream of a session that A has opened.
    Stream(String),
}

/// Sees that there are tokens here, and that A's is good.
///
/// # Errors
/// The missing precondition, by name.
pub(super) async fn enter(trial: &mut Trial<'_, '_>) -> Result<Door, Halt> {
    real(trial)?;
    let call = harmless(trial).remove(0);
    enter_with(trial, call).await
}

/// The same with a call that is given.
pub(super) async fn enter_with(trial: &mut Trial<'_, '_>, call: Call) -> Result<Door, Halt> {
    let own = first_time(trial, "own-token", Who::A, &call).await?;
    let again = first_time(trial, "own-token", Who::A, &call).await?;
    lets_in(&[&own, &again])?;
    let unissued = first_time(trial, "unissued-token", Who::Impostor, &call).await?;
    let steady = !own.is_unlike(&again);
    Ok(Door { call, place: Place::Anew, own, unissued, steady })
}

/// The same within a session that A has opened: a server may look at a token when a session begins, and not after that.
/// `None` where there are no sessions.
pub(super) async fn enter_session(trial: &mut Trial<'_, '_>) -> Result<Option<Door>, Halt> {
    let Some(id) = own_session(trial).await? else { return Ok(None) };
    // A server of both eras may have other tools in its sessions: a listing is there in any case.
    let mut calls = harmless(trial).into_iter().take(1).chain([Call::new("tools/list", Object::new())]);
    let (call, own) = loop {
        let Some(call) = calls.next() else { return Ok(None) };
        let visit = Visit { verb: Verb::Post, session: Some(&id), call: Some(&call) };
        let own = trial.visit("own-token", Who::A, &visit).await?;
        if !matches!(own.disposition, Disposition::Refused(_)) {
            break (call, own);
        }
    };
    lets_in(&[&own])?;
    let visit = Visit { verb: Verb::Post, session: Some(&id), call: Some(&call) };
    let unissued = trial.visit("unissued-token", Who::Impostor, &visit).await?;
    Ok(Some(Door { call, place: Place::Within(id), own, unissued, steady: false }))
}

/// The same at the opening of a session alone: a server may look at a token in every call, and not there. `None` where there
/// are no sessions.
pub(super) async fn enter_opening(trial: &mut Trial<'_, '_>) -> Result<Option<Door>, Halt> {
    let Issues::Ids(_) = trial.session.target.issues_sessions().await else { return Ok(None) };
    let call = trial.session.target.opening();
    let visit = Visit { verb: Verb::Post, session: None, call: Some(&call) };
    let own = trial.visit("own-token", Who::A, &visit).await?;
    lets_in(&[&own])?;
    let unissued = trial.visit("unissued-token", Who::Impostor, &visit).await?;
    Ok(Some(Door { call, place: Place::Opening, own, unissued, steady: false }))
}

/// The same at the stream of a session that A has opened. `None` where there are no sessions, or no streams.
pub(super) async fn enter_stream(trial: &mut Trial<'_, '_>) -> Result<Option<Door>, Halt> {
    let Some(id) = own_session(trial).await? else { return Ok(None) };
    let visit = Visit { verb: Verb::Get, session: Some(&id), call: None };
    let own = trial.visit("own-token", Who::A, &visit).await?;
    if own.disposition != Disposition::Accepted {
        return Ok(None);
    }
    let unissued = trial.visit("unissued-token", Who::Impostor, &visit).await?;
    let call = trial.session.target.opening();
    Ok(Some(Door { call, place: Place::Stream(id), own, unissued, steady: false }))
}

/// A session that A opens with its own token; `None` where there are no sessions.
pub(super) async fn own_session(trial: &mut Trial<'_, '_>) -> Result<Option<String>, Halt> {
    let Issues::Ids(_) = trial.session.target.issues_sessions().await else { return Ok(None) };
    let opening = trial.session.target.opening();
    let opened = trial.visit("opens", Who::A, &Visit { verb: Verb::Post, session: None, call: Some(&opening) }).await?;
    lets_in(&[&opened])?;
    if let Some(id) = &opened.issued {
        trial.session.target.ready(Who::A, id).await;
    }
    Ok(opened.issued)
}

fn lets_in(answers: &[&Answer]) -> Result<(), Halt> {
    for answer in answers {
        if answer.disposition != Disposition::Accepted {
            let detail = format!("A's own call was not carried out: {}", answer.said());
            return Err(answer.unclear().unwrap_or_else(|| Halt::errored(Reason::ControlFailed, detail)));
        }
    }
    Ok(())
}

/// There are tokens over HTTP only, and only real ones show anything.
pub(super) fn real(trial: &Trial<'_, '_>) -> Result<(), Halt> {
    let target = &trial.session.target;
    if target.transport() != "http" {
        let detail = "over stdio there are no tokens: the operating system says who starts a server";
        return Err(Halt::skipped(Reason::NeedsHttp, detail));
    }
    if target.identities().of(Who::A).synthetic {
        let detail =
            "give a credential of a real user as identity A: what is said to one that the probe made up shows nothing";
        return Err(Halt::skipped(Reason::NeedsIdentityA, detail));
    }
    Ok(())
}

/// Calls that change nothing, the most telling first: a tool that tells its caller who it is, those that only read, or the
/// listing.
pub(super) fn harmless(trial: &Trial<'_, '_>) -> Vec<Call> {
    let tools = &trial.session.surface.tools;
    let reads = |tool: &&Tool| tool.read_only && discovery::required(tool).is_empty() && trial.session.may_call(tool);
    let mut calls: Vec<Call> = errand::who_am_i(tools, |tool| trial.session.may_call(tool)).into_iter().collect();
    for tool in tools.iter().filter(reads) {
        let call = discovery::tool_call(tool, Object::new());
        if calls.len() < MOST_HARMLESS && calls.iter().all(|known| known.title() != call.title()) {
            calls.push(call);
        }
    }
    if calls.is_empty() { vec![Call::new("tools/list", Object::new())] } else { calls }
}

/// Calls by which something is made that the run makes anyway.
pub(super) fn mints(trial: &mut Trial<'_, '_>) -> Vec<Call> {
    let kinds: Vec<String> = trial.session.map.kinds.iter().map(|kind| kind.mint.clone()).collect();
    let mut calls = Vec::new();
    for name in kinds.into_iter().take(MOST_MINTS) {
        let Some(tool) = trial.session.surface.tool(&name).cloned() else { continue };
        let canary = trial.canary(Who::A);
        let fixed = trial.session.profile.fixed(&name);
        let wish = Wish { canary: Some(&canary), fixed, optional_text: true };
        calls.extend(arguments::synthesise(&tool.input, &wish).map(|arguments| discovery::tool_call(&tool, arguments)));
    }
    calls
}

const MOST_MINTS: usize = 2;
/// How many calls are tried at most.
const MOST_HARMLESS: usize = 6;

/// Makes the call as the door's, or as somebody who comes for the first time.
pub(super) async fn knock(trial: &mut Trial<'_, '_>, step: &str, who: Who, door: &Door) -> Result<Answer, Halt> {
    let session = match &door.place {
        Place::Anew => return first_time(trial, step, who, &door.call).await,
        Place::Stream(id) => {
            return trial.visit(step, who, &Visit { verb: Verb::Get, session: Some(id), call: None }).await;
        }
        Place::Within(id) => Some(id.as_str()),
        Place::Opening => None,
    };
    trial.visit(step, who, &Visit { verb: Verb::Post, session, call: Some(&door.call) }).await
}

/// Makes the call as somebody who comes for the first time: where the server wants sessions, one is opened on the way, and
/// a refusal to open it is the answer.
pub(super) async fn first_time(trial: &mut Trial<'_, '_>, step: &str, who: Who, call: &Call) -> Result<Answer, Halt> {
    if *trial.session.target.era() == Era::Modern {
        return trial.call(step, who, call).await;
    }
    trial.session.target.issues_sessions().await;
    let opening = trial.session.target.opening();
    let visit = Visit { verb: Verb::Post, session: None, call: Some(&opening) };
    let opened = trial.visit(&format!("{step}-opens"), who, &visit).await?;
    if opened.disposition != Disposition::Accepted {
        return Ok(opened);
    }
    if let Some(id) = &opened.issued {
        trial.session.target.ready(who, id).await;
    }
    trial.visit(step, who, &Visit { verb: Verb::Post, session: opened.issued.as_deref(), call: Some(call) }).await
}

impl Door {
    /// The controls, where a token that nobody issued must have been refused.
    pub(super) fn controls(&self) -> Result<Controls, Halt> {
        let controls = self.any_controls()?;
        match controls.negative() {
            Negative::Refused(_) => Ok(controls),
            _ => {
                let said = self.unissued.said();
                let detail =
                    format!("a token that nobody issued is taken as well: tokens are not looked at here: {said}");
                Err(Halt::skipped(Reason::NothingWasRefused, detail))
            }
        }
    }

    /// The controls, whatever came of the token that nobody issued.
    pub(super) fn any_controls(&self) -> Result<Controls, Halt> {
        let mut plan = ControlPlan::default();
        plan.accepts(&self.own, |said| Halt::errored(Reason::ControlFailed, said))?;
        plan.presents_unissued(&self.unissued, &[])?;
        plan.hold()
    }

    /// What the call is, as the row's name.
    pub(super) fn entry(&self) -> String {
        match self.place {
            Place::Within(_) => format!("{} in a session of A's", self.call.title()),
            Place::Anew | Place::Opening => self.call.title(),
            Place::Stream(_) => "GET in a session of A's".to_owned(),
        }
    }
}

/// A subject that should be refused: the same call by somebody else, twice, and A's own once more after it.
pub(super) struct Subject {
    pub(super) answer: Answer,
    pub(super) after: Answer,
}

/// Tries it.
pub(super) async fn subject(trial: &mut Trial<'_, '_>, door: &Door, who: Who) -> Result<Subject, Halt> {
    let answer = knock(trial, "subject", who, door).await?;
    let again = knock(trial, "subject-again", who, door).await?;
    let after = knock(trial, "own-token-again", Who::A, door).await?;
    if let Some(halt) = answer.unclear().or_else(|| again.unclear()) {
        return Err(halt);
    }
    if answer.disposition.word() != again.disposition.word() {
        return Err(Halt::errored(Reason::Unstable, "the same call was taken once and refused once"));
    }
    if after.disposition != Disposition::Accepted {
        let detail = format!("afterwards A's own call was not carried out: {}", after.said());
        return Err(after.unclear().unwrap_or_else(|| Halt::errored(Reason::ControlFailed, detail)));
    }
    Ok(Subject { answer, after })
}

/// A server may know guests, and tell them so: what a guest may do beyond being told, this call does not show.
pub(super) fn is_no_guest(door: &Door, subject: &Subject) -> Result<(), Halt> {
    let said = subject.answer.said();
    let is_told = subject.answer.disposition == Disposition::Accepted && errand::names_its_caller(&door.call);
    if is_told && GUEST.is_match(&said) && !GUEST.is_match(&door.own.said()) {
        let detail = format!("without a token the caller is told `{said}`; what else a guest may do was not seen");
        return Err(Halt::skipped(Reason::GuestsAreServed, detail));
    }
    Ok(())
}

static GUEST: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(guest|anon|anonymous|unauthenticated|not (logged|signed) in|visitor|public)\b")
        .expect("a pattern")
});

/// A call of a tool that there is not changes nothing: is it refused to A for its name, and to whoever shows no token for that?
/// Then calls are guarded, and what is open is only what is listed or public.
pub(super) async fn unknown_tool(trial: &mut Trial<'_, '_>, door: &Door) -> Result<Option<Row>, Halt> {
    let mut params = Object::new();
    params.insert("name".into(), NO_SUCH_TOOL.into());
    params.insert("arguments".into(), Value::Object(Object::new()));
    let call = Call::new("tools/call", params);
    let own = first_time(trial, "own-token", Who::A, &call).await?;
    let subject = first_time(trial, "subject", Who::Nobody, &call).await?;
    let wants_token = |answer: &Answer| {
        matches!(answer.disposition, Disposition::Refused(_)) && matches!(answer.reply.status, Some(401 | 403))
    };
    if wants_token(&own) || !wants_token(&subject) {
        return Ok(None);
    }
    let said = trial.clean(&subject.said());
    let detail = format!(
        "a call of a tool that there is not is refused to A for that, and without a token for the token: {said}"
    );
    let mut row = Row::refuted(&door.any_controls()?, "tools/call", Reason::TokenRefused, detail);
    row.story = vec![door.own.step, own.step, subject.step];
    Ok(Some(row))
}

const NO_SUCH_TOOL: &str = "handfast_no_such_tool";

/// What a confirmation and a refutation are called.
pub(super) struct Words {
    pub(super) taken: Reason,
    pub(super) severity: Severity,
    /// "a token ... was taken"
    pub(super) what: &'static str,
}

/// The row of a subject.
pub(super) fn row(trial: &Trial<'_, '_>, door: &Door, controls: &Controls, subject: &Subject, words: &Words) -> Row {
    let said = trial.clean(&subject.answer.said());
    let what = words.what;
    // "Please log in", in a result that is no error, is a refusal all the same.
    let politely = match (subject.answer.result(), door.own.result()) {
        (Some(told), Some(honest)) => likeness::says_no(told, honest),
        _ => false,
    };
    let mut row = match subject.answer.disposition {
        Disposition::Accepted if !politely && door.steady && subject.answer.is_unlike(&door.own) => {
            let text =
                format!("{what} is answered with what is like no answer to A, and no refusal that is known: {said}");
            Row::halted(&door.entry(), Halt::errored(Reason::Unclear, text))
        }
        Disposition::Accepted if !politely => {
            let detail = format!("{what} is let in: {said}");
            Row::confirmed(controls, &door.entry(), words.taken, words.severity, detail)
        }
        _ => Row::refuted(controls, &door.entry(), Reason::TokenRefused, format!("{what} is refused: {said}")),
    };
    row.story = [&door.own, &door.unissued, &subject.answer, &subject.after].map(|answer| answer.step).to_vec();
    row
}
