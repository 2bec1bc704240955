//! The rules: which tool hands out a handle, where in its result it stands, and who takes it. They are read from the file
//! that `handfast discover --write` makes; whatever else that file says is for the probe, and is left alone here.

use std::{collections::BTreeMap, ops::Range, time::Duration};

use handfast::{ObjectType, Policy, PolicyError};
use handfast_wire::span::{Kind as Shape, Member, Node};
use regex::Regex;
use serde::Deserialize;
use thiserror::Error;

use crate::{admit::same_word, template::Template};

/// What is known of the handles of the server behind.
#[derive(Debug)]
pub struct Rules {
    kinds: Vec<Kind>,
    policy: Policy,
}

/// One kind of handle.
#[derive(Debug)]
pub struct Kind {
    /// What it is called: in refusals, in the store, and before the handles themselves.
    pub name: ObjectType,
    /// The tool that hands it out.
    pub mint: String,
    /// Where in the tool's result it stands.
    spots: Vec<Spot>,
    /// Who takes it.
    pub(crate) takes: Vec<Takes>,
    /// The names of members that hold it, in whatever answer.
    members: Vec<String>,
}

/// A place in the result of a tool.
#[derive(Debug)]
struct Spot {
    /// The tool.
    tool: String,
    /// A JSON Pointer into the result; all of it without one.
    pointer: Option<String>,
    /// A JSON Pointer into the JSON text that stands there.
    json: Option<String>,
    /// A pattern for the text there, whose first group is the handle.
    pattern: Option<Regex>,
}

/// Who takes a handle.
#[derive(Debug)]
pub(crate) enum Takes {
    /// An argument of a tool, at this JSON Pointer into its arguments.
    Tool {
        /// The tool.
        tool: String,
        /// Where.
        pointer: String,
    },
    /// An argument of a prompt.
    Prompt {
        /// The prompt.
        prompt: String,
        /// Which argument.
        argument: String,
    },
    /// A part of the URI of a resource.
    Resource(Template),
}

