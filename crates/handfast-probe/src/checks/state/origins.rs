//! Where flows begin: tools, prompts and resources that answer `input_required` with a `requestState`.

use std::collections::BTreeMap;

use handfast_wire::{message::Object, result::InputRequired};

use crate::{
    arguments::{self, Wish},
    discovery::{self, Entry, emitted, names},
    disposition::Disposition,
    identity::Who,
    surface::Tool,
    target::{Call, Era},
    trial::{Answer, Trial},
    verdict::{Halt, Reason, Verdict},
};

/// A call that makes the server ask.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(in crate::checks) entry: String,
    what: What,
    /// Arguments that take free text are filled in, also those that need not be.
    with_text: bool,
}

#[derive(Debug, Clone)]
enum What {
    Tool(String),
    Prompt(String),
    Resource(String),
}

impl Origin {
    fn new(method: &str, name: &str, what: What) -> Self {
        Self { entry: format!("{method} {name}"), what, with_text: false }
    }

    /// The same with every text that it takes, where only those were given that it needs.
    pub(super) fn with_text(&self) -> Self {
        Self { with_text: true, ..self.clone() }
    }

    /// Makes the first call of a flow: with the handles at hand, and where the answer will not do, with fresh ones, because what
    /// was called before may have used them up (`close_report`). `None` where no call can be made.
    pub(super) async fn begin(
        &self,
        trial: &mut Trial<'_, '_>,
        who: Who,
        step: &str,
        will_do: fn(&Answer) -> bool,
    ) -> Result<Option<(Call, Answer)>, Halt> {
        let Some(call) = self.call(trial, who).await? else { return Ok(None) };
        let answer = trial.call(step, who, &call).await?;
        if will_do(&answer) {
            return Ok(Some((call, answer)));
        }
        trial.session.purse.retain(|(letter, _), _| *letter != who.letter());
        let Some(call) = self.call(trial, who).await? else { return Ok(Some((call, answer))) };
        let answer = trial.call(step, who, &call).await?;
        Ok(Some((call, answer)))
    }

    /// A first-round call as somebody, with handles of their own; `None` where no call can be made.
    pub(in crate::checks) async fn call(&self, trial: &mut Trial<'_, '_>, who: Who) -> Result<Option<Call>, Halt> {
        let canary = trial.canary(who);
        match &self.what {
            What::Tool(name) => {
                let Some(tool) = trial.session.surface.tool(name).cloned() else { return Ok(None) };
                let fixed = discovery::supply(trial, who, &tool, &BTreeMap::new()).await?;
                let wish = Wish { canary: Some(&canary), fixed, optional_text: self.with_text };
                Ok(arguments::synthesise(&tool.input, &wish)
                    .ok()
                    .map(|arguments| discovery::tool_call(&tool, arguments)))
            }
            What::Prompt(name) => {
                let listed = trial.session.surface.prompts.iter().find(|prompt| prompt.name == *name).cloned();
                let mut arguments = Object::new();
                for (argument, required) in listed.map(|prompt| prompt.arguments).unwrap_or_default() {
                    let entry = Entry::Prompt { prompt: name.clone(), argument: argument.clone() };
                    match owned(trial, who, &entry).await? {
                        Some(handle) => drop(arguments.insert(argument, handle.into())),
                        None if required => drop(arguments.insert(argument, canary.long.clone().into())),
                        None => {}
                    }
                }
                Ok(Some(discovery::prompt_call(name, arguments)))
            }
            What::Resource(uri) => {
                let Some(template) = trial.session.surface.templates.iter().find(|listed| listed.uri == *uri).cloned()
                else {
                    return Ok(None);
                };
                let mut values = BTreeMap::new();
                for variable in &template.variables {
                    let entry = Entry::Resource { template: uri.clone(), variable: variable.clone() };
                    let value = owned(trial, who, &entry).await?.unwrap_or_else(|| canary.short.clone());
                    values.insert(variable.clone(), value);
                }
                Ok(template.expand(|name| values.get(name).cloned()).map(|uri| discovery::resource_call(&uri)))
            }
        }
    }
}

/// A handle of this caller's own for an entry point, as text, where the map has one.
async fn owned(trial: &mut Trial<'_, '_>, who: Who, entry: &Entry) -> Result<Option<String>, Halt> {
    match trial.session.map.kinds.iter().position(|kind| kind.entries.contains(entry)) {
        Some(kind) => Ok(discovery::own_handle(trial, who, kind).await?.map(|handle| emitted::text_of(&handle))),
        None => Ok(None),
    }
}

