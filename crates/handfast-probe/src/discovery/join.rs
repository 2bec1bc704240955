//! The join: which argument, template variable or prompt argument takes a value that a tool handed out, and on what
//! evidence.

use handfast_wire::pointer;
use serde_json::{Value, json};

use super::{
    Entry,
    emitted::{Emitted, Spot},
    names,
};
use crate::surface::{Surface, Tool};

/// A place that takes a value, with the strength of the evidence for it: the smaller, the stronger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Taker {
    pub(super) entry: Entry,
    pub(super) rank: u8,
}

/// Everything that takes this value.
pub(super) fn takers(surface: &Surface, minter: &Tool, emitted: &Emitted) -> Vec<Taker> {
    let mut found = Vec::new();
    for tool in &surface.tools {
        for (argument, schema) in places(&tool.input) {
            if !takes(schema, &emitted.value) {
                continue;
            }
            let name = last_name(&argument);
            // The sides of a copy are of the kind of which the tool speaks.
            let name = if is_a_side_of_a_pair(tool, &name) { "id".to_owned() } else { name };
            let rank = rank(minter, emitted, &name, &tool.name);
            let itself = tool.name == minter.name;
            if let Some(rank) = rank.filter(|&rank| !itself || rank == BY_NAME) {
                let entry = Entry::Tool { tool: tool.name.clone(), argument: argument.clone() };
                found.push(Taker { entry, rank });
            }
        }
    }
    for template in &surface.templates {
        for variable in &template.variables {
            let prefix = template.uri.split('{').next().unwrap_or_default();
            let by_uri = matches!(&emitted.spot, Spot::Uri(own) if own == prefix);
            let rank = rank(minter, emitted, variable, &template.uri).or(by_uri.then_some(BY_URI));
            if let Some(rank) = rank {
                let entry = Entry::Resource { template: template.uri.clone(), variable: variable.clone() };
                found.push(Taker { entry, rank });
            }
        }
    }
    for prompt in &surface.prompts {
        for (argument, _) in &prompt.arguments {
            if let Some(rank) = rank(minter, emitted, argument, &prompt.name) {
                let entry = Entry::Prompt { prompt: prompt.name.clone(), argument: argument.clone() };
                found.push(Taker { entry, rank });
            }
        }
    }
    found
}

/// Every place of an input schema that could take a handle: arguments by name, members of nested objects and items of
/// arrays by JSON Pointer (`/target/basket_id`, `/basket_ids/0`, and `/basket_ids/1` behind one of the caller's own).
pub(super) fn places(input: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    for (name, schema) in input.get("properties").and_then(Value::as_object).into_iter().flatten() {
        found.push((name.clone(), schema));
        below(input, schema, &format!("/{}", pointer::escape(name)), 0, &mut found);
    }
    found
}

fn below<'s>(root: &'s Value, schema: &'s Value, at: &str, depth: usize, found: &mut Vec<(String, &'s Value)>) {
    let reference = schema.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
    let schema = reference.and_then(|at| root.pointer(at)).unwrap_or(schema);
    if depth > DEEPEST || found.len() > MOST_PLACES {
        return;
    }
    for (name, member) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let at = format!("{at}/{}", pointer::escape(name));
        found.push((at.clone(), member));
        below(root, member, &at, depth + 1, found);
    }
    if let Some(item) = schema.get("items").filter(|item| item.is_object()) {
        let first = format!("{at}/0");
        found.push((first.clone(), item));
        // Whoever looks at the first of several may have forgotten the others.
        if schema.get("maxItems").and_then(Value::as_u64).is_none_or(|most| most > 1) {
            found.push((format!("{at}/1"), item));
        }
        below(root, item, &first, depth + 1, found);
    }
}

/// The last name of a place, past the index of an item.
fn last_name(place: &str) -> String {
    match place.strip_prefix('/') {
        None => place.to_owned(),
        Some(path) => {
            path.split('/').rfind(|part| part.parse::<usize>().is_err()).map(pointer::last).unwrap_or_default()
        }
    }
}

/// `from` and `to` of `copy_basket`, `source` and `target` of `merge_baskets`: plain texts, both of them, of a tool that takes
/// two of a kind.
fn is_a_side_of_a_pair(tool: &Tool, name: &str) -> bool {
    let Some(other) = PAIRS.iter().find_map(|(one, other)| match name {
        name if name == *one => Some(*other),
        name if name == *other => Some(*one),
        _ => None,
    }) else {
        return false;
    };
    let takes_two = names::words(&tool.name).first().is_some_and(|verb| VERBS_OF_TWO.contains(&verb.as_str()));
    let is_plain = |name: &str| {
        let schema = tool.input.get("properties").and_then(|properties| properties.get(name));
        schema.is_some_and(|schema| {
            let kind = schema.get("type").and_then(Value::as_str);
            kind.is_some_and(|kind| ["string", "integer"].contains(&kind)) && schema.get("format").is_none()
        })
    };
    takes_two && is_plain(name) && is_plain(other)
}

