//! What there is to do in a session: a harmless call, a tool that tells whom the server takes its caller for, and a pair of
//! tools of which one keeps what the other shows. Found by calling them as A, in sessions of A's own.

use serde_json::Value;

use crate::{
    arguments::{self, Wish},
    canary::Canary,
    discovery::{self, names},
    disposition::Disposition,
    identity::Who,
    marker,
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
}

/// Two tools: one keeps a text, the other shows it, in the same session and in no other of the same caller.
#[derive(Debug, Clone)]
pub struct Memory {
    write: Tool,
    /// Shows what is kept.
    pub read: Call,
}

impl Errand {
    /// One that every server knows.
    pub fn plain(method: &str) -> Self {
        Self { call: Call::new(method, Object::new()), who_am_i: None, memory: None }
    }
}

impl Memory {
    /// Keeps a canary.
    pub fn write(&self, canary: &Canary) -> Option<Call> {
        kept(&self.write, canary)
    }
}

fn kept(tool: &Tool, canary: &Canary) -> Option<Call> {
    let wish = Wish { canary: Some(canary), optional_text: true, ..Wish::default() };
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

/// Looks for what there is to do. `first` and `second` are two sessions of A's; `plain` works in both, and `listed` is what
/// it was answered with.
///
/// # Errors
/// A [`Halt`] when the run's bounds are reached or the server is gone.
pub async fn find(
    trial: &mut Trial<'_, '_>,
    first: &str,
    listed: &Answer,
    second: &str,
    plain: Errand,
) -> Result<Errand, Halt> {
    let nodes = listed.result().and_then(|result| result.get("tools")?.as_array().cloned());
    let tools: Vec<Tool> = nodes.iter().flatten().take(MOST_TOOLS).filter_map(surface::tool).collect();
    let who_am_i = match who_am_i(&tools, |tool| trial.session.may_call(tool)) {
        Some(call) => {
            let told = post(trial, "who-am-i", first, &call).await?;
            (told.disposition == Disposition::Accepted).then_some(call)
        }
        None => None,
    };
    let memory = memory(trial, &tools, first, second).await?;
    let call = memory.as_ref().map(|memory| memory.read.clone()).or_else(|| who_am_i.clone()).unwrap_or(plain.call);
    Ok(Errand { call, who_am_i, memory })
}

async fn memory(trial: &mut Trial<'_, '_>, tools: &[Tool], first: &str, second: &str) -> Result<Option<Memory>, Halt> {
    let may = |tool: &&Tool| trial.session.may_call(tool);
    let named =
        |tool: &Tool, known: &[&str]| names::words(&tool.name).iter().any(|word| known.contains(&word.as_str()));
    let writers: Vec<Tool> = tools
        .iter()
        .filter(may)
        .filter(|tool| !tool.read_only && named(tool, &KEEPING))
        .filter(|tool| discovery::required(tool).iter().all(|name| !names::names_a_handle(name)))
        .take(MOST_PAIRED)
        .cloned()
        .collect();
    let readers: Vec<Tool> = tools
        .iter()
        .filter(may)
        .filter(|tool| discovery::required(tool).is_empty() && (tool.read_only || named(tool, &SHOWING)))
        .filter(|tool| !WHO_AM_I.contains(&names::words(&tool.name).join("_").as_str()))
        .take(MOST_PAIRED)
        .cloned()
        .collect();
    for write in writers.into_iter().filter(|_| !readers.is_empty()) {
        let canary = trial.canary(Who::A);
        let Some(keep) = kept(&write, &canary) else { continue };
        if post(trial, "keep", first, &keep).await?.disposition != Disposition::Accepted {
            continue;
        }
        for tool in &readers {
            let Ok(arguments) = arguments::synthesise(&tool.input, &Wish::default()) else { continue };
            let read = discovery::tool_call(tool, arguments);
            let shows = |answer: &Answer| shown(answer, &canary);
            if !shows(&post(trial, "show", first, &read).await?) {
                continue;
            }
            // What another session of the same user shows as well is not kept by the session.
            let elsewhere = post(trial, "show-elsewhere", second, &read).await?;
            let accepted = elsewhere.disposition == Disposition::Accepted;
            if accepted && !shows(&elsewhere) && shows(&post(trial, "show", first, &read).await?) {
                return Ok(Some(Memory { write, read }));
            }
        }
    }
    Ok(None)
}

/// Whether an answer shows a canary that its caller did not send.
pub fn shown(answer: &Answer, canary: &Canary) -> bool {
    answer.result().is_some_and(|result| marker::find_canary(result, canary, &answer.sent).is_some())
}

async fn post(trial: &mut Trial<'_, '_>, step: &str, session: &str, call: &Call) -> Result<Answer, Halt> {
    trial.visit(step, Who::A, &Visit { verb: Verb::Post, session: Some(session), call: Some(call) }).await
}

const MOST_TOOLS: usize = 500;
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
