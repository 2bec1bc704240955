//! The forms in which a handle leaves and comes back: text, data and schemas that fit each other; and input of any kind.

mod support;

use handfast::{Keys, ObjectRef, Policy, ScopeSet, TraceId, parse_handle};
use proptest::prelude::*;
use support::{Bench, alice, grant, need};

#[tokio::test]
async fn a_minted_handle_fits_its_schemas_and_is_there_as_text_and_as_data() {
    let bench = Bench::new();
    for (kind, scope) in [("basket", "basket:read"), ("pad", "pad:read")] {
        let minted = bench.handles.mint(&alice(), grant(kind, "b-1", &[scope])).await.expect("minted");
        let rules = bench.handles.policy().rules_for(kind).expect("rules");
        let (data, result) = (minted.structured_content(), minted.tool_result());

        assert!(jsonschema::is_valid(&rules.output_schema(), &data), "{data}");
        assert!(jsonschema::is_valid(&rules.input_schema(), &data[rules.argument.as_str()]));
        let handle = minted.handle().expose();
        for nearly in [&handle[..handle.len() - 1], &format!("{handle}="), "bsk_", ""] {
            assert!(!jsonschema::is_valid(&rules.input_schema(), &nearly.into()), "{nearly}");
        }
        assert_eq!(result["structuredContent"], data);
        assert_eq!(result["content"][0]["text"], data.to_string(), "the same as text");
        assert!(result.get("isError").is_none());
        let expires = data["expires_at"].as_str().expect("text").parse::<jiff::Timestamp>().expect("a time");
        assert_eq!(expires, minted.expires());
        assert!(minted.retention_sentence().ends_with('.'));
    }
}

#[tokio::test]
async fn a_mint_that_is_refused_is_a_tools_error_that_says_little() {
    let bench = Bench::new();
    let error = bench.handles.mint(&alice(), grant("basket", "b-1", &["basket:fly"])).await.expect_err("refused");

    let result = error.tool_result();

    assert_eq!(result["isError"], true);
    assert_eq!(result["content"][0]["text"], "nothing was created: it is not allowed");
}

#[test]
fn arguments_of_a_megabyte_are_refused_before_anything_is_done_with_them() {
    let long = "x".repeat(1 << 20);

    assert_eq!(
        ObjectRef::new(long.clone()).expect_err("refused").to_string(),
        "an object reference has 1048576 bytes; at most 2048 are allowed"
    );
    assert!(ScopeSet::new([long.clone()]).is_err());
    assert_eq!(parse_handle(long.as_bytes(), None), None);
}

proptest! {
    #[test]
    fn any_text_is_resolved_or_refused(presented in any::<String>(), scope in any::<String>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let bench = Bench::new();
        let needed = if scope.parse::<handfast::Scope>().is_ok() { scope } else { "basket:read".to_owned() };

        let answer = runtime.block_on(bench.handles.resolve(&alice(), &presented, &need("basket", &needed)));

        prop_assert!(answer.is_err());
        prop_assert_eq!(bench.shop.calls(), 0);
        prop_assert_eq!(bench.log.count(), 1);
    }

    #[test]
    fn any_bytes_are_a_handle_or_none(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for prefix in [None, "bsk".parse().ok()] {
            if parse_handle(&bytes, prefix.as_ref()).is_some() {
                prop_assert!(bytes.is_ascii());
            }
        }
    }

    #[test]
    fn scopes_of_any_text_are_scopes_or_told(texts in prop::collection::vec(any::<String>(), 0..5)) {
        if let Ok(scopes) = ScopeSet::new(texts.clone()) {
            prop_assert_eq!(scopes.iter().len(), texts.len());
            prop_assert_eq!(ScopeSet::parse(&scopes.text()), Ok(scopes), "they survive a store");
        }
    }

    #[test]
    fn any_text_is_a_policy_keys_and_a_trace_or_none(text in any::<String>()) {
        if let Err(error) = Policy::from_toml(&text) {
            prop_assert!(!error.to_string().contains('\n'));
        }
        let _ = Keys::parse(&text);
        let _ = TraceId::parse(&text);
    }
}
