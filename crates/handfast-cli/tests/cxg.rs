//! `handfast cxg` stands in for a published check: its arguments, its variables, and the words that pipelines look for in
//! `metadata.detail`. Always one JSON object, always exit code 0.

mod support;

use std::process::Command;

use serde_json::Value;
use support::{HANDFAST, Ran, Scratch, Twin, free_port, handfast, on_stdio};

/// Runs it, and holds what must always hold.
fn cxg(command: &mut Command) -> Value {
    let ran = Ran::of(command);
    assert_eq!(ran.code, 0, "{ran:?}");
    let written = ran.json();
    let members: Vec<&String> = written.as_object().expect("one object").keys().collect();
    assert_eq!(members, ["findings", "metadata"]);
    assert!(written["findings"].is_array() && written["metadata"]["detail"].is_string(), "{written}");
    let status = written["metadata"]["status"].as_str().expect("a status");
    assert!(["confirmed", "refuted", "skipped", "errored"].contains(&status), "{status}");
    assert_eq!(written["metadata"]["id"], "mcp-handle-binding-integrity");
    written
}

fn with(arguments: &[&str]) -> Value {
    cxg(handfast().arg("cxg").args(arguments))
}

/// Host and port of a twin's URL.
fn place(twin: &Twin) -> (String, String) {
    let authority = twin.url.trim_start_matches("http://").trim_end_matches("/mcp");
    let (host, port) = authority.split_once(':').expect("a port");
    (host.to_owned(), port.to_owned())
}

fn over_http(twin: &str) -> Value {
    let twin = Twin::start(twin);
    let (host, port) = place(&twin);
    with(&[&host, &port])
}

fn over_stdio(twin: &str) -> Value {
    with(&[&["--stdio"][..], &on_stdio(twin)].concat())
}

fn assert_says(written: &Value, status: &str, words: &[&str]) {
    let detail = written["metadata"]["detail"].as_str().expect("text");
    assert_eq!(written["metadata"]["status"], status, "{detail}");
    for word in words {
        assert!(detail.contains(word), "`{word}` is not in `{detail}`");
    }
}

/// Over HTTP and over stdio, with the words for the transport.
fn assert_both_say(twin: &str, status: &str, words: &[&str]) -> Value {
    assert_says(&over_http(twin), status, &[words, &["transport=http"]].concat());
    let written = over_stdio(twin);
    assert_says(&written, status, &[words, &["transport=stdio"]].concat());
    written
}

const MODERN: &str = "handshake=stateless(2026-07-28)";

#[test]
fn a_flawed_server_is_confirmed_with_two_findings() {
    let words = [MODERN, "forged-handle-control=rejected", "random-blob-control=rejected", "untouched-retry=accepted"];
    let written = assert_both_say("flawed", "confirmed", &words);

    let findings = written["findings"].as_array().expect("a list");
    assert_eq!(findings.len(), 2, "{findings:?}");
    let [handle, state] = [&findings[0], &findings[1]];
    for finding in findings {
        for member in
            ["target", "template_id", "severity", "confidence", "title", "description", "evidence", "cwe_ids", "tags"]
        {
            assert!(!finding[member].is_null(), "a finding without `{member}`: {finding}");
        }
        assert_eq!((finding["severity"].as_str(), finding["timestamp"].is_u64()), (Some("high"), true));
    }
    let data = &handle["evidence"]["data"];
    assert_eq!(data["minting_tool"], "open_workspace");
    assert_eq!(data["handle_argument"], "workspace_id");
    assert_eq!(data["negative_control_forged_handle"]["outcome"], "rejected");
    assert_eq!(data["identity_B_reading_A_handle"]["outcome"], "accepted");
    assert!(data["observed_marker"].as_str().is_some_and(|marker| marker.contains("canary")), "{data}");
    assert_eq!(handle["cwe_ids"][0], "CWE-639");
    let data = &state["evidence"]["data"];
    assert_eq!(data["mutation"]["field"], "principal");
    assert_eq!(data["mutation"]["mutated_value_observed_in_answer"], true);
    assert_eq!(data["baseline_untouched_retry"]["outcome"], "accepted");
    assert_eq!(data["negative_control_random_blob"]["outcome"], "rejected");
    assert!(state["cwe_ids"].as_array().is_some_and(|cwe| cwe.contains(&"CWE-565".into())), "{}", state["cwe_ids"]);
}

