//! What there is to do in a session: a harmless call, a tool that tells whom the server takes its caller for, and a pair of
//! tools of which one keeps what the other shows. Found by calling them as A, in sessions of A's own.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    arguments::{self, Wish},
    canary::Canary,
    discovery::{self, names},
    disposition::Disposition,
    identity::Who,
    likeness, marker,
    surface::{self, Tool},
    target::{
        Call,
        session::{Verb, Visit},
    },
    trial::{Answer, Trial},
    verdict::Halt,
};
use handfast_wire::message::Object;

/// What there is to do in a session.
#[derive(Debug, Clone)]
pub struct Errand {
    /// Done to see whether a session works: the best of the following, or a listing.
    pub call: Call,
    /// Tells who the caller is.
    pub who_am_i: Option<Call>,
    /// Keeps something for as long as the session lasts.
    pub memory: Option<Memory>,
    /// Further calls that change nothing and need nothing, and are answered in a session of A's.
    pub others: Vec<Call>,
    /// What the call is answered with in sessions of the callers' own, also where something is kept.
    pub honest: Vec<Value>,
}

/// Two tools: one keeps a text, the other shows it, in the same session and in no other of the same caller.
#[derive(Debug, Clone)]
pub struct Memory {
    write: Tool,
    /// Arguments that both take, such as the name under which something is kept.
    shared: BTreeMap<String, Value>,
    /// Shows what is kept.
    pub read: Call,
}

impl Errand {
    /// One that every server knows.
    pub fn plain(method: &str) -> Self {
        Self::only(Call::new(method, Object::new()))
    }

    /// This call alone.
    pub fn only(call: Call) -> Self {
        Self { call, who_am_i: None, memory: None, others: Vec::new(), honest: Vec::new() }
    }

    /// Whether a result refuses what was asked: "your session has expired, please start again" is no error, and no yes.
    pub fn is_declined(&self, call: &Call, result: &Value) -> bool {
        self.knows(call) && self.honest.iter().all(|honest| likeness::says_gone(result, honest))
    }

    /// Whether a result says something that no honest answer says: a no in words that nobody knows, perhaps.
    pub fn is_unlike(&self, call: &Call, result: &Value) -> bool {
        self.knows(call) && self.honest.iter().all(|honest| !likeness::alike(result, honest))
    }

    fn knows(&self, call: &Call) -> bool {
        *call == self.call && !self.honest.is_empty()
    }
}

impl Memory {
    /// Keeps a canary.
    pub fn write(&self, canary: &Canary) -> Option<Call> {
        kept(&self.write, &self.shared, canary)
    }
}

fn kept(tool: &Tool, shared: &BTreeMap<String, Value>, canary: &Canary) -> Option<Call> {
    let wish = Wish { canary: Some(canary), optional_text: true, fixed: shared.clone() };
    let arguments = arguments::synthesise(&tool.input, &wish).ok()?;
    let planted = canary.is_in(&Value::Object(arguments.clone()).to_string());
    planted.then(|| discovery::tool_call(tool, arguments))
}

/// The call of a tool that tells its caller who it is, and needs nothing for that.
pub fn who_am_i(tools: &[Tool], may_call: impl Fn(&Tool) -> bool) -> Option<Call> {
    let asks = |tool: &&Tool| {
        let name = names::words(&tool.name).join("_");
        WHO_AM_I.contains(&name.as_str()) && discovery::required(tool).is_empty() && may_call(tool)
    };
    let tool = tools.iter().find(asks)?;
    Some(discovery::tool_call(tool, arguments::synthesise(&tool.input, &Wish::default()).ok()?))
}

/// What a session's tools seem to be good for.
#[derive(Debug)]
pub struct Seen {
    who_am_i: Option<Call>,
    /// Two tools, and what the first was given to keep.
    pairs: Vec<(Memory, Canary)>,
    others: Vec<Call>,
}

/// Looks at the tools of a session of A's: who tells the caller's name, and who shows what another kept.
///
/// # Errors
/// A [`Halt`] when the run's bounds are reached or the server is gone.
pub async fn look(trial: &mut Trial<'_, '_>, session: &str, listed: &Answer) -> Result<Seen, Halt> {
    let nodes = listed.result().and_then(|result| result.get("tools")?.as_array().cloned());
    let tools: Vec<Tool> = nodes.iter().flatten().take(MOST_TOOLS).filter_map(surface::tool).collect();
    let who_am_i = match who_am_i(&tools, |tool| trial.session.may_call(tool)) {
        Some(call) => {
            let told = post(trial, "who-am-i", session, &call).await?;
            (told.disposition == Disposition::Accepted).then_some(call)
        }
        None => None,
    };
    let (writers, readers) = (writers(trial, &tools), readers(trial, &tools));
    let mut pairs = Vec::new();
    for write in writers.into_iter().filter(|_| !readers.is_empty()) {
        let canary = trial.canary(Who::A);
        let mut kept_under: Option<BTreeMap<String, Value>> = None;
        // Those that need nothing come first: what is kept under no name is kept once for all of them.
        for tool in &readers {
            let Some(shared) = shared(&write, tool) else { continue };
            if kept_under.as_ref() != Some(&shared) {
                let Some(keep) = kept(&write, &shared, &canary) else { continue };
                if post(trial, "keep", session, &keep).await?.disposition != Disposition::Accepted {
                    continue;
                }
                kept_under = Some(shared.clone());
            }
            let wish = Wish { fixed: shared.clone(), ..Wish::default() };
            let Ok(arguments) = arguments::synthesise(&tool.input, &wish) else { continue };
            let read = discovery::tool_call(tool, arguments);
            if shown(&post(trial, "show", session, &read).await?, &canary) {
                pairs.push((Memory { write: write.clone(), shared, read }, canary.clone()));
            }
        }
    }
    let reads = |tool: &&Tool| tool.read_only && discovery::required(tool).is_empty() && trial.session.may_call(tool);
    let tools: Vec<Call> =
        tools.iter().filter(reads).take(MOST_OTHERS).map(|tool| discovery::tool_call(tool, Object::new())).collect();
    let lists = ["resources/list", "prompts/list"].map(|method| Call::new(method, Object::new()));
    let mut others = Vec::new();
    for call in tools.into_iter().chain(lists) {
        if post(trial, "look", session, &call).await?.disposition == Disposition::Accepted {
            others.push(call);
        }
    }
    Ok(Seen { who_am_i, pairs, others })
}

