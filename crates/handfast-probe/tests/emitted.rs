//! What counts as handed out by an answer, and what does not: read from structured content, from text and from URIs, and read
//! again at the same place of a later answer.

use handfast_probe::discovery::emitted::{again, emitted, text_of};
use serde_json::{Value, json};

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// The values that may be handles, as text.
fn found(result: &Value, supplied: &[&str]) -> Vec<String> {
    let supplied: Vec<String> = supplied.iter().map(|text| (*text).to_owned()).collect();
    emitted(result, &supplied).iter().map(|emitted| text_of(&emitted.value)).collect()
}

#[test]
fn handles_are_found_wherever_servers_put_them() {
    for (result, handle) in [
        (json!({"structuredContent": {"basket_id": "b-1a2b3c"}}), "b-1a2b3c"),
        (json!({"structuredContent": {"basket": {"id": 17}}}), "17"),
        (json!({"structuredContent": {"items": [{"ref": "x9y8z7"}]}}), "x9y8z7"),
        (text(r#"{"basket_id": "b-1a2b3c"}"#), "b-1a2b3c"),
        (text("Created basket bsk_a1b2c3 for you."), "bsk_a1b2c3"),
        (text("Done.\n- **Basket ID:** `9f8e7d6c`"), "9f8e7d6c"),
        (text("ID: 123e4567-e89b-42d3-a456-426614174000"), "123e4567-e89b-42d3-a456-426614174000"),
        (text("Basket 17 is open"), "17"),
        (text("see basket://baskets/b-77/notes"), "b-77"),
        (json!({"content": [{"type": "resource_link", "uri": "basket://b-77"}]}), "b-77"),
    ] {
        assert!(found(&result, &[]).contains(&handle.to_owned()), "{handle} in {result}: {:?}", found(&result, &[]));
    }
}

#[test]
fn what_the_caller_supplied_is_not_handed_out() {
    for result in [
        json!({"structuredContent": {"basket_id": "b-1a2b3c"}}),
        text(r#"{"basket_id": "b-1a2b3c"}"#),
        text("Basket b-1a2b3c is open."),
        json!({"structuredContent": {"basket": {"id": 4711}}, "content": []}),
    ] {
        assert_ne!(found(&result, &[]), Vec::<String>::new(), "{result}");
        assert_eq!(found(&result, &["b-1a2b3c", "4711"]), Vec::<String>::new(), "{result}");
    }
}

#[test]
fn times_places_and_traces_are_no_handles() {
    for value in [
        json!({"created_at": "2026-11-29T10:00:00Z"}),
        json!({"day": "2026-11-29"}),
        json!({"request_id": "r-1a2b3c4d"}),
        json!({"traceId": "0af7651916cd43dd8448eb211c80319c"}),
        json!({"url": "https://example.com/baskets/1a2b3c"}),
        json!({"link": "b-1a2b3c"}),
        json!({"expires": 1_800_000_000}),
        json!({"ttlMs": 300_000}),
        json!({"note": "two words"}),
        json!({"ratio": 0.5, "open": true, "nothing": null}),
    ] {
        let result = json!({"structuredContent": value});
        assert_eq!(found(&result, &[]), Vec::<String>::new(), "{result}");
    }
}

#[test]
fn a_value_is_read_again_at_its_own_place() {
    for (first, later, handle) in [
        (
            json!({"structuredContent": {"basket_id": "b-1a2b3c", "label": "x"}}),
            json!({"structuredContent": {"label": "y", "basket_id": "b-9z8y7x"}}),
            "b-9z8y7x",
        ),
        (text(r#"{"a": {"id": 17}}"#), text(r#"{"a": {"id": 18}, "b": {"id": 99}}"#), "18"),
        (text("Created basket bsk_a1b2c3 for you."), text("Created basket bsk_ffee99 for you."), "bsk_ffee99"),
        (text("see basket://baskets/b-77/notes"), text("see basket://baskets/b-81/notes"), "b-81"),
    ] {
        let spot =
            emitted(&first, &[]).into_iter().map(|emitted| emitted.spot).next().expect("something is handed out");

        assert_eq!(again(&later, &spot, &[], None).map(|value| text_of(&value)).as_deref(), Some(handle), "{first}");
        assert_eq!(again(&json!({"content": []}), &spot, &[], None), None, "{first}");
    }
}

#[test]
fn endless_answers_are_read_within_bounds() {
    let many: Vec<Value> = (0..20_000).map(|n| json!({"id": format!("b-{n:06}")})).collect();
    let long = "basket b-1a2b3c ".repeat(20_000);
    let deep = (0..100).fold(json!("b-1a2b3c"), |inner, _| json!({ "id": inner }));

    assert!(found(&json!({"structuredContent": many}), &[]).len() <= 1000);
    assert!(found(&text(&long), &[]).len() <= 1000);
    found(&json!({"structuredContent": deep}), &[]);
}
