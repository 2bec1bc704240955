//! Servers that are child processes: nothing of them outlives a run however it ends, what they print besides messages does
//! not matter, and the credentials of both users are not theirs to see.

mod support;

use std::{
    path::Path,
    process::{Command, Stdio},
};

use handfast_probe::clock::Deadline;
use support::{HANDFAST, Ran, Scratch, check, handfast, on_stdio, outcomes, report};

/// A process that lives on its own, holds no pipe of ours, and whose id is noted in a file.
const STRAGGLER: &str = "tail -f /dev/null < /dev/null > /dev/null 2>&1 & echo $! >> ";

/// A program that leaves a straggler behind and then does something else.
fn with_straggler(scratch: &Scratch, then: &str) -> String {
    let pids = scratch.path("pids").display().to_string();
    scratch.script("server", &format!("{STRAGGLER}'{pids}'\n{then}\n"))
}

fn stragglers(scratch: &Scratch) -> Vec<u32> {
    let noted = std::fs::read_to_string(scratch.path("pids")).unwrap_or_default();
    noted.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Whether a process is there, and not only waits to be buried.
fn lives(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    status.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// Waits for something that happens soon or never.
fn soon(what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = Deadline::after(std::time::Duration::from_secs(20));
    while !happened() {
        assert!(deadline.left().is_some(), "{what}");
        std::thread::yield_now();
    }
}

fn assert_all_gone(scratch: &Scratch, at_least: usize) {
    let pids = stragglers(scratch);
    assert!(pids.len() >= at_least, "the server noted its process: {pids:?}");
    for pid in pids {
        soon(&format!("process {pid} lives on"), || !lives(pid));
    }
}

fn twin(name: &str) -> String {
    format!("exec '{HANDFAST}' twin {name} --transport stdio")
}

#[test]
fn what_the_server_started_is_gone_after_a_run() {
    let scratch = Scratch::new("tree");
    let server = with_straggler(&scratch, &twin("sound"));
    let (code, _) = report(&["--", &server]);

    assert_eq!(code, 0);
    assert_all_gone(&scratch, 1);
}

#[test]
fn what_ignores_the_order_to_end_is_ended_all_the_same() {
    let scratch = Scratch::new("stubborn");
    let pids = scratch.path("pids").display().to_string();
    let stubborn = format!(
        "(trap '' TERM INT HUP; echo $$ >> '{pids}'; exec tail -f /dev/null < /dev/null > /dev/null 2>&1) & \ntrap '' TERM\n"
    );
    let server = scratch
        .script("server", &format!("{stubborn}'{HANDFAST}' twin sound --transport stdio; {STRAGGLER}'{pids}'; wait"));
    let (code, _) = report(&["--", &server]);

    assert_eq!(code, 0);
    assert_all_gone(&scratch, 1);
}

/// A session of its own takes a process out of the group that a signal reaches.
#[cfg(target_os = "linux")]
#[test]
fn what_opened_a_session_of_its_own_is_gone_as_well() {
    for (name, then) in [("session-ends", twin("sound")), ("session-stays", "exec tail -f /dev/null".to_owned())] {
        let scratch = Scratch::new(name);
        let pids = scratch.path("pids").display().to_string();
        let server = scratch.script("server", &format!("setsid {STRAGGLER}'{pids}'\n{then}\n"));
        report(&["--start-timeout", "300ms", "--", &server]);

        assert_all_gone(&scratch, 1);
    }
}

#[test]
fn nothing_is_left_of_a_server_that_never_answers() {
    let scratch = Scratch::new("silent");
    let server = with_straggler(&scratch, "exec tail -f /dev/null");
    let (code, report) = report(&["--start-timeout", "300ms", "--", &server]);

    assert_eq!((code, outcomes(&report)), (3, vec!["errored timed-out".to_owned(); 2]));
    assert_all_gone(&scratch, 1);
}

#[test]
fn nothing_is_left_after_an_interrupt() {
    for (signal, name) in [("-INT", "interrupted"), ("-TERM", "terminated")] {
        let scratch = Scratch::new(name);
        let server = with_straggler(&scratch, "exec tail -f /dev/null");
        let probe = handfast().args(["probe", "--", &server]).stderr(Stdio::piped()).spawn().expect("it runs");
        soon("the server starts", || !stragglers(&scratch).is_empty());

        let sent = Command::new("kill").args([signal, &probe.id().to_string()]).status().expect("kill is there");
        let ran = Ran::from(probe.wait_with_output().expect("it ends"));

        assert!(sent.success());
        assert_eq!(ran.code, 130, "{ran:?}");
        assert!(ran.stderr.ends_with("handfast: interrupted\n"), "{}", ran.stderr);
        assert_all_gone(&scratch, 1);
    }
}

#[test]
fn noise_on_standard_output_is_skipped_and_reported_once() {
    let (code, report) = report(&[&["--"][..], &on_stdio("noisy")].concat());

    assert_eq!(
        (code, outcomes(&report)),
        (0, vec!["refuted handle-bound".into(), "refuted state-integrity-held".into()])
    );
    let notes = report["notes"].as_array().expect("a list");
    let of_noise = |note: &&str| note.contains("standard output");
    let noise: Vec<&str> = notes.iter().filter_map(|note| note.as_str()).filter(of_noise).collect();
    assert_eq!(noise.len(), 1, "{notes:?}");
    let note = noise[0];
    assert!(note.contains("lines on standard output that are no messages"), "{note}");
    assert!(note.contains("workspaces: listening on standard input"), "the first of them is shown: {note}");

    let text = support::ran(&[&["probe", "--"][..], &on_stdio("noisy")].concat());
    assert_eq!(text.stdout.matches("note: the server printed").count(), 1, "{}", text.stdout);
}

#[test]
fn a_server_that_prints_without_end_stops_no_run() {
    let scratch = Scratch::new("floods");
    for (flood, reasons) in [
        ("exec yes", &["errored timed-out"][..]),
        ("exec tr '\\0' x < /dev/zero", &["errored unreachable", "errored timed-out"]),
    ] {
        let server = scratch.script("server", flood);
        let (code, report) = report(&["--start-timeout", "700ms", "--timeout", "700ms", "--", &server]);

        assert_eq!(code, 3, "{flood}");
        for outcome in outcomes(&report) {
            assert!(reasons.contains(&outcome.as_str()), "{flood}: {outcome}");
        }
    }
}

#[test]
fn a_server_that_floods_standard_error_is_served_all_the_same() {
    let scratch = Scratch::new("stderr");
    let server = scratch.script("server", &format!("yes 'log line' | head -n 200000 >&2\n{}", twin("sound")));
    let (code, _) = report(&["--", &server]);

    assert_eq!(code, 0);
}

#[test]
fn the_last_words_of_a_server_that_dies_at_start_are_told() {
    let scratch = Scratch::new("dies");
    let noise = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo \"line $i\" >&2; done";
    let server = scratch.script("server", &format!("{noise}\necho 'cannot open the ledger' >&2\nexit 3\n"));
    let (code, report) = report(&["--", &server]);

    assert_eq!((code, outcomes(&report)), (3, vec!["errored unreachable".to_owned(); 2]));
    let detail = check(&report, "state-tampered")["detail"].as_str().expect("text").to_owned();
    assert!(detail.contains("cannot open the ledger"), "{detail}");
    assert!(!detail.contains("line 3"), "only the end of it: {detail}");
}

#[test]
fn a_server_that_dies_half_way_is_neither_confirmed_nor_refuted() {
    let scratch = Scratch::new("half-way");
    for answers in [2, 5, 8, 15, 25, 40] {
        let relay = format!(
            "n=0; while [ $n -lt {answers} ] && IFS= read -r line; do printf '%s\\n' \"$line\"; n=$((n+1)); done"
        );
        let server =
            scratch.script("server", &format!("'{HANDFAST}' twin flawed --transport stdio | ({relay}; kill -9 $$)\n"));
        let (_, report) = report(&["--", &server]);

        for outcome in outcomes(&report) {
            assert!(!outcome.starts_with("refuted"), "after {answers} answers: {outcome}");
        }
        assert!(outcomes(&report)[1].starts_with("errored"), "after {answers} answers: {:?}", outcomes(&report));
    }
}

#[test]
fn a_start_may_take_longer_than_an_answer() {
    let slow = |options: &[&str]| report(&[options, &["--"], &on_stdio("slow-start")].concat());

    let (_, patient) = slow(&["--timeout", "250ms"]);
    assert_ne!(patient["calls"], 0, "it waited for the start, which took longer than an answer may");

    let (code, hasty) = slow(&["--start-timeout", "100ms", "--timeout", "20s"]);
    assert_eq!((code, outcomes(&hasty)), (3, vec!["errored timed-out".to_owned(); 2]));
    assert_eq!(hasty["calls"], 0);
}

#[test]
fn the_credentials_of_both_users_are_not_inherited() {
    let scratch = Scratch::new("environment");
    let seen = scratch.path("environment").display().to_string();
    let server = scratch.script("server", &format!("env > '{seen}'\n{}", twin("sound")));
    for (a, b) in [("HANDFAST_IDENTITY_A", "HANDFAST_IDENTITY_B"), ("CXG_MCP_IDENTITY_A", "CXG_MCP_IDENTITY_B")] {
        let ran = Ran::of(handfast().args(["probe", "--", &server]).envs([
            (a, "secret-of-alice"),
            (b, "secret-of-bob"),
            ("KEPT", "yes"),
        ]));

        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.stdout.contains("given identities"), "{}", ran.stdout);
        let environment = std::fs::read_to_string(&seen).expect("the server wrote it");
        assert!(environment.contains("KEPT=yes"), "everything else is inherited");
        for secret in [a, b, "secret-of-alice", "secret-of-bob"] {
            assert!(!environment.contains(secret), "the server was given {secret}");
        }
    }
}

#[test]
fn nor_are_those_that_a_profile_names() {
    let scratch = Scratch::new("environment-profile");
    let seen = scratch.path("environment").display().to_string();
    let server = scratch.script("server", &format!("env > '{seen}'\n{}", twin("sound")));
    let profile = scratch.file("profile.toml", "[identities]\na_env = \"TOKEN_OF_ALICE\"\nb_env = \"TOKEN_OF_BOB\"\n");
    let ran = Ran::of(
        handfast()
            .args(["probe", "--profile", &profile, "--", &server])
            .envs([("TOKEN_OF_ALICE", "secret-of-alice"), ("TOKEN_OF_BOB", "secret-of-bob")]),
    );

    assert_eq!(ran.code, 0, "{ran:?}");
    let environment = std::fs::read_to_string(&seen).expect("the server wrote it");
    assert!(!environment.contains("secret-of-"), "the server was given the credentials");
}

#[test]
fn a_program_can_be_a_target_of_its_own() {
    let scratch = Scratch::new("cli");
    let server = scratch.script("server", &twin("flawed"));
    let (code, report) = report(&[&format!("cli://{server}")]);

    assert_eq!((code, &report["target"]["transport"]), (1, &"stdio".into()));
    assert!(Path::new(&server).exists());
}

#[test]
fn each_era_gets_a_child_of_its_own() {
    let scratch = Scratch::new("eras");
    let starts = scratch.path("starts").display().to_string();
    let server = scratch.script("server", &format!("echo start >> '{starts}'\n{}", twin("legacy")));
    let (_, legacy) = report(&["--", &server]);
    let count = std::fs::read_to_string(&starts).expect("it started").lines().count();

    assert_eq!(legacy["handshake"]["era"], "legacy(initialize)");
    assert_eq!(count, 2, "one child was asked in the modern way, a fresh one in the older way");
}
