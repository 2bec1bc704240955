//! Answers to a server's questions (`inputRequests`), in the form of the specification and in the older bare form.

use std::collections::BTreeMap;

use handfast_wire::{message::Object, result::InputRequired};
use serde_json::{Value, json};

use crate::{
    arguments::{self, Wish},
    canary::Canary,
    discovery::names,
};

/// The form that answers take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `{action, content}`, a sampling result, a roots result.
    Specified,
    /// The value alone, for servers older than the specification.
    Bare,
}

/// An accepting answer to every question. `canary` goes where free text is asked for.
pub fn accept(asked: &InputRequired, form: Form, canary: &Canary, fixed: &BTreeMap<String, Value>) -> Object {
    asked.requests.iter().map(|(key, request)| (key.clone(), answer(key, request, form, canary, fixed))).collect()
}

fn answer(key: &str, request: &Value, form: Form, canary: &Canary, fixed: &BTreeMap<String, Value>) -> Value {
    let params = request.get("params").unwrap_or(request);
    match request.get("method").and_then(Value::as_str) {
        Some("sampling/createMessage") => json!({
            "role": "assistant",
            "content": {"type": "text", "text": canary.long},
            "model": "handfast",
            "stopReason": "endTurn",
        }),
        Some("roots/list") => json!({"roots": [{"uri": "file:///handfast", "name": "handfast"}]}),
        _ if params.get("mode").and_then(Value::as_str) == Some("url") => json!({"action": "accept"}),
        _ => {
            let schema = params.get("requestedSchema").or_else(|| params.get("schema")).unwrap_or(&Value::Null);
            let content = content(schema, canary, fixed);
            match form {
                Form::Specified => json!({"action": "accept", "content": content}),
                Form::Bare => bare(key, schema, content),
            }
        }
    }
}

/// Content that satisfies the schema and agrees: every boolean is true, because a question's "yes" is what goes on.
fn content(schema: &Value, canary: &Canary, fixed: &BTreeMap<String, Value>) -> Value {
    let wish = Wish { canary: Some(canary), fixed: fixed.clone(), optional_text: false };
    let is_object = schema.get("properties").is_some() || schema.get("type").and_then(Value::as_str) == Some("object");
    if !is_object {
        return arguments::plain(schema, "", &wish);
    }
    let mut made = arguments::synthesise(schema, &wish).unwrap_or_default();
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if fixed.contains_key(name) {
            continue;
        }
        if property.get("type").and_then(Value::as_str) == Some("boolean") {
            let refusing = names::words(name).iter().any(|word| REFUSING.contains(&word.as_str()));
            made.insert(name.clone(), Value::Bool(!refusing));
        }
        if let Some(choice) = choices(property).into_iter().find(|choice| choice.as_str().is_some_and(agrees)) {
            made.insert(name.clone(), choice);
        }
    }
    Value::Object(made)
}

/// What a form lets choose from: `enum`, or the constants of `oneOf` and `anyOf`.
fn choices(property: &Value) -> Vec<Value> {
    let listed = property.get("enum").and_then(Value::as_array).cloned().unwrap_or_default();
    let titled = ["oneOf", "anyOf"].into_iter().filter_map(|key| property.get(key)?.as_array()).flatten();
    listed.into_iter().chain(titled.filter_map(|branch| branch.get("const").cloned())).collect()
}

fn agrees(choice: &str) -> bool {
    ["yes", "y", "true", "confirm", "accept", "approve", "ok", "allow", "continue", "proceed"]
        .contains(&choice.to_ascii_lowercase().as_str())
}

/// The value alone: of the member named like the question, else of the only member, else the object.
fn bare(key: &str, schema: &Value, content: Value) -> Value {
    let Value::Object(members) = &content else {
        return if schema.is_null() { Value::Bool(true) } else { content };
    };
    match (members.get(key), members.len()) {
        (Some(value), _) => value.clone(),
        (None, 1) => members.values().next().cloned().unwrap_or(Value::Bool(true)),
        (None, 0) => Value::Bool(true),
        _ => content,
    }
}

const REFUSING: [&str; 8] = ["cancel", "decline", "abort", "reject", "refuse", "deny", "skip", "stop"];

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(request: Value, form: Form) -> Value {
        let mut requests = Object::new();
        requests.insert("confirm".into(), request);
        let canary = Canary { long: "hf-a0010000-canary".into(), short: "hfa0010000".into() };
        let answers = accept(&InputRequired { requests, state: None }, form, &canary, &BTreeMap::new());
        answers["confirm"].clone()
    }

    #[test]
    fn answers_follow_the_specification() {
        let form = json!({"method": "elicitation/create", "params": {"mode": "form", "message": "sure?", "requestedSchema":
            {"type": "object", "properties": {"confirm": {"type": "boolean"}, "plan": {"enum": ["no", "yes"]}}, "required": ["confirm"]}}});
        assert_eq!(
            ask(form.clone(), Form::Specified),
            json!({"action": "accept", "content": {"confirm": true, "plan": "yes"}})
        );
        assert_eq!(ask(form, Form::Bare), json!(true));
        let titled = json!({"method": "elicitation/create", "params": {"message": "sure?", "requestedSchema": {"type": "object", "properties":
            {"plan": {"oneOf": [{"const": "no", "title": "No"}, {"const": "yes", "title": "Yes"}]}, "cancel": {"type": "boolean"}}, "required": ["plan", "cancel"]}}});
        assert_eq!(ask(titled, Form::Specified)["content"], json!({"plan": "yes", "cancel": false}));
        let url = json!({"method": "elicitation/create", "params": {"mode": "url", "url": "https://example.com", "message": ""}});
        assert_eq!(ask(url, Form::Specified), json!({"action": "accept"}));
        let sampling = ask(json!({"method": "sampling/createMessage", "params": {}}), Form::Specified);
        assert_eq!((sampling["role"].as_str(), sampling.get("resultType")), (Some("assistant"), None));
        assert!(ask(json!({"method": "roots/list"}), Form::Specified)["roots"].is_array());
    }
}
