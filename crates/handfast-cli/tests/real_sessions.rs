//! Real servers with sessions, none of them ours underneath: as they are, and behind the library's layers. They are installed
//! by `interop/install.sh` (`make check` does it).

mod support;

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, ChildStdout, Command, Stdio},
};

use serde_json::Value;
use support::{Scratch, example, handfast, interop};

/// The audience of all tokens. Where the servers listen has nothing to do with it.
const AUDIENCE: &str = "https://mcp.example.com/mcp";

/// Something that says where it listens, and ends with the test.
struct Running {
    child: Child,
    first: String,
    /// Open, so that what else it says has somewhere to go.
    _output: BufReader<ChildStdout>,
}

impl Running {
    fn start(command: &mut Command, mark: &str) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let lines = output.by_ref().lines().map_while(Result::ok);
        let first = lines.into_iter().find_map(|line| line.strip_prefix(mark).map(str::to_owned));
        let first = first.unwrap_or_else(|| panic!("{command:?} never said `{mark}`"));
        Self { child, first, _output: output }
    }

    fn server(arguments: &[&str]) -> Self {
        Self::start(Command::new(interop().join("run")).args(arguments).args(["--transport", "http"]), "listening on ")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `verdict reason` of each check.
struct Found(Value);

impl Found {
    fn of(arguments: &[&str]) -> Self {
        Self::by(handfast().args(["probe", "--format", "json"]).args(arguments))
    }

    fn by(probe: &mut Command) -> Self {
        let output = probe.output().expect("the probe runs");
        let said = || String::from_utf8_lossy(&output.stderr).into_owned();
        Self(serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", said())))
    }

    fn check(&self, id: &str) -> String {
        let checks = self.0["checks"].as_array().expect("checks");
        let check = checks.iter().find(|check| check["id"] == id).unwrap_or_else(|| panic!("no check {id}"));
        format!("{} {}", check["verdict"].as_str().expect("text"), check["reason"].as_str().expect("text"))
    }

    /// The ids of what is confirmed.
    fn confirmed(&self) -> Vec<&str> {
        let checks = self.0["checks"].as_array().expect("checks").iter();
        checks.filter(|check| check["verdict"] == "confirmed").filter_map(|check| check["id"].as_str()).collect()
    }
}

/// Name and mode, what is said of A's session and B's token, and everything that is confirmed.
const SERVERS: [(&[&str], &str, &[&str]); 6] = [
    (&["rmcp-sessions"], "confirmed session-not-bound", &["session-foreign-principal"]),
    (&["rmcp-sessions", "--mode", "sound"], "refuted session-bound", &[]),
    (&["typescript-sessions"], "confirmed session-not-bound", &["session-foreign-principal"]),
    (&["typescript-sessions", "--mode", "sound"], "refuted session-bound", &[]),
    (&["python-sessions-old"], "confirmed session-not-bound", &["session-foreign-principal"]),
    (&["python-sessions"], "refuted session-bound", &[]),
];

#[test]
fn what_the_sdks_leave_unbound_is_confirmed_and_what_they_bind_is_refuted() {
    for (arguments, foreign, confirmed) in SERVERS {
        let server = Running::server(arguments);

        let found = Found::of(&[&server.first, "--identity-a", "alice-token", "--identity-b", "bob-token"]);

        assert_eq!(found.check("session-foreign-principal"), foreign, "{arguments:?}: {}", found.0);
        assert_eq!(found.confirmed(), confirmed, "{arguments:?}: {}", found.0);
    }
}

/// The published server of everything answers unknown ids with 400, and asks nobody who they are.
#[test]
fn the_published_server_of_everything_answers_unknown_sessions_with_400() {
    let server = Running::server(&["everything"]);

    let found = Found::of(&[&server.first]);

    assert_eq!(found.check("session-unknown-not-404"), "confirmed unknown-session-status", "{}", found.0);
    assert!(!found.confirmed().contains(&"session-foreign-principal"), "{}", found.0);
}

#[test]
fn behind_the_layers_nothing_is_found_on_any_of_them() {
    let issuer = Running::start(handfast().args(["issuer", "--audience", AUDIENCE, "--format", "json"]), "");
    let told: Value = issuer.first.parse().expect("JSON");
    let token = |name: &str| told["tokens"][name].as_str().expect("a token").to_owned();
    let front = example("sessions");
    let scratch = Scratch::new("real-sessions");
    let profile = scratch.file(
        "profile.toml",
        &format!(
            "[identities.a]\nvalue = \"{}\"\n[identities.expired]\nvalue = \"{}\"\n\
             [identities.wrong-audience.client_credentials]\ntoken_url = \"{}\"\nclient_id = \"probe\"\n\
             client_secret_env = \"SECRET_OF_PROBE\"\nresource = \"https://other.example/mcp\"\n",
            token("a"),
            token("expired"),
            told["token_endpoint"].as_str().expect("text"),
        ),
    );
    let secret = told["client_secret"].as_str().expect("text");

    for name in ["rmcp-sessions", "typescript-sessions", "python-sessions-old", "python-sessions", "everything"] {
        let server = Running::server(&[name]);
        let store = format!("sqlite:{}", scratch.path(&format!("{name}.db")).display());
        let arguments = ["--issuer", told["issuer"].as_str().expect("text"), "--audience", AUDIENCE, "--store", &store];
        let front = Running::start(
            Command::new(&front)
                .args(arguments)
                .args(["--upstream", &server.first])
                .env("UPSTREAM_TOKEN", "{subject}-token"),
            "listening on ",
        );
        let who = [&front.first, "--identity-b", &token("b"), "--profile", &profile];

        let found = Found::by(handfast().env("SECRET_OF_PROBE", secret).args(["probe", "--format", "json"]).args(who));

        assert_eq!(found.confirmed(), Vec::<&str>::new(), "{name}: {}", found.0);
        for id in [
            "session-foreign-principal",
            "session-revived",
            "session-adopted",
            "session-missing-accepted",
            "session-outlives-delete",
            "session-outlives-token",
            "session-guessable",
            "session-unknown-not-404",
            "token-foreign-audience",
            "token-expired",
            "token-forged",
            "token-none",
            "token-absent-stronger",
            "token-in-query",
            "challenge-missing",
        ] {
            assert!(found.check(id).starts_with("refuted"), "{name}: {id} {}: {}", found.check(id), found.0);
        }
        // The issuer gives tokens for any server, also for those that are nearly this one.
        let checks = found.0["checks"].as_array().expect("checks");
        let audience = checks.iter().find(|check| check["id"] == "token-foreign-audience").expect("a check");
        assert_eq!(audience["evidence"]["entry_points"].as_array().map(Vec::len), Some(8), "{audience}");
    }
}