#[test]
fn a_sound_server_is_refuted_with_both_controls_named() {
    let words = [
        MODERN,
        "handle-bound(",
        "forged-handle-control=rejected",
        "random-blob-control=rejected",
        "untouched-retry=accepted",
    ];
    let written = assert_both_say("sound", "refuted", &words);
    assert_eq!(written["findings"].as_array().map(Vec::len), Some(0));
    assert_both_say("fixed", "refuted", &["handle-bound("]);
}

#[test]
fn a_server_without_any_guard_is_refuted_with_the_observation() {
    let words = [MODERN, "handle-witness-unusable", "forged-handle-honoured", "untouched-retry=accepted"];
    assert_both_say("noguard", "refuted", &words);
}

#[test]
fn an_opaque_state_is_confirmed_by_a_flip_and_without_a_mutation() {
    let words = [MODERN, "handle-bound(", "requestState-not-integrity-protected", "random-blob-control=rejected"];
    let written = assert_both_say("opaque", "confirmed", &words);

    let data = &written["findings"][0]["evidence"]["data"];
    assert_eq!(written["findings"].as_array().map(Vec::len), Some(1));
    assert_eq!(data["mutation"], Value::Null);
    assert_eq!(data["single_character_flips"][0]["outcome"], "accepted");
}

#[test]
fn an_older_server_is_skipped_with_both_preconditions_named() {
    let words = [
        "handshake=legacy(initialize)",
        "pre-stateless-core",
        "no-tool-consumes-a-handle-shaped-argument",
        "no-tool-returned-input_required",
    ];
    assert_both_say("legacy", "skipped", &words);
}

#[test]
fn a_server_that_names_nobody_is_not_confirmed_over_stdio() {
    let written = over_stdio("ignores-identity");

    assert_says(&written, "refuted", &["identities-not-distinguished", "untouched-retry=accepted"]);
}

#[test]
fn nothing_listening_and_nothing_to_run_are_told_apart() {
    let port = free_port().to_string();
    assert_says(&with(&["127.0.0.1", &port]), "skipped", &["no-mcp-server-answered"]);
    for command in ["/nonexistent/mcp-server", "/etc/hostname"] {
        assert_says(&with(&["--stdio", command]), "errored", &["stdio-target-not-executable"]);
        assert_says(&with(&[&format!("cli://{command}")]), "errored", &["stdio-target-not-executable"]);
    }
}

#[test]
fn arguments_name_a_host_with_port_and_scheme() {
    let twin = Twin::start("sound");
    let (host, port) = place(&twin);
    let with_path = format!("http://{host}/mcp");
    for arguments in [&[host.as_str(), &port][..], &[&host, &port, "http"], &[&with_path, &port], &["localhost", &port]]
    {
        assert_says(&with(arguments), "refuted", &["handle-bound(", "transport=http"]);
    }
    // A URL alone is taken at its word, port and all.
    assert_says(&with(&[&twin.url]), "refuted", &["handle-bound(", "transport=http"]);
}

#[test]
fn a_program_is_given_as_cli_with_arguments_in_a_variable() {
    let target = format!("cli://{HANDFAST}");
    let written = cxg(handfast().args(["cxg", &target]).env("CXG_MCP_STDIO_ARGS", "twin flawed '--transport' stdio"));

    assert_says(&written, "confirmed", &["transport=stdio"]);
}

#[test]
fn a_python_file_that_is_not_executable_is_run_by_python() {
    let scratch = Scratch::new("cxg-python");
    let program = "import os, sys\nos.execv(sys.argv[1], [sys.argv[1], 'twin', 'sound', '--transport', 'stdio'])\n";
    let path = scratch.file("server.py", program);
    let written = cxg(handfast().args(["cxg", &format!("cli://{path}")]).env("CXG_MCP_STDIO_ARGS", HANDFAST));

    assert_says(&written, "refuted", &["handle-bound(", "transport=stdio"]);
}

#[test]
fn a_command_in_a_variable_overrides_every_argument() {
    let command = format!("'{HANDFAST}' twin sound --transport stdio");
    for arguments in [&["cxg"][..], &["cxg", "127.0.0.1", "1"], &["cxg", "--stdio", "/nonexistent"]] {
        let written = cxg(handfast().args(arguments).env("CXG_MCP_STDIO_CMD", &command));

        assert_says(&written, "refuted", &["handle-bound(", "transport=stdio"]);
    }
}

