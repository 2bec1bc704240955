//! From ours to theirs: every handle of ours in a request becomes what the server behind calls it, if it is the caller's.
//! Where a handle belongs nothing else is let through: what the server behind calls its objects is no way to them.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
};

use handfast::{
    Caller, ObjectType,
    names::{Form, Names},
};
use handfast_wire::span::{Kind, Node};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use regex::Regex;

use crate::{
    admit::{Message, PARAM, same_word},
    respond::{Rejection, written},
    rules::{Rules, TASK, Takes},
};

/// Handles of ours, and what the server behind calls them: those of one request.
#[derive(Debug, Default)]
pub(crate) struct Known {
    names: BTreeMap<String, Name>,
    /// By what the server behind calls them.
    outers: HashMap<String, Vec<(ObjectType, String)>>,
}

/// What the server behind calls something.
#[derive(Debug, Clone)]
pub(crate) struct Name {
    pub(crate) kind: ObjectType,
    pub(crate) inner: String,
    pub(crate) form: Form,
}

impl Known {
    /// Each handle of ours, with what the server behind calls it.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Name)> {
        self.names.iter().map(|(outer, name)| (outer.as_str(), name))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(crate) fn insert(&mut self, outer: String, name: Name) {
        self.outers.entry(name.inner.clone()).or_default().push((name.kind.clone(), outer.clone()));
        self.names.insert(outer, name);
    }

    /// The handle of ours that stands for a name.
    pub(crate) fn outer(&self, kind: &ObjectType, inner: &str) -> Option<&str> {
        let outers = self.outers.get(inner)?;
        outers.iter().find(|(known, _)| known == kind).map(|(_, outer)| outer.as_str())
    }

    /// The same whatever it is the name of.
    pub(crate) fn any_outer(&self, inner: &str) -> Option<&str> {
        self.outers.get(inner)?.first().map(|(_, outer)| outer.as_str())
    }
}

/// How handles of ours look.
#[derive(Debug)]
pub(crate) struct Shape(Regex);

impl Shape {
    pub(crate) fn of(names: &Names) -> Self {
        let prefixes: Vec<String> = names.prefixes().map(|(prefix, _)| regex::escape(prefix)).collect();
        let pattern = format!("(?:{})[A-Za-z0-9_-]{{43}}", prefixes.join("|"));
        Self(Regex::new(&pattern).expect("prefixes are plain words"))
    }

    /// Where in a text they stand.
    fn places(&self, text: &str) -> Vec<Range<usize>> {
        let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let stands_alone =
            |place: &Range<usize>| !text[..place.start].ends_with(part) && !text[place.end..].starts_with(part);
        self.0.find_iter(text).map(|found| found.range()).filter(stands_alone).collect()
    }
}

/// Reveals what one request presents.
pub(crate) struct Reveal<'g> {
    pub(crate) rules: &'g Rules,
    pub(crate) names: &'g Names,
    pub(crate) shape: &'g Shape,
    pub(crate) caller: &'g Caller,
    pub(crate) known: Known,
}

