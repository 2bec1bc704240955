//! Bad usage: exactly one line on standard error that says what, where and what to do; exit code 2; nothing on standard
//! output; and no secret repeated.

mod support;

use std::process::Command;

use support::{HANDFAST, Ran, Scratch, handfast, on_stdio, ran};

const TOKEN: &str = "s3cr3t-t0ken-of-alice";
const PASSWORD: &str = "hunter2hunter2";

/// One line, code 2, nothing on standard output, these words in it, and no secret.
fn assert_usage(command: &mut Command, words: &[&str]) {
    let told = format!("{command:?}");
    let ran = Ran::of(command);
    assert_eq!(ran.code, 2, "{told}: {ran:?}");
    assert_eq!(ran.stdout, "", "{told}");
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 1, "{told}: {:?}", ran.stderr);
    assert!(lines[0].starts_with("handfast: ") && ran.stderr.ends_with('\n'), "{told}: {:?}", ran.stderr);
    for word in words {
        // Names of headers have no case.
        let shown = lines[0].contains(word) || lines[0].to_ascii_lowercase().contains(word);
        assert!(shown, "{told}: `{word}` is not in `{}`", lines[0]);
    }
    for secret in [TOKEN, PASSWORD] {
        assert!(!ran.said().contains(secret), "{told} repeats a secret: {}", lines[0]);
    }
}

fn assert_probe_usage(arguments: &[&str], words: &[&str]) {
    assert_usage(handfast().arg("probe").args(arguments), words);
}

#[test]
fn a_target_that_is_none() {
    let with_password = format!("http://alice:{PASSWORD}@127.0.0.1:1/mcp");
    let mistyped = format!("http://alice:{PASSWORD}@127.0.0.1:port/mcp");
    for (arguments, words) in [
        (&[][..], &["no target", "URL", "`--`"][..]),
        (&["localhost:8000"], &["`localhost:8000` is not a URL", "http://localhost:8000"]),
        (&["http://"], &["is not a URL"]),
        (&["http://[::1"], &["`http://[::1` is not a URL"]),
        (&["ftp://127.0.0.1/mcp"], &["ftp://127.0.0.1/mcp", "http://, https:// and cli://"]),
        (&["cli://relative/server"], &["cli://relative/server", "absolute path"]),
        (&[with_password.as_str()], &["user or password", "--identity-a"]),
        (&[mistyped.as_str()], &["is not a URL"]),
        (&["http://127.0.0.1:1/mcp", "--", "server"], &["TARGET", "`--`", "not both"]),
    ] {
        assert_probe_usage(arguments, words);
    }
}

#[test]
fn an_option_that_is_none() {
    let url = "http://127.0.0.1:1/mcp";
    for (arguments, words) in [
        (
            &["--check", "handle-foreign-princpal", url][..],
            &["handle-foreign-princpal", "handle-foreign-principal"][..],
        ),
        (&["--format", "yaml", url], &["yaml", "text", "json"]),
        (&["--timeout", "0s", url], &["--timeout", "more than nothing"]),
        (&["--start-timeout", "0s", url], &["--start-timeout", "more than nothing"]),
        (&["--max-time", "0s", url], &["--max-time", "more than nothing"]),
        (&["--max-wait", "5m", url], &["--max-wait", "less than --max-time"]),
        (&["--max-wait", "long", url], &["--max-wait", "long"]),
        (&["--timeout", "soon", url], &["--timeout", "soon"]),
        (&["--max-calls", "many", url], &["--max-calls", "many"]),
        (&["--no-such-option", url], &["--no-such-option"]),
        (&["--timeout"], &["--timeout"]),
    ] {
        assert_probe_usage(arguments, words);
    }
    assert_usage(handfast().arg("prode"), &["prode", "probe"]);
    assert_usage(&mut handfast(), &["handfast"]);
}

