//! JSON Pointers: every scalar has a place, and a place can be changed without touching another.

use handfast_wire::pointer::{escape, insert, last, replace, scalars};
use proptest::prelude::*;
use serde_json::{Value, json};

fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z~/]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z0-9~/]{0,3}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Objects all the way down, and none of them empty.
fn objects() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![any::<i32>().prop_map(Value::from), "[a-z~/]{0,4}".prop_map(Value::from)];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop::collection::btree_map("[a-z0-9~/]{0,3}", inner, 1..4)
            .prop_map(|members| Value::Object(members.into_iter().collect()))
    })
}

proptest! {
    #[test]
    fn every_scalar_stands_where_its_pointer_says(root in document()) {
        for (pointer, value) in scalars(&root, 1000) {
            prop_assert!(!value.is_object() && !value.is_array());
            prop_assert_eq!(root.pointer(&pointer), Some(value));
        }
    }

    #[test]
    fn replacing_changes_one_scalar_and_back_again(root in document(), which in any::<prop::sample::Index>()) {
        let places: Vec<String> = scalars(&root, 1000).into_iter().map(|(pointer, _)| pointer).collect();
        if places.is_empty() {
            return Ok(());
        }
        let place = which.get(&places);
        let mut changed = root.clone();

        let old = replace(&mut changed, place, json!("something else")).expect("something stood there");
        for ((pointer, before), (also, after)) in scalars(&root, 1000).into_iter().zip(scalars(&changed, 1000)) {
            prop_assert_eq!(&pointer, &also);
            prop_assert_eq!(before == after, &pointer != place, "{}", pointer);
        }
        replace(&mut changed, place, old);
        prop_assert_eq!(changed, root);
    }

    #[test]
    fn inserting_every_scalar_of_objects_rebuilds_them(root in objects()) {
        let mut rebuilt = Value::Null;

        for (pointer, value) in scalars(&root, 1000) {
            prop_assert!(insert(&mut rebuilt, &pointer, value.clone()), "{}", pointer);
        }

        prop_assert_eq!(rebuilt, root);
    }

    #[test]
    fn inserted_value_stands_there(mut root in document(), segments in prop::collection::vec("[a-z0-9~/]{0,3}", 0..4)) {
        let pointer: String = segments.iter().map(|segment| format!("/{}", escape(segment))).collect();

        if insert(&mut root, &pointer, json!("new")) {
            prop_assert_eq!(root.pointer(&pointer), Some(&json!("new")));
        } else {
            prop_assert_eq!(root.pointer(&pointer), None);
        }
    }

    #[test]
    fn refused_insert_changes_nothing(root in document(), segments in prop::collection::vec("[a-z0-9~/]{0,3}", 0..4)) {
        let pointer: String = segments.iter().map(|segment| format!("/{}", escape(segment))).collect();
        let mut changed = root.clone();

        if !insert(&mut changed, &pointer, json!("new")) {
            prop_assert_eq!(changed, root);
        }
    }

    #[test]
    fn escaping_is_undone_by_last(segment in any::<String>()) {
        prop_assert_eq!(last(&format!("/{}", escape(&segment))), segment.clone());
        prop_assert_eq!(last(&format!("/a/{}", escape(&segment))), segment);
    }

    #[test]
    fn limit_holds(root in document(), limit in 0_usize..8) {
        let all = scalars(&root, 1000).len();

        prop_assert_eq!(scalars(&root, limit).len(), all.min(limit));
    }

    #[test]
    fn nothing_is_replaced_where_nothing_stood(root in document(), pointer in "[a-z/~]{0,6}") {
        let mut changed = root.clone();
        if root.pointer(&pointer).is_none() {
            prop_assert_eq!(replace(&mut changed, &pointer, json!(1)), None);
            prop_assert_eq!(changed, root);
        }
    }
}

#[test]
fn examples_of_the_rfc() {
    // RFC 6901, section 5.
    let root = json!({"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "m~n": 8, " ": 7});
    let found = scalars(&root, 100);
    let pointers: Vec<&str> = found.iter().map(|(pointer, _)| pointer.as_str()).collect();

    assert_eq!(pointers, ["/foo/0", "/foo/1", "/", "/a~1b", "/c%d", "/e^f", "/m~0n", "/ "]);
}

#[test]
fn last_segment_of_the_root_is_empty() {
    assert_eq!((last(""), last("/"), last("/a/~01")), (String::new(), String::new(), "~1".to_owned()));
}

#[test]
fn insert_makes_objects_and_keeps_out_of_lists() {
    let mut root = json!({"list": [1, {"a": 2}], "text": "t"});

    assert!(insert(&mut root, "/list/0", json!(9)));
    assert!(insert(&mut root, "/list/1/b", json!(3)));
    assert!(insert(&mut root, "/new/inner", json!(4)));
    assert!(!insert(&mut root, "/list/2", json!(5)));
    assert!(!insert(&mut root, "/list/-", json!(5)));
    assert!(!insert(&mut root, "/list/00", json!(5)));
    assert!(!insert(&mut root, "/list/+1", json!(5)));
    assert!(!insert(&mut root, "list", json!(5)));
    assert!(!insert(&mut root, "/text/inner", json!(5)));
    assert_eq!(root, json!({"list": [9, {"a": 2, "b": 3}], "text": "t", "new": {"inner": 4}}));
}
