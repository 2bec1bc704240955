//! Real servers, none of them ours underneath: small ones on the official SDKs, each flawed and sound, and examples that
//! the SDKs ship. They are installed by `interop/install.sh` (`make check` does it).

use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use serde_json::Value;

/// The checks of what the servers themselves do.
const OWN: [&str; 4] = ["--check", "handle-*", "--check", "state-*"];
/// Where a handle stands in the answers of a server.
const FORMS: [&str; 3] = ["structured", "text", "both"];

#[test]
fn python_low_level_is_told_flawed_from_sound() {
    told_apart("python-low");
}

#[test]
fn python_high_level_is_told_flawed_from_sound() {
    told_apart("python-high");
}

#[test]
fn fastmcp_is_told_flawed_from_sound() {
    told_apart("fastmcp");
}

#[test]
fn typescript_is_told_flawed_from_sound() {
    told_apart("typescript");
}

#[test]
fn rust_sdk_is_told_flawed_from_sound() {
    told_apart("rmcp");
}

/// Both modes, both transports, every form of handle.
fn told_apart(name: &str) {
    for form in FORMS {
        for (mode, exit, verdict, handle, state) in [
            ("flawed", 1, "confirmed", "handle-not-bound", "altered-state-accepted"),
            ("sound", 0, "refuted", "handle-bound", "state-integrity-held"),
        ] {
            let server = Server::start(&[name, "--mode", mode, "--handle", form]);
            let users = ["--identity-a", "alice-token", "--identity-b", "bob-token", &server.url];
            let over_http = probe(&[&OWN[..], &users].concat(), &[]);
            server.assert_nothing_was_destroyed();
            let command = ["--mode", mode, "--handle", form, "--transport", "stdio"];
            let over_stdio = probe(
                &[&OWN[..], &["--identity-a", "alice", "--identity-b", "bob"]].concat(),
                &[&[name][..], &command].concat(),
            );

            for (transport, report) in [("http", over_http), ("stdio", over_stdio)] {
                let what = format!("{name} {mode} {form} over {transport}");
                assert_eq!(report.verdicts(), [(verdict, handle), (verdict, state)], "{what}: {}", report.json);
                // The SDK below `fastmcp` compares the principal also where its codec only encodes: A's state as it was issued is
                // refused to B, and a changed one is not.
                let bound = match (name, mode) {
                    ("fastmcp", _) | (_, "sound") => ("refuted", "state-bound"),
                    _ => ("confirmed", "state-not-bound"),
                };
                assert_eq!(report.of("state-foreign-principal"), bound, "{what}: {}", report.json);
                assert_eq!(report.exit, exit, "{what}");
            }
        }
    }
}

/// What the SDK underneath does with the sessions of clients of 2025-11-25, which it serves at the same place: all checks
/// but those that need an expired token, or a renewed one.
#[test]
fn sessions_of_the_sdks_are_told_apart() {
    for (name, foreign, others) in [
        ("python-low", ("refuted", "session-bound"), "refuted"),
        ("python-high", ("refuted", "session-bound"), "refuted"),
        ("fastmcp", ("refuted", "session-bound"), "refuted"),
        // It serves them without any session.
        ("typescript", ("skipped", "no-session-issued"), "skipped"),
        // Its session manager is given the id, and never the caller.
        ("rmcp", ("confirmed", "session-not-bound"), "refuted"),
    ] {
        let server = Server::start(&[name]);

        let report = probe(&["--identity-a", "alice-token", "--identity-b", "bob-token", &server.url], &[]);

        server.assert_nothing_was_destroyed();
        let checks = report.json["checks"].as_array().expect("checks");
        let of = |id: &str| checks.iter().find(|check| check["id"] == id).expect("a check");
        let found = of("session-foreign-principal");
        assert_eq!((&found["verdict"], &found["reason"]), (&foreign.0.into(), &foreign.1.into()), "{name}: {found}");
        for check in checks {
            let id = check["id"].as_str().expect("text");
            let is_other = id.starts_with("session-")
                && !id.ends_with("-principal")
                && !id.ends_with("-token")
                && !id.ends_with("-overbound");
            assert!(!is_other || check["verdict"] == others, "{name}: {check}");
        }
    }
}

#[test]
fn a_sound_server_without_any_principal_is_never_confirmed() {
    for name in ["python-low", "python-high", "fastmcp", "typescript", "rmcp"] {
        let report = probe(&[], &[name, "--mode", "sound", "--principal", "none", "--transport", "stdio"]);

        let expected = [("skipped", "identities-not-distinguished"), ("refuted", "state-integrity-held")];
        assert_eq!(report.verdicts(), expected, "{name}: {}", report.json);
    }
}

