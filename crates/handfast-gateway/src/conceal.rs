//! From theirs to ours: what the server behind calls its objects becomes handles of ours, wherever it stands in an answer, and
//! all other bytes stay as they were received. At last the answer is searched for what must not be in it.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
};

use handfast::{
    Caller, ObjectType,
    names::{Form, Names},
};
use handfast_wire::span::{self, Kind, Node};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::{
    ids::Ids,
    respond::Rejection,
    reveal::{Known, Name, is_uri},
    rules::Rules,
    schemas,
    spelled::{Finder, is_telling, unescaped},
    states::{Round, States, without},
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
    pub(crate) ids: &'g Ids,
}

impl Conceal<'_> {
    /// A message of the server behind as the client is to read it.
    pub(crate) async fn message(&mut self, text: &str) -> Result<String, Rejection> {
        let node = span::parse(text).map_err(|_| Rejection::Upstream("the server's answer cannot be read"))?;
        if !matches!(node.kind, Kind::Object(_)) {
            return Err(Rejection::Upstream("the server's answer is not a message"));
        }
        let mut changes = self.ids.give_back(&node, text)?;
        let of_ids = changes.len();
        let result = node.get("result");
        for (kind, inner, form) in self.found(&node, text) {
            let shown = self.names.conceal(self.caller, &kind, &inner, form).await?;
            self.known.insert(shown.handle().expose().to_owned(), Name { kind, inner, form });
        }
        let mut sealed = None;
        if let (Some(round), Some(result)) = (self.round, result) {
            sealed = self.states.seal(self.caller, round, result, text)?.map(|sealed| (sealed, result));
        }
        let mut states: Vec<&str> = self.round.and_then(Round::state).into_iter().collect();
        for result in results(&node) {
            states.extend(result.get(STATE).and_then(Node::text));
            // Where nothing takes it back, it is told to nobody.
            if sealed.as_ref().is_none_or(|(_, of)| of.at != result.at) {
                changes.extend(without(result, |at| result.members()[at].name == STATE));
            }
        }
        let finder = Finder::of(self.known, &states);
        let mut pass = Pass { known: Some(&*self.known), finder: finder.as_ref(), found: Vec::new() };
        self.walk(&node, text, &mut pass, &mut changes, 0);
        if let Some((sealed, result)) = &sealed {
            changes.push(put(result, STATE, &Value::from(sealed.as_str()).to_string()));
        }
        if let Some(result) = result {
            if self.method == "tools/list" {
                changes.extend(schemas::changes(self.rules, result, text));
            }
            // What one caller is shown is not for another, and must not be kept for them.
            if let Some(scope) = result.get("cacheScope").filter(|_| changes.len() > of_ids) {
                changes.push((scope.at.clone(), "\"private\"".to_owned()));
            }
        }
        let answer = span::spliced(text, changes);
        // This is the line: an answer in which a name or a state of the server behind still stands does not leave.
        match finder.is_some_and(|finder| !is_clean(&answer, &finder)) {
            true => Err(Rejection::Upstream("the server's answer could not be made safe")),
            false => Ok(answer),
        }
    }

    /// The names of theirs for which there is no handle of ours yet.
    fn found(&self, node: &Node<'_>, text: &str) -> Vec<(ObjectType, String, Form)> {
        let mut pass = Pass { known: None, finder: None, found: Vec::new() };
        self.walk(node, text, &mut pass, &mut Vec::new(), 0);
        let mut found: BTreeMap<(String, String), (ObjectType, Form)> = BTreeMap::new();
        for (kind, inner, form) in pass.found {
            if self.known.outer(&kind, &inner).is_none() {
                let (_, known) = found.entry((kind.to_string(), inner)).or_insert((kind, form));
                // Once a number, it is one.
                *known = if form == Form::Number { form } else { *known };
            }
        }
        found.into_iter().map(|((_, inner), (kind, form))| (kind, inner, form)).collect()
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
        let mut places: HashMap<usize, &ObjectType> = HashMap::new();
        let mut inside: HashMap<usize, Vec<(&str, &ObjectType)>> = HashMap::new();
        if depth == 0 {
            for (kind, result) in
                self.rules.kinds().iter().flat_map(|kind| results(root).into_iter().map(move |result| (kind, result)))
            {
                for node in kind.at(self.tool, result) {
                    places.entry(node.at.start).or_insert(&kind.name);
                }
                for (node, pointer) in kind.within(self.tool, result) {
                    inside.entry(node.at.start).or_default().push((pointer, &kind.name));
                }
            }
        }
        let states: Vec<usize> = match depth {
            0 => results(root).into_iter().filter_map(|result| Some(result.get(STATE)?.at.start)).collect(),
            _ => Vec::new(),
        };
        let mut open: Vec<(&Node<'_>, Option<&ObjectType>)> = vec![(root, None)];
        while let Some((node, of_member)) = open.pop() {
            let kind = places.get(&node.at.start).copied().or(of_member);
            match (&node.kind, kind) {
                (Kind::Object(members), _) => {
                    for member in members.iter().filter(|member| !states.contains(&member.value.at.start)) {
                        open.push((&member.value, self.rules.of_member(&member.name).map(|kind| &kind.name)));
                        let told = pass.told(&member.name);
                        changes.extend(in_quotes(&member.name_at, text, told));
                    }
                }
                (Kind::Array(items), kind) => open.extend(items.iter().map(|item| (item, kind))),
                (Kind::Text(value), Some(kind)) if !value.is_empty() => {
                    if let Some(outer) = pass.name(kind, value, Form::Text) {
                        changes.push((node.at.clone(), Value::from(outer).to_string()));
                    }
                }
                (Kind::Number, kind) => {
                    let raw = node.raw(text);
                    let outer = match kind {
                        Some(kind) => pass.name(kind, raw, Form::Number),
                        None => pass.known.filter(|_| is_telling(raw)).and_then(|known| known.any_outer(raw)),
                    };
                    changes.extend(outer.map(|outer| (node.at.clone(), Value::from(outer).to_string())));
                }
                (Kind::Text(value), None) => {
                    let pointers = inside.get(&node.at.start).map_or(&[][..], Vec::as_slice);
                    let told = self.text(value, pointers, pass, depth);
                    changes.extend(in_quotes(&node.at, text, told));
                }
                _ => {}
            }
        }
    }

    /// A string that is not itself a name: JSON, a URI, a sentence. What in it is to be changed, and to what.
    fn text(
        &self,
        value: &str,
        pointers: &[(&str, &ObjectType)],
        pass: &mut Pass<'_>,
        depth: usize,
    ) -> Vec<(Range<usize>, String)> {
        let mut changes = Vec::new();
        if depth < MOST_NESTED
            && value.trim_start().starts_with(['{', '[', '"'])
            && let Ok(node) = span::parse(value)
        {
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
            return changes;
        }
        let mut places: Vec<(Range<usize>, &ObjectType)> = Vec::new();
        if let Some((kind, place)) = self.rules.of_uri(value) {
            places.push((place, &kind.name));
        }
        for kind in self.rules.kinds() {
            places.extend(kind.in_text(self.tool, value).into_iter().map(|place| (place, &kind.name)));
        }
        for (place, kind) in places {
            let name = match is_uri(value) {
                true => percent_decode_str(&value[place.clone()]).decode_utf8_lossy().into_owned(),
                false => value[place.clone()].to_owned(),
            };
            if let Some(outer) = pass.name(kind, &name, Form::Text) {
                changes.push((place, outer.to_owned()));
            }
        }
        let apart = |one: &Range<usize>, other: &Range<usize>| one.end <= other.start || other.end <= one.start;
        let told =
            pass.told(value).into_iter().filter(|(place, _)| changes.iter().all(|(taken, _)| apart(place, taken)));
        let told: Vec<_> = told.collect();
        changes.extend(told);
        changes
    }
}

