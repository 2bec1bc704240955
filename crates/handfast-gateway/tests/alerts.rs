//! The alert rules are rules, each is seen to fire and not to, and rules and dashboard are about counters that there are.

use std::{path::Path, process::Command};

use serde_json::Value;

const COUNTERS: [&str; 2] = [include_str!("../src/tally.rs"), include_str!("../../handfast/src/tally.rs")];

fn promtool(arguments: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/alerts");
    let output = Command::new("promtool").args(arguments).current_dir(folder).output();
    let output = output.expect("promtool is missing: install the package `prometheus` (.ci/run does)");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

fn are_counted(text: &str, least: usize) {
    let words = text.split(|character: char| !(character.is_ascii_alphanumeric() || character == '_'));
    let ends = ["_total", "_seconds", "_open"];
    let names: Vec<&str> = words.filter(|word| ends.iter().any(|end| word.ends_with(end))).collect();
    assert!(names.len() >= least, "{names:?}");
    for name in names {
        assert!(COUNTERS.iter().any(|source| source.contains(&format!("\"{name}\""))), "{name}");
    }
}

#[test]
fn the_rules_are_rules_about_counters_that_there_are() {
    promtool(&["check", "rules", "gateway.rules.yml"]);
    promtool(&["test", "rules", "gateway.test.yml"]);
    are_counted(include_str!("../../../docs/alerts/gateway.rules.yml"), 7);
}

#[test]
fn the_dashboard_shows_counters_that_there_are() {
    let dashboard: Value = serde_json::from_str(include_str!("../../../docs/dashboards/gateway.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("targets"));
    let queries: Vec<&str> = targets.map(|target| target["expr"].as_str().expect("a query")).collect();
    are_counted(&queries.join("\n"), 10);
}
