//! The alert rules of `docs/alerts`, by the tool that reads them; and that every counter in them is one that there is.

use std::{path::Path, process::Command};

const SOURCE: &str = include_str!("../src/tally.rs");

fn promtool(arguments: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/alerts");
    let output = Command::new("promtool").args(arguments).current_dir(folder).output();
    let output = output.expect("promtool is missing: install the package `prometheus` (.ci/run does)");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[test]
fn the_rules_are_rules() {
    promtool(&["check", "rules", "sessions.rules.yml"]);
}

#[test]
fn each_is_seen_to_fire_and_not_to() {
    promtool(&["test", "rules", "sessions.test.yml"]);
}

#[test]
fn they_are_about_counters_that_there_are() {
    let rules = include_str!("../../../docs/alerts/sessions.rules.yml");
    let words = rules.split(|character: char| !(character.is_ascii_alphanumeric() || character == '_'));
    let counters: Vec<&str> = words.filter(|word| word.ends_with("_total")).collect();
    assert!(counters.len() >= 6, "{counters:?}");
    for counter in counters {
        assert!(SOURCE.contains(&format!("\"{counter}\"")), "{counter}");
    }
}
