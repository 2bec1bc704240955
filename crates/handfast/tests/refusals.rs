//! What a caller is told: one and the same for everybody but the owner, byte for byte.

mod support;

use std::time::Duration;

use handfast::{Caller, Denial, Keys, Outward, TOMBSTONE};
use support::{Bench, POLICY, alice, caller, denied, grant, need, principal, read, why};

/// Everything that strangers can present, and what has been purged for the owner.
#[tokio::test]
async fn unknown_foreign_malformed_and_purged_are_the_same_byte_for_byte() {
    let bench = Bench::new();
    let (gone, alices) = (bench.minted().await, bench.minted().await);
    bench.handles.revoke(&alice(), &"basket".parse().expect("a type"), &gone, why("x")).await.expect("revoked");
    bench.clock.advance(TOMBSTONE + Duration::from_micros(1));
    assert_eq!(bench.handles.purge(TOMBSTONE).await.expect("purged"), 1);
    let told = async |who: &Caller, presented: &str| {
        let refused = bench.handles.resolve(who, presented, &read()).await.map(drop).expect_err("refused");
        (refused.denial(), refused.to_string(), refused.tool_result().to_string())
    };
    let nobodys = format!("bsk_{}", "A".repeat(43));

    let (denial, words, result) = told(&alice(), &nobodys).await;
    assert_eq!(denial, Denial::Unknown);
    assert_eq!(words, "there is no such basket; make a new one with `create_basket`");
    assert_eq!(result, format!(r#"{{"content":[{{"type":"text","text":"{words}"}}],"isError":true}}"#));
    for (who, presented, expected) in [
        (alice(), gone.as_str(), Denial::Unknown),
        (caller("bob", "acme", "desktop"), &alices, Denial::ForeignPrincipal),
        (caller("alice@example.com", "acme", "mobile"), &alices, Denial::ForeignClient),
        (caller("alice@example.com", "umbrella", "desktop"), &alices, Denial::Unknown),
        (Caller::anonymous(), &alices, Denial::IdentityIncomplete),
        (Caller::trusted(principal("alice@example.com")), &alices, Denial::IdentityIncomplete),
        (alice(), "", Denial::Malformed),
        (alice(), &alices[4..], Denial::Malformed),
        (alice(), "bsk_\0\u{202E}", Denial::Malformed),
        (alice(), &"x".repeat(1 << 20), Denial::Malformed),
    ] {
        assert_eq!(told(&who, presented).await, (expected, words.clone(), result.clone()));
    }
}

#[tokio::test]
async fn only_the_owner_is_told_that_it_has_expired_or_was_revoked() {
    let bench = Bench::new();
    let (revoked, idle) = (bench.minted().await, bench.minted().await);
    bench.handles.revoke(&alice(), &"basket".parse().expect("a type"), &revoked, why("x")).await.expect("revoked");
    bench.clock.advance(Duration::from_secs(24 * 3600));
    let bob = caller("bob", "acme", "desktop");
    let told = async |who: &Caller, presented: &str| {
        let refused = bench.handles.resolve(who, presented, &read()).await.map(drop).expect_err("refused");
        (refused.outward(), refused.to_string())
    };

    let (outward, words) = told(&alice(), &revoked).await;
    assert_eq!(outward, Outward::Revoked);
    assert_eq!(words, "access to this basket was revoked; make a new one with `create_basket`");
    let (outward, words) = told(&alice(), &idle).await;
    assert_eq!(outward, Outward::Expired);
    assert_eq!(words, "this basket has expired; make a new one with `create_basket`");
    assert_eq!(told(&bob, &revoked).await, told(&bob, "nonsense").await);
    assert_eq!(told(&bob, &idle).await, told(&bob, "nonsense").await);
}

#[tokio::test]
async fn an_outsider_cannot_revoke_and_learns_nothing() {
    let bench = Bench::new();
    let alices = bench.minted().await;
    let basket = "basket".parse().expect("a type");
    for stranger in [
        caller("bob", "acme", "desktop"),
        caller("alice@example.com", "acme", "mobile"),
        caller("alice@example.com", "umbrella", "desktop"),
        Caller::anonymous(),
    ] {
        let refused = bench.handles.revoke(&stranger, &basket, &alices, why("mine now")).await.expect_err("refused");
        assert_eq!(refused.to_string(), "there is no such basket; make a new one with `create_basket`");
    }
    bench.handles.resolve(&alice(), &alices, &read()).await.expect("still hers");

    let first = bench.handles.revoke(&alice(), &basket, &alices, why("first")).await.expect("revoked");
    bench.clock.advance(Duration::from_secs(5));
    let second = bench.handles.revoke(&alice(), &basket, &alices, why("second")).await.expect("no error");
    assert_eq!(first, second, "the first revocation stays");
    assert_eq!(second.why, why("first"));
}

/// Principal, tenant and client: equal only where both are there and the same.
#[tokio::test]
async fn a_caller_without_a_bound_part_is_nobody() {
    let bench = Bench::new();
    let parts = [
        Caller::anonymous(),
        Caller::trusted(principal("alice@example.com")),
        Caller::trusted(principal("alice@example.com")).in_tenant("acme".parse().expect("a tenant")),
        Caller::trusted(principal("alice@example.com")).by_client("desktop".parse().expect("a client")),
        Caller::anonymous().in_tenant("acme".parse().expect("a tenant")).by_client("desktop".parse().expect("one")),
    ];
    for part in parts {
        let refused = bench.handles.mint(&part, grant("basket", "b-1", &["basket:read"])).await.expect_err("refused");
        assert_eq!(refused.denial(), Denial::IdentityIncomplete);
    }
}

#[tokio::test]
async fn a_bearer_handle_is_for_whoever_has_it_as_long_as_they_are_nobody() {
    let bench = Bench::new();
    let mint = async |who: &Caller| {
        let minted = bench.handles.mint(who, grant("pad", "b-1", &["pad:read"])).await.expect("minted");
        minted.handle().expose().to_owned()
    };
    let (nobodys, alices) = (mint(&Caller::anonymous()).await, mint(&alice()).await);
    let pad = need("pad", "pad:read");
    let mine = async |who: &Caller, handle: &str| bench.handles.resolve(who, handle, &pad).await.is_ok();

    assert!(mine(&Caller::anonymous(), &nobodys).await, "none/none");
    assert!(mine(&alice(), &alices).await, "a/a");
    assert!(!mine(&caller("bob", "acme", "desktop"), &alices).await, "a/b");
    assert!(!mine(&Caller::anonymous(), &alices).await, "a/none");
    assert!(!mine(&alice(), &nobodys).await, "none/a");
    bench.clock.advance(Duration::from_secs(3600));
    assert_eq!(denied(&bench.handles, &Caller::anonymous(), &nobodys, &pad).await, Denial::Expired);
}

#[tokio::test]
async fn keys_are_rotated_without_orphans_and_a_dropped_key_orphans() {
    let bench = Bench::new();
    let old = bench.minted().await;
    let new_key = Keys::generate();
    let old_key = Keys::generate();
    let both = |first: &str, second: &str| Keys::parse(&format!("{first}\n{second}")).expect("two keys");
    let before = bench.under(POLICY, &Keys::parse(old_key.expose()).expect("a key"));
    let minted = before.mint(&alice(), grant("basket", "b-1", &["basket:read"])).await.expect("minted");
    let handle = minted.handle().expose();

    let rotated = bench.under(POLICY, &both(new_key.expose(), old_key.expose()));
    rotated.resolve(&alice(), handle, &read()).await.expect("known under the older key");
    assert_eq!(denied(&rotated, &caller("bob", "acme", "desktop"), handle, &read()).await, Denial::ForeignPrincipal);
    let dropped = bench.under(POLICY, &Keys::parse(new_key.expose()).expect("a key"));
    assert_eq!(denied(&dropped, &alice(), handle, &read()).await, Denial::UnknownKey);

    // To revoke what belongs to somebody reaches what was made under every key.
    let newer = rotated.mint(&alice(), grant("basket", "b-1", &["basket:read"])).await.expect("minted");
    let which = rotated.selector_of(&principal("alice@example.com"));
    assert_eq!(rotated.revoke_all(&which, &why("logout")).await.expect("revoked"), 2);
    for handle in [handle, newer.handle().expose()] {
        assert_eq!(denied(&rotated, &alice(), handle, &read()).await, Denial::Revoked);
    }
    bench.handles.resolve(&alice(), &old, &read()).await.expect("under a key that is not among these");
}

/// A policy that binds less, by mistake or for good reason, does not hand over what others were given before.
#[tokio::test]
async fn a_policy_that_binds_less_hands_over_nothing() {
    let bench = Bench::new();
    let alices = bench.minted().await;
    let shared = POLICY.replace("prefix = \"bsk\"", "prefix = \"bsk\"\nbound = [\"tenant\"]");
    let (bob, basket) = (caller("bob", "acme", "desktop"), "basket".parse().expect("a type"));
    for policy in [shared.clone(), shared.replace("2026-11", "2026-12")] {
        let handles = bench.under(&policy, &bench.keys);
        assert_eq!(denied(&handles, &bob, &alices, &read()).await, Denial::ForeignPrincipal);
        let refused = handles.revoke(&bob, &basket, &alices, why("mine now")).await.expect_err("refused");
        assert_eq!(refused.outward(), Outward::NoSuch);
    }
    bench.handles.resolve(&alice(), &alices, &read()).await.expect("still hers");

    // What is made under it is for the whole tenant, and has nobody's name in the store.
    let handles = bench.under(&shared, &bench.keys);
    let minted = handles.mint(&alice(), grant("basket", "b-1", &["basket:read"])).await.expect("minted");
    handles.resolve(&bob, minted.handle().expose(), &read()).await.expect("shared");
    let which = handfast::store::Selector::handle(minted.handle().digest());
    let listed = bench.store.list(&which, None, 1).await.expect("an answer").records;
    assert_eq!((&listed[0].partition.subject, &listed[0].partition.client), (&None, &None));
}

/// What each reason is to the caller. Whoever changes a row changes what strangers learn.
#[test]
fn the_one_mapping_from_inside_to_outside() {
    for denial in Denial::ALL {
        let expected = match denial.slug() {
            "identity-incomplete" | "malformed" | "unknown-scope" | "unknown" | "unknown-key" => Outward::NoSuch,
            "foreign-principal" | "foreign-client" => Outward::NoSuch,
            "revoked" => Outward::Revoked,
            "expired" | "idle" | "policy-changed" | "object-gone" => Outward::Expired,
            "wrong-object" | "missing-scope" | "not-authorized" => Outward::NotAllowed,
            "stale-version" => Outward::Changed,
            "unavailable" => Outward::Unavailable,
            other => panic!("{other} is told to whom?"),
        };
        assert_eq!(denial.outward(), expected, "{denial}");
    }
}

#[tokio::test]
async fn a_version_is_moved_forward_once() {
    let bench = Bench::new();
    let handle = bench.minted().await;
    let resolve = async || bench.handles.resolve(&alice(), &handle, &read()).await.expect("resolved");
    let (first, second, third) = (resolve().await, resolve().await, resolve().await);
    let to = |text: &str| text.parse().expect("a version");

    let moved = bench.handles.advance(&alice(), first, to("2")).await.expect("advanced");
    assert_eq!(moved.version.as_str(), "2");
    let late = bench.handles.advance(&alice(), second, to("2b")).await.expect_err("refused");
    assert_eq!((late.denial(), late.outward()), (Denial::StaleVersion, Outward::Changed));
    assert_eq!(denied(&bench.handles, &alice(), &handle, &read()).await, Denial::StaleVersion);
    bench.shop.set("b-1", Some("2"));
    let again = resolve().await;
    bench.handles.revoke(&alice(), &"basket".parse().expect("a type"), &handle, why("x")).await.expect("revoked");
    for old in [third, again] {
        let ended = bench.handles.advance(&alice(), old, to("3")).await.expect_err("refused");
        assert_eq!(ended.denial(), Denial::Revoked);
    }
}