/// How strongly names say that an argument takes a value; `None` where they do not.
fn rank(minter: &Tool, emitted: &Emitted, argument: &str, owner: &str) -> Option<u8> {
    let key = emitted.name();
    let (key_noun, argument_noun) = (names::noun(&key), names::noun(argument));
    let a_handle = names::names_a_handle(argument) || names::names_a_handle(&key);
    // Where a list goes on is told by a cursor, and by nothing that stands on the list.
    let of_a_cursor = [key.as_str(), minter.name.as_str()].iter().any(|name| names::names_a_cursor(name));
    if names::names_a_cursor(argument) && !of_a_cursor {
        return None;
    }
    let in_prose = matches!(emitted.spot, Spot::Text { .. });
    if in_prose {
        return by_prose(minter, emitted, argument, &argument_noun, owner);
    }
    if !a_handle && !opaque(&emitted.value) {
        return None;
    }
    let words = names::words(argument);
    let takes_uris = words.last().is_some_and(|word| word == "uri");
    if takes_uris && matches!(emitted.spot, Spot::Uri(_)) {
        // The argument wants the whole URI.
        return None;
    }
    let bare = words.len() == 1 && BARE.contains(&words[0].as_str());
    if names::words(&key) == words && !bare {
        return Some(BY_NAME);
    }
    let same = |one: &[String], two: &[String]| match (one.last(), two.last()) {
        (Some(one), Some(two)) => names::same_noun(one, two),
        _ => false,
    };
    if same(&key_noun, &argument_noun) && a_handle {
        return Some(BY_MEANING);
    }
    match (key_noun.is_empty(), argument_noun.is_empty()) {
        // `id` of `create_basket`, or of the member `basket`, for `basket_id`.
        (true, false) => named_by_surroundings(minter, emitted, &argument_noun).then_some(BY_MEANING),
        // `basket_id` for the `id` of `get_basket`.
        (false, true) => names::mentions(owner, &key_noun).then_some(BY_MEANING),
        // `id` of `create_basket` for the `id` of `get_basket`.
        (true, true) => {
            let nouns: Vec<String> = names::words(&minter.name).into_iter().skip(1).collect();
            nouns.iter().any(|noun| names::mentions(owner, std::slice::from_ref(noun))).then_some(BY_MEANING)
        }
        (false, false) => None,
    }
}

fn by_prose(minter: &Tool, emitted: &Emitted, argument: &str, argument_noun: &[String], owner: &str) -> Option<u8> {
    let Spot::Text { label, .. } = &emitted.spot else { return None };
    if !names::names_a_handle(argument) && !opaque(&emitted.value) {
        return None;
    }
    let noun = match argument_noun.last() {
        Some(noun) => noun.clone(),
        // A bare `id`: the noun of its tool must be that of the minter.
        None => names::words(&minter.name)
            .into_iter()
            .skip(1)
            .find(|noun| names::mentions(owner, std::slice::from_ref(noun)))?,
    };
    let labelled = label.iter().any(|word| names::same_noun(word, &noun));
    let prefix: String =
        super::emitted::text_of(&emitted.value).chars().take_while(char::is_ascii_alphabetic).collect();
    let abbreviated = prefix.len() >= 2 && names::abbreviates(&prefix.to_ascii_lowercase(), &noun);
    let announced =
        label.last().is_some_and(|word| names::names_a_handle(word)) && names::mentions(&minter.name, &[noun]);
    (labelled || abbreviated || announced).then_some(BY_TEXT)
}

fn named_by_surroundings(minter: &Tool, emitted: &Emitted, noun: &[String]) -> bool {
    let above = match &emitted.spot {
        Spot::Structured(at) | Spot::TextJson { pointer: at, .. } => {
            at.rsplit_once('/').map(|(above, _)| above.replace('/', "_"))
        }
        _ => None,
    };
    names::mentions(&minter.name, noun) || above.is_some_and(|above| names::mentions(&above, noun))
}

/// Whether a value looks as if nobody chose it: no plain word, no small number.
fn opaque(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.len() >= 6 && text.bytes().any(|byte| byte.is_ascii_digit()))
}

