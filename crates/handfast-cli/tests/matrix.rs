//! Every twin against every check, over stdio: the same table that the tests of the probe hold against HTTP.

mod support;
#[path = "../../handfast-probe/tests/support/table.rs"]
mod table;

use std::collections::BTreeSet;

use serde_json::Value;
use support::{Scratch, check, on_stdio, report};

const TABLE: &str = include_str!("../../handfast-probe/tests/matrix.txt");

/// Who calls besides A and B, as the twins know them.
const CALLERS: &str = r#"
[identities]
a-new-token = { value = "renewed-alice" }
same-user-other-client = { value = "phone-alice" }
other-tenant = { value = "acme-carol" }
"#;

/// `verdict reason [severity] [+observation]`, as in the table.
fn cell(check: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut cell = format!("{} {}", text(&check["verdict"]), text(&check["reason"]));
    if check["verdict"] == "confirmed" {
        cell = format!("{cell} {}", text(&check["severity"]));
    }
    let observations = check["observations"].as_array().expect("a list");
    let mut observed: Vec<String> = observations.iter().map(|observation| text(&observation["id"])).collect();
    observed.sort_unstable();
    observed.dedup();
    let told = observed.iter().filter(|id| *id != "entry-point-left-out");
    told.fold(cell, |cell, id| format!("{cell} +{id}"))
}

fn over_stdio(twin: &str) -> String {
    let scratch = Scratch::new(&format!("matrix-{twin}"));
    let profile = scratch.path("profile.toml");
    std::fs::write(&profile, CALLERS).expect("it can be written");
    let profile = profile.display().to_string();
    let identities = ["--identity-a", "alice", "--identity-b", "bob", "--profile", &profile, "--"];
    let arguments: Vec<&str> = identities.into_iter().chain(on_stdio(twin)).collect();
    let (_, report) = report(&arguments);
    assert_eq!(report["target"]["transport"], "stdio", "{twin}");
    let [handle, state] = ["handle-foreign-principal", "state-tampered"].map(|id| cell(check(&report, id)));
    let family = |is_of: fn(&str) -> bool| {
        let checks = report["checks"].as_array().expect("a list").iter();
        let cells = checks.filter(|check| check["id"].as_str().is_some_and(is_of)).map(cell);
        cells.collect::<BTreeSet<String>>().into_iter().collect::<Vec<_>>().join("; ")
    };
    let sessions = family(|id| id.starts_with("session-"));
    let tokens = family(|id| id.starts_with("token-") || id == "challenge-missing");
    let further = further(&report);
    format!("{handle} | {state} | {sessions} | {tokens} | {further}").trim_end().to_owned()
}

/// The further checks that do not say what is usual.
fn further(report: &Value) -> String {
    let checks = report["checks"].as_array().expect("a list").iter();
    let cells: Vec<(String, String)> =
        checks.map(|check| (check["id"].as_str().unwrap_or_default().to_owned(), cell(check))).collect();
    table::further(&cells, true)
}

#[test]
fn no_twin_is_missing_from_the_table() {
    table::assert_complete(TABLE);
}

#[test]
fn every_twin_gets_its_verdicts_over_stdio() {
    let twins: Vec<&str> = table::lines(TABLE).iter().map(|line| line.twin).collect();

    let halves: Vec<_> = twins
        .chunks(twins.len().div_ceil(2))
        .map(|half| half.iter().map(|twin| (*twin).to_owned()).collect::<Vec<_>>())
        .map(|half| {
            std::thread::spawn(move || half.into_iter().map(|twin| (over_stdio(&twin), twin)).collect::<Vec<_>>())
        })
        .collect();
    let seen: Vec<(String, String)> = halves
        .into_iter()
        .flat_map(|half| half.join().expect("no panic"))
        .map(|(verdicts, twin)| (twin, verdicts))
        .collect();

    table::assert_agrees(TABLE, "stdio", &seen);
}
