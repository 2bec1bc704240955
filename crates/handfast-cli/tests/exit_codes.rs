//! The exit code of `handfast probe`: 0 nothing confirmed, 1 something confirmed, 2 bad usage, 3 errored or nothing could be
//! tested. The same for every format.

mod support;

use support::{Twin, free_port, handfast, on_stdio, outcomes, ran, report};

const ALICE_AND_BOB: [&str; 4] = ["--identity-a", "alice", "--identity-b", "bob"];

/// Probes a twin over stdio in both formats; both must end with this code.
fn assert_code(twin: &str, more: &[&str], code: i32) {
    for format in ["text", "json"] {
        let options = [&["probe", "--format", format], &ALICE_AND_BOB[..], more, &["--"], &on_stdio(twin)].concat();
        let ran = ran(&options);
        assert_eq!(ran.code, code, "{twin} {more:?} as {format}: {ran:?}");
    }
}

#[test]
fn nothing_confirmed_is_0() {
    assert_code("sound", &[], 0);
    assert_code("sound", &["--strict"], 0);
}

#[test]
fn something_confirmed_is_1() {
    assert_code("flawed", &[], 1);
    assert_code("one-door", &["--strict"], 1);
}

#[test]
fn a_finding_outweighs_a_check_that_was_skipped() {
    // Under another key the twin reads no principal: it takes everybody for one caller.
    let scratch = support::Scratch::new("exit-codes-skipped");
    let profile = scratch.file("profile.toml", "[identities]\nmeta_key = \"example.com/nobody-reads-this\"\n");
    for strict in [&[][..], &["--strict"]] {
        let (code, report) = report(&[&["--profile", &profile], strict, &["--"], &on_stdio("flawed")].concat());

        let expected = ["skipped identities-not-distinguished", "confirmed altered-state-accepted"];
        assert_eq!(outcomes(&report), expected);
        assert_eq!(code, 1);
    }
}

#[test]
fn a_skip_beside_a_refutation_is_0_and_3_when_strict() {
    assert_code("any-token", &[], 0);
    assert_code("any-token", &["--strict"], 3);
}

#[test]
fn something_errored_is_3() {
    assert_code("crashes-on-forgery", &["--check", "state-tampered"], 3);
    assert_code("flaky", &[], 3);
}

#[test]
fn nothing_tested_at_all_is_3() {
    assert_code("legacy", &[], 3);
}

#[test]
fn the_code_is_the_same_over_http() {
    for (twin, code) in [("flawed", 1), ("sound", 0), ("legacy", 0), ("unbound-sessions", 1), ("two-replicas", 3)] {
        let twin = Twin::start(twin);
        for format in ["text", "json"] {
            let options = [&["probe", &twin.url, "--format", format], &ALICE_AND_BOB[..]].concat();
            assert_eq!(ran(&options).code, code, "{}", twin.url);
        }
    }
}

#[test]
fn nothing_listening_is_3_with_its_reason() {
    let url = format!("http://127.0.0.1:{}/mcp", free_port());
    let (code, report) = report(&[&url]);

    assert_eq!(outcomes(&report), ["skipped no-server-answered"; 2]);
    assert_eq!(code, 3);
}

#[test]
fn a_command_that_cannot_be_run_is_3_with_its_reason() {
    for command in ["/nonexistent/mcp-server", "/etc/hostname", "no-such-program-on-any-path"] {
        let (code, report) = report(&["--", command]);

        assert_eq!(outcomes(&report), ["errored target-not-executable"; 2], "{command}");
        assert_eq!(code, 3, "{command}");
    }
}

#[test]
fn a_command_that_ends_at_once_is_3_with_its_reason() {
    let (code, report) = report(&["--", "sh", "-c", "exit 7"]);

    assert_eq!(outcomes(&report), ["errored unreachable"; 2]);
    assert_eq!(code, 3);
}

#[test]
fn a_token_that_the_server_refuses_is_3_with_its_reason() {
    let refusing = Refusing::start();
    let (code, report) = report(&[&[refusing.url.as_str()], &ALICE_AND_BOB[..]].concat());

    assert_eq!(outcomes(&report), ["skipped needs-identity:a"; 2]);
    assert_eq!(code, 3);
}

#[test]
fn help_and_version_are_0() {
    for arguments in [&["--help"][..], &["--version"], &["probe", "--help"], &["cxg", "--help"]] {
        let ran = ran(arguments);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{arguments:?}");
        assert!(!ran.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_report_that_goes_to_a_file_ends_with_the_same_code() {
    let scratch = support::Scratch::new("exit-codes");
    let path = scratch.path("report.json").display().to_string();
    let options = [&["--format", "json", "--output", &path], &ALICE_AND_BOB[..], &["--"], &on_stdio("flawed")].concat();
    let ran = support::Ran::of(handfast().arg("probe").args(options));

    let written: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).expect("it was written")).expect("JSON");
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert!(written["totals"]["confirmed"].as_u64().is_some_and(|count| count >= 2), "{}", written["totals"]);
}

/// A server that answers 401 to everybody.
struct Refusing {
    url: String,
}

impl Refusing {
    fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("bound"));
        // Ends with the test's process.
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                support::answer_once(
                    socket,
                    "HTTP/1.1 401 so\r\nwww-authenticate: Bearer\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
                );
            }
        });
        Self { url }
    }
}
