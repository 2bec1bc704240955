//! How the crates hang together: the judge shares no code with the judged, the wire does no I/O, arrows point down, and no
//! crate forgets the lints of the workspace.

use std::{collections::BTreeMap, path::PathBuf, process::Command, sync::LazyLock};

use serde_json::Value;

static METADATA: LazyLock<Value> = LazyLock::new(|| {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline", "--manifest-path", manifest])
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
});

/// Each crate of the workspace, with what it depends on outside of tests.
fn crates() -> BTreeMap<&'static str, Vec<&'static str>> {
    let packages = METADATA["packages"].as_array().expect("a list");
    let text = |value: &'static Value| value.as_str().expect("text");
    let dependencies = |package: &'static Value| {
        let all = package["dependencies"].as_array().expect("a list");
        all.iter()
            .filter(|dependency| dependency["kind"] != "dev")
            .map(|dependency| text(&dependency["name"]))
            .collect()
    };
    packages.iter().map(|package| (text(&package["name"]), dependencies(package))).collect()
}

/// Everything that a crate depends on, directly or by other crates of the workspace.
fn reaches(from: &str) -> Vec<&'static str> {
    let crates = crates();
    let mut found: Vec<&str> = crates[from].clone();
    let mut at = 0;
    while at < found.len() {
        for next in crates.get(found[at]).into_iter().flatten() {
            if !found.contains(next) {
                found.push(next);
            }
        }
        at += 1;
    }
    found
}

fn manifests() -> Vec<(&'static str, PathBuf)> {
    let packages = METADATA["packages"].as_array().expect("a list");
    packages
        .iter()
        .map(|package| {
            let path = package["manifest_path"].as_str().expect("text");
            (package["name"].as_str().expect("text"), PathBuf::from(path))
        })
        .collect()
}

/// From the bottom up: a crate may depend on what stands before it. Twins and probe stand side by side.
const LAYERS: [&[&str]; 5] = [
    &["handfast-wire", "handfast-testbed"],
    &["handfast"],
    &["handfast-twins", "handfast-gateway"],
    &["handfast-probe"],
    &["handfast-cli"],
];

#[test]
fn the_judge_shares_no_code_with_the_judged() {
    let reached = reaches("handfast-probe");

    for other in ["handfast", "handfast-twins", "handfast-gateway", "handfast-cli"] {
        assert!(!reached.contains(&other), "handfast-probe must not depend on {other}");
    }
    assert!(!reaches("handfast-twins").contains(&"handfast-probe"));
}

#[test]
fn the_wire_does_no_io() {
    let reached = reaches("handfast-wire");

    for other in ["tokio", "reqwest", "axum", "hyper", "mio", "async-std", "smol", "socket2", "rustls"] {
        assert!(!reached.contains(&other), "handfast-wire must not depend on {other}");
    }
    let source = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../handfast-wire/src")).expect("its source");
    for file in source.flatten() {
        let text = std::fs::read_to_string(file.path()).expect("text");
        for module in ["std::net", "std::fs", "std::process", "std::io", "std::env", "std::time"] {
            assert!(!text.contains(module), "{} uses {module}", file.path().display());
        }
    }
}

/// Whoever writes a server brings their own transport and SDK: what the library has of either is for those who ask for it,
/// and stands in one folder.
#[test]
fn the_library_brings_a_transport_and_the_sdk_only_where_they_are_asked_for() {
    let reached = reaches("handfast");
    for other in ["handfast-wire", "handfast-testbed", "axum"] {
        assert!(!reached.contains(&other), "handfast must not depend on {other}");
    }
    let packages = METADATA["packages"].as_array().expect("a list");
    let library = packages.iter().find(|package| package["name"] == "handfast").expect("it is there");
    assert_eq!(library["features"]["default"], serde_json::json!(["sqlite"]));
    for (name, word, folder) in [
        ("rmcp", "rmcp", "rmcp"),
        ("reqwest", "reqwest", "token"),
        ("jsonwebtoken", "jsonwebtoken", "token"),
        ("axum-core", "axum_core", "http"),
        ("tower-service", "tower_service", "http"),
    ] {
        let dependencies = library["dependencies"].as_array().expect("a list").iter();
        let found: Vec<&Value> = dependencies.filter(|one| one["name"] == name && one["kind"] != "dev").collect();
        assert!(found.len() == 1 && found[0]["optional"] == true, "{name}: {found:?}");
        used_only_in(word, folder);
    }
}

fn used_only_in(word: &str, folder: &str) {
    let mut places = vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../handfast/src")];
    while let Some(place) = places.pop() {
        for entry in std::fs::read_dir(place).expect("a directory").flatten().map(|entry| entry.path()) {
            if entry.is_dir() && !entry.ends_with(folder) {
                places.push(entry);
            } else if entry.is_file() {
                let text = std::fs::read_to_string(&entry).expect("text");
                let uses = text.contains(&format!("use {word}")) || text.contains(&format!(" {word}::"));
                assert!(!uses, "{} uses {word}", entry.display());
            }
        }
    }
}

#[test]
fn arrows_point_down_only() {
    let layer = |name: &str| LAYERS.iter().position(|layer| layer.contains(&name));
    for (name, dependencies) in crates() {
        let own = layer(name).unwrap_or_else(|| panic!("{name} has no layer: add it to LAYERS"));
        for other in dependencies.into_iter().filter_map(|other| Some((other, layer(other)?))) {
            assert!(other.1 < own, "{name} depends on {}, which is not below it", other.0);
        }
    }
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    let root =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml")).expect("the root manifest");
    assert!(root.contains("unsafe_code = \"forbid\""), "the workspace forbids unsafe code");
    for (name, path) in manifests() {
        let text = std::fs::read_to_string(&path).expect("a manifest");
        assert!(
            text.replace("\r\n", "\n").contains("[lints]\nworkspace = true"),
            "{name} does not take the lints of the workspace"
        );
    }
}

#[test]
fn no_source_lifts_the_ban_on_unsafe_code() {
    for (name, path) in manifests() {
        let mut places = vec![path.with_file_name("src")];
        while let Some(place) = places.pop() {
            for entry in std::fs::read_dir(place).expect("a directory").flatten().map(|entry| entry.path()) {
                if entry.is_dir() {
                    places.push(entry);
                } else if entry.extension().is_some_and(|extension| extension == "rs") {
                    let text = std::fs::read_to_string(&entry).expect("text");
                    let lifts =
                        ["allow(unsafe", "unsafe {", "unsafe fn", "unsafe impl"].iter().any(|word| text.contains(word));
                    assert!(!lifts, "{name}: {}", entry.display());
                }
            }
        }
    }
}

#[test]
fn clocks_are_read_in_one_place() {
    for folder in ["src"] {
        let mut places = vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder)];
        while let Some(place) = places.pop() {
            for entry in std::fs::read_dir(place).expect("a directory").flatten().map(|entry| entry.path()) {
                if entry.is_dir() {
                    places.push(entry);
                } else if entry.file_name().is_some_and(|name| name != "clock.rs") {
                    let text = std::fs::read_to_string(&entry).unwrap_or_default();
                    let reads = ["Instant::now", "SystemTime::now"].iter().any(|word| text.contains(word));
                    assert!(!reads, "{} reads a clock", entry.display());
                }
            }
        }
    }
}