#[test]
fn headers_and_identities_that_cannot_be() {
    let url = "http://127.0.0.1:1/mcp";
    let (unnamed, forbidden) = (format!(": {TOKEN}"), format!("X-Key: {TOKEN}\u{7}"));
    let (no_name, newline) = (format!("X Key: {TOKEN}"), format!("X-Key: a\r\nX-Other: {TOKEN}"));
    for (arguments, words) in [
        (&["--header", TOKEN, url][..], &["--header", "NAME: VALUE", "colon"][..]),
        (&["--header", &unnamed, url], &["--header", "NAME: VALUE"]),
        (&["--header", &no_name, url], &["`X Key` is not a header name"]),
        (&["--header", &forbidden, url], &["x-key`", "characters that HTTP forbids"]),
        (&["--header", &newline, url], &["x-key`", "characters that HTTP forbids"]),
        (&["--identity-a", TOKEN, url], &["only one identity", "--identity-a", "--identity-b"]),
        (&["--identity-b", TOKEN, url], &["only one identity"]),
        (&["--identity-a", TOKEN, "--identity-b", TOKEN, url], &["the same", "two different users"]),
        (&["--identity-a", " ", "--identity-b", TOKEN, url], &["identity A is empty"]),
        (&["--identity-a", "Bearer abc", "--identity-b", TOKEN, url], &["identity A", "without `Bearer `"]),
    ] {
        assert_probe_usage(arguments, words);
    }
}

#[test]
fn identities_from_the_environment_are_held_to_the_same() {
    let url = "http://127.0.0.1:1/mcp";
    for (a, b, words) in [
        ("HANDFAST_IDENTITY_A", "HANDFAST_IDENTITY_B", "the same"),
        ("CXG_MCP_IDENTITY_A", "CXG_MCP_IDENTITY_B", "the same"),
        ("CXG_MCP_IDENTITY_A", "UNRELATED", "only one identity"),
    ] {
        assert_usage(handfast().args(["probe", url]).env(a, TOKEN).env(b, TOKEN), &[words]);
    }
}

#[test]
fn a_credential_that_http_cannot_carry() {
    let a = format!("{TOKEN}\nx");
    assert_probe_usage(&["--identity-a", &a, "--identity-b", "bob", "http://127.0.0.1:1/mcp"], &["identity A"]);
}

#[test]
fn a_profile_that_cannot_be_read() {
    let scratch = Scratch::new("usage-profile");
    let url = "http://127.0.0.1:1/mcp";
    let missing = scratch.path("missing.toml").display().to_string();
    assert_probe_usage(&["--profile", &missing, url], &["missing.toml", "No such file"]);

    for (text, words) in [
        ("version = 1\n\n[toolz]\ndeny = []\n", &["bad.toml", "line 3", "toolz"][..]),
        ("version = 1\n[tools]\ndeny = \"purge\"\n", &["bad.toml", "line 3"]),
        ("version = 7\n", &["bad.toml", "version 7", "version 1"]),
        ("[[handle]]\nmint = \"open\"\nconsume = [\"tools/call read#id\"]\n", &["bad.toml", "`open`", "`pointer`"]),
        ("[identities]\na_env = \"UNSET_A\"\nb_env = \"UNSET_B\"\n", &["$UNSET_A", "not set"]),
    ] {
        let path = scratch.file("bad.toml", text);
        assert_probe_usage(&["--profile", &path, url], words);
    }
}

#[test]
fn a_profile_that_is_no_profile() {
    let scratch = Scratch::new("usage-size");
    let url = "http://127.0.0.1:1/mcp";
    let long = scratch.file("long.toml", &"# a comment\n".repeat(100_000));
    assert_probe_usage(&["--profile", &long, url], &["long.toml", "not a profile"]);
    let directory = scratch.path("").display().to_string();
    assert_probe_usage(&["--profile", &directory, url], &[&directory, "directory"]);
    std::fs::write(scratch.path("bytes.toml"), [0xff, 0xfe, 0]).expect("it can be written");
    let bytes = scratch.path("bytes.toml").display().to_string();
    assert_probe_usage(&["--profile", &bytes, url], &["bytes.toml", "UTF-8"]);
}

#[test]
fn files_that_cannot_be_written_or_trusted() {
    let scratch = Scratch::new("usage-files");
    let url = "https://127.0.0.1:1/mcp";
    let nowhere = scratch.path("no/such/report.json").display().to_string();
    assert_probe_usage(&["--output", &nowhere, url], &["cannot write", "report.json"]);
    let directory = scratch.path("").display().to_string();
    assert_probe_usage(&["--output", &directory, url], &["cannot write"]);

    let missing = scratch.path("ca.pem").display().to_string();
    assert_probe_usage(&["--ca-file", &missing, url], &["cannot read", "ca.pem"]);
    let empty = scratch.file("empty.pem", "");
    assert_probe_usage(&["--ca-file", &empty, url], &["holds no certificate"]);
    let bad = scratch.file("bad.pem", "-----BEGIN CERTIFICATE-----\nbm90IG9uZQ==\n-----END CERTIFICATE-----\n");
    assert_probe_usage(&["--ca-file", &bad, url], &["certificate"]);
}