impl Reveal<'_> {
    /// The places of the request that have to be changed, and how.
    pub(crate) async fn request(
        &mut self,
        message: &Message<'_, '_>,
        text: &str,
    ) -> Result<Vec<(Range<usize>, String)>, Rejection> {
        for (kind, node) in self.wanted(message) {
            self.must_be_ours(&kind, node, text).await?;
        }
        let (mut strings, mut changes) = (Vec::new(), Vec::new());
        // What a client answers to the server's own questions may name things as well.
        for part in ["params", "result", "error"] {
            collect(message.node.get(part), part == "params", &mut strings);
        }
        // "Arguments" of prompts, and what is to be completed, are strings in any case.
        let texts = matches!(message.method, Some("prompts/get" | "completion/complete"));
        for (place, value, is_name) in strings {
            if let Some(revealed) = self.string(value, is_name || texts).await? {
                changes.push((place, revealed));
            }
        }
        Ok(changes)
    }

    /// A text outside of the body that repeats one from inside: what it is for the server behind.
    pub(crate) async fn repeated(&mut self, value: &str) -> Result<Option<String>, Rejection> {
        let parts = self.parts(value).await?;
        Ok((!parts.is_empty()).then(|| spliced(value, &parts)))
    }

    /// The places where nothing but a handle of this kind will do.
    fn wanted<'n, 't>(&self, message: &Message<'n, 't>) -> Vec<(ObjectType, &'n Node<'t>)> {
        let (Some(method), Some(params)) = (message.method, message.params) else { return Vec::new() };
        let (name, arguments) = (message.name().unwrap_or_default(), params.get("arguments"));
        let mut wanted = Vec::new();
        for kind in self.rules.kinds() {
            for takes in &kind.takes {
                let nodes = match (takes, arguments) {
                    (Takes::Tool { tool, pointer }, Some(arguments)) if method == "tools/call" && tool == name => {
                        at_any_case(arguments, pointer)
                    }
                    (Takes::Prompt { prompt, argument }, Some(arguments))
                        if method == "prompts/get" && prompt == name =>
                    {
                        at_any_case(arguments, &format!("/{}", handfast_wire::pointer::escape(argument)))
                    }
                    _ => continue,
                };
                wanted.extend(nodes.into_iter().map(|node| (kind.name.clone(), node)));
            }
            // Elsewhere a handle goes by its name: of a tool that no rule knows, and in what belongs to the protocol.
            let named = match kind.name.as_str() {
                TASK => params.members().iter().filter(|member| member.name != "arguments").collect(),
                _ if method == "tools/call" && kind.mint != name => {
                    arguments.map_or(&[][..], Node::members).iter().collect()
                }
                _ => Vec::new(),
            };
            for member in named {
                kind.named(member, &mut wanted);
            }
        }
        wanted
    }

    /// A header that goes by the name of a handle repeats one, and nothing else that stands in the arguments.
    pub(crate) fn agrees(&self, message: &Message<'_, '_>, header: &str, value: &str) -> Result<(), Rejection> {
        let Some(tool) = message.name() else { return Ok(()) };
        let plain = |name: &str| name.replace(|c: char| !c.is_ascii_alphanumeric(), "").to_ascii_lowercase();
        let header = plain(header.strip_prefix(PARAM).unwrap_or(header));
        for kind in self.rules.kinds() {
            let is_named = kind.takes.iter().any(|takes| match takes {
                Takes::Tool { tool: known, pointer } if known == tool => {
                    let (member, kind) = (plain(&handfast_wire::pointer::last(pointer)), plain(kind.name.as_str()));
                    header == kind
                        || header == member
                        || header == format!("{kind}id")
                        || format!("{header}id") == member
                }
                _ => false,
            });
            if is_named && self.known.names.get(value).is_none_or(|name| name.kind != kind.name) {
                return Err(Rejection::mismatch("an Mcp-Param header is not what the arguments say"));
            }
        }
        Ok(())
    }

    async fn must_be_ours(&mut self, kind: &ObjectType, node: &Node<'_>, text: &str) -> Result<(), Rejection> {
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            let shown = match &node.kind {
                Kind::Array(items) => {
                    open.extend(items);
                    continue;
                }
                Kind::Literal if node.raw(text) == "null" => continue,
                Kind::Text(shown) => shown,
                _ => node.raw(text),
            };
            self.reveal(Some(kind), shown).await?;
        }
        Ok(())
    }

    async fn reveal(&mut self, kind: Option<&ObjectType>, shown: &str) -> Result<Name, Rejection> {
        if let Some(known) = self.known.names.get(shown).filter(|known| kind.is_none_or(|kind| *kind == known.kind)) {
            return Ok(known.clone());
        }
        // This is the line: what the caller does not own is not revealed, and the server behind is not asked.
        let revealed = match kind {
            Some(kind) => self.names.reveal_as(self.caller, kind, shown).await?,
            None => self.names.reveal(self.caller, shown).await?,
        };
        let (inner, form) = (revealed.inner().expose().to_owned(), revealed.form());
        let name = Name { kind: revealed.kind().clone(), inner, form };
        self.known.insert(shown.to_owned(), name.clone());
        Ok(name)
    }

    /// A string of the request as the server behind is to read it, in JSON; `None` where it stays as it is.
    async fn string(&mut self, value: &str, is_name: bool) -> Result<Option<String>, Rejection> {
        if let Some((kind, place)) = self.rules.of_uri(value) {
            let kind = kind.name.clone();
            self.reveal(Some(&kind), &value[place]).await?;
        }
        let parts = self.parts(value).await?;
        Ok(match &parts[..] {
            [] => None,
            // A member is named by a string, whatever its name is.
            [(place, name)] if *place == (0..value.len()) && !is_name => Some(written(&name.inner, name.form)),
            parts => Some(written(&spliced(value, parts), Form::Text)),
        })
    }

    /// The handles in a string.
    async fn parts(&mut self, value: &str) -> Result<Vec<(Range<usize>, Name)>, Rejection> {
        let mut parts = Vec::new();
        for place in self.shape.places(value) {
            let whole = place == (0..value.len());
            match self.reveal(None, &value[place.clone()]).await {
                Ok(name) => parts.push((place, name)),
                // In the midst of what somebody has written it may be there to be read: it stays what it is, and opens nothing.
                Err(Rejection::Handle(_)) if !whole && !is_uri(value) => {}
                Err(rejection) => return Err(rejection),
            }
        }
        Ok(parts)
    }
}

