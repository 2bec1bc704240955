//! What a client is told of the tools: where a handle stands, the schema is that of a handle of ours.

use std::ops::Range;

use handfast_wire::span::Node;
use serde_json::Value;

use crate::rules::{Rules, Takes};

/// The schemas in this answer to `tools/list` that would refuse a handle of ours, and what is to stand in their place.
pub(crate) fn changes(rules: &Rules, result: &Node<'_>, text: &str) -> Vec<(Range<usize>, String)> {
    let mut changes = Vec::new();
    for tool in result.get("tools").map_or(&[][..], Node::items) {
        let Some(name) = tool.get("name").and_then(Node::text) else { continue };
        let mut change = |schema: Option<&Node<'_>>, pointer: &str| {
            let found = schema.and_then(|schema| property(schema, pointer));
            if let Some(new) = found.and_then(|found| of_a_handle(found.raw(text)).map(|new| (found.at.clone(), new))) {
                changes.push(new);
            }
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
    }
    changes.sort_by_key(|(place, _)| place.start);
    changes.dedup();
    changes
}

/// The schema of the value at this pointer.
fn property<'n, 't>(schema: &'n Node<'t>, pointer: &str) -> Option<&'n Node<'t>> {
    let mut schema = schema;
    for segment in pointer.split('/').skip(1) {
        let name = segment.replace("~1", "/").replace("~0", "~");
        let is_item = name == "*" || name.parse::<usize>().is_ok();
        schema = if is_item { schema.get("items")? } else { schema.get("properties")?.get(&name)? };
    }
    Some(schema)
}

/// The schema with a text in the place of whatever it was; `None` where it takes any text already.
fn of_a_handle(schema: &str) -> Option<String> {
    let Ok(Value::Object(given)) = serde_json::from_str::<Value>(schema) else { return None };
    let bounds = |name: &str| BOUNDS.contains(&name);
    if given.get("type").is_none_or(|kind| kind == "string") && !given.keys().any(|name| bounds(name)) {
        return None;
    }
    let mut told: serde_json::Map<String, Value> = given.into_iter().filter(|(name, _)| !bounds(name)).collect();
    told.insert("type".to_owned(), "string".into());
    Some(Value::Object(told).to_string())
}

/// What a schema may demand of a name of the server behind, which a handle of ours does not meet.
const BOUNDS: [&str; 13] = [
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
];