#[test]
fn discover_leaves_an_existing_file_alone() {
    let scratch = Scratch::new("usage-discover");
    let path = scratch.file("profile.toml", "# mine\n");
    let arguments = [&["discover", "--write", &path, "--"][..], &on_stdio("sound")].concat();

    assert_usage(handfast().args(arguments), &["profile.toml", "exists already", "another name"]);

    assert_eq!(std::fs::read_to_string(path).expect("it is there"), "# mine\n");
}

#[test]
fn names_of_twins_and_checks_that_are_none() {
    assert_usage(handfast().args(["twin", "flawd"]), &["`flawd`", "handfast twin --list"]);
    assert_usage(handfast().arg("twin"), &["MODE"]);
    assert_usage(handfast().args(["twin", "sound", "--transport", "carrier-pigeon"]), &["carrier-pigeon", "stdio"]);
    assert_usage(handfast().args(["checks", "no-such-check"]), &["`no-such-check`", "`handfast checks` lists all"]);
    assert_usage(handfast().args(["completions", "tcsh"]), &["tcsh", "bash"]);
    assert_usage(handfast().args(["prove", "--transport", "smoke-signals"]), &["smoke-signals", "http"]);
}

#[test]
fn a_port_that_is_taken() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("bound").port().to_string();

    assert_usage(handfast().args(["twin", "sound", "--port", &port]), &["cannot listen", &port]);
}

#[test]
fn bad_input_is_found_before_anything_is_sent_or_started() {
    let scratch = Scratch::new("usage-order");
    let started = scratch.path("started").display().to_string();
    let command = ["--", "touch", &started];
    for wrong in [&["--check", "x"][..], &["--timeout", "0s"], &["--output", "/no/such/dir/report"]] {
        let ran = ran(&[&["probe"], wrong, &command[..]].concat());

        assert_eq!(ran.code, 2, "{wrong:?}");
        assert!(!scratch.path("started").exists(), "{wrong:?}: the command was started");
    }
    assert!(std::path::Path::new(HANDFAST).exists());
}

/// A family of checks is chosen by how its ids begin.
#[test]
fn checks_are_chosen_by_their_beginning() {
    let ids = |choice: &[&str]| {
        let (_, report) = support::report(&[choice, &["--"], &support::on_stdio("sound")].concat());
        let checks = report["checks"].as_array().expect("a list").clone();
        checks.iter().map(|check| check["id"].as_str().expect("text").to_owned()).collect::<Vec<String>>()
    };
    let sessions = ids(&["--check", "session-*"]);
    assert!(sessions.len() == 11 && sessions.iter().all(|id| id.starts_with("session-")), "{sessions:?}");
    assert_eq!(ids(&["--check", "challenge-*", "--check", "state-tampered"]), ["state-tampered", "challenge-missing"]);

    let ran = ran(&["probe", "--check", "sessoin-*", "http://127.0.0.1:1/mcp"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("there is no check `sessoin-*`") && ran.stderr.lines().count() == 1, "{}", ran.stderr);
    assert_eq!(ids(&["--check", "*-overbound"]).len(), 4);
    assert_eq!(ids(&["--check", "handle-*-pr*l"]), ["handle-foreign-principal"]);
    // Whoever left the star out, or misspelt an id, is shown what may be meant, and no list of everything.
    for (written, meant) in [("handle-foreign", "handle-foreign-tenant"), ("state-tamperd", "state-tampered")] {
        let ran = support::ran(&["probe", "--check", written, "http://127.0.0.1:1/mcp"]);
        assert!(ran.stderr.contains(meant) && !ran.stderr.contains("session-"), "{}", ran.stderr);
    }
}

/// Most twins take a text as a token; those that sign say what to show them.
#[test]
fn a_twin_tells_the_token_that_it_takes() {
    assert_eq!(ran(&["twin", "gated", "--token", "alice"]).stdout, "alice\n");
    let signed = ran(&["twin", "signed-tokens", "--token", "alice"]).stdout;
    assert_eq!(signed.trim().split('.').count(), 3, "{signed}");
    let twin = support::Twin::start("unverified-signature");
    let other = ran(&["twin", "unverified-signature", "--token", "bob"]).stdout;
    let tokens = ["--identity-a", signed.trim(), "--identity-b", other.trim()];
    let (code, report) = support::report(&[&tokens[..], &["--check", "token-forged", &twin.url]].concat());
    assert_eq!((code, report["checks"][0]["verdict"].as_str()), (1, Some("confirmed")));

    let ran = ran(&["twin", "--token", "alice"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
}
