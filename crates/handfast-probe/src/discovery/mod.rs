//! What is a handle here? A value that one tool handed out and that another tool, a resource template or a prompt accepts.
//! Found by calling the tools that look as if they mint something, as A, and joining what they emit with what others take.

pub mod emitted;
mod join;
pub mod names;

use std::collections::BTreeMap;

use handfast_wire::{headers, message::Object, pointer};
use serde_json::Value;

use crate::{
    arguments::{self, Wish},
    canary::Canary,
    disposition::Disposition,
    identity::Who,
    surface::{Surface, Tool},
    target::Call,
    trial::{Answer, Session, Trial},
    verdict::Halt,
};
use emitted::{Emitted, Spot};
use join::Taker;

/// One way in for a handle.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entry {
    /// An argument of a tool.
    Tool {
        /// The tool.
        tool: String,
        /// The argument.
        argument: String,
    },
    /// An argument of a prompt.
    Prompt {
        /// The prompt.
        prompt: String,
        /// The argument.
        argument: String,
    },
    /// A variable of a resource template.
    Resource {
        /// The URI template.
        template: String,
        /// The variable.
        variable: String,
    },
}

impl std::fmt::Display for Entry {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tool { tool, argument } => write!(out, "tools/call {tool}#{argument}"),
            Self::Prompt { prompt, argument } => write!(out, "prompts/get {prompt}#{argument}"),
            Self::Resource { template, variable } => write!(out, "resources/read {template}#{variable}"),
        }
    }
}

impl Entry {
    /// Reads what [`Display`](std::fmt::Display) writes.
    pub fn parse(text: &str) -> Option<Self> {
        let (method, rest) = text.split_once(' ')?;
        let (name, argument) =
            rest.rsplit_once('#').filter(|(name, argument)| !name.is_empty() && !argument.is_empty())?;
        let (name, argument) = (name.to_owned(), argument.to_owned());
        match method {
            "tools/call" => Some(Self::Tool { tool: name, argument }),
            "prompts/get" => Some(Self::Prompt { prompt: name, argument }),
            "resources/read" => Some(Self::Resource { template: name, variable: argument }),
            _ => None,
        }
    }
}

/// One kind of handle: where it comes from, and where it goes.
#[derive(Debug, Clone)]
pub struct Kind {
    /// The tool that mints it.
    pub mint: String,
    /// Where in its result the handle stands.
    pub spot: Spot,
    /// Who accepts it.
    pub entries: Vec<Entry>,
}

