//! What every test of the command line shares: running the built binary, and twins that it starts.
#![allow(dead_code, reason = "each test file uses its part of this")]

use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
};

use serde_json::Value;

/// The binary under test.
pub(crate) const HANDFAST: &str = env!("CARGO_BIN_EXE_handfast");

/// A run of the binary that knows nothing of the environment of the tests.
pub(crate) fn handfast() -> Command {
    let mut command = Command::new(HANDFAST);
    command.stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if ["HANDFAST_", "CXG_", "CERT_X_GEN_"].iter().any(|ours| name.starts_with(ours)) {
            command.env_remove(name);
        }
    }
    for other in ["NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "RUST_BACKTRACE"] {
        command.env_remove(other);
    }
    command
}

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Waits for the end of a command.
    pub(crate) fn of(command: &mut Command) -> Self {
        Self::from(command.output().expect("the binary runs"))
    }

    /// Standard output as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Everything that it said.
    pub(crate) fn said(&self) -> String {
        format!("{}\n{}", self.stdout, self.stderr)
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        Self { code: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// Runs the binary with these arguments.
pub(crate) fn ran(arguments: &[&str]) -> Ran {
    Ran::of(handfast().args(arguments))
}

/// Runs `probe` with a JSON report.
pub(crate) fn report(arguments: &[&str]) -> (i32, Value) {
    let ran = Ran::of(handfast().args(["probe", "--format", "json"]).args(arguments));
    (ran.code, ran.json())
}

/// A twin in a process of its own, over HTTP. Dropping it ends it.
pub(crate) struct Twin {
    child: Child,
    pub(crate) url: String,
}

impl Twin {
    pub(crate) fn start(name: &str) -> Self {
        let mut child = handfast().args(["twin", name]).stdout(Stdio::piped()).spawn().expect("the binary runs");
        let mut url = String::new();
        let output = child.stdout.take().expect("it is piped");
        BufReader::new(output).read_line(&mut url).expect("it prints its URL");
        Self { child, url: url.trim().to_owned() }
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command of a twin on standard input and output.
pub(crate) fn on_stdio(name: &str) -> [&str; 5] {
    [HANDFAST, "twin", name, "--transport", "stdio"]
}

/// An example of the library, built.
pub(crate) fn example(name: &str) -> PathBuf {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let built = Command::new(cargo)
        .args(["build", "-q", "--locked", "--all-features", "--example", name])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../handfast"))
        .status();
    assert!(built.expect("cargo runs").success());
    let tests = std::env::current_exe().expect("this program");
    tests.ancestors().nth(2).expect("a folder").join("examples").join(name)
}

/// The folder of the servers that are not ours.
pub(crate) fn interop() -> PathBuf {
    let interop = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../interop"));
    assert!(
        interop.join(".env").exists(),
        "the real servers are not installed: run `sh interop/install.sh`, or `make check`, which does"
    );
    interop
}

/// A port where nothing listens: free a moment ago.
pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

/// A directory of a test's own, removed when it is dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("handfast-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    /// Writes a file and gives its path as text.
    pub(crate) fn file(&self, file: &str, text: &str) -> String {
        let path = self.path(file);
        std::fs::write(&path, text).expect("it can be written");
        path.display().to_string()
    }

    /// Writes a program in sh and gives its path as text.
    pub(crate) fn script(&self, file: &str, text: &str) -> String {
        use std::os::unix::fs::PermissionsExt;
        let path = self.file(file, &format!("#!/bin/sh\n{text}"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The check of this id in a JSON report.
pub(crate) fn check<'r>(report: &'r Value, id: &str) -> &'r Value {
    let checks = report["checks"].as_array().expect("a list of checks");
    checks.iter().find(|check| check["id"] == id).unwrap_or_else(|| panic!("no check `{id}`"))
}

/// `verdict reason` of the checks of handles and states in a JSON report.
pub(crate) fn outcomes(report: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let checks = report["checks"].as_array().expect("a list of checks");
    let is_of_these =
        |check: &&Value| ["handle-foreign-principal", "state-tampered"].contains(&text(&check["id"]).as_str());
    checks
        .iter()
        .filter(is_of_these)
        .map(|check| format!("{} {}", text(&check["verdict"]), text(&check["reason"])))
        .collect()
}

/// Reads one HTTP request, and answers it with these words.
pub(crate) fn answer_once(mut socket: std::net::TcpStream, answer: &str) {
    use std::io::{Read, Write};
    let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
    let is_whole = |request: &[u8]| {
        let text = String::from_utf8_lossy(request).to_ascii_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse::<usize>().ok());
        body.len() >= length.unwrap_or(0)
    };
    while !is_whole(&request) {
        match socket.read(&mut buffer) {
            Ok(count) if count > 0 => request.extend_from_slice(&buffer[..count]),
            _ => return,
        }
    }
    // A client that went away is no failure of the test.
    let _ = socket.write_all(answer.as_bytes());
}