/// Whether no name and no state stands in an answer, be it in a string, in the name of a member, or as a number.
fn is_clean(answer: &str, finder: &Finder<'_>) -> bool {
    let Ok(root) = span::parse(answer) else { return false };
    let mut open = vec![&root];
    while let Some(node) = open.pop() {
        let is_in = match &node.kind {
            Kind::Object(members) => {
                open.extend(members.iter().map(|member| &member.value));
                members.iter().any(|member| finder.is_in(&member.name))
            }
            Kind::Array(items) => {
                open.extend(items);
                false
            }
            Kind::Text(value) => finder.is_in(value),
            Kind::Number => finder.is_in(node.raw(answer)),
            Kind::Literal => false,
        };
        if is_in {
            return false;
        }
    }
    true
}

/// The results of a message: of a finished task the tool's own stands inside of the result.
fn results<'n, 't>(message: &'n Node<'t>) -> Vec<&'n Node<'t>> {
    let result = message.get("result");
    result.into_iter().chain(result.and_then(|result| result.get("result"))).collect()
}

/// What is to be changed in the value of a string, as changes of the text in which the string stands at this place.
fn in_quotes(at: &Range<usize>, text: &str, changes: Vec<(Range<usize>, String)>) -> Vec<(Range<usize>, String)> {
    if changes.is_empty() {
        return changes;
    }
    let start = at.start + 1;
    let from = unescaped(&text[start..at.end - 1]);
    let escaped = |new: String| {
        let quoted = Value::from(new).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    };
    changes.into_iter().map(|(place, new)| (start + from[place.start]..start + from[place.end], escaped(new))).collect()
}

/// One way through a message: the first finds names, the second puts handles in their place.
struct Pass<'k> {
    known: Option<&'k Known>,
    finder: Option<&'k Finder<'k>>,
    found: Vec<(ObjectType, String, Form)>,
}

impl Pass<'_> {
    /// What of a text in which names stand among other words is to be changed, and to what.
    fn told(&self, value: &str) -> Vec<(Range<usize>, String)> {
        let places = self.finder.map_or_else(Vec::new, |finder| finder.places(value));
        places.into_iter().map(|(place, outer)| (place, outer.to_owned())).collect()
    }

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

/// How deep JSON in strings in JSON is followed.
const MOST_NESTED: usize = 8;

const STATE: &str = "requestState";