impl Kind {
    /// Joined by the operator's word: if A cannot use its own handle there, that is worth an error.
    pub fn is_by_profile(&self) -> bool {
        matches!(self.spot, Spot::Given(_))
    }
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Map {
    /// The kinds of handles, the most used first.
    pub kinds: Vec<Kind>,
    /// Tools that were called and handed nothing out.
    pub barren: Vec<String>,
    /// Tools for which no arguments could be made, and why.
    pub without_arguments: Vec<(String, String)>,
    /// The first answer to a minting call that said neither yes nor no.
    pub unclear: Option<(String, Halt)>,
    /// Tools left out because they look destructive or the profile denies them, and why.
    pub left_out: Vec<(String, String)>,
}

impl Map {
    /// How many tools were left out, as the end of a sentence; empty where none was.
    pub fn left_out_text(&self) -> String {
        match self.left_out.len() {
            0 => String::new(),
            count => format!("; {count} tools were left out as destructive (--include-destructive calls them)"),
        }
    }
}

/// Finds the handles of a server and puts them into the session's map. A profile with handles of its own is taken at its word.
///
/// # Errors
/// A [`Halt`] when the run's bounds are reached or the server is gone.
pub async fn explore(trial: &mut Trial<'_, '_>) -> Result<(), Halt> {
    let session = &mut trial.session;
    let left_out: Vec<(String, String)> =
        session.surface.tools.iter().filter_map(|tool| Some((tool.name.clone(), session.why_not(tool)?))).collect();
    session.map = session.profile.map().ok().flatten().unwrap_or_default();
    session.map.left_out = left_out;
    if !session.map.kinds.is_empty() {
        return Ok(());
    }
    // A second pass reaches tools that mint only within something that was minted: an item of a basket.
    let mut called = Vec::new();
    for _ in 0..PASSES {
        let mut found = Vec::new();
        for tool in minters(trial) {
            if called.contains(&tool.name) || called.len() >= MOST_MINTERS {
                continue;
            }
            called.push(tool.name.clone());
            found.extend(joins_of(trial, &tool).await?);
        }
        if found.is_empty() {
            break;
        }
        adopt(trial.session, found);
    }
    Ok(())
}

/// Tools that may mint something and whose required handles, if any, can be supplied; the likeliest first.
fn minters(trial: &Trial<'_, '_>) -> Vec<Tool> {
    let session = &trial.session;
    let mut tools: Vec<(i32, Tool)> = session
        .surface
        .tools
        .iter()
        .filter(|tool| session.may_call(tool))
        .filter(|tool| {
            required(tool)
                .iter()
                .all(|name| !looks_like_a_handle(tool, name) || supplier(&session.map, &tool.name, name).is_some())
        })
        .map(|tool| (likelihood(tool), tool.clone()))
        .filter(|(likelihood, _)| *likelihood > 0)
        .collect();
    tools.sort_by_key(|(likelihood, _)| std::cmp::Reverse(*likelihood));
    tools.into_iter().map(|(_, tool)| tool).collect()
}

fn looks_like_a_handle(tool: &Tool, argument: &str) -> bool {
    let schema = tool.input.pointer(&format!("/properties/{}", pointer::escape(argument)));
    let fixed_choice = schema.is_some_and(|schema| schema.get("enum").is_some() || schema.get("default").is_some());
    names::names_a_handle(argument) && !fixed_choice
}

/// How likely a tool mints something: by its verb, its description, its output.
fn likelihood(tool: &Tool) -> i32 {
    let words = names::words(&tool.name);
    let creates = words.iter().any(|word| MINT_VERBS.contains(&word.as_str()));
    let reads = words.first().is_some_and(|word| READ_VERBS.contains(&word.as_str()));
    let says_so = {
        let text = names::words(&tool.description);
        text.iter().any(|word| MINT_WORDS.contains(&word.as_str()))
            && text
                .iter()
                .any(|word| ["id", "ids", "handle", "token", "reference", "identifier"].contains(&word.as_str()))
    };
    let outputs = tool.output.get("properties").and_then(Value::as_object);
    let emits = outputs.is_some_and(|outputs| outputs.keys().any(|name| names::names_a_handle(name)));
    let takes = required(tool).iter().any(|name| looks_like_a_handle(tool, name));
    4 + if creates { 6 } else { 0 } + if says_so { 3 } else { 0 } + if emits { 3 } else { 0 }
        - if reads { 3 } else { 0 }
        - if takes { 2 } else { 0 }
}

async fn joins_of(trial: &mut Trial<'_, '_>, tool: &Tool) -> Result<Vec<Join>, Halt> {
    let answer = match mint_call(trial, Who::A, tool).await? {
        Ok((_, answer)) => answer,
        Err(reason) => {
            trial.session.map.without_arguments.push((tool.name.clone(), reason));
            return Ok(Vec::new());
        }
    };
    if let Some(halt) = answer.unclear() {
        trial.session.map.unclear.get_or_insert_with(|| (tool.name.clone(), halt));
        return Ok(Vec::new());
    }
    let Some(result) = answer.result().filter(|_| answer.disposition == Disposition::Accepted) else {
        trial.session.map.barren.push(tool.name.clone());
        return Ok(Vec::new());
    };
    let session = &trial.session;
    // What the probe planted earlier, or sent as a credential, is no handle when it comes back.
    let ours = |value: &Value, name: &str| {
        let text = emitted::text_of(value);
        let credentials =
            [Who::A, Who::B].map(|who| session.target.identities().of(who).credential().map(str::to_owned));
        let planted = match names::names_a_handle(name) {
            // `weekly-shop-17`, made of a label, is a handle all the same.
            true => session.canaries.is_one(&text),
            false => session.canaries.planted(&text),
        };
        planted || credentials.into_iter().flatten().any(|credential| text == credential)
    };
    let joins: Vec<Join> = emitted::emitted(result, &answer.sent)
        .into_iter()
        .filter(|value| !ours(&value.value, &value.name()))
        .map(|value| {
            let takers = join::takers(&trial.session.surface, tool, &value);
            (tool.clone(), value, takers)
        })
        .filter(|(_, _, takers)| !takers.is_empty())
        .collect();
    if joins.is_empty() {
        trial.session.map.barren.push(tool.name.clone());
    }
    Ok(joins)
}

/// What a tool handed out, and who takes it.
type Join = (Tool, Emitted, Vec<Taker>);

/// Each entry goes to the strongest join that reaches it; joins that keep an entry become kinds.
fn adopt(session: &mut Session<'_>, mut joins: Vec<Join>) {
    let covered = |map: &Map, entry: &Entry| map.kinds.iter().any(|kind| kind.entries.contains(entry));
    joins.sort_by_key(|(tool, _, takers)| {
        let strongest = takers.iter().map(|taker| taker.rank).min().unwrap_or(u8::MAX);
        (strongest, std::cmp::Reverse(likelihood(tool)), std::cmp::Reverse(takers.len()))
    });
    for (tool, Emitted { spot, value }, takers) in joins {
        let map = &mut session.map;
        let mut fresh: Vec<&Taker> = takers.iter().filter(|taker| !covered(map, &taker.entry)).collect();
        fresh.sort_by(|one, two| one.entry.cmp(&two.entry));
        if fresh.is_empty() || map.kinds.len() >= MOST_KINDS {
            continue;
        }
        map.kinds.push(Kind {
            mint: tool.name,
            spot,
            entries: fresh.into_iter().map(|taker| taker.entry.clone()).collect(),
        });
        // It was minted before anybody knew that it is a handle.
        session.minted.push((Who::A, session.map.kinds.len() - 1, value));
    }
}

/// Calls a tool with made-up arguments, as somebody, answering what it asks. First with the optional free text, where a
/// canary can be planted; if that is refused, with the required arguments alone. The inner error says why no call could be made.
pub async fn mint_call(
    trial: &mut Trial<'_, '_>,
    who: Who,
    tool: &Tool,
) -> Result<Result<(Canary, Answer), String>, Halt> {
    let mut last = Err("no arguments satisfy its schema".to_owned());
    let mut before: Option<Object> = None;
    for optional_text in [true, false] {
        let canary = trial.canary(who);
        let fixed = supply(trial, who, tool, &BTreeMap::new()).await?;
        let wish = Wish { canary: Some(&canary), fixed, optional_text };
        let arguments = match arguments::synthesise(&tool.input, &wish) {
            Ok(arguments) => arguments,
            Err(reason) => {
                last = last.or(Err(reason));
                continue;
            }
        };
        if before.as_ref().is_some_and(|before| before.keys().eq(arguments.keys())) {
            break;
        }
        let call = tool_call(tool, arguments.clone());
        before = Some(arguments);
        let answer = trial.complete("mint", who, &call).await?;
        let accepted = answer.disposition == Disposition::Accepted;
        last = Ok((canary, answer));
        if accepted {
            break;
        }
    }
    Ok(last)
}

/// A `tools/call` with these arguments, and the header mirrors that the tool's schema asks for.
pub fn tool_call(tool: &Tool, arguments: Object) -> Call {
    let arguments = Value::Object(arguments);
    let mut params = Object::new();
    params.insert("name".into(), tool.name.clone().into());
    let param_headers = headers::params(&tool.input, &arguments);
    params.insert("arguments".into(), arguments);
    Call { param_headers, ..Call::new("tools/call", params) }
}

/// Values for the required arguments of a tool that take handles of other kinds, minted for this caller where needed, and
/// what the profile fixes. `given` come first.
pub async fn supply(
    trial: &mut Trial<'_, '_>,
    who: Who,
    tool: &Tool,
    given: &BTreeMap<String, Value>,
) -> Result<BTreeMap<String, Value>, Halt> {
    let mut fixed = trial.session.profile.fixed(&tool.name);
    fixed.extend(given.clone());
    for argument in required(tool) {
        if fixed.contains_key(&argument) {
            continue;
        }
        let Some((kind, place)) = supplier(&trial.session.map, &tool.name, &argument) else { continue };
        if let Some(handle) = Box::pin(own_handle(trial, who, kind)).await? {
            let (argument, value) = placed(tool, &place, &handle, &handle, &Wish::default());
            fixed.insert(argument, value);
        }
    }
    Ok(fixed)
}

/// A handle of this kind that the caller owns: from the purse, or freshly minted into it.
pub async fn own_handle(trial: &mut Trial<'_, '_>, who: Who, kind: usize) -> Result<Option<Value>, Halt> {
    let key = (who.letter(), kind);
    if let Some(handle) = trial.session.purse.get(&key) {
        return Ok(Some(handle.clone()));
    }
    let Some(wanted) = trial.session.map.kinds.get(kind).cloned() else { return Ok(None) };
    let Some(tool) = trial.session.surface.tool(&wanted.mint).cloned() else { return Ok(None) };
    if trial.session.minting.contains(&kind) {
        return Ok(None);
    }
    trial.session.minting.push(kind);
    let minted = mint_call(trial, who, &tool).await;
    trial.session.minting.pop();
    let Ok((mark, answer)) = minted? else { return Ok(None) };
    let handle = answer.result().and_then(|result| emitted::again(result, &wanted.spot, &answer.sent, Some(&mark)));
    if let Some(handle) = &handle {
        trial.shorten(handle);
        trial.session.purse.insert(key, handle.clone());
    }
    Ok(handle)
}

/// The kind that fills an argument of a tool, and the place in the argument that it fills.
pub fn supplier(map: &Map, tool: &str, argument: &str) -> Option<(usize, String)> {
    let inside = format!("/{}/", pointer::escape(argument));
    let fills = |entry: &Entry| match entry {
        Entry::Tool { tool: own, argument: place }
            if own == tool && (place == argument || place.starts_with(&inside)) =>
        {
            Some(place.clone())
        }
        _ => None,
    };
    // A tool does not supply itself: that would never end.
    let kinds = map.kinds.iter().enumerate().filter(|(_, kind)| kind.mint != tool);
    kinds.into_iter().find_map(|(at, kind)| Some((at, kind.entries.iter().find_map(fills)?)))
}

/// A handle put into its place, and another into the others of the same list: the argument by name, and its whole value.
fn placed(tool: &Tool, place: &str, handle: &Value, beside: &Value, wish: &Wish<'_>) -> (String, Value) {
    let schemas = join::places(&tool.input);
    let schema = schemas.iter().find(|(known, _)| known == place).map_or(&Value::Null, |(_, schema)| *schema);
    let [fitted, beside] = [handle, beside].map(|value| join::fit(schema, value).unwrap_or_else(|| value.clone()));
    let Some((top, rest)) = place.strip_prefix('/').map(|path| path.split_once('/').unwrap_or((path, ""))) else {
        return (place.to_owned(), fitted);
    };
    let argument = pointer::last(&format!("/{top}"));
    let mut whole = arguments::member(&tool.input, &argument, wish);
    let rest = if rest.is_empty() { String::new() } else { format!("/{rest}") };
    match item_of(&rest) {
        None => drop(pointer::insert(&mut whole, &rest, fitted)),
        Some((list, at)) => {
            let made = whole.pointer(list).and_then(Value::as_array).map_or(0, Vec::len);
            let mut items = vec![beside; made.max(at + 1)];
            items[at] = fitted;
            pointer::insert(&mut whole, list, items.into());
        }
    }
    (argument, whole)
}

/// The list and the number of an item, where a place is one.
fn item_of(place: &str) -> Option<(&str, usize)> {
    let (list, at) = place.rsplit_once('/')?;
    Some((list, at.parse().ok().filter(|at| *at < MOST_ITEMS)?))
}

/// A handle of the caller's own for another argument of the same call, where that takes handles; a name space of its own.
async fn own_for(trial: &mut Trial<'_, '_>, who: Who, entry: &Entry) -> Result<Option<String>, Halt> {
    let kind = trial.session.map.kinds.iter().position(|kind| kind.entries.contains(entry));
    let Some(kind) = kind else { return Ok(None) };
    Ok(Box::pin(own_handle(trial, who, kind)).await?.map(|handle| emitted::text_of(&handle)))
}

/// What stands beside a handle in a list of several: one of the caller's own, which is no question.
async fn beside(trial: &mut Trial<'_, '_>, who: Who, entry: &Entry) -> Result<Option<Value>, Halt> {
    let kind = trial.session.map.kinds.iter().position(|kind| kind.entries.contains(entry));
    match kind.filter(|_| matches!(entry, Entry::Tool { argument, .. } if item_of(argument).is_some())) {
        Some(kind) => Box::pin(own_handle(trial, who, kind)).await,
        None => Ok(None),
    }
}

/// The names of a tool's required arguments.
pub fn required(tool: &Tool) -> Vec<String> {
    let names = tool.input.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A call that brings a handle to an entry point, with a canary in whatever free text the call needs. The inner error says
/// why no such call can be made.
pub async fn entry_call(
    trial: &mut Trial<'_, '_>,
    who: Who,
    entry: &Entry,
    handle: &Value,
) -> Result<Result<(Call, Canary), String>, Halt> {
    let beside = beside(trial, who, entry).await?;
    let canary = trial.canary(who);
    let text = emitted::text_of(handle);
    let call = match entry {
        Entry::Tool { tool, argument } => {
            let Some(tool) = trial.session.surface.tool(tool).cloned() else {
                return Ok(Err(format!("the server lists no tool `{tool}`")));
            };
            let wish = Wish { canary: Some(&canary), ..Wish::default() };
            let (argument, value) = placed(&tool, argument, handle, beside.as_ref().unwrap_or(handle), &wish);
            let given = BTreeMap::from([(argument.clone(), value)]);
            let fixed = supply(trial, who, &tool, &given).await?;
            let wish = Wish { canary: Some(&canary), fixed, optional_text: false };
            match arguments::synthesise(&tool.input, &wish) {
                // An optional argument that nothing asked for must still carry the handle.
                Ok(mut arguments) => {
                    arguments.entry(argument.clone()).or_insert_with(|| given[&argument].clone());
                    tool_call(&tool, arguments)
                }
                Err(reason) => return Ok(Err(reason)),
            }
        }
        Entry::Prompt { prompt, argument } => {
            let listed = trial.session.surface.prompts.iter().find(|listed| listed.name == *prompt).cloned();
            let mut arguments = Object::new();
            for (name, required) in listed.map(|listed| listed.arguments).unwrap_or_default() {
                if required && name != *argument {
                    let entry = Entry::Prompt { prompt: prompt.clone(), argument: name.clone() };
                    let own = own_for(trial, who, &entry).await?;
                    arguments.insert(name, own.unwrap_or_else(|| canary.long.clone()).into());
                }
            }
            arguments.insert(argument.clone(), text.into());
            prompt_call(prompt, arguments)
        }
        Entry::Resource { template, variable } => {
            let parsed = trial.session.surface.templates.iter().find(|listed| listed.uri == *template).cloned();
            let mut own = BTreeMap::from([(variable.clone(), text.clone())]);
            for name in parsed.iter().flat_map(|template| &template.variables).filter(|name| *name != variable) {
                let entry = Entry::Resource { template: template.clone(), variable: name.clone() };
                own.extend(own_for(trial, who, &entry).await?.map(|handle| (name.clone(), handle)));
            }
            let value = |name: &str| Some(own.get(name).unwrap_or(&canary.short).clone());
            match parsed.and_then(|template| template.expand(value)) {
                Some(uri) => resource_call(&uri),
                None => return Ok(Err(format!("the server lists no resource template `{template}`"))),
            }
        }
    };
    Ok(Ok((call, canary)))
}

/// A `prompts/get`.
pub fn prompt_call(prompt: &str, arguments: Object) -> Call {
    let mut params = Object::new();
    params.insert("name".into(), prompt.into());
    params.insert("arguments".into(), Value::Object(arguments));
    Call::new("prompts/get", params)
}

/// A `resources/read`.
pub fn resource_call(uri: &str) -> Call {
    let mut params = Object::new();
    params.insert("uri".into(), uri.into());
    Call::new("resources/read", params)
}

/// Everything that could be called without calling anything: for `--dry-run`.
pub fn candidates<'s>(surface: &'s Surface, may_call: impl Fn(&Tool) -> bool + 's) -> Vec<&'s Tool> {
    let mut tools: Vec<&Tool> = surface.tools.iter().filter(|tool| may_call(tool)).collect();
    tools.sort_by_key(|tool| std::cmp::Reverse(likelihood(tool)));
    tools
}

/// More items of a list no handle is put behind.
const MOST_ITEMS: usize = 64;
const PASSES: usize = 3;
const MOST_MINTERS: usize = 60;
const MOST_KINDS: usize = 16;
const MINT_VERBS: [&str; 22] = [
    "create",
    "open",
    "start",
    "new",
    "begin",
    "mint",
    "init",
    "initialize",
    "make",
    "register",
    "alloc",
    "allocate",
    "acquire",
    "provision",
    "add",
    "launch",
    "spawn",
    "request",
    "issue",
    "generate",
    "book",
    "reserve",
];
const READ_VERBS: [&str; 12] =
    ["get", "list", "read", "show", "search", "find", "describe", "fetch", "view", "query", "whoami", "ping"];
const MINT_WORDS: [&str; 9] =
    ["mint", "mints", "issues", "returns", "return", "creates", "allocates", "hands", "opens"];