fn spliced(value: &str, parts: &[(Range<usize>, Name)]) -> String {
    let encode = |name: &Name| {
        if is_uri(value) { utf8_percent_encode(&name.inner, &RESERVED).to_string() } else { name.inner.clone() }
    };
    let changes = parts.iter().map(|(place, name)| (place.clone(), encode(name))).collect();
    handfast_wire::span::spliced(value, changes)
}

/// A string, where it stands, and whether it is the name of a member.
type Found<'n> = (Range<usize>, &'n str, bool);

/// Every string below a node, names of members included, but of parameters what the client only echoes.
fn collect<'n>(root: Option<&'n Node<'_>>, are_params: bool, found: &mut Vec<Found<'n>>) {
    let mut open: Vec<&Node<'_>> = root.into_iter().collect();
    while let Some(node) = open.pop() {
        match &node.kind {
            Kind::Object(members) => {
                let is_echoed =
                    |name: &str| are_params && name == "requestState" && root.is_some_and(|root| root.at == node.at);
                for member in members.iter().filter(|member| !is_echoed(&member.name)) {
                    found.push((member.name_at.clone(), &member.name, true));
                    open.push(&member.value);
                }
            }
            Kind::Array(items) => open.extend(items),
            Kind::Text(value) => found.push((node.at.clone(), value, false)),
            Kind::Number | Kind::Literal => {}
        }
    }
}

/// What stands at a JSON Pointer, also to readers to whom the case of a name means nothing.
fn at_any_case<'n, 't>(node: &'n Node<'t>, pointer: &str) -> Vec<&'n Node<'t>> {
    let mut found = vec![node];
    for segment in pointer.split('/').skip(1) {
        let name = segment.replace("~1", "/").replace("~0", "~");
        let step = |node: &'n Node<'t>| match &node.kind {
            Kind::Object(members) => {
                members.iter().filter(|member| same_word(&name, &member.name)).map(|member| &member.value).collect()
            }
            _ => node.at_pointer(&format!("/{segment}")),
        };
        found = found.into_iter().flat_map(step).collect();
    }
    found
}

/// Whether a text is a URI: a scheme, a colon, and no blanks.
pub(crate) fn is_uri(text: &str) -> bool {
    let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        && !text.contains(char::is_whitespace)
}

/// What of a name does not stand in a URI as it is (RFC 3986, unreserved characters).
const RESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
