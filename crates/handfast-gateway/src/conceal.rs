//! From theirs to ours: what the server behind calls its objects becomes handles of ours, wherever it stands in an answer, and
//! all other bytes stay as they were received. At last the answer is searched for what must not be in it.

use std::ops::Range;

use handfast::{
    Caller, ObjectType,
    names::{Form, Names},
};
use handfast_wire::span::{self, Kind, Node};
use serde_json::Value;

use crate::{
    respond::Rejection,
    reveal::{Known, Name, is_uri, percent_encoded},
    rules::Rules,
    schemas,
    states::{Round, States},
};

/// Conceals what answers one request.
pub(crate) struct Conceal<'g> {
    pub(crate) rules: &'g Rules,
    pub(crate) names: &'g Names,
    pub(crate) states: &'g States,
    pub(crate) caller: &'g Caller,
    /// What was asked.
    pub(crate) method: &'g str,
    /// The tool that was called.
    pub(crate) tool: &'g str,
    pub(crate) round: Option<&'g Round>,
    /// Handles of ours that stand for names of theirs.
    pub(crate) known: &'g mut Known,
    /// The id that the server behind was sent, and the one that the client has sent, both in JSON.
    pub(crate) ids: Option<&'g (String, String)>,
}

impl Conceal<'_> {
    /// A message of the server behind as the client is to read it.
    pub(crate) async fn message(&mut self, text: &str) -> Result<String, Rejection> {
        let node = span::parse(text).map_err(|_| Rejection::Upstream("the server's answer cannot be read"))?;
        if !matches!(node.kind, Kind::Object(_)) {
            return Err(Rejection::Upstream("the server's answer is not a message"));
        }
        let mut changes = Vec::new();
        let result = node.get("result");
        self.identify(&node, text, &mut changes)?;
        for (kind, inner, form) in self.found(&node, text) {
            let shown = self.names.conceal(self.caller, &kind, &inner, form).await?;
            self.known.insert(shown.handle().expose().to_owned(), Name { kind, inner, form });
        }
        let mut state = None;
        if let (Some(round), Some(result)) = (self.round, result) {
            state = self.states.seal(self.caller, round, result, text)?.map(|sealed| (sealed, result));
        }
        let mut pass = Pass { known: Some(&*self.known), found: Vec::new() };
        self.walk(&node, text, &mut pass, &mut changes, 0);
        if let Some((sealed, result)) = &state {
            changes.retain(|(place, _)| result.get("requestState").is_none_or(|state| state.at != *place));
            changes.push(put(result, "requestState", &Value::from(sealed.as_str()).to_string()));
        }
        if let Some(result) = result {
            if self.method == "tools/list" {
                changes.extend(schemas::changes(self.rules, result, text));
            }
            // What one caller is shown is not for another, and must not be kept for them.
            if let Some(scope) = result.get("cacheScope").filter(|_| !changes.is_empty()) {
                changes.push((scope.at.clone(), "\"private\"".to_owned()));
            }
        }
        let answer = span::spliced(text, changes);
        let theirs = state.and_then(|(_, result)| result.get("requestState").and_then(Node::text));
        self.leaks_nothing(&answer, theirs)?;
        Ok(answer)
    }

    /// An answer is an answer to what was asked, by the id that the client knows.
    fn identify(
        &self,
        node: &Node<'_>,
        text: &str,
        changes: &mut Vec<(Range<usize>, String)>,
    ) -> Result<(), Rejection> {
        let Some((sent, original)) = self.ids else { return Ok(()) };
        let is_answer = node.get("result").is_some() || node.get("error").is_some();
        match node.get("id") {
            Some(id) if is_answer && id.raw(text) == sent => changes.push((id.at.clone(), original.clone())),
            // "A response without an id" is said of a request that could not be read.
            Some(id) if is_answer && id.raw(text) != "null" => {
                return Err(Rejection::Upstream("the server has answered another request"));
            }
            _ => {}
        }
        let meta = ["params", "result"].into_iter().filter_map(|part| node.get(part)?.get("_meta"));
        for subscription in meta.filter_map(|meta| meta.get(SUBSCRIPTION)) {
            if subscription.raw(text) == sent {
                changes.push((subscription.at.clone(), original.clone()));
            }
        }
        Ok(())
    }

    /// The names of theirs for which there is no handle of ours yet.
    fn found(&self, node: &Node<'_>, text: &str) -> Vec<(ObjectType, String, Form)> {
        let mut pass = Pass { known: None, found: Vec::new() };
        self.walk(node, text, &mut pass, &mut Vec::new(), 0);
        let mut found: Vec<(ObjectType, String, Form)> = Vec::new();
        for (kind, inner, form) in pass.found {
            let known = self.known.outer(&kind, &inner).is_some();
            match found.iter_mut().find(|(other, name, _)| *other == kind && *name == inner) {
                // Once a number, it is one.
                Some((_, _, known)) if form == Form::Number => *known = form,
                Some(_) => {}
                None if known => {}
                None => found.push((kind, inner, form)),
            }
        }
        found
    }

    /// Goes through a message, or through JSON text inside of one.
    fn walk(
        &self,
        root: &Node<'_>,
        text: &str,
        pass: &mut Pass<'_>,
        changes: &mut Vec<(Range<usize>, String)>,
        depth: usize,
    ) {
        let mut places: Vec<(Range<usize>, &ObjectType)> = Vec::new();
        let mut inside: Vec<(Range<usize>, &str, &ObjectType)> = Vec::new();
        if depth == 0 {
            let results = [root.get("result"), root.get("result").and_then(|result| result.get("result"))];
            for (kind, result) in
                self.rules.kinds().iter().flat_map(|kind| results.iter().flatten().map(move |result| (kind, *result)))
            {
                places.extend(kind.at(self.tool, result).into_iter().map(|node| (node.at.clone(), &kind.name)));
                let within = kind.within(self.tool, result).into_iter();
                inside.extend(within.map(|(node, pointer)| (node.at.clone(), pointer, &kind.name)));
            }
        }
        let mut open: Vec<(&Node<'_>, Option<&ObjectType>)> = vec![(root, None)];
        while let Some((node, of_member)) = open.pop() {
            let place = places.iter().find(|(place, _)| *place == node.at).map(|(_, kind)| *kind);
            let kind = place.or(of_member);
            match (&node.kind, kind) {
                (Kind::Object(members), _) => {
                    for member in members {
                        let is_state = member.name == "requestState";
                        let kind = self.rules.of_member(&member.name).map(|kind| &kind.name);
                        if !is_state {
                            open.push((&member.value, kind));
                        }
                        if let Some(new) = self.prose(&member.name, pass) {
                            changes.push((member.name_at.clone(), Value::from(new).to_string()));
                        }
                    }
                }
                (Kind::Array(items), kind) => open.extend(items.iter().map(|item| (item, kind))),
                (Kind::Text(value), Some(kind)) if !value.is_empty() => {
                    if let Some(outer) = pass.name(kind, value, Form::Text) {
                        changes.push((node.at.clone(), Value::from(outer).to_string()));
                    }
                }
                (Kind::Number, Some(kind)) => {
                    if let Some(outer) = pass.name(kind, node.raw(text), Form::Number) {
                        changes.push((node.at.clone(), Value::from(outer).to_string()));
                    }
                }
                (Kind::Text(value), None) => {
                    let pointers = inside.iter().filter(|(place, ..)| *place == node.at);
                    let pointers: Vec<(&str, &ObjectType)> = pointers.map(|(_, at, kind)| (*at, *kind)).collect();
                    if let Some(new) = self.text(value, &pointers, pass, depth) {
                        changes.push((node.at.clone(), Value::from(new).to_string()));
                    }
                }
                _ => {}
            }
        }
    }

    /// A string that is not itself a name: JSON, a URI, a sentence.
    fn text(&self, value: &str, pointers: &[(&str, &ObjectType)], pass: &mut Pass<'_>, depth: usize) -> Option<String> {
        if depth < MOST_NESTED
            && value.trim_start().starts_with(['{', '['])
            && let Ok(node) = span::parse(value)
        {
            let mut changes = Vec::new();
            for (pointer, kind) in pointers {
                for node in node.at_pointer(pointer) {
                    let name = match &node.kind {
                        Kind::Text(name) => Some((&**name, Form::Text)),
                        Kind::Number => Some((node.raw(value), Form::Number)),
                        _ => None,
                    };
                    if let Some(outer) = name.and_then(|(name, form)| pass.name(kind, name, form)) {
                        changes.push((node.at.clone(), Value::from(outer).to_string()));
                    }
                }
            }
            self.walk(&node, value, pass, &mut changes, depth + 1);
            return (!changes.is_empty()).then(|| span::spliced(value, changes));
        }
        let mut places: Vec<(Range<usize>, &ObjectType)> = Vec::new();
        if let Some((kind, place)) = self.rules.of_uri(value) {
            places.push((place, &kind.name));
        }
        for kind in self.rules.kinds() {
            places.extend(kind.in_text(self.tool, value).into_iter().map(|place| (place, &kind.name)));
        }
        let mut changes = Vec::new();
        for (place, kind) in places {
            let name =
                if is_uri(value) { percent_decoded(&value[place.clone()]) } else { value[place.clone()].to_owned() };
            if let Some(outer) = pass.name(kind, &name, Form::Text) {
                changes.push((place, outer.to_owned()));
            }
        }
        let named = if changes.is_empty() { value.to_owned() } else { span::spliced(value, changes) };
        let told = self.prose(&named, pass).unwrap_or(named);
        (told != value).then_some(told)
    }

    /// A sentence in which names stand among other words.
    fn prose(&self, value: &str, pass: &Pass<'_>) -> Option<String> {
        let known = pass.known?;
        let mut told = value.to_owned();
        for (outer, name) in known.iter().filter(|(_, name)| is_telling(&name.inner)) {
            for written in [name.inner.clone(), percent_encoded(&name.inner)] {
                if told.contains(&written) {
                    told = told.replace(&written, outer);
                }
            }
        }
        (told != value).then_some(told)
    }

    /// This is the line: an answer in which a name or a state of the server behind still stands does not leave.
    fn leaks_nothing(&self, answer: &str, state: Option<&str>) -> Result<(), Rejection> {
        let names = self.known.iter().map(|(_, name)| name.inner.as_str()).filter(|inner| is_telling(inner));
        match names.chain(state.filter(|state| is_telling(state))).any(|secret| answer.contains(secret)) {
            true => Err(Rejection::Upstream("the server's answer could not be made safe")),
            false => Ok(()),
        }
    }
}

