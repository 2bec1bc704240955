//! What a client is told of the tools: where a handle stands, the schema is that of a handle of ours.

use std::ops::Range;

use handfast_wire::span::{self, Kind, Node};

use crate::{
    rules::{Rules, Takes},
    states::without,
};

/// The schemas in this answer to `tools/list` that would refuse a handle of ours, and what is to stand in their place.
pub(crate) fn changes(rules: &Rules, result: &Node<'_>, text: &str) -> Vec<(Range<usize>, String)> {
    let mut changes = Vec::new();
    for tool in result.get("tools").map_or(&[][..], Node::items) {
        let Some(name) = tool.get("name").and_then(Node::text) else { continue };
        let mut change = |schema: Option<&Node<'_>>, pointer: &str| {
            changes
                .extend(schema.and_then(|schema| property(schema, pointer)).and_then(|found| change_of(found, text)));
        };
        for kind in rules.kinds() {
            for takes in &kind.takes {
                if let Takes::Tool { tool: known, pointer } = takes
                    && known == name
                {
                    change(tool.get("inputSchema"), pointer);
                }
            }
            for pointer in kind.structured(name) {
                change(tool.get("outputSchema"), pointer);
            }
        }
        // Whatever tool it is, a handle stands where a member goes by its name.
        let mut open: Vec<&Node<'_>> = tool.get("outputSchema").into_iter().collect();
        while let Some(schema) = open.pop() {
            for member in schema.get("properties").map_or(&[][..], Node::members) {
                let found = rules.of_member(&member.name).and_then(|_| change_of(items(&member.value), text));
                changes.extend(found);
                open.push(&member.value);
            }
            open.extend(schema.get("items"));
        }
    }
    changes.sort_by_key(|(place, _)| place.start);
    changes.dedup();
    changes
}

/// The schema of what stands in an array, where this is that of one.
fn items<'n, 't>(schema: &'n Node<'t>) -> &'n Node<'t> {
    let is_array = schema.get("type").and_then(Node::text) == Some("array");
    schema.get("items").filter(|_| is_array).unwrap_or(schema)
}

fn change_of(schema: &Node<'_>, text: &str) -> Option<(Range<usize>, String)> {
    let new = of_a_handle(schema, text)?;
    Some((schema.at.clone(), new))
}

/// The schema of the value at this pointer.
fn property<'n, 't>(schema: &'n Node<'t>, pointer: &str) -> Option<&'n Node<'t>> {
    let mut schema = schema;
    for segment in pointer.split('/').skip(1) {
        let name = segment.replace("~1", "/").replace("~0", "~");
        let is_item = name == "*" || name.parse::<usize>().is_ok();
        schema = if is_item { schema.get("items")? } else { schema.get("properties")?.get(&name)? };
    }
    Some(items(schema))
}

/// The schema with a text in the place of whatever it was, and all else as it is; `None` where it takes any text already.
fn of_a_handle(schema: &Node<'_>, text: &str) -> Option<String> {
    let bounds = |at: usize| BOUNDS.contains(&&*schema.members()[at].name);
    let is_text = schema.get("type").is_none_or(|kind| kind.text() == Some("string"));
    if !matches!(schema.kind, Kind::Object(_)) || is_text && !(0..schema.members().len()).any(bounds) {
        return None;
    }
    let mut changes = without(schema, |at| bounds(at) || schema.members()[at].name == "type");
    let is_left = (0..schema.members().len()).any(|at| !bounds(at) && schema.members()[at].name != "type");
    let start = schema.at.start + 1;
    changes.push((start..start, format!(r#""type":"string"{}"#, if is_left { "," } else { "" })));
    // An insertion before what is taken away at the same place.
    changes.rotate_right(1);
    let after = span::spliced(&text[..schema.at.end], changes);
    Some(after[schema.at.start..].to_owned())
}

/// What a schema may demand of a name of the server behind, which a handle of ours does not meet.
const BOUNDS: [&str; 18] = [
    "pattern",
    "format",
    "enum",
    "const",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "default",
    "examples",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
    "$ref",
];

#[cfg(test)]
mod tests {
    use handfast_wire::span;

    use super::of_a_handle;

    #[test]
    fn a_schema_takes_a_text_and_stays_what_it_was() {
        for (schema, told) in [
            (r#"{"type":"integer","minimum":1}"#, Some(r#"{"type":"string"}"#)),
            (
                r#"{ "x": 1.0e2, "type":"integer" , "title":"a"}"#,
                Some(r#"{"type":"string", "x": 1.0e2 , "title":"a"}"#),
            ),
            (r#"{"anyOf":[{"type":"integer"},{"type":"null"}],"title":"a"}"#, Some(r#"{"type":"string","title":"a"}"#)),
            (r#"{"type":["integer","null"]}"#, Some(r#"{"type":"string"}"#)),
            (r#"{"type":"string","pattern":"^b-"}"#, Some(r#"{"type":"string"}"#)),
            (r##"{"$ref":"#/$defs/id"}"##, Some(r#"{"type":"string"}"#)),
            (r#"{"type":"string","title":"a"}"#, None),
            ("{}", None),
            ("true", None),
        ] {
            let text = format!("[ {schema}]");
            let node = span::parse(&text).expect("JSON");
            let new = of_a_handle(&node.items()[0], &text);
            assert_eq!(new.as_deref(), told, "{schema}");
            assert!(new.is_none_or(|new| span::parse(&new).is_ok()));
        }
    }
}
