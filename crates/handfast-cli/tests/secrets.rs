//! No credential stands in any output of any format, whatever the server does with it; handles and states appear only as
//! fingerprints.

#[path = "support/relay.rs"]
mod relay;
mod support;

use regex::Regex;
use relay::{Answer, relay};
use support::{Ran, Scratch, Twin, handfast, on_stdio};

const A: &str = "tok-alice-5e7c1d09aa";
const B: &str = "tok-bob-77f0b3c2de";
const KEY: &str = "api-key-9931ffe0";

fn with_both(arguments: &[&str]) -> Ran {
    Ran::of(handfast().args(arguments).env("HANDFAST_IDENTITY_A", A).env("HANDFAST_IDENTITY_B", B))
}

fn cxg(arguments: &[&str]) -> Ran {
    Ran::of(handfast().arg("cxg").args(arguments).env("CXG_MCP_IDENTITY_A", A).env("CXG_MCP_IDENTITY_B", B))
}

fn assert_silent(ran: &Ran, told: &str) {
    for secret in [A, B, KEY] {
        // Nor a good part of one.
        for part in [secret, &secret[..secret.len() - 2], &secret[2..]] {
            assert!(!ran.said().contains(part), "{told}: `{part}` in\n{}", ran.said());
        }
    }
}

/// Every handle of the twins, and every state that is long enough to be one.
fn assert_no_handle_or_state(text: &str, told: &str) {
    for pattern in [r"ws-[0-9a-f]{32}", r"eyJ[A-Za-z0-9_-]{60,}", r"[0-9a-f]{400,}"] {
        let found = Regex::new(pattern).expect("a pattern").find(text).map(|found| found.as_str().to_owned());
        assert_eq!(found, None, "{told}");
    }
}

#[test]
fn no_format_shows_a_credential_over_http() {
    for name in ["flawed", "any-token", "business-rules"] {
        let twin = Twin::start(name);
        for format in ["text", "json"] {
            let ran = with_both(&["probe", "--format", format, &twin.url]);
            assert_silent(&ran, &format!("{name} {format}"));
            assert_no_handle_or_state(&ran.said(), &format!("{name} {format}"));
        }
        let (host, port) =
            twin.url.trim_start_matches("http://").trim_end_matches("/mcp").split_once(':').expect("a port");
        let ran = cxg(&[host, port]);
        assert_silent(&ran, &format!("{name} cxg"));
        assert_no_handle_or_state(&ran.said(), &format!("{name} cxg"));
        assert_silent(&with_both(&["probe", "--dry-run", &twin.url]), &format!("{name} dry run"));
        assert_silent(&with_both(&["discover", &twin.url]), &format!("{name} discover"));
    }
}

#[test]
fn no_format_shows_a_credential_over_stdio() {
    for name in ["flawed", "opaque", "jwt-state", "noisy"] {
        for format in ["text", "json"] {
            let ran = with_both(&[&["probe", "--format", format, "--"][..], &on_stdio(name)].concat());
            assert_silent(&ran, &format!("{name} {format}"));
            assert_no_handle_or_state(&ran.said(), &format!("{name} {format}"));
        }
        assert_silent(&cxg(&[&["--stdio"][..], &on_stdio(name)].concat()), &format!("{name} cxg"));
    }
}

#[test]
fn the_finding_shows_fingerprints_that_can_be_matched_up() {
    let ran = with_both(&[&["probe", "--format", "json", "--"][..], &on_stdio("flawed")].concat());

    let report = ran.json();
    let facts = &report["checks"][0]["evidence"]["entry_points"][0]["facts"];
    let fingerprint = Regex::new("^ws-[0-9a-f]{3}…#[0-9a-f]{8}$").expect("a pattern");
    for name in ["handle_of_a", "handle_of_b", "forged_handle"] {
        let shown = facts[name].as_str().expect("text");
        assert!(fingerprint.is_match(shown), "{name}: {shown}");
    }
    let exchanges = report["checks"][0]["evidence"]["exchanges"].to_string();
    let of_a = facts["handle_of_a"].as_str().expect("text");
    assert!(exchanges.matches(of_a).count() >= 3, "the mint, the owner's use and the subject show the same one");
}

#[test]
fn a_server_that_shows_credentials_in_its_answers_shows_them_to_nobody_else() {
    let twin = Twin::start("flawed");
    // In every text of every answer: what the caller authenticated with.
    let url = relay(&twin.url, |received| {
        if received.body.contains("tools/call") && received.body.contains("read_workspace") {
            let shown = received.head.replace('\r', "").replace('"', "'").replace('\n', " ");
            let id = serde_json::from_str::<serde_json::Value>(&received.body).expect("JSON")["id"].clone();
            let result =
                serde_json::json!({"content": [{"type": "text", "text": format!("debug: {shown}")}], "isError": true});
            return Answer::Own(200, serde_json::json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
        }
        Answer::Changed(str::to_owned)
    });
    for format in ["text", "json"] {
        let ran = with_both(&["probe", "--format", format, "--header", &format!("X-Api-Key: {KEY}"), &url]);
        assert!(ran.said().contains("debug:") || format == "text", "the answer is part of the evidence");
        assert_silent(&ran, format);
    }
}

#[test]
fn an_error_page_that_shows_credentials_is_not_passed_on() {
    let url = relay("unused", |received| {
        let line = received.head.lines().find(|line| line.to_ascii_lowercase().starts_with("authorization"));
        Answer::Own(500, format!("<h1>500</h1>{}", line.unwrap_or_default()))
    });
    for format in ["text", "json"] {
        let ran = with_both(&["probe", "--format", format, &url]);
        assert!(ran.stdout.contains("HTTP 500"), "{}", ran.stdout);
        assert_silent(&ran, format);
    }
    assert_silent(&with_both(&["discover", &url]), "discover");
    assert_silent(&with_both(&["probe", "--dry-run", &url]), "dry run");
}

#[test]
fn the_last_words_of_a_server_that_logs_its_requests_are_not_passed_on_whole() {
    let scratch = Scratch::new("secrets-words");
    let server = scratch.script("server", "IFS= read -r line\nprintf '%s\\n' \"request: $line\" >&2\nexit 1\n");
    for arguments in [
        &["probe", "--", &server][..],
        &["probe", "--format", "json", "--", &server],
        &["discover", "--", &server],
        &["probe", "--dry-run", "--", &server],
    ] {
        let ran = with_both(arguments);
        assert!(ran.said().contains("request:"), "the last words are told: {}", ran.said());
        assert_silent(&ran, &format!("{arguments:?}"));
    }
    assert_silent(&cxg(&["--stdio", &server]), "cxg");
}

#[test]
fn arguments_of_a_command_may_be_secret_and_are_not_shown() {
    let ran = support::ran(&["probe", "--format", "json", "--", "/nonexistent/server", "--token", KEY]);

    assert_silent(&ran, "a command line");
    assert!(ran.stdout.contains("(2 arguments)"), "{}", ran.stdout);
}

#[test]
fn neither_is_the_query_of_a_url() {
    let twin = Twin::start("sound");
    for format in ["text", "json"] {
        let url = format!("{}?key={KEY}#{KEY}", twin.url);
        assert_silent(&with_both(&["probe", "--format", format, &url]), format);
    }
    let nowhere = format!("http://127.0.0.1:{}/mcp?key={KEY}", support::free_port());
    assert_silent(&with_both(&["probe", &nowhere]), "nothing listening");
}
