//! The list of twins, and what they publish: nothing there tells a sound one from a flawed one.

mod support;

use std::collections::BTreeSet;

use handfast_twins::{all, find};
use serde_json::json;
use support::scene;

/// Twins whose handles look otherwise, those with tools or lifetimes of their own, and those of another era (the ones with
/// sessions have a test of their own).
fn has_own_list(name: &str) -> bool {
    let at = |name: &str| all().iter().position(|twin| twin.name == name);
    at(name) >= at("sessions")
        || ["legacy", "listed", "share-link", "reuses-numbers", "unsaid-lifetime", "endless", "pages", "plain-cursors"]
            .contains(&name)
        || name.starts_with("cursors-")
        || ALIKE.iter().any(|alike| alike.contains(&name))
        || ["numeric-", "counted-", "text-only-", "renamed-", "nested-", "unlabelled"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

/// A sound one and its flawed ones that have the same tools, which others have not.
const ALIKE: [&[&str]; 5] = [
    &["closing", "closes-nothing"],
    &["short-lived", "outlives-expiry"],
    &["memory", "shared-memory"],
    &["several", "first-of-several", "unchecked-source"],
    &["mirrored", "trusts-header"],
];

#[test]
fn five_come_first_and_names_are_unique_slugs() {
    let names: Vec<&str> = all().iter().map(|twin| twin.name).collect();

    assert_eq!(names[..5], ["flawed", "sound", "noguard", "opaque", "legacy"]);
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    for twin in all() {
        assert!(twin.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{}", twin.name);
        assert!(!twin.summary.is_empty() && !twin.summary.ends_with('.'), "{}", twin.name);
        assert_eq!(find(twin.name).map(|found| found.name), Some(twin.name));
    }
}

#[test]
fn fixed_is_sound_and_strangers_are_not_found() {
    assert_eq!(find("fixed").map(|twin| twin.name), Some("sound"));
    for name in ["", "Sound", "sound ", "fixed2"] {
        assert!(find(name).is_none(), "{name}");
    }
}

#[tokio::test]
async fn listings_are_byte_identical() {
    for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        let mut bodies = BTreeSet::new();
        for twin in all().iter().filter(|twin| !has_own_list(twin.name)) {
            bodies.insert(scene(twin.name).await.a.request(method, json!({})).await.body);
        }

        assert_eq!(bodies.len(), 1, "{method}");
    }
}

#[tokio::test]
async fn listings_are_byte_identical_between_a_sound_one_and_its_flawed_ones() {
    for name in ["numeric-handles", "text-only-handles", "renamed-handles", "nested-handles", "unlabelled"] {
        let sound = scene(name).await.a.request("tools/list", json!({})).await.body;
        let flawed = scene(&format!("{name}-flawed")).await.a.request("tools/list", json!({})).await.body;
        let plain = scene("sound").await.a.request("tools/list", json!({})).await.body;

        assert_eq!(sound, flawed, "{name}");
        assert_ne!(sound, plain, "{name}");
    }
    for alike in ALIKE {
        let mut bodies = BTreeSet::new();
        for name in alike {
            bodies.insert(scene(name).await.a.request("tools/list", json!({})).await.body);
        }

        assert_eq!(bodies.len(), 1, "{alike:?}");
    }
}

#[tokio::test]
async fn only_the_purge_is_declared_destructive() {
    let listed = scene("sound").await.a.request("tools/list", json!({})).await.message();
    let tools = listed["result"]["tools"].as_array().expect("tools");
    let destructive: Vec<_> = tools
        .iter()
        .filter(|tool| tool["annotations"]["destructiveHint"] == true)
        .map(|tool| tool["name"].as_str())
        .collect();

    assert_eq!(destructive, [Some("purge_workspace")]);
}

#[tokio::test]
async fn purges_are_counted() {
    let scene = scene("sound").await;
    let handle = scene.a.open("one").await;
    assert_eq!(scene.served.destructive_calls(), 0);

    scene.a.tool("purge_workspace", json!({"workspace_id": handle})).await;
    scene.b.tool("purge_workspace", json!({"workspace_id": handle})).await;

    assert_eq!(scene.served.destructive_calls(), 2);
}
