//! Header values: whatever goes in comes out, and what goes over the wire is legal there.

use handfast_wire::{
    headers::{HeaderError, decode, encode, mirrors, name_of, params, standard},
    message::Object,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// RFC 9110: visible characters, with blanks only inside.
fn is_legal(value: &str) -> bool {
    !value.is_empty() && value.trim() == value && value.bytes().all(|byte| (0x20..=0x7e).contains(&byte))
}

/// Strings that look encoded, more or less.
fn lookalike() -> impl Strategy<Value = String> {
    "(=\\?base64\\?|=\\?BASE64\\?|=\\?base64|=\\?)?[A-Za-z0-9+/=]{0,8}(\\?=|=)?"
}

proptest! {
    #[test]
    fn what_is_encoded_decodes(value in prop_oneof![any::<String>(), lookalike(), "[ -~]*"]) {
        let encoded = encode(&value);

        prop_assert_eq!(decode(&encoded), Ok(value));
    }

    #[test]
    fn what_is_encoded_is_legal(value in prop_oneof![any::<String>(), lookalike(), "[ \t\r\n]*"]) {
        let encoded = encode(&value);

        prop_assert!(is_legal(&encoded), "{:?}", encoded);
    }

    #[test]
    fn plain_stays_plain(value in "[!-~]([ -~]{0,20}[!-~])?") {
        prop_assume!(!value.starts_with("=?base64?"));

        prop_assert_eq!(encode(&value), value);
    }

    #[test]
    fn different_values_never_become_one(one in lookalike(), other in lookalike()) {
        prop_assert_eq!(encode(&one) == encode(&other), one == other);
    }

    #[test]
    fn decoding_bears_anything(value in any::<String>()) {
        let _ = decode(&value);
        let _ = decode(&format!("=?base64?{value}?="));
    }
}

#[test]
fn examples_of_the_specification() {
    // Streamable HTTP, "Value Encoding".
    for (value, encoded) in [
        ("us-west1", "us-west1"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ] {
        assert_eq!(encode(value), encoded);
        assert_eq!(decode(encoded), Ok(value.to_owned()));
    }
}

#[test]
fn what_only_looks_encoded_is_literal() {
    for value in
        ["", "=?base64?", "?=", "=?base64?=", "=?Base64?YQ==?=", "=?base64?YQ==", " =?base64?YQ==?=", "=?utf8?a?="]
    {
        assert_eq!(decode(value), Ok(value.to_owned()));
    }
}

#[test]
fn what_announces_base64_must_hold_it() {
    for (value, error) in [
        ("=?base64?a?=", HeaderError::Base64),
        ("=?base64?YQ?=", HeaderError::Base64),
        ("=?base64?YQ==YQ==?=", HeaderError::Base64),
        ("=?base64?Y Q=?=", HeaderError::Base64),
        ("=?base64?Y_-=?=", HeaderError::Base64),
        ("=?base64?YR==?=", HeaderError::Base64),
        ("=?base64?/w==?=", HeaderError::Utf8),
    ] {
        assert_eq!(decode(value), Err(error), "{value}");
    }
    assert_eq!(decode("=?base64??="), Ok(String::new()));
}

fn object(value: Value) -> Object {
    value.as_object().cloned().expect("an object")
}

#[test]
fn name_is_repeated_where_the_specification_says() {
    let all = object(json!({"name": "n", "uri": "u", "taskId": "t"}));
    for (method, name) in [
        ("tools/call", Some("n")),
        ("prompts/get", Some("n")),
        ("resources/read", Some("u")),
        ("tasks/get", Some("t")),
        ("tasks/cancel", Some("t")),
        ("tools/list", None),
        ("resources/templates/list", None),
        ("server/discover", None),
    ] {
        assert_eq!(name_of(method, &all), name, "{method}");
        assert_eq!(name_of(method, &Object::new()), None, "{method}");
    }
    assert_eq!(name_of("tools/call", &object(json!({"name": 7}))), None);
}

#[test]
fn standard_headers_are_three_or_two() {
    let named = standard("tools/call", &object(json!({"name": "täst"})));
    let nameless = standard("tools/list", &Object::new());

    assert_eq!(
        named,
        [
            ("MCP-Protocol-Version", "2026-07-28".to_owned()),
            ("Mcp-Method", "tools/call".to_owned()),
            ("Mcp-Name", "=?base64?dMOkc3Q=?=".to_owned()),
        ]
    );
    assert_eq!(nameless.len(), 2);
}

#[test]
fn mirrored_arguments_are_those_that_the_schema_marks() {
    let schema = json!({"properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"},
        "none": {"type": "string", "x-mcp-header": "None"},
        "absent": {"type": "string", "x-mcp-header": "Absent"},
        "list": {"type": "array", "x-mcp-header": "List", "items": {"x-mcp-header": "Item"}},
        "plain": {"type": "string"},
        "inner": {"type": "object", "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}}},
        "a/b": {"type": "string", "x-mcp-header": "Slashed"}
    }});
    let arguments = json!({
        "region": "us-west1", "count": -7, "dry": true, "none": null, "list": ["x"], "plain": "p",
        "inner": {"zone": " b "}, "unknown": "u"
    });

    let found = params(&schema, &arguments);

    let expected = [
        ("Mcp-Param-Region", "us-west1"),
        ("Mcp-Param-Count", "-7"),
        ("Mcp-Param-Dry", "true"),
        ("Mcp-Param-Zone", "=?base64?IGIg?="),
    ];
    assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(mirrors(&schema, "region").as_deref(), Some("Mcp-Param-Region"));
    assert_eq!(mirrors(&schema, "a/b").as_deref(), Some("Mcp-Param-Slashed"));
    assert_eq!(mirrors(&schema, "plain"), None);
}

#[test]
fn schemas_that_are_none_mirror_nothing() {
    for schema in [json!(null), json!(true), json!({}), json!({"properties": []}), json!({"properties": {"a": 1}})] {
        assert_eq!(params(&schema, &json!({"a": "x"})), [], "{schema}");
    }
}