/// Why there are no rules.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RulesError {
    /// It is not written as rules are written. Says where.
    #[error("{}", .0.to_string().trim_end().replace('\n', " "))]
    Syntax(#[from] toml::de::Error),
    /// A rule is wrong.
    #[error("[[handle]] of {mint}: {problem}")]
    Rule {
        /// The tool that it is about.
        mint: String,
        /// What is wrong.
        problem: String,
    },
    /// The kinds of handles that the rules make are no policy.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

/// How handles live, where their rule does not say.
#[derive(Debug, Clone)]
pub struct Defaults {
    /// How long one lives in any case.
    pub lifetime: Duration,
    /// How long one lives unused.
    pub idle: Option<Duration>,
    /// Which parts of the caller it is bound to: `principal`, `tenant`, `client`.
    pub bound: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: u32,
    #[serde(default)]
    handle: Vec<WrittenHandle>,
    // For the probe.
    #[serde(default, rename = "tools")]
    _tools: toml::Table,
    #[serde(default, rename = "arguments")]
    _arguments: toml::Table,
    #[serde(default, rename = "answers")]
    _answers: toml::Table,
    #[serde(default, rename = "identities")]
    _identities: toml::Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenHandle {
    mint: String,
    name: Option<String>,
    pointer: Option<String>,
    json: Option<String>,
    pattern: Option<String>,
    #[serde(default)]
    consume: Vec<String>,
    /// Other tools in whose results it stands, as TOOL#POINTER, or TOOL#POINTER#POINTER into the JSON text that stands there.
    #[serde(default)]
    shown: Vec<String>,
    lifetime: Option<String>,
    idle: Option<String>,
}

impl Rules {
    /// Reads rules.
    ///
    /// # Errors
    /// Says what is wrong, and where.
    pub fn from_toml(text: &str, defaults: &Defaults) -> Result<Self, RulesError> {
        let written: Written = toml::from_str(text)?;
        if written.version != 1 {
            let problem = format!("version = {}: only 1 is known", written.version);
            return Err(RulesError::Rule { mint: "the file".to_owned(), problem });
        }
        let (mut kinds, mut objects): (Vec<Kind>, BTreeMap<String, toml::Table>) = (Vec::new(), BTreeMap::new());
        for written in written.handle {
            let mint = written.mint.clone();
            let wrong = |problem: String| RulesError::Rule { mint: mint.clone(), problem };
            let life = [&written.lifetime, &written.idle].map(Clone::clone);
            let kind = written.read().map_err(&wrong)?;
            if kinds.iter().any(|known| known.name == kind.name) || kind.name.as_str() == TASK {
                return Err(wrong(format!("there is a `{}` already: give this one another `name`", kind.name)));
            }
            let prefix = prefix(kind.name.as_str(), &objects);
            objects.insert(kind.name.to_string(), defaults.object(&kind, prefix, life));
            kinds.push(kind);
        }
        let task = Kind::task();
        objects.insert(TASK.to_owned(), defaults.object(&task, TASK.to_owned(), [None, None]));
        kinds.push(task);
        let policy = toml::Table::from_iter([
            ("version".to_owned(), toml::Value::from("1")),
            ("objects".to_owned(), toml::Value::Table(objects.into_iter().map(|(k, v)| (k, v.into())).collect())),
        ]);
        Ok(Self { policy: Policy::from_toml(&policy.to_string())?, kinds })
    }

    /// The kinds of handles as a policy of the library.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The kinds of handles.
    #[must_use]
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// Whether a tool is in any rule.
    #[must_use]
    pub fn knows(&self, tool: &str) -> bool {
        self.kinds.iter().any(|kind| {
            kind.spots.iter().any(|spot| spot.tool == tool)
                || kind.takes.iter().any(|takes| matches!(takes, Takes::Tool { tool: known, .. } if known == tool))
        })
    }

    /// The kind of handle that a member of this name holds.
    pub(crate) fn of_member(&self, name: &str) -> Option<&Kind> {
        self.kinds.iter().find(|kind| kind.members.iter().any(|member| member == name))
    }

    /// The kind of handle that stands in a URI, and where in it.
    pub(crate) fn of_uri(&self, uri: &str) -> Option<(&Kind, Range<usize>)> {
        self.kinds.iter().find_map(|kind| {
            let place = kind.takes.iter().find_map(|takes| match takes {
                Takes::Resource(template) => template.variable_in(uri),
                _ => None,
            });
            place.map(|place| (kind, place))
        })
    }
}

impl Kind {
    /// Ids of tasks, which any server may hand out.
    fn task() -> Self {
        Self {
            name: TASK.parse().expect("it is a name"),
            mint: "tools/call".to_owned(),
            spots: Vec::new(),
            takes: Vec::new(),
            members: vec!["taskId".to_owned()],
        }
    }

    /// The values below a member that hold one by the name of their member, in whatever case and number.
    pub(crate) fn named<'n, 't>(&self, member: &'n Member<'t>, found: &mut Vec<(ObjectType, &'n Node<'t>)>) {
        let mut open = vec![member];
        while let Some(member) = open.pop() {
            let is_it =
                |known: &String| same_word(known, &member.name) || same_word(&format!("{known}s"), &member.name);
            if !matches!(member.value.kind, Shape::Object(_)) && self.members.iter().any(is_it) {
                found.push((self.name.clone(), &member.value));
            }
            open.extend(member.value.members());
        }
    }

    /// The places of a result of this tool that hold one, by pointer alone.
    pub(crate) fn at<'n, 't>(&self, tool: &str, result: &'n Node<'t>) -> Vec<&'n Node<'t>> {
        let plain = |spot: &&Spot| spot.tool == tool && spot.json.is_none() && spot.pattern.is_none();
        let pointers = self.spots.iter().filter(plain).filter_map(|spot| spot.pointer.as_deref());
        let mut nodes: Vec<&Node<'_>> = pointers.flat_map(|pointer| result.at_pointer(pointer)).collect();
        // A text that repeats a structured result which is nothing else: see `within`.
        if self.structured(tool).any(|rest| rest == "/result") {
            let value = |node: &Node<'_>| node.text().map(str::to_owned);
            let names: Vec<Option<String>> = nodes.iter().map(|node| value(node)).collect();
            let is_one = |node: &&Node<'_>| node.text().is_some() && names.contains(&value(node));
            nodes.extend(result.at_pointer(TEXTS).into_iter().filter(is_one));
        }
        nodes
    }

    /// Where in the structured content of such a result one stands.
    pub(crate) fn structured(&self, tool: &str) -> impl Iterator<Item = &str> {
        let pointers = self.spots.iter().filter(move |spot| spot.tool == tool && spot.json.is_none());
        pointers.filter_map(|spot| spot.pointer.as_deref()?.strip_prefix("/structuredContent"))
    }

    /// The JSON texts of such a result that hold one, and where in them.
    pub(crate) fn within<'n, 't>(&self, tool: &str, result: &'n Node<'t>) -> Vec<(&'n Node<'t>, &str)> {
        let inside = self.spots.iter().filter(|spot| spot.tool == tool);
        let inside = inside.filter_map(|spot| Some((spot.pointer.as_deref()?, spot.json.as_deref()?)));
        // "A tool that returns structured content SHOULD also return the serialized JSON in a TextContent block." What is no
        // object is wrapped into one that has a `result`, and stands in the text as it is.
        let repeated = self.structured(tool).flat_map(|rest| [Some(rest), rest.strip_prefix("/result")]);
        let repeated = repeated.flatten().filter(|rest| rest.starts_with('/')).map(|rest| (TEXTS, rest));
        let all = inside.chain(repeated);
        all.flat_map(|(at, json)| result.at_pointer(at).into_iter().map(move |node| (node, json))).collect()
    }

    /// Where in this text of such a result it stands, by a pattern.
    pub(crate) fn in_text(&self, tool: &str, text: &str) -> Vec<Range<usize>> {
        let patterns = self.spots.iter().filter(|spot| spot.tool == tool).filter_map(|spot| spot.pattern.as_ref());
        let found = patterns.flat_map(|pattern| pattern.captures_iter(text));
        found.filter_map(|captures| captures.get(1).map(|group| group.range())).collect()
    }
}

impl Defaults {
    /// The table that a policy has of a kind of handle.
    fn object(&self, kind: &Kind, prefix: String, [lifetime, idle]: [Option<String>; 2]) -> toml::Table {
        let told = |time: Duration| humantime::format_duration(time).to_string();
        let mut table = toml::Table::new();
        let mut put = |name: &str, value: toml::Value| table.insert(name.to_owned(), value);
        let is_own = lifetime.is_some();
        put("lifetime", lifetime.unwrap_or_else(|| told(self.lifetime)).into());
        // Where a rule has a lifetime of its own, it says itself how long a handle may be idle.
        if let Some(idle) = idle.or_else(|| self.idle.filter(|_| !is_own).map(told)) {
            put("idle", idle.into());
        }
        put("scopes", vec!["use"].into());
        put("bound", self.bound.clone().into());
        put("created_by", kind.mint.clone().into());
        put("prefix", prefix.into());
        table
    }
}

impl WrittenHandle {
    fn read(self) -> Result<Kind, String> {
        if self.pointer.is_none() && self.pattern.is_none() {
            return Err("needs `pointer` or `pattern`".to_owned());
        }
        for pointer in self.pointer.iter().chain(&self.json) {
            if !pointer.starts_with('/') {
                return Err(format!("`{pointer}` is not a JSON Pointer: it must start with `/`"));
            }
        }
        let pattern = self.pattern.as_deref().map(Regex::new).transpose();
        let pattern = pattern.map_err(|error| error.to_string().replace('\n', " "))?;
        if pattern.as_ref().is_some_and(|pattern| pattern.captures_len() < 2) {
            return Err("`pattern` has no group: put parentheses around the handle".to_owned());
        }
        let takes: Vec<Takes> = self.consume.iter().map(|text| takes(text)).collect::<Result<_, _>>()?;
        let mut spots = Vec::new();
        for shown in &self.shown {
            let mut parts = shown.split('#');
            let (tool, at, json) = (parts.next(), parts.next(), parts.next());
            let is_one = tool.is_some_and(|tool| !tool.is_empty()) && at.is_some() && parts.next().is_none();
            if !is_one || [at, json].into_iter().flatten().any(|pointer| !pointer.starts_with('/')) {
                return Err(format!(
                    "`{shown}` is not TOOL#/POINTER, or TOOL#/POINTER#/POINTER into the JSON text there"
                ));
            }
            let [tool, at, json] = [tool, at, json].map(|part| part.map(str::to_owned));
            spots.push(Spot { tool: tool.unwrap_or_default(), pointer: at, json, pattern: None });
        }
        let mut members: Vec<String> = takes.iter().filter_map(Takes::member).collect();
        let at = self.json.as_ref().or(self.pointer.as_ref()).map(|pointer| handfast_wire::pointer::last(pointer));
        members.extend(at.filter(|_| pattern.is_none()));
        // Such names are in every answer, and mean something else each time.
        members.retain(|member| !GENERIC.contains(&member.as_str()) && member.parse::<usize>().is_err());
        members.sort();
        members.dedup();
        let name = self.name.unwrap_or_else(|| called(&members, &self.mint));
        let name = name.parse().map_err(|error| format!("name: {error}"))?;
        let (tool, pointer, json) = (self.mint.clone(), self.pointer, self.json);
        spots.push(Spot { tool, pointer, json, pattern });
        Ok(Kind { name, mint: self.mint, spots, takes, members })
    }
}

impl Takes {
    /// The name of the member by which it is taken.
    fn member(&self) -> Option<String> {
        match self {
            Self::Tool { pointer, .. } => Some(handfast_wire::pointer::last(pointer)),
            Self::Prompt { argument, .. } => Some(argument.clone()),
            Self::Resource(_) => None,
        }
    }
}

/// Reads METHOD NAME#ARGUMENT.
fn takes(text: &str) -> Result<Takes, String> {
    let wrong = || format!("`{text}` is not METHOD NAME#ARGUMENT");
    let (method, rest) = text.split_once(' ').ok_or_else(wrong)?;
    let (name, argument) = rest.rsplit_once('#').ok_or_else(wrong)?;
    if name.is_empty() || argument.is_empty() {
        return Err(wrong());
    }
    let (name, argument) = (name.to_owned(), argument.to_owned());
    Ok(match method {
        "tools/call" if argument.starts_with('/') => Takes::Tool { tool: name, pointer: argument },
        "tools/call" => Takes::Tool { tool: name, pointer: format!("/{}", handfast_wire::pointer::escape(&argument)) },
        "prompts/get" => Takes::Prompt { prompt: name, argument },
        "resources/read" => Takes::Resource(Template::new(&name, &argument)?),
        _ => return Err(wrong()),
    })
}

/// What a kind of handle is called: `workspace_id` and `workspaceId` name a workspace.
fn called(members: &[String], mint: &str) -> String {
    let id = members.iter().find_map(|member| {
        let stem = ["_id", "Id", "ID", "-id"].into_iter().find_map(|end| member.strip_suffix(end))?;
        (!stem.is_empty()).then_some(stem)
    });
    id.unwrap_or(mint).to_ascii_lowercase().replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', "-")
}

/// What stands before handles of this kind: its name, as far as there is room, and a number where it would be another's.
fn prefix(name: &str, taken: &BTreeMap<String, toml::Table>) -> String {
    let plain = name.replace(|c: char| !c.is_ascii_alphanumeric(), "");
    let short = |most: usize| plain.get(..most).unwrap_or(&plain).to_owned();
    let is_free = |prefix: &String| {
        let is_it = |table: &toml::Table| table.get("prefix").and_then(toml::Value::as_str) == Some(prefix);
        (prefix != TASK || name == TASK) && !taken.values().any(is_it)
    };
    let numbered = (2..1000).map(|number| format!("{}{number}", short(LONGEST_PREFIX - 3)));
    std::iter::once(short(LONGEST_PREFIX)).chain(numbered).find(is_free).unwrap_or(plain)
}

const LONGEST_PREFIX: usize = 16;

/// The texts of a result.
const TEXTS: &str = "/content/*/text";

/// The kind of ids of tasks.
pub(crate) const TASK: &str = "task";

const GENERIC: [&str; 8] = ["id", "name", "uri", "url", "text", "key", "value", "handle"];