#[test]
fn the_engine_names_a_host_in_variables() {
    let twin = Twin::start("flawed");
    let (host, port) = place(&twin);
    let engine = || {
        let mut command = handfast();
        command.arg("cxg").env("CERT_X_GEN_MODE", "engine").env("CERT_X_GEN_TARGET_PORT", &port);
        command
    };
    let written = cxg(engine().env("CERT_X_GEN_TARGET_HOST", &host).env("CERT_X_GEN_TARGET_PROTOCOL", "http"));
    assert_says(&written, "confirmed", &["transport=http"]);
    let written = cxg(engine().env("CERT_X_GEN_TARGET_HOST", &host));
    assert_says(&written, "confirmed", &["transport=http"]);
    assert_says(&cxg(&mut engine()), "errored", &["CERT_X_GEN_TARGET_HOST"]);
}

#[test]
fn the_engine_names_a_program_in_variables() {
    let engine = |host: &str, kind: Option<&str>| {
        let mut command = handfast();
        command.arg("cxg").env("CERT_X_GEN_MODE", "engine").env("CERT_X_GEN_TARGET_HOST", host);
        command.env("CXG_MCP_STDIO_ARGS", "twin sound --transport stdio");
        if let Some(kind) = kind {
            command.env("CERT_X_GEN_TARGET_KIND", kind);
        }
        cxg(&mut command)
    };
    for (host, kind) in [(HANDFAST, Some("cli")), (&format!("cli://{HANDFAST}"), None), (HANDFAST, None)] {
        assert_says(&engine(host, kind), "refuted", &["handle-bound(", "transport=stdio"]);
    }
    assert_says(&engine("/nonexistent/server", Some("cli")), "errored", &["stdio-target-not-executable"]);
}

#[test]
fn identities_come_from_their_variables() {
    let twin = Twin::start("flawed");
    let (host, port) = place(&twin);
    let given = |a: &str, b: &str| {
        let mut command = handfast();
        command.args(["cxg", &host, &port]).env("CXG_MCP_IDENTITY_A", a).env("CXG_MCP_IDENTITY_B", b);
        Ran::of(&mut command)
    };

    let ran = given("token-of-alice", "token-of-bob");
    assert_says(&ran.json(), "confirmed", &["identities=given"]);
    for secret in ["token-of-alice", "token-of-bob"] {
        assert!(!ran.said().contains(secret), "a credential in the output");
    }

    let same = given("token-of-alice", "token-of-alice");
    assert_eq!(same.code, 0);
    assert_says(&same.json(), "errored", &["the same"]);
    assert!(!same.said().contains("token-of-alice"));
}

#[test]
fn the_key_of_the_principal_can_be_renamed() {
    // Nobody reads the other key: to the twin, everybody is the same caller.
    let renamed = cxg(handfast()
        .args(["cxg", "--stdio"])
        .args(on_stdio("flawed"))
        .env("CXG_MCP_PRINCIPAL_META_KEY", "example.com/user"));
    assert_says(&renamed, "confirmed", &["identities-not-distinguished"]);
    assert_eq!(renamed["findings"].as_array().map(Vec::len), Some(1), "the state, not the handle");
}

#[test]
fn destructive_tools_are_left_out_unless_the_variable_says_1() {
    let run = |value: Option<&str>| {
        let mut command = handfast();
        command.args(["cxg", "--stdio"]).args(on_stdio("flawed"));
        if let Some(value) = value {
            command.env("CXG_MCP_MRTR_INCLUDE_DESTRUCTIVE", value);
        }
        cxg(&mut command)["findings"][0]["evidence"]["data"]["observations"].to_string()
    };
    for value in [None, Some("0"), Some("")] {
        assert!(run(value).contains("purge_workspace#workspace_id: declares destructiveHint"), "{value:?}");
    }
    assert!(!run(Some("1")).contains("declares destructiveHint"));
}

#[test]
fn wrong_arguments_are_still_one_object_and_0() {
    for arguments in [
        &[][..],
        &["--stdio"],
        &["--stdio", ""],
        &["127.0.0.1", "port"],
        &["127.0.0.1", "70000"],
        &["127.0.0.1", "80", "gopher"],
        &["cli://"],
    ] {
        assert_says(&with(arguments), "errored", &[]);
    }
    assert_says(&cxg(handfast().arg("cxg").env("CXG_MCP_STDIO_CMD", "server 'unclosed")), "errored", &["quote"]);
}