/// Calls what may be called, the likeliest first, once in a run, and returns what asked with a state, and what was left
/// out if anything was.
///
/// # Errors
/// [`Reason::NothingReturnedInputRequired`] where nothing did.
pub(in crate::checks) async fn find(trial: &mut Trial<'_, '_>) -> Result<Asking, Halt> {
    if let Some(asking) = &trial.session.asking {
        return asking.clone();
    }
    let asking = look(trial).await;
    // That there was no answer is nothing to build on.
    if !asking.as_ref().is_err_and(|halt| halt.verdict == Verdict::Errored) {
        trial.session.asking = Some(asking.clone());
    }
    asking
}

/// What asked with a state, and what was left out, if anything was.
pub(crate) type Asking = (Vec<Origin>, Option<Halt>);

async fn look(trial: &mut Trial<'_, '_>) -> Result<Asking, Halt> {
    if let Era::Legacy(version) = trial.session.target.era() {
        let detail = format!("the server speaks {version}, which has no requestState");
        return Err(Halt::skipped(Reason::NothingReturnedInputRequired, detail));
    }
    let surface = &trial.session.surface;
    let mut tools: Vec<&Tool> = surface.tools.iter().filter(|tool| trial.session.may_call(tool)).collect();
    tools.sort_by_key(|tool| std::cmp::Reverse(likelihood(tool)));
    let tools: Vec<Origin> =
        tools.into_iter().map(|tool| Origin::new("tools/call", &tool.name, What::Tool(tool.name.clone()))).collect();
    let prompt = |name: &String| Origin::new("prompts/get", name, What::Prompt(name.clone()));
    let prompts: Vec<Origin> = surface.prompts.iter().map(|listed| prompt(&listed.name)).collect();
    let resource = |uri: &String| Origin::new("resources/read", uri, What::Resource(uri.clone()));
    let resources: Vec<Origin> = surface.templates.iter().map(|listed| resource(&listed.uri)).collect();

    let mut found = Vec::new();
    let (mut calls, mut unclear, mut refusal) = (0, None, String::new());
    let mut unfinished = 0;
    for candidates in [tools, prompts, resources] {
        unfinished += candidates.len().saturating_sub(MOST_CALLED);
        for origin in candidates.into_iter().take(MOST_CALLED) {
            let may_ask = |answer: &Answer| !matches!(answer.disposition, Disposition::Refused(_));
            // A tool that takes longer than --timeout is passed over; a server that stopped answering ends the run.
            let Some((_, answer)) = origin.begin(trial, Who::A, "find", may_ask).await? else { continue };
            calls += 1;
            if let Disposition::Refused(_) = answer.disposition {
                refusal = format!("; {} was refused: {}", origin.entry, trial.clean(&answer.said()));
            }
            let doubt = answer.unclear();
            if let Disposition::Asked(InputRequired { state, requests }) = answer.disposition {
                // Only questions, no state: there is nothing to alter in this round, but there may be in the next.
                if state.is_some() || !requests.is_empty() {
                    found.push(origin);
                }
            } else if let Some(halt) = doubt {
                // An answer that says neither yes nor no might have been a question.
                unclear.get_or_insert(Halt { detail: format!("{}: {}", origin.entry, halt.detail), ..halt });
            }
        }
    }
    if let (true, Some(halt)) = (found.is_empty(), unclear) {
        return Err(halt);
    }
    if found.is_empty() {
        let left = trial.session.map.left_out_text();
        let detail = format!(
            "{calls} calls were made, and none was answered with input_required and a requestState{refusal}{left}"
        );
        return Err(Halt::skipped(Reason::NothingReturnedInputRequired, detail));
    }
    let unfinished = (unfinished > 0).then(|| {
        Halt::errored(Reason::CallLimit, format!("{unfinished} tools, prompts or resources were not called at all"))
    });
    Ok((found, unfinished))
}

/// How likely a tool asks before it acts.
fn likelihood(tool: &Tool) -> usize {
    let words: Vec<String> = names::words(&tool.name).into_iter().chain(names::words(&tool.description)).collect();
    let asks = words.iter().filter(|word| ASKING.contains(&word.as_str())).count();
    asks + usize::from(!tool.read_only)
}

const MOST_CALLED: usize = 300;
const ASKING: [&str; 18] = [
    "confirm",
    "confirmation",
    "confirms",
    "approve",
    "approval",
    "approves",
    "ask",
    "asks",
    "elicit",
    "elicits",
    "input",
    "consent",
    "archive",
    "checkout",
    "deploy",
    "publish",
    "submit",
    "order",
];
