//! What the README says is run: every command of it has a row here, and every sample is compared with real output.

#[path = "support/stores.rs"]
mod stores;
mod support;

use regex::Regex;
use stores::Town;
use support::{Ran, Scratch, Twin, handfast};

const README: &str = include_str!("../../../README.md");

/// A command of the README, and how it is run here: `URL` is a flawed twin, `FILE` is a fresh file, `STORE` is a store that
/// has handles in it.
/// `None` for what the test run itself is: building everything, and `make check`.
const COMMANDS: [(&str, Option<(&str, i32)>); 21] = [
    ("cargo run --release -- demo", None),
    ("make check", None),
    // It serves until it is ended: `crates/handfast/tests/basket.rs` runs it.
    ("cargo run --release --example basket", None),
    // So does this: `issuer.rs` runs it.
    ("handfast issuer --audience http://127.0.0.1:8080/mcp", None),
    (
        r#"handfast probe https://mcp.example.com/mcp --identity-a "$ALICE" --identity-b "$BOB""#,
        Some(("probe URL --identity-a alice --identity-b bob", 1)),
    ),
    ("handfast probe -- python3 server.py", Some(("probe -- HANDFAST twin flawed --transport stdio", 1))),
    (
        "handfast probe --strict --format json --output report.json https://staging.example.com/mcp",
        Some(("probe --strict --format json --output FILE URL", 1)),
    ),
    ("handfast plan -- python3 server.py", Some(("plan -- HANDFAST twin flawed --transport stdio", 0))),
    (
        "handfast probe --require handle-foreign-principal,state-tampered --repeat 3 --max-wait 30s https://staging.example.com/mcp",
        Some(("probe --require handle-foreign-principal,state-tampered --repeat 3 --max-wait 1s URL", 1)),
    ),
    ("handfast discover --write profile.toml http://127.0.0.1:8000/mcp", Some(("discover --write FILE URL", 0))),
    ("handfast probe --profile profile.toml http://127.0.0.1:8000/mcp", Some(("probe --profile FILE URL", 1))),
    ("handfast discover --write rules.toml http://127.0.0.1:9000/mcp", Some(("discover --write FILE URL", 0))),
    // It serves until it is ended: `gateway.rs` runs it.
    (
        "handfast gateway --upstream http://127.0.0.1:9000/mcp --rules rules.toml --issuer https://id.example.com --audience https://mcp.example.com/mcp",
        Some((
            "gateway --check --upstream URL --rules FILE --issuer https://id.example.com --audience https://mcp.example.com/mcp",
            0,
        )),
    ),
    ("handfast checks handle-foreign-principal", Some(("checks handle-foreign-principal", 0))),
    ("handfast keys new --output keys.txt", Some(("keys new --output FILE", 0))),
    ("handfast keys rotate keys.txt", Some(("keys rotate FILE", 0))),
    ("handfast keys inspect keys.txt", Some(("keys inspect FILE", 0))),
    (
        "handfast handles list --store sqlite:handles.db --tenant acme",
        Some(("handles list --store STORE --tenant acme", 0)),
    ),
    (
        "handfast handles revoke --store sqlite:handles.db --tenant acme --reason offboarded --receipt OPS-1234",
        Some(("handles revoke --store STORE --tenant acme --reason offboarded --receipt OPS-1234", 0)),
    ),
    ("handfast handles purge --store sqlite:handles.db", Some(("handles purge --store STORE", 0))),
    ("handfast handles verify --store sqlite:handles.db", Some(("handles verify --store STORE", 0))),
];

#[test]
fn every_command_of_the_readme_has_a_row_here() {
    let blocks = README.split("```sh\n").skip(1).filter_map(|rest| rest.split_once("```"));
    let commands: Vec<&str> =
        blocks.flat_map(|(block, _)| block.lines()).filter(|line| !line.trim().is_empty()).collect();

    assert!(commands.len() >= 7, "{commands:?}");
    for command in commands {
        assert!(COMMANDS.iter().any(|(known, _)| *known == command), "no row runs: {command}");
    }
    for (command, _) in COMMANDS {
        assert!(README.contains(command), "the README no longer says: {command}");
    }
}

#[test]
fn the_commands_of_the_readme_do_what_it_says() {
    let twin = Twin::start("flawed");
    let scratch = Scratch::new("readme");
    let file = scratch.path("written");
    let town = Town::sqlite(&scratch, "handles.db");
    for (command, run) in COMMANDS {
        let Some((arguments, expected)) = run else { continue };
        if arguments.contains("--write") || arguments.contains("--output") {
            let _ = std::fs::remove_file(&file);
        }
        let mut ready = handfast();
        for word in arguments.split(' ') {
            match word {
                "URL" => ready.arg(&twin.url),
                "FILE" => ready.arg(&file),
                "STORE" => ready.arg(&town.url),
                "HANDFAST" => ready.arg(support::HANDFAST),
                word => ready.arg(word),
            };
        }

        let ran = Ran::of(&mut ready);

        assert_eq!(ran.code, expected, "{command}: {ran:?}");
    }
    // Of one tenant all are revoked, and what had been dead for a day is gone; of the other nothing was touched.
    assert_eq!(town.states(), ["-", "-", "revoked", "revoked", "revoked", "alive", "revoked"]);
}

#[test]
fn the_samples_of_the_readme_are_real_output() {
    let twin = Twin::start("flawed");
    let samples: Vec<&str> =
        README.split("```text\n").skip(1).filter_map(|rest| rest.split_once("```")).map(|(sample, _)| sample).collect();
    let runs = [handfast().arg("demo").output(), handfast().args(["probe", &twin.url]).output()];
    let varying = Regex::new(
        r"hf-[a-z][0-9a-f]{7}|[0-9a-f]{12}|\d+ (calls|ms|observations)|workspace_[A-Za-z0-9_-]{43}|ws-[0-9a-f]{32}",
    );
    let varying = varying.expect("a pattern");
    let plain = |text: &str| varying.replace_all(text, "N").split_whitespace().collect::<Vec<_>>().join(" ");

    assert_eq!(samples.len(), runs.len());
    for (sample, run) in samples.into_iter().zip(runs) {
        let ran = Ran::from(run.expect("the binary runs"));
        let real = plain(&ran.stdout);
        for part in sample.split("...\n") {
            assert!(real.contains(&plain(part)), "not in real output: {part}\n{}", ran.stdout);
        }
    }
}

#[test]
fn the_exit_codes_of_the_readme_are_those_of_the_help() {
    let help = Ran::of(handfast().args(["probe", "--help"]));

    let help = help.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, codes) = help.split_once("Exit codes:").expect("a line about exit codes");
    for (code, word) in
        [(0, "nothing confirmed"), (1, "something confirmed"), (2, "bad usage"), (3, "something errored")]
    {
        assert!(codes.contains(&format!("{code} {word}")), "{codes}");
        assert!(README.contains(&format!("| {code} | {word}")), "{code} {word}");
    }
}
