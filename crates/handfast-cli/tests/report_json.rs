//! The JSON report against its published schema, for every kind of run. What must never stand in any output is in
//! `secrets.rs`, what must not reach a terminal in `terminal.rs`.

mod support;

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;
use support::{Scratch, Twin, free_port, on_stdio, ran, report};

static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../handfast-probe/schema/report.v1.json");
    let text = std::fs::read_to_string(path).expect("the schema is in the repository");
    let schema: Value = serde_json::from_str(&text).expect("the schema is JSON");
    jsonschema::draft202012::meta::validate(&schema).expect("the schema is one");
    jsonschema::validator_for(&schema).expect("the schema can be used")
});

fn assert_valid(report: &Value) {
    let errors: Vec<String> =
        SCHEMA.iter_errors(report).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{report:#}");
}

#[test]
fn every_kind_of_twin_gives_a_valid_report_over_stdio() {
    for twin in [
        "flawed",
        "sound",
        "noguard",
        "opaque",
        "legacy",
        "crashes-on-forgery",
        "asks-again",
        "ignores-state",
        "business-rules",
        "two-rounds-flawed",
        "get-or-create",
        "silent-writer",
        "resource-state",
        "one-shot-flawed",
        "ignores-identity",
        "numeric-handles-flawed",
        "task",
        "flaky",
        "noisy",
    ] {
        let (_, report) = report(&[&["--"][..], &on_stdio(twin)].concat());

        assert_valid(&report);
        assert_eq!(report["version"], 1, "{twin}");
    }
}

#[test]
fn runs_over_http_give_a_valid_report() {
    for twin in ["flawed", "sound", "legacy"] {
        let twin = Twin::start(twin);
        let (_, report) = report(&[&twin.url, "--identity-a", "alice", "--identity-b", "bob"]);

        assert_valid(&report);
        assert_eq!(report["target"]["endpoint"], twin.url.as_str());
        assert_eq!(report["handshake"]["identities"], "given");
    }
}

#[test]
fn runs_that_never_began_give_a_valid_report() {
    let url = format!("http://127.0.0.1:{}/mcp", free_port());
    for target in [&[url.as_str()][..], &["--", "/nonexistent/server"], &["--", "sh", "-c", "exit 1"]] {
        let (_, report) = report(target);

        assert_valid(&report);
        assert_eq!((&report["handshake"], &report["target"]["endpoint"]), (&Value::Null, &Value::Null), "{target:?}");
    }
}

#[test]
fn runs_that_were_cut_short_give_a_valid_report() {
    for bounds in [["--max-calls", "0"], ["--max-calls", "9"], ["--max-calls", "40"], ["--max-time", "1ms"]] {
        let (_, report) = report(&[&bounds[..], &["--"], &on_stdio("flawed")].concat());

        assert_valid(&report);
    }
}

#[test]
fn the_schema_would_notice_what_is_missing_or_unknown() {
    let (_, report) = report(&[&["--"][..], &on_stdio("sound")].concat());
    assert_valid(&report);
    for member in ["version", "tool", "target", "handshake", "checks", "totals"] {
        let mut less = report.clone();
        less.as_object_mut().expect("an object").remove(member);
        assert!(!SCHEMA.is_valid(&less), "without `{member}`");
    }
    for member in ["id", "verdict", "reason", "detail", "severity", "cwe", "observations", "evidence"] {
        let mut less = report.clone();
        less["checks"][0].as_object_mut().expect("an object").remove(member);
        assert!(!SCHEMA.is_valid(&less), "a check without `{member}`");
    }
    for (at, value) in [
        ("/version", Value::from(2)),
        ("/checks/0/verdict", "probably".into()),
        ("/checks/0/reason", "No slug".into()),
        ("/checks/0/severity", "awful".into()),
        ("/checks/0/cwe/0", "CWE-639".into()),
        ("/totals/confirmed", Value::from(-1)),
    ] {
        let mut other = report.clone();
        *other.pointer_mut(at).unwrap_or_else(|| panic!("{at} is there")) = value;
        assert!(!SCHEMA.is_valid(&other), "{at}");
    }
}

#[test]
fn totals_count_the_checks() {
    for twin in ["flawed", "opaque", "legacy", "flaky"] {
        let (_, report) = report(&[&["--"][..], &on_stdio(twin)].concat());
        let checks = report["checks"].as_array().expect("a list");
        for verdict in ["confirmed", "refuted", "skipped", "errored"] {
            let count = checks.iter().filter(|check| check["verdict"] == verdict).count();
            assert_eq!(report["totals"][verdict], count, "{twin}");
        }
    }
}

#[test]
fn every_row_points_at_exchanges_that_are_there() {
    let (_, report) = report(&[&["--"][..], &on_stdio("flawed")].concat());
    for check in report["checks"].as_array().expect("a list") {
        let exchanges = check["evidence"]["exchanges"].as_array().expect("a list");
        let rows = check["evidence"]["entry_points"].as_array().expect("a list");
        if check["verdict"] != "skipped" {
            assert!(!rows.is_empty() && !exchanges.is_empty(), "{check}");
        }
        for row in rows {
            for at in row["exchanges"].as_array().expect("a list") {
                assert!(at.as_u64().is_some_and(|at| (at as usize) < exchanges.len()), "{row}");
            }
        }
    }
}

#[test]
fn a_file_gets_what_standard_output_would_have_got() {
    let scratch = Scratch::new("report-file");
    let path = scratch.path("report.json");
    let shown = path.display().to_string();
    let ran = ran(&[&["probe", "--format", "json", "--output", &shown, "--"][..], &on_stdio("sound")].concat());

    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
    let written = std::fs::read_to_string(path).expect("it was written");
    assert!(written.ends_with("}\n"));
    let written: Value = serde_json::from_str(&written).expect("JSON");
    assert_valid(&written);
    let counted = ["confirmed", "refuted", "skipped", "errored"]
        .map(|verdict| format!("{} {verdict}", written["totals"][verdict]));
    let line = format!("{}; the report is in {shown}", counted.join(", "));
    assert!(ran.stderr.contains(&line), "{}", ran.stderr);
}