/// Whether a schema could take a value: of its type, and not one of a fixed list.
fn takes(schema: &Value, value: &Value) -> bool {
    if schema.get("enum").is_some() || schema.get("const").is_some() {
        return false;
    }
    fit(schema, value).is_some()
}

/// The value in the type that a schema asks for: `17` as `"17"`, `"17"` as `17`.
pub(super) fn fit(schema: &Value, value: &Value) -> Option<Value> {
    let kinds: Vec<&str> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        // `anyOf: [string, null]`, or nothing said: as it is.
        _ => {
            let branches = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array);
            return match branches {
                Some(branches) => branches.iter().find_map(|branch| fit(branch, value)),
                None => Some(value.clone()),
            };
        }
    };
    match value {
        Value::String(_) if kinds.contains(&"string") => Some(value.clone()),
        Value::Number(_) if kinds.contains(&"integer") || kinds.contains(&"number") => Some(value.clone()),
        Value::Number(number) if kinds.contains(&"string") => Some(json!(number.to_string())),
        Value::String(text) if kinds.contains(&"integer") => text.parse::<u64>().ok().map(Value::from),
        _ => None,
    }
}

/// Strongest after the operator's own word: the same name on both sides.
pub(super) const BY_NAME: u8 = 2;
const BY_MEANING: u8 = 3;
const BY_TEXT: u8 = 4;
const BY_URI: u8 = 5;
/// Names that say nothing of what they name.
const BARE: [&str; 9] = ["id", "key", "uri", "ref", "token", "number", "uuid", "identifier", "name"];
const PAIRS: [(&str, &str); 6] = [
    ("from", "to"),
    ("source", "target"),
    ("source", "destination"),
    ("src", "dst"),
    ("src", "dest"),
    ("left", "right"),
];
const VERBS_OF_TWO: [&str; 10] =
    ["copy", "merge", "move", "compare", "diff", "link", "clone", "sync", "combine", "duplicate"];
