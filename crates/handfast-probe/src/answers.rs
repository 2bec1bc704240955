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

/// A way of not agreeing to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum No {
    /// "User explicitly declined the request."
    Decline,
    /// "User dismissed without making an explicit choice."
    Cancel,
    /// The form is submitted, and its booleans say no.
    Boolean,
}

impl No {
    /// As reports name it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Decline => "decline",
            Self::Cancel => "cancel",
            Self::Boolean => "a boolean no",
        }
    }
}

/// Takes the consent out of answers that agree. `false` where they hold nothing that could be refused in this way.
pub fn refuse(asked: &InputRequired, no: No, answers: &mut Object) -> bool {
    let mut refused = false;
    for (key, answer) in answers.iter_mut() {
        if !asked.requests.get(key).is_some_and(is_elicitation) {
            continue;
        }
        match no {
            No::Decline | No::Cancel => {
                *answer = json!({"action": no.word()});
                refused = true;
            }
            No::Boolean => {
                let members = answer.get_mut("content").and_then(Value::as_object_mut);
                for value in members.into_iter().flat_map(|members| members.values_mut()) {
                    if let Value::Bool(agreed) = value {
                        *agreed = !*agreed;
                        refused = true;
                    }
                }
            }
        }
    }
    refused
}

/// Whether a question is one for consent, and not for information alone: there is a yes in it, or nothing to fill in, or its
/// message speaks of consent. An answer that nobody asked for gives away nothing where only a name was wanted.
pub fn wants_consent(request: &Value) -> bool {
    let params = request.get("params").unwrap_or(request);
    if !is_elicitation(request) {
        return false;
    }
    let schema = params.get("requestedSchema").or_else(|| params.get("schema")).unwrap_or(&Value::Null);
    let properties = schema.get("properties").and_then(Value::as_object);
    let has_a_yes = |property: &Value| {
        property.get("type").and_then(Value::as_str) == Some("boolean")
            || choices(property).iter().any(|choice| choice.as_str().is_some_and(agrees))
    };
    let message = params.get("message").and_then(Value::as_str).unwrap_or_default();
    properties.is_none_or(|properties| properties.is_empty() || properties.values().any(has_a_yes))
        || names::words(message).iter().any(|word| CONSENTING.contains(&word.as_str()))
}

/// Whether a question is one that a user may decline.
fn is_elicitation(request: &Value) -> bool {
    !matches!(request.get("method").and_then(Value::as_str), Some("sampling/createMessage" | "roots/list"))
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

const CONSENTING: [&str; 14] = [
    "approve",
    "approval",
    "confirm",
    "confirmation",
    "consent",
    "agree",
    "allow",
    "permit",
    "authorize",
    "authorise",
    "sure",
    "proceed",
    "continue",
    "irreversible",
];

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

    fn form(message: &str, properties: Value) -> Value {
        json!({"method": "elicitation/create", "params": {"message": message, "requestedSchema": {"type": "object", "properties": properties}}})
    }

    #[test]
    fn consent_is_told_from_information() {
        for consent in [
            form("Go on?", json!({"confirm": {"type": "boolean"}})),
            form("Go on?", json!({"answer": {"enum": ["no", "yes"]}})),
            form("Go on?", json!({})),
            form("Are you sure? Say why.", json!({"reason": {"type": "string"}})),
            json!({"method": "elicitation/create", "params": {"mode": "url", "url": "https://example.com", "message": ""}}),
        ] {
            assert!(wants_consent(&consent), "{consent}");
        }
        for other in [
            form("What is your name?", json!({"name": {"type": "string"}})),
            form("For how many?", json!({"guests": {"type": "integer"}, "room": {"enum": ["inside", "outside"]}})),
            json!({"method": "sampling/createMessage", "params": {"message": "Are you sure?"}}),
            json!({"method": "roots/list"}),
        ] {
            assert!(!wants_consent(&other), "{other}");
        }
    }

    #[test]
    fn consent_is_taken_out_of_answers_and_nothing_else_is() {
        let mut requests = Object::new();
        requests
            .insert("confirm".into(), form("?", json!({"confirm": {"type": "boolean"}, "note": {"type": "string"}})));
        requests.insert("roots".into(), json!({"method": "roots/list"}));
        let asked = InputRequired { requests, state: None };
        let agreed =
            json!({"confirm": {"action": "accept", "content": {"confirm": true, "note": "x"}}, "roots": {"roots": []}});
        let refused = |no: No| {
            let mut answers = agreed.as_object().cloned().expect("an object");
            (refuse(&asked, no, &mut answers), Value::Object(answers))
        };
        let declined = json!({"confirm": {"action": "decline"}, "roots": {"roots": []}});
        assert_eq!(refused(No::Decline), (true, declined));
        let unticked = json!({"confirm": {"action": "accept", "content": {"confirm": false, "note": "x"}}, "roots": {"roots": []}});
        assert_eq!(refused(No::Boolean), (true, unticked));
        let only_roots = InputRequired {
            requests: asked.requests.iter().skip(1).map(|(k, v)| (k.clone(), v.clone())).collect(),
            state: None,
        };
        let mut answers = agreed.as_object().cloned().expect("an object");
        assert!(!refuse(&only_roots, No::Cancel, &mut answers));
    }
}
