//! `handfast checks`, `handfast twin --list` and `handfast completions`: what a person reads before anything is tested.

mod support;

use handfast_probe::checks;
use support::{HANDFAST, Ran, ran};

#[test]
fn the_list_names_every_check_with_its_claim() {
    let ran = ran(&["checks"]);

    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), checks::all().count(), "one line each");
    for (line, check) in lines.iter().zip(checks::all()) {
        assert!(
            line.starts_with(check.id) && line.contains(check.claim) && line.contains(check.level.word()),
            "{line}"
        );
    }
}

#[test]
fn a_check_explains_itself() {
    for check in checks::all() {
        let ran = ran(&["checks", check.id]);

        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        assert!(ran.stdout.starts_with(&format!("{}: {}\n", check.id, check.title)), "{}", ran.stdout);
        let cwe = format!("CWE-{}", check.cwe[0]);
        for word in [
            check.spec,
            check.spec_url,
            &cwe,
            "Claim",
            "Why it matters",
            "How it is tested",
            "Reading the evidence",
            "Remedy",
        ] {
            assert!(ran.stdout.contains(word), "{}: `{word}` is missing", check.id);
        }
        assert!(ran.stdout.contains(check.help.trim()), "{}: the page is printed whole", check.id);
    }
}

#[test]
fn the_twins_are_listed_with_what_they_forgot() {
    let ran = ran(&["twin", "--list"]);

    assert_eq!(ran.code, 0);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), handfast_twins::all().len());
    for (line, twin) in lines.iter().zip(handfast_twins::all()) {
        assert_eq!(line.split_once(' ').map(|(name, rest)| (name, rest.trim())), Some((twin.name, twin.summary)));
    }
}

#[test]
fn completions_are_printed_for_every_shell() {
    for (shell, word) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef handfast"),
        ("fish", "complete -c handfast"),
        ("elvish", "edit:"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let ran = ran(&["completions", shell]);

        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{shell}");
        assert!(ran.stdout.contains(word), "{shell}");
        for command in ["probe", "discover", "prove", "twin", "checks", "cxg", "handles", "keys", "minted-before"] {
            assert!(ran.stdout.contains(command), "{shell} completes {command}");
        }
    }
}

#[test]
fn the_completions_for_bash_are_a_script_that_bash_reads() {
    let script = ran(&["completions", "bash"]).stdout;
    let read = Ran::of(std::process::Command::new("bash").args(["-n", "-c", &script]));

    assert_eq!((read.code, read.stderr.as_str()), (0, ""));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for command in ["completions bash", "checks state-tampered", "twin --list"] {
        let piped = format!("set -o pipefail; '{HANDFAST}' {command} | head -n 1");
        let ran = Ran::of(std::process::Command::new("bash").args(["-c", &piped]));

        assert_eq!(ran.stderr, "", "{command}");
        assert_eq!(ran.stdout.lines().count(), 1, "{command}");
    }
}

#[test]
fn help_names_what_a_command_needs() {
    for (command, words) in [
        (
            &["--help"][..],
            &["probe", "discover", "prove", "twin", "checks", "cxg", "handles", "keys", "Exit codes"][..],
        ),
        (
            &["probe", "--help"],
            &["--identity-a", "--check", "--dry-run", "--include-destructive", "--strict", "Exit codes", "Examples"],
        ),
        (&["cxg", "--help"], &["CXG_MCP_IDENTITY_A", "CXG_MCP_STDIO_CMD", "CERT_X_GEN_MODE"]),
        (&["twin", "--help"], &["--port", "--transport", "127.0.0.1"]),
        (&["handles", "--help"], &["list", "revoke", "purge", "verify", "HANDFAST_STORE", "Examples"]),
        (&["handles", "list", "--help"], &["--store", "--subject", "--limit", "--format", "Exit codes", "Examples"]),
        (
            &["handles", "revoke", "--help"],
            &["--reason", "--receipt", "--audit", "--all", "--handle-stdin", "Exit codes"],
        ),
        (&["handles", "purge", "--help"], &["--dead-for", "24h", "--timeout", "2s", "Exit codes", "Examples"]),
        (&["handles", "verify", "--help"], &["--store", "--format", "Exit codes", "Examples"]),
        (&["keys", "new", "--help"], &["--output", "Examples"]),
    ] {
        let ran = ran(command);
        for word in words {
            assert!(ran.stdout.contains(word), "{command:?}: {word}");
        }
        assert!(ran.stdout.lines().all(|line| line.chars().count() <= 140), "{command:?}");
    }
}

#[test]
fn help_shows_no_credential_of_the_environment() {
    let ran = Ran::of(support::handfast().args(["probe", "--help"]).env("HANDFAST_IDENTITY_A", "s3cret-of-alice"));

    assert!(!ran.said().contains("s3cret-of-alice"));
}