const DEEPEST: usize = 2;
const MOST_PLACES: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::emitted::emitted;

    fn tool(name: &str, arguments: Value) -> Tool {
        Tool {
            name: name.to_owned(),
            description: String::new(),
            input: json!({"type": "object", "properties": arguments}),
            output: Value::Null,
            read_only: false,
            destructive: None,
        }
    }

    /// Who takes what, for a result of `create_basket`.
    fn joined(result: Value, consumer: &str, argument: &str, schema: Value) -> Vec<(String, u8)> {
        let minter = tool("create_basket", json!({"label": {"type": "string"}}));
        let consumer = tool(consumer, json!({argument: schema}));
        let surface = Surface { tools: vec![minter.clone(), consumer], ..Surface::default() };
        let found = emitted(&result, &["my label".to_owned()]);
        let mut joined: Vec<_> = found
            .iter()
            .flat_map(|value| {
                takers(&surface, &minter, value)
                    .into_iter()
                    .map(|taker| (super::super::emitted::text_of(&value.value), taker.rank))
            })
            .collect();
        joined.sort_by_key(|(_, rank)| *rank);
        joined
    }

    #[test]
    fn an_object_on_a_list_is_no_place_in_it() {
        let string = || json!({"type": "string"});
        let of = |member: &str| json!({"structuredContent": {member: "x9y8z7"}});
        assert_eq!(joined(of("basket_id"), "list_baskets", "cursor", string()), []);
        assert_eq!(joined(of("basket_id"), "list_baskets", "page_token", string()), []);
        assert_eq!(joined(of("basket_cursor"), "fetch_baskets", "basket_cursor", string()).len(), 1);
    }

    #[test]
    fn names_join_what_means_the_same() {
        let string = || json!({"type": "string"});
        for (result, consumer, argument, schema, value, rank) in [
            (json!({"structuredContent": {"basket_id": "b-1a2b3c"}}), "add_item", "basket_id", string(), "b-1a2b3c", 2),
            (json!({"structuredContent": {"basketId": "b-1a2b3c"}}), "add_item", "basket_id", string(), "b-1a2b3c", 2),
            (json!({"structuredContent": {"id": "b-1a2b3c"}}), "add_item", "basket_id", string(), "b-1a2b3c", 3),
            (
                json!({"structuredContent": {"basket": {"id": 17}}}),
                "add_item",
                "basket_id",
                json!({"type": "integer"}),
                "17",
                3,
            ),
            (json!({"structuredContent": {"basket_id": 17}}), "add_item", "basketId", string(), "17", 2),
            (json!({"structuredContent": {"basket_ref": "x9y8z7"}}), "add_item", "basket_id", string(), "x9y8z7", 3),
            (json!({"structuredContent": {"basket_id": "x9y8z7"}}), "get_basket", "id", string(), "x9y8z7", 3),
            (json!({"structuredContent": {"id": "x9y8z7"}}), "get_basket", "id", string(), "x9y8z7", 3),
            (
                json!({"content": [{"type": "text", "text": "{\"id\": \"x9y8z7\"}"}]}),
                "get_basket",
                "basket_id",
                string(),
                "x9y8z7",
                3,
            ),
            (
                json!({"content": [{"type": "text", "text": "Created basket bsk_a1b2c3."}]}),
                "add_item",
                "basket_id",
                string(),
                "bsk_a1b2c3",
                4,
            ),
            (
                json!({"content": [{"type": "text", "text": "Done.\n- **Basket ID:** `9f8e7d6c`"}]}),
                "add_item",
                "basket_id",
                string(),
                "9f8e7d6c",
                4,
            ),
            (
                json!({"content": [{"type": "text", "text": "Basket 17 is open"}]}),
                "add_item",
                "basket_id",
                json!({"type": "integer"}),
                "17",
                4,
            ),
        ] {
            let found = joined(result.clone(), consumer, argument, schema);
            assert_eq!(found.first(), Some(&(value.to_owned(), rank)), "{result}: {found:?}");
        }
    }

    #[test]
    fn handles_are_taken_in_nested_objects_and_arrays() {
        let minter = tool("create_basket", json!({"label": {"type": "string"}}));
        let string = json!({"type": "string"});
        let consumer = tool(
            "merge",
            json!({
                "target": {"$ref": "#/properties/like"},
                "like": {"type": "object", "properties": {"basket_id": string}},
                "basket_ids": {"type": "array", "items": string},
                "other_id": string,
            }),
        );
        let surface = Surface { tools: vec![minter.clone(), consumer], ..Surface::default() };
        let found = emitted(&json!({"structuredContent": {"basket_id": "b-1a2b3c"}}), &[]);

        let entries: Vec<String> =
            takers(&surface, &minter, &found[0]).iter().map(|taker| taker.entry.to_string()).collect();

        let expected = ["/target/basket_id", "/like/basket_id", "/basket_ids/0", "/basket_ids/1"]
            .map(|at| format!("tools/call merge#{at}"));
        assert_eq!(entries, expected);
    }

    #[test]
    fn each_of_two_of_a_kind_takes_a_handle() {
        let minter = tool("create_basket", json!({"label": {"type": "string"}}));
        let (string, date) = (json!({"type": "string"}), json!({"type": "string", "format": "date"}));
        let takers_of = |name: &str, arguments: Value| -> Vec<String> {
            let surface = Surface { tools: vec![minter.clone(), tool(name, arguments)], ..Surface::default() };
            let found = emitted(&json!({"structuredContent": {"basket_id": "b-1a2b3c"}}), &[]);
            takers(&surface, &minter, &found[0]).iter().map(|taker| taker.entry.to_string()).collect()
        };
        for [one, other] in [["basket_a", "basket_b"], ["basket_1", "basket_2"], ["from", "to"], ["source", "target"]] {
            let entries = takers_of("merge_baskets", json!({one: string, other: string}));
            assert_eq!(entries, [one, other].map(|name| format!("tools/call merge_baskets#{name}")), "{one}");
        }
        assert_eq!(takers_of("list_baskets", json!({"from": string, "to": string})), Vec::<String>::new());
        assert_eq!(takers_of("copy_basket", json!({"from": date, "to": date})), Vec::<String>::new());
        assert_eq!(takers_of("copy_basket", json!({"from": string})), Vec::<String>::new());
    }

    #[test]
    fn what_is_no_handle_is_not_joined() {
        for result in [
            json!({"structuredContent": {"label": "my label", "created_at": "2026-11-29T10:00:00Z", "request_id": "r-123456"}}),
            json!({"structuredContent": {"url": "https://example.com/basket/1", "count": 3}}),
            json!({"content": [{"type": "text", "text": "ok"}]}),
            json!({"structuredContent": {"order_id": "o-1a2b3c"}}),
        ] {
            let found = joined(result.clone(), "add_item", "basket_id", json!({"type": "string"}));
            assert_eq!(found, [], "{result}");
        }
        let fixed = json!({"type": "string", "enum": ["a", "b"]});
        assert_eq!(joined(json!({"structuredContent": {"basket_id": "b-1a2b3c"}}), "add_item", "basket_id", fixed), []);
    }
}