/// What there is to do, by what is seen in a second session of A's: what that shows as well is not kept by the first.
/// `plain` works in both.
///
/// # Errors
/// As [`look`].
pub async fn choose(
    trial: &mut Trial<'_, '_>,
    seen: Seen,
    first: &str,
    second: &str,
    plain: Errand,
) -> Result<Errand, Halt> {
    let mut memory = None;
    for (pair, canary) in seen.pairs {
        let elsewhere = post(trial, "show-elsewhere", second, &pair.read).await?;
        let apart = elsewhere.disposition == Disposition::Accepted && !shown(&elsewhere, &canary);
        if !apart {
            continue;
        }
        let again = post(trial, "show", first, &pair.read).await?;
        // A server that keeps one session for each caller has ended the first: then it was the session that kept it.
        if shown(&again, &canary) || matches!(again.disposition, Disposition::Refused(_)) {
            memory = Some(pair);
            break;
        }
    }
    let others = seen.others;
    let best = memory.as_ref().map(|memory: &Memory| memory.read.clone()).or_else(|| seen.who_am_i.clone());
    Ok(Errand { call: best.unwrap_or(plain.call), who_am_i: seen.who_am_i, memory, others, honest: Vec::new() })
}

/// Tools that keep a text and need nothing else.
pub(crate) fn writers(trial: &Trial<'_, '_>, tools: &[Tool]) -> Vec<Tool> {
    let keeps = |tool: &&Tool| {
        let needs_a_handle = discovery::required(tool).iter().any(|name| names::names_a_handle(name));
        trial.session.may_call(tool) && !tool.read_only && named(tool, &KEEPING) && !needs_a_handle
    };
    tools.iter().filter(keeps).take(MOST_PAIRED).cloned().collect()
}

/// What a reader needs, where the writer takes all of it as well: the same text is given to both. `None` where it does not.
fn shared(write: &Tool, read: &Tool) -> Option<BTreeMap<String, Value>> {
    let takes = |name: &str| {
        let kind = write.input.get("properties")?.get(name)?.get("type")?.as_str()?;
        (kind == "string").then_some(())
    };
    let needed = discovery::required(read);
    let known = needed.iter().all(|name| takes(name).is_some() && !names::names_a_handle(name));
    known.then(|| needed.into_iter().map(|name| (name.to_string(), NAME.into())).collect())
}

/// Tools that show something, those first that need nothing for it.
pub(crate) fn readers(trial: &Trial<'_, '_>, tools: &[Tool]) -> Vec<Tool> {
    let shows = |tool: &&Tool| {
        let is_who = WHO_AM_I.contains(&names::words(&tool.name).join("_").as_str());
        let shows = tool.read_only || named(tool, &SHOWING);
        trial.session.may_call(tool) && shows && !is_who && discovery::required(tool).len() <= MOST_NAMES
    };
    let mut readers: Vec<Tool> = tools.iter().filter(shows).cloned().collect();
    readers.sort_by_key(|tool| discovery::required(tool).len());
    readers.truncate(MOST_PAIRED);
    readers
}

fn named(tool: &Tool, known: &[&str]) -> bool {
    names::words(&tool.name).iter().any(|word| known.contains(&word.as_str()))
}

/// Whether an answer shows a canary that its caller did not send.
pub fn shown(answer: &Answer, canary: &Canary) -> bool {
    answer.result().is_some_and(|result| marker::find_canary(result, canary, &answer.sent).is_some())
}

/// Whether a call is that of a tool that tells its caller who it is.
pub fn names_its_caller(call: &Call) -> bool {
    let name = call.params.get("name").and_then(Value::as_str).unwrap_or_default();
    WHO_AM_I.contains(&names::words(name).join("_").as_str())
}

async fn post(trial: &mut Trial<'_, '_>, step: &str, session: &str, call: &Call) -> Result<Answer, Halt> {
    trial.visit(step, Who::A, &Visit { verb: Verb::Post, session: Some(session), call: Some(call) }).await
}

const MOST_TOOLS: usize = 500;
/// The text that stands for the name of what is kept.
const NAME: &str = "handfast-note";
/// How many such a reader may need.
const MOST_NAMES: usize = 2;
/// How many other tools are tried.
const MOST_OTHERS: usize = 3;
/// How many tools of each kind are tried with each other.
const MOST_PAIRED: usize = 4;
const KEEPING: [&str; 14] = [
    "remember",
    "store",
    "set",
    "save",
    "write",
    "add",
    "note",
    "put",
    "append",
    "push",
    "keep",
    "record",
    "increment",
    "update",
];
const SHOWING: [&str; 14] = [
    "recall", "get", "read", "list", "show", "fetch", "load", "view", "history", "notes", "memory", "state", "status",
    "retrieve",
];
const WHO_AM_I: [&str; 9] =
    ["whoami", "who_am_i", "get_me", "me", "current_user", "get_current_user", "my_profile", "get_profile", "identity"];
