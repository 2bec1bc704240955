//! Arguments made from a tool's own schema: they satisfy it, whatever of JSON Schema 2020-12 it uses; they carry a canary
//! where free text fits; and a hostile schema costs little time and gives a reason.

mod support;

use std::{collections::BTreeMap, time::Duration};

use handfast_probe::{
    arguments::{self, Wish},
    canary::{Canaries, Canary},
    clock::Deadline,
    identity::Who,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn canary() -> Canary {
    Canaries::new().fresh(Who::A)
}

fn made(schema: &Value) -> Result<Value, String> {
    made_with(&canary(), schema)
}

fn made_with(canary: &Canary, schema: &Value) -> Result<Value, String> {
    arguments::synthesise(schema, &Wish { canary: Some(canary), ..Wish::default() }).map(Value::Object)
}

/// A tool with one required argument.
fn of(name: &str, schema: Value) -> Value {
    json!({"type": "object", "properties": {name: schema}, "required": [name]})
}

/// By a validator of our own: the code under test must not be its only judge.
fn is_valid(schema: &Value, value: &Value) -> bool {
    jsonschema::options().should_validate_formats(true).build(schema).expect("a schema").is_valid(value)
}

/// One value to a line; comments begin with `#`.
fn vectors(text: &str) -> impl Iterator<Item = Value> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
}

/// All of them, and a list of those that are not satisfied.
fn assert_all_made(schemas: impl IntoIterator<Item = Value>) {
    let failures: Vec<String> = schemas
        .into_iter()
        .filter_map(|schema| match made(&schema) {
            Ok(value) => (!is_valid(&schema, &value)).then(|| format!("{schema}: {value}")),
            Err(reason) => Some(format!("{schema}: {reason}")),
        })
        .collect();
    assert!(failures.is_empty(), "{} are not satisfied:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_keyword_and_format_that_an_argument_may_have_is_satisfied() {
    assert_all_made(vectors(include_str!("vectors/schemas.jsonl")).map(|schema| of("value", schema)));
}

#[test]
fn what_real_sdks_emit_is_satisfied_and_references_are_followed() {
    assert_all_made(vectors(include_str!("vectors/tools.jsonl")));
}

#[test]
fn what_is_too_unusual_is_satisfied_or_refused_with_a_reason() {
    for schema in vectors(include_str!("vectors/exotic.jsonl")) {
        match made(&schema) {
            Ok(value) => assert!(is_valid(&schema, &value), "{schema}: {value}"),
            Err(reason) => assert!(!reason.is_empty(), "{schema}"),
        }
    }
}

#[test]
fn a_text_of_any_length_is_made() {
    for length in 0..40 {
        let schema = of("value", json!({"type": "string", "minLength": length, "maxLength": length}));
        let value = made(&schema).unwrap_or_else(|reason| panic!("{length}: {reason}"));
        assert_eq!(value["value"].as_str().map(str::len), Some(length));
    }
}

#[test]
fn a_canary_is_planted_where_free_text_fits() {
    let canary = canary();
    for (name, schema) in [
        ("label", json!({"type": "string"})),
        ("value", json!({"type": "string"})),
        ("label", json!({"type": "string", "maxLength": 16})),
        ("note", json!({"type": ["string", "null"]})),
        ("note", json!({"anyOf": [{"type": "string"}, {"type": "null"}]})),
        ("title", json!({"type": "string", "minLength": 100})),
        ("name", json!({"type": "string", "pattern": "^[a-z0-9-]+$"})),
        ("name", json!({"type": "string", "pattern": "^[a-z0-9]{1,20}$"})),
        ("label", json!({"type": "string", "default": "untitled"})),
        ("contact", json!({"type": "string", "format": "email"})),
        ("items", json!({"type": "array", "items": {"type": "string"}})),
        ("deep", json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]})),
    ] {
        let made = made_with(&canary, &of(name, schema.clone())).unwrap_or_else(|reason| panic!("{schema}: {reason}"));
        assert!(canary.is_in(&made.to_string()), "{schema}: {made}");
    }
}

#[test]
fn optional_text_is_filled_only_on_wish_and_only_where_a_person_would_write() {
    let properties = json!({
        "label": {"type": "string"}, "userNote": {"type": "string"}, "basket_id": {"type": "string"},
        "title": {"type": "string", "enum": ["Ms", "Mr"]}, "count": {"type": "integer"}, "description": {"type": "string", "format": "uri"}
    });
    let schema = json!({"type": "object", "properties": properties});
    let canary = canary();
    let with = |optional_text| {
        let wish = Wish { canary: Some(&canary), fixed: BTreeMap::new(), optional_text };
        let made = arguments::synthesise(&schema, &wish).expect("nothing is required");
        made.keys().cloned().collect::<Vec<_>>()
    };

    assert_eq!(with(false), Vec::<String>::new());
    assert_eq!(with(true), ["label", "userNote"]);
}