/// One way through a message: the first finds names, the second puts handles in their place.
struct Pass<'k> {
    known: Option<&'k Known>,
    found: Vec<(ObjectType, String, Form)>,
}

impl Pass<'_> {
    /// A name stands here: what to put in its place.
    fn name(&mut self, kind: &ObjectType, inner: &str, form: Form) -> Option<&str> {
        match self.known {
            Some(known) => known.outer(kind, inner),
            None => {
                self.found.push((kind.clone(), inner.to_owned(), form));
                None
            }
        }
    }
}

/// Puts a member into an object, in the place of the one of this name where there is one.
fn put(object: &Node<'_>, name: &str, value: &str) -> (Range<usize>, String) {
    match object.get(name) {
        Some(member) => (member.at.clone(), value.to_owned()),
        None => {
            let end = object.at.end - 1;
            let comma = if object.members().is_empty() { "" } else { "," };
            (end..end, format!("{comma}\"{name}\":{value}"))
        }
    }
}

/// Whether a name is long and odd enough to be nothing else where it is found: a `17` is in many sentences.
fn is_telling(inner: &str) -> bool {
    let odd = inner.bytes().any(|byte| byte.is_ascii_digit());
    inner.len() >= 16 || inner.len() >= 6 && odd && inner.bytes().any(|byte| !byte.is_ascii_digit())
}

fn percent_decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, more @ ..] = rest {
        let hex = (*first == b'%').then(|| more.get(..2)).flatten().and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[2..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// How deep JSON in strings in JSON is followed.
const MOST_NESTED: usize = 3;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