#[test]
fn a_server_behind_a_token_says_which_identity_is_missing() {
    let server = Server::start(&["python-low"]);

    let report = probe(&[&server.url], &[]);

    assert_eq!(report.verdicts(), [("skipped", "needs-identity:a"); 2]);
    assert_eq!(report.exit, 3);
}

/// (example, transport, verdict and reason of the handle check, of the state check)
const EXAMPLES: [(&str, &str, Judged, Judged); 9] = [
    (
        "example-python-everything",
        "http",
        ("skipped", "no-tool-consumes-a-handle"),
        ("refuted", "state-integrity-held"),
    ),
    ("example-python-mrtr", "stdio", ("skipped", "no-tool-consumes-a-handle"), ("refuted", "state-integrity-held")),
    ("example-python-mrtr-low", "http", ("skipped", "no-tool-consumes-a-handle"), ("refuted", "state-integrity-held")),
    ("example-python-stickynotes", "http", ("skipped", "identities-not-distinguished"), NO_STATE),
    ("example-python-refund-desk", "stdio", ("skipped", "no-tool-mints-a-handle"), NO_STATE),
    ("example-python-fastmcp-state", "http", ("skipped", "no-tool-mints-a-handle"), NO_STATE),
    ("example-node-debug", "http", ("skipped", "no-tool-consumes-a-handle"), NO_STATE),
    ("example-node-memory", "stdio", ("skipped", "no-tool-consumes-a-handle"), NO_STATE),
    ("example-node-v1-stateless", "http", ("skipped", "no-tool-consumes-a-handle"), NO_STATE),
];
/// Verdict and reason.
type Judged = (&'static str, &'static str);
const NO_STATE: Judged = ("skipped", "nothing-returned-input-required");

#[test]
fn examples_of_the_sdks_are_judged_without_a_false_finding() {
    for (name, transport, handle, state) in EXAMPLES {
        let report = match transport {
            "http" => {
                let server = Server::start(&[name]);
                probe(&[&server.url], &[])
            }
            _ => probe(&[], &[name, "--transport", "stdio"]),
        };

        assert_eq!(report.verdicts(), [handle, state], "{name} over {transport}: {}", report.json);
    }
}

struct Report {
    json: Value,
    exit: i32,
}

impl Report {
    /// Of the first check of handles and the first of states.
    fn verdicts(&self) -> Vec<(&str, &str)> {
        ["handle-foreign-principal", "state-tampered"].map(|id| self.of(id)).to_vec()
    }

    /// Verdict and reason of one check.
    fn of(&self, id: &str) -> (&str, &str) {
        let checks = self.json["checks"].as_array().expect("checks");
        let found = checks.iter().find(|check| check["id"] == id).unwrap_or_else(|| panic!("no check `{id}`"));
        let text = |name: &str| found[name].as_str().unwrap_or_default();
        (text("verdict"), text("reason"))
    }
}

/// Runs the probe with these options, on a command of `interop/run` where one is given.
fn probe(options: &[&str], command: &[&str]) -> Report {
    let mut probe = Command::new(env!("CARGO_BIN_EXE_handfast"));
    probe.args(["probe", "--format", "json"]).args(options);
    if !command.is_empty() {
        installed();
        probe.arg("--").arg(launcher()).args(command);
    }
    let output = probe.output().expect("the probe runs");
    let json = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    Report { json, exit: output.status.code().expect("an exit code") }
}

/// A server over HTTP, ended with the value.
struct Server {
    child: Child,
    url: String,
    log: PathBuf,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        installed();
        let log =
            std::env::temp_dir().join(format!("handfast-{}-{:?}.log", std::process::id(), std::thread::current().id()));
        let errors = std::fs::File::create(&log).expect("a log");
        let mut child = Command::new(launcher())
            .args(arguments)
            .args(["--transport", "http"])
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .expect("the server starts");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let url = output
            .lines()
            .map_while(Result::ok)
            .find_map(|line| line.split_once("listening on ").map(|(_, url)| url.trim().to_owned()))
            .unwrap_or_else(|| {
                panic!("{arguments:?} never listened: {}", std::fs::read_to_string(&log).unwrap_or_default())
            });
        Self { child, url, log }
    }

    fn assert_nothing_was_destroyed(&self) {
        let log = std::fs::read_to_string(&self.log).expect("the log");
        assert!(!log.contains("DESTRUCTIVE TOOL CALLED"), "{log}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.log);
    }
}

fn launcher() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../interop/run")
}

fn installed() {
    let environment = launcher().with_file_name(".env");
    assert!(
        environment.exists(),
        "the real servers are not installed: run `sh interop/install.sh`, or `make check`, which does"
    );
}