#[test]
fn known_values_go_where_they_belong_and_nowhere_else() {
    let schema = json!({"type": "object", "properties": {
        "basket_id": {"type": "string"}, "label": {"type": "string"},
        "inner": {"type": "object", "properties": {"basket_id": {"type": "string"}}, "required": ["basket_id"]}
    }, "required": ["basket_id", "inner"]});
    let canary = canary();
    let fixed = BTreeMap::from([("basket_id".to_owned(), json!("b-17")), ("label".to_owned(), json!("mine"))]);
    let made =
        arguments::synthesise(&schema, &Wish { canary: Some(&canary), fixed, optional_text: false }).expect("it fits");

    assert_eq!((&made["basket_id"], &made["label"]), (&json!("b-17"), &json!("mine")));
    assert_ne!(made["inner"]["basket_id"], json!("b-17"), "a name deeper down is another name");
}

#[test]
fn a_known_value_that_does_not_fit_is_not_sent() {
    let schema = of("basket_id", json!({"type": "integer"}));
    let fixed = BTreeMap::from([("basket_id".to_owned(), json!("no number"))]);

    let refused = arguments::synthesise(&schema, &Wish { fixed, ..Wish::default() });

    assert!(refused.as_ref().is_err_and(|reason| reason.contains("basket_id")), "{refused:?}");
}

/// Work on what a stranger wrote ends soon.
fn quickly<T>(told: &str, work: impl FnOnce() -> T) -> T {
    let watch = Deadline::after(Duration::from_secs(3600));
    let result = work();
    assert!(watch.elapsed() < Duration::from_secs(5), "{told} took {:?}", watch.elapsed());
    result
}

#[test]
fn what_cannot_be_satisfied_is_refused_with_a_reason() {
    for schema in vectors(include_str!("vectors/unsatisfiable.jsonl")).map(|schema| of("value", schema)) {
        let refused = quickly(&schema.to_string(), || made(&schema)).expect_err("nothing satisfies this");
        assert!(!refused.is_empty() && refused.chars().count() < 400, "{schema}: {refused}");
    }
    for schema in
        [json!(null), json!([]), json!("object"), json!(7), json!({"type": "array"}), json!({"type": "string"})]
    {
        quickly(&schema.to_string(), || made(&schema)).expect_err("not arguments");
    }
}

#[test]
fn hostile_patterns_end_soon() {
    for pattern in [
        "^(a+)+$",
        "^(a|a)*b$",
        "^(a|aa)+$",
        "(x+x+)+y",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "a{100000}",
        "(a{1000}){1000}",
        "^.{65535}$",
        "((a{0,5}){0,5}){0,5}{0,5}",
        "(?:(?:(?:(?:a*)*)*)*)*$",
        "^(?!.*(.)\\1)[a-z]+$",
        "(.*)(\\1)(\\1)x",
        "\\p{L}{5000}",
    ] {
        for length in [json!({}), json!({"minLength": 4000}), json!({"maxLength": 3})] {
            let mut schema = json!({"type": "string", "pattern": pattern});
            schema.as_object_mut().expect("an object").extend(length.as_object().cloned().expect("an object"));
            let schema = of("value", schema);
            // Satisfied or refused, both are well.
            if let Ok(value) = quickly(pattern, || made(&schema)) {
                assert!(value.to_string().len() < 100_000, "{pattern}");
            }
        }
    }
}

#[test]
fn hostile_schemas_end_soon() {
    let mut nested = json!({"type": "string"});
    for _ in 0..80 {
        nested = json!({"type": "object", "properties": {"value": nested}, "required": ["value"]});
    }
    let mut branches = json!({"type": "string"});
    for _ in 0..7 {
        branches = json!({"anyOf": [branches.clone(), branches.clone()], "allOf": [branches]});
    }
    let wide: serde_json::Map<String, Value> =
        (0..3000).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
    let names: Vec<String> = wide.keys().cloned().collect();
    // Each level refers to the next ten times: ten to the twelfth.
    let defs: serde_json::Map<String, Value> = (0..12)
        .map(|n| {
            let next: serde_json::Map<String, Value> =
                (0..10).map(|m| (format!("m{m}"), json!({"$ref": format!("#/$defs/d{}", n + 1)}))).collect();
            let required: Vec<String> = next.keys().cloned().collect();
            (format!("d{n}"), json!({"type": "object", "properties": next, "required": required}))
        })
        .chain([("d12".to_owned(), json!({"type": "string"}))])
        .collect();
    for (told, schema) in [
        ("nested", of("value", nested)),
        ("branches", of("value", branches)),
        ("wide", json!({"type": "object", "properties": wide, "required": names})),
        ("refers to itself", of("value", json!({"$ref": "#/properties/value"}))),
        (
            "refers to the whole",
            json!({"type": "object", "properties": {"value": {"$ref": "#"}}, "required": ["value"]}),
        ),
        (
            "refers in a circle",
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        ),
        ("billions", json!({"$ref": "#/$defs/d0", "$defs": defs})),
        ("many items", of("value", json!({"type": "array", "minItems": 1_000_000_000, "items": {"type": "string"}}))),
        ("many members", of("value", json!({"type": "object", "minProperties": 1_000_000_000}))),
        ("long text", of("value", json!({"type": "string", "minLength": 1_000_000_000}))),
        ("huge numbers", of("value", json!({"type": "integer", "minimum": 1e300, "multipleOf": 1e-300}))),
        ("no number", of("value", json!({"type": "number", "multipleOf": 1e-320, "minimum": -1e308}))),
    ] {
        let made = quickly(told, || made(&schema));
        if let Ok(value) = made {
            assert!(value.to_string().len() < 5_000_000, "{told}");
        }
    }
}

