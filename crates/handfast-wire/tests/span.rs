//! JSON with its places: read as `serde_json` reads it, and changed in one place only.

use handfast_wire::span::{self, DEEPEST, Kind, Node, NotRead};
use proptest::prelude::*;
use serde_json::{Value, json};

fn value(node: &Node<'_>, text: &str) -> Value {
    match &node.kind {
        Kind::Object(members) => {
            members.iter().map(|member| (member.name.to_string(), value(&member.value, text))).collect()
        }
        Kind::Array(items) => items.iter().map(|item| value(item, text)).collect(),
        Kind::Text(text) => Value::String(text.to_string()),
        Kind::Number | Kind::Literal => serde_json::from_str(node.raw(text)).expect("a scalar"),
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map(any::<String>(), inner, 0..24)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

#[test]
fn what_is_no_json_is_refused_with_its_place() {
    for (text, at) in [
        ("", 0),
        ("{", 1),
        ("[1,]", 3),
        ("{\"a\":1,}", 7),
        ("{a:1}", 1),
        ("{\"a\" 1}", 5),
        ("01", 1),
        ("-", 1),
        ("1.", 2),
        ("1e", 2),
        ("+1", 0),
        (".5", 0),
        ("tru", 0),
        ("\"a", 2),
        ("\"a\tb\"", 2),
        ("\"\\x\"", 0),
        ("\"\\u12\"", 0),
        ("\"\\", 3),
        ("1 2", 2),
        ("[1] x", 4),
        ("NaN", 0),
    ] {
        assert_eq!(span::parse(text), Err(NotRead::Json(at)), "{text}");
        assert!(serde_json::from_str::<Value>(text).is_err(), "{text}");
    }
}

#[test]
fn a_name_that_stands_twice_is_refused_however_it_is_written() {
    assert_eq!(span::parse(r#"{"a":1,"a":2}"#), Err(NotRead::Twice(7)));
    assert_eq!(span::parse(r#"[{"b":{"a":1,"\u0061":2}}]"#), Err(NotRead::Twice(13)));
    let many: Vec<String> = (0..40).map(|n| format!("\"{n}\":0")).collect();
    assert!(span::parse(&format!("{{{}}}", many.join(","))).is_ok());
    assert!(matches!(span::parse(&format!("{{{},\"17\":1}}", many.join(","))), Err(NotRead::Twice(_))));
    assert!(span::parse(r#"{"a":1,"A":2,"b":{"a":1}}"#).is_ok());
}

#[test]
fn depth_has_a_bound() {
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert!(span::parse(&nested(DEEPEST)).is_ok());
    assert_eq!(span::parse(&nested(DEEPEST + 1)), Err(NotRead::Deep(DEEPEST)));
    assert_eq!(span::parse(&"[".repeat(1_000_000)), Err(NotRead::Deep(DEEPEST)));
}

#[test]
fn pointers_reach_members_items_and_every_item() {
    let text = r#"{"a/b":[{"id":1},{"id":2},{"no":3}],"~":"x"}"#;
    let node = span::parse(text).expect("JSON");
    let raw = |pointer: &str| node.at_pointer(pointer).iter().map(|node| node.raw(text)).collect::<Vec<_>>();
    assert_eq!(raw("/a~1b/1/id"), ["2"]);
    assert_eq!(raw("/a~1b/*/id"), ["1", "2"]);
    assert_eq!(raw("/~0"), ["\"x\""]);
    assert_eq!(raw(""), [text]);
    assert!(raw("/a~1b/01/id").is_empty() && raw("/none").is_empty() && raw("/~0/x").is_empty());
}

proptest! {
    #[test]
    fn it_is_read_as_serde_json_reads_it(given in any_json(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&given) } else { serde_json::to_string(&given) };
        let text = text.expect("JSON");
        let node = span::parse(&text).expect("JSON");
        prop_assert_eq!(value(&node, &text), serde_json::from_str::<Value>(&text).expect("JSON"));
    }

    #[test]
    fn what_one_refuses_the_other_refuses(text in r#"[\[\]{}:,"0-9eE+.a-u\\ -]{0,24}"#) {
        let theirs = serde_json::from_str::<Value>(&text);
        match span::parse(&text) {
            Ok(node) => prop_assert_eq!(value(&node, &text), theirs.expect("JSON")),
            Err(NotRead::Twice(_)) => {}
            // `serde_json` refuses a number that is too great for it as well.
            Err(_) => prop_assert!(theirs.is_err()),
        }
    }

    #[test]
    fn a_splice_changes_one_place_and_no_other(given in any_json(), pick in any::<prop::sample::Index>()) {
        let whole = json!({"before": 1.0e2, "given": given, "after": "\u{1f600}"});
        let text = serde_json::to_string_pretty(&whole).expect("JSON");
        let node = span::parse(&text).expect("JSON");
        let mut places = Vec::new();
        fn collect<'n, 't>(node: &'n Node<'t>, places: &mut Vec<&'n Node<'t>>) {
            places.push(node);
            node.items().iter().for_each(|item| collect(item, places));
            node.members().iter().for_each(|member| collect(&member.value, places));
        }
        collect(&node, &mut places);
        let at = places[pick.index(places.len())].at.clone();
        let changed = span::spliced(&text, vec![(at.clone(), "\"new\"".to_owned())]);
        prop_assert!(changed.starts_with(&text[..at.start]) && changed.ends_with(&text[at.end..]));
        prop_assert_eq!(changed.len(), text.len() - at.len() + 5);
        prop_assert!(serde_json::from_str::<Value>(&changed).is_ok());
    }
}
