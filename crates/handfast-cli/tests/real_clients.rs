//! The clients of the official SDKs on a server of an official SDK, once as it is and once behind the gateway, over HTTP and as
//! a child process: what they print is the same. They are installed by `interop/install.sh` (`make check` does it).
#![cfg(feature = "gateway")]

mod support;

use std::{
    io::{BufRead, BufReader},
    process::{Child, ChildStdout, Command, Stdio},
};

use support::{Scratch, handfast, interop};

const REVISIONS: [&str; 2] = ["2026-07-28", "2025-11-25"];

/// What each of them has to have done at least, each at the beginning of a line.
const DONE: [&str; 15] = [
    "tools:",
    "case:",
    "shown:",
    "progress:",
    "count:",
    "log:",
    "asked:",
    "paint:",
    "much: 3000000",
    "long:",
    "read:",
    "prompt:",
    "completion:",
    "update:",
    "cancelled:",
];

const RULES: &str = r#"version = 1
[[handle]]
mint = "open_case"
pointer = "/structuredContent/case_id"
consume = ["tools/call show_case#case_id"]
"#;

#[test]
fn the_python_client_does_not_notice_the_gateway() {
    notices_nothing("python-client");
}

#[test]
fn the_typescript_client_does_not_notice_the_gateway() {
    notices_nothing("typescript-client");
}

#[test]
fn the_rust_client_does_not_notice_the_gateway() {
    notices_nothing("rmcp-client");
}

fn notices_nothing(client: &str) {
    let scratch = Scratch::new(&format!("real-{client}"));
    let rules = scratch.file("rules.toml", RULES);
    let program = interop().join("run").display().to_string();
    let server = Running::start(Command::new(&program).arg("flows"));
    let audit = |name: &str| scratch.path(&format!("{name}.audit")).display().to_string();
    let gateway = |name: &str, behind: &[&str]| {
        let store = format!("sqlite:{}", scratch.path(&format!("{name}.db")).display());
        let arguments = ["gateway", "--bearer", "--listen", "127.0.0.1:0", "--rules", &rules, "--store", &store];
        Running::start(handfast().args(arguments).args(["--audit", &audit(name)]).args(behind))
    };
    let over_http = gateway("http", &["--upstream", &server.url]);
    let over_stdio = gateway("stdio", &["--", &program, "flows", "--transport", "stdio"]);

    for revision in REVISIONS {
        let bare = printed(client, &server.url, revision);

        let done = |what: &&str| bare.lines().any(|line| line.starts_with(what));
        assert!(DONE.iter().all(done) && bare.ends_with('\n') && bare.contains("\nover:"), "{client}: {bare}");
        for (transport, gateway) in [("http", &over_http), ("stdio", &over_stdio)] {
            assert_eq!(printed(client, &gateway.url, revision), bare, "{client} {revision} over {transport}");
        }
    }
    for name in ["http", "stdio"] {
        let audited = std::fs::read_to_string(audit(name)).expect("the gateway has said what it did");
        assert!(audited.contains("\"mint\""), "the case was a handle of the gateway: {audited}");
    }
}

fn printed(client: &str, url: &str, revision: &str) -> String {
    let output = Command::new(interop().join("run")).args([client, url, revision]).output().expect("it runs");
    let (told, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{client} {revision} on {url}: {told}{errors}");
    told.into_owned()
}

/// Something that says where it listens, and ends with the test.
struct Running {
    child: Child,
    url: String,
    /// Open, so that what else it says has somewhere to go.
    _output: BufReader<ChildStdout>,
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a line");
        let url = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("{command:?} said {line:?}"));
        Self { child, url: url.to_owned(), _output: output }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