/// Schemas for one argument, each of which something satisfies.
fn satisfiable() -> impl Strategy<Value = Value> {
    let text = (0u64..30, 0u64..40)
        .prop_map(|(least, more)| json!({"type": "string", "minLength": least, "maxLength": least + more}));
    let whole = (-1000i64..1000, 0i64..100)
        .prop_map(|(least, more)| json!({"type": "integer", "minimum": least, "maximum": least + more}));
    let part = (-1000f64..1000.0, 0.1f64..100.0).prop_map(
        |(least, more)| json!({"type": "number", "exclusiveMinimum": least, "exclusiveMaximum": least + more}),
    );
    let choice = prop::collection::vec("[a-z]{1,8}", 1..4).prop_map(|choices| json!({"enum": choices}));
    let leaf = prop_oneof![
        text,
        whole,
        part,
        choice,
        Just(json!({"type": "boolean"})),
        Just(json!({"type": "null"})),
        any::<i32>().prop_map(|number| json!({"const": number})),
        Just(json!({"type": "string", "format": "date-time"})),
        Just(json!({"type": "string", "pattern": "^[a-f0-9]{8}$"})),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let members = prop::collection::btree_map("[a-z]{1,6}", inner.clone(), 0..4);
        prop_oneof![
            (members, any::<bool>(), any::<bool>()).prop_map(|(members, all, closed)| {
                let required: Vec<&String> = members.keys().take(if all { members.len() } else { 1 }).collect();
                let mut schema = json!({"type": "object", "properties": members, "required": required});
                if closed {
                    schema["additionalProperties"] = false.into();
                }
                schema
            }),
            (inner.clone(), 0u64..5)
                .prop_map(|(items, least)| json!({"type": "array", "items": items, "minItems": least})),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|branches| json!({"anyOf": branches})),
            inner.prop_map(|part| json!({"allOf": [part]})),
        ]
    })
}

/// Anything that looks like a schema, whether or not something satisfies it.
fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(true)),
        Just(json!(false)),
        Just(json!({})),
        "[a-z]{0,5}".prop_map(|text| json!({"type": text})),
        (any::<i64>(), any::<i64>())
            .prop_map(|(low, high)| json!({"type": "integer", "minimum": low, "maximum": high})),
        (any::<f64>(), any::<f64>())
            .prop_map(|(low, step)| json!({"type": "number", "exclusiveMinimum": low, "multipleOf": step})),
        (0u64..10_000, 0u64..10_000)
            .prop_map(|(low, high)| json!({"type": "string", "minLength": low, "maxLength": high})),
        "[a-z\\[\\](){}*+?|^$.0-9\\\\]{0,12}".prop_map(|pattern| json!({"type": "string", "pattern": pattern})),
        "(#|#/properties/value|#/\\$defs/x|[a-z]{0,8})".prop_map(|place| json!({"$ref": place})),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let several = || prop::collection::vec(inner.clone(), 0..4);
        prop_oneof![
            ("(oneOf|anyOf|allOf|prefixItems)", several()).prop_map(|(key, parts)| json!({key: parts})),
            ("(not|items|if|then|contains|additionalProperties)", inner.clone())
                .prop_map(|(key, part)| json!({key: part})),
            (prop::collection::btree_map("[a-z]{1,4}", inner.clone(), 0..4), 0u64..6).prop_map(|(members, least)| {
                let required: Vec<&String> = members.keys().collect();
                json!({"type": "object", "properties": members, "required": required, "minProperties": least})
            }),
            (inner.clone(), any::<bool>(), 0u64..80, 0u64..80).prop_map(|(items, unique, least, most)| {
                json!({"type": "array", "items": items, "uniqueItems": unique, "minItems": least, "maxItems": most})
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_can_be_satisfied_plainly_is(schema in satisfiable()) {
        let schema = of("value", schema);
        let value = made(&schema).map_err(|reason| TestCaseError::fail(format!("{schema}: {reason}")))?;
        prop_assert!(is_valid(&schema, &value), "{}: {}", schema, value);
    }

    #[test]
    fn whatever_is_returned_validates(schema in any_schema()) {
        let schema = of("value", schema);
        if let Ok(value) = made(&schema) {
            prop_assert!(is_valid(&schema, &value), "{}: {}", schema, value);
        }
    }

    #[test]
    fn no_pattern_is_taken_for_satisfied_when_it_is_not(pattern in "[a-zA-Z0-9\\[\\](){}*+?|^$.,-]{0,16}") {
        let schema = of("value", json!({"type": "string", "pattern": pattern}));
        if let Ok(value) = made(&schema) {
            prop_assert!(is_valid(&schema, &value), "{}", value);
        }
    }
}
