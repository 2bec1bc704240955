//! From ours to theirs: every handle of ours in a request becomes what the server behind calls it, if it is the caller's.
//! Where a handle belongs nothing else is let through: what the server behind calls its objects is no way to them.

use std::{collections::BTreeMap, ops::Range};

use handfast::{
    Caller, ObjectType,
    names::{Form, Names},
};
use handfast_wire::span::{Kind, Node};
use regex::Regex;

use crate::{
    admit::Message,
    respond::{Rejection, written},
    rules::{Rules, TASK, Takes},
};

/// Handles of ours, and what the server behind calls them: those of one request.
#[derive(Debug, Default)]
pub(crate) struct Known(BTreeMap<String, Name>);

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
        self.0.iter().map(|(outer, name)| (outer.as_str(), name))
    }

    pub(crate) fn insert(&mut self, outer: String, name: Name) {
        self.0.insert(outer, name);
    }

    /// The handle of ours that stands for a name.
    pub(crate) fn outer(&self, kind: &ObjectType, inner: &str) -> Option<&str> {
        self.iter().find(|(_, name)| name.kind == *kind && name.inner == inner).map(|(outer, _)| outer)
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
        if let Some(params) = message.params {
            collect(params, &mut strings);
        }
        // What a client answers to the server's own questions may name things as well.
        if let Some(result) = message.node.get("result") {
            collect(result, &mut strings);
        }
        for (place, value) in strings {
            if let Some(revealed) = self.string(value).await? {
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
                        arguments.at_pointer(pointer)
                    }
                    (Takes::Prompt { prompt, argument }, Some(arguments))
                        if method == "prompts/get" && prompt == name =>
                    {
                        arguments.get(argument).into_iter().collect()
                    }
                    _ => continue,
                };
                wanted.extend(nodes.into_iter().map(|node| (kind.name.clone(), node)));
            }
            if kind.name.as_str() == TASK && method.starts_with("tasks/") {
                wanted.extend(params.get("taskId").map(|node| (kind.name.clone(), node)));
            }
        }
        wanted
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
        if let Some(known) = self.known.0.get(shown).filter(|known| kind.is_none_or(|kind| *kind == known.kind)) {
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
    async fn string(&mut self, value: &str) -> Result<Option<String>, Rejection> {
        if let Some((kind, place)) = self.rules.of_uri(value) {
            let kind = kind.name.clone();
            self.reveal(Some(&kind), &value[place]).await?;
        }
        let parts = self.parts(value).await?;
        Ok(match &parts[..] {
            [] => None,
            [(place, name)] if *place == (0..value.len()) => Some(written(&name.inner, name.form)),
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
    let encode = |name: &Name| if is_uri(value) { percent_encoded(&name.inner) } else { name.inner.clone() };
    let changes = parts.iter().map(|(place, name)| (place.clone(), encode(name))).collect();
    handfast_wire::span::spliced(value, changes)
}

/// Every string below a node, names of members included, but what the client only echoes.
fn collect<'n>(node: &'n Node<'_>, found: &mut Vec<(Range<usize>, &'n str)>) {
    match &node.kind {
        Kind::Object(members) => {
            for member in members.iter().filter(|member| member.name != "requestState") {
                found.push((member.name_at.clone(), &member.name));
                collect(&member.value, found);
            }
        }
        Kind::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Kind::Text(value) => found.push((node.at.clone(), value)),
        Kind::Number | Kind::Literal => {}
    }
}

/// Whether a text is a URI: a scheme, a colon, and no blanks.
pub(crate) fn is_uri(text: &str) -> bool {
    let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        && !text.contains(char::is_whitespace)
}

/// A name as a part of a URI (RFC 3986, unreserved characters).
pub(crate) fn percent_encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}
