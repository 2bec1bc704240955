//! `handfast handles revoke` and `purge`: what they change, what they leave, and what they can show for it.

#[path = "support/stores.rs"]
mod stores;
mod support;

use std::{io::Write, process::Stdio};

use serde_json::Value;
use stores::{ISSUER, TOWN, Town};
use support::{Ran, Scratch, handfast};

const WHY: [&str; 4] = ["--reason", "offboarded", "--receipt", "OPS-12"];

const UNTOUCHED: [&str; 7] = ["expired", "idle", "alive", "alive", "alive", "alive", "revoked"];

fn revoked(town: &Town, arguments: &[&str]) -> Ran {
    town.ran(&[&["revoke"], &WHY[..], arguments].concat())
}

#[test]
fn one_tenant_is_revoked_and_the_other_is_left() {
    let scratch = Scratch::new("revoke-tenant");
    for town in Town::both(&scratch) {
        assert_eq!(town.states(), UNTOUCHED);

        let ran = revoked(&town, &["--tenant", "globex"]);

        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "1 revoked\n", ""));
        let states = ["expired", "idle", "alive", "alive", "alive", "revoked", "revoked"];
        assert_eq!(town.states(), states);

        let again = revoked(&town, &["--tenant", "globex"]);
        assert_eq!((again.code, again.stdout.as_str()), (0, "0 revoked\n"));
        assert_eq!(again.stderr, "handfast: nothing to do: what is meant was revoked before\n");

        let listed = town.ran(&["list", "--format", "json", "--tenant", "globex"]).json();
        let why = |at: usize| {
            let all = listed["handles"].as_array().expect("a list");
            let one = all.iter().find(|one| one["digest"] == town.digest(at)).expect("it is there");
            [one["revocation"]["reason"].clone(), one["revocation"]["receipt"].clone()]
        };
        assert_eq!(why(5), ["offboarded", "OPS-12"]);
        assert_eq!(why(6), ["left", "HR-1"], "the first revocation stays");
    }
}

#[test]
fn every_criterion_revokes_what_it_selects() {
    let scratch = Scratch::new("revoke-criteria");
    let keys = scratch.path("keys.txt").display().to_string();
    for (at, (arguments, expected)) in [
        (&["--client", "cli"][..], &[3][..]),
        (&["--object", "order"], &[4]),
        (&["--object", "basket/b-5"], &[5]),
        (&["--policy-version", "2025-1"], &[0]),
        (&["--minted-before", "2999-01-01T00:00:00Z"], &[0, 1, 2, 3, 4, 5]),
        (&["--subject", ISSUER, "alice", "--keys", &keys], &[2, 3, 5]),
        (&["--subject", ISSUER, "alice", "--keys", &keys, "--tenant", "acme"], &[2, 3]),
        (&["--all"], &[0, 1, 2, 3, 4, 5]),
    ]
    .into_iter()
    .enumerate()
    {
        for town in [Town::sqlite(&scratch, &format!("{at}.db")), Town::postgres()] {
            scratch.file("keys.txt", &town.keys);

            let ran = revoked(&town, arguments);

            assert_eq!((ran.code, ran.stdout), (0, format!("{} revoked\n", expected.len())), "{arguments:?}");
            let states: [String; TOWN.len()] = std::array::from_fn(|at| {
                if expected.contains(&at) { "revoked".to_owned() } else { UNTOUCHED[at].to_owned() }
            });
            assert_eq!(town.states(), states, "{arguments:?}");
        }
    }
}

/// With the keys of another server nobody is found, and that is not the same as that there is nothing to do.
#[test]
fn keys_that_made_nothing_in_the_store_are_told() {
    let scratch = Scratch::new("revoke-other-keys");
    let other = scratch.path("other.txt").display().to_string();
    scratch.file("other.txt", &support::ran(&["keys", "new"]).stdout);
    let keys = scratch.path("keys.txt").display().to_string();
    for town in Town::both(&scratch) {
        scratch.file("keys.txt", &town.keys);
        for ran in [
            revoked(&town, &["--subject", ISSUER, "alice", "--keys", &other]),
            town.ran(&["list", "--subject", ISSUER, "alice", "--keys", &other]),
        ] {
            assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
            let told =
                "none of the keys in --keys has made what is in this store: is it the file that the server uses?";
            assert_eq!(ran.stderr, format!("handfast: {told}\n"));
        }
        assert_eq!(town.states(), UNTOUCHED);
        let nobody = revoked(&town, &["--subject", ISSUER, "nobody-here", "--keys", &keys]);
        assert_eq!(
            (nobody.code, nobody.stdout.as_str()),
            (0, "0 revoked\n"),
            "the right keys, and nobody of that name"
        );
    }
}

/// Runs `revoke --handle-stdin` with this on its standard input.
fn piped(town: &Town, input: &[u8]) -> Ran {
    let mut command = handfast();
    command.args(["handles", "revoke", "--handle-stdin", "--store", &town.url]).args(WHY);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs");
    // It may have heard enough before the end.
    let _ = child.stdin.take().expect("it is piped").write_all(input);
    let ran = Ran::from(child.wait_with_output().expect("it ends"));
    town.assert_silent(&ran.said());
    ran
}

#[test]
fn a_handle_is_read_from_standard_input() {
    let scratch = Scratch::new("revoke-stdin");
    for town in Town::both(&scratch) {
        for (at, end) in [(2, ""), (3, "\n"), (4, "\r\n")] {
            let ran = piped(&town, format!("{}{end}", town.handles[at]).as_bytes());

            assert_eq!((ran.code, ran.stdout.as_str()), (0, "1 revoked\n"), "{ran:?}");
            assert_eq!(town.states()[at], "revoked");
        }
        assert_eq!(town.states()[5], "alive");
        // Of the right form, and nobody's.
        let another = support::ran(&["keys", "new"]).stdout.replace("hfk1_", "hf_");
        let ran = piped(&town, another.as_bytes());
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "0 revoked\n"));
        assert_eq!(ran.stderr, "handfast: nothing to do: there is no such handle in this store\n");
    }
}

#[test]
fn what_is_no_handle_is_not_repeated() {
    let scratch = Scratch::new("revoke-no-handle");
    let town = Town::sqlite(&scratch, "handles.db");
    let [two, spaced] = [format!("{0}\n{0}\n", town.handles[2]), format!(" {}", town.handles[2])];
    let nul = format!("{}\0", town.handles[2]);
    for input in [
        &b""[..],
        b"\n",
        b"hunter2hunter2",
        two.as_bytes(),
        spaced.as_bytes(),
        nul.as_bytes(),
        &[0xff; 50],
        &[b'A'; 9000],
    ] {
        let ran = piped(&town, input);

        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran:?}");
        assert!(ran.stderr.starts_with("handfast: --handle-stdin: standard input must be one handle"), "{ran:?}");
        assert_eq!(ran.stderr.lines().count(), 1);
        assert!(!ran.stderr.contains("hunter2") && !ran.stderr.contains("AAAA"), "{ran:?}");
    }
    assert_eq!(town.states(), UNTOUCHED);
}

#[test]
fn an_audit_file_tells_every_handle_and_how_many() {
    let scratch = Scratch::new("revoke-audit");
    for (town, name) in Town::both(&scratch).into_iter().zip(["sqlite.jsonl", "postgres.jsonl"]) {
        let path = scratch.file(name, "{\"earlier\":true}\n");

        let ran = revoked(&town, &["--tenant", "acme", "--audit", &path]);

        assert_eq!((ran.code, ran.stdout.as_str()), (0, "5 revoked\n"));
        let written = std::fs::read_to_string(&path).expect("it was written");
        town.assert_silent(&written);
        let events: Vec<Value> = written.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(events[0], serde_json::json!({"earlier": true}), "events are appended");
        let mut digests: Vec<&str> = events[1..6].iter().filter_map(|event| event["handle"].as_str()).collect();
        digests.sort_unstable();
        let mut expected: Vec<String> = (0..5).map(|at| town.digest(at)).collect();
        expected.sort_unstable();
        assert_eq!(digests, expected);
        for event in &events[1..] {
            let told = ["action", "decision", "revocation", "receipt", "policy"].map(|member| event[member].clone());
            assert_eq!(told, ["revoke", "allowed", "offboarded", "OPS-12", "operator"]);
        }
        assert_eq!((events.len(), &events[6]["count"]), (7, &Value::from(5)));

        assert_eq!(revoked(&town, &["--tenant", "acme", "--audit", &path]).stdout, "0 revoked\n");
        let written = std::fs::read_to_string(&path).expect("it was written");
        assert!(
            written.lines().last().expect("a line").contains("\"count\":0"),
            "a run that found nothing is told, too"
        );
    }
}

#[test]
fn what_cannot_be_accounted_for_stops() {
    let scratch = Scratch::new("revoke-unaudited");
    for town in Town::both(&scratch) {
        let nowhere = scratch.path("no/such/folder/audit.jsonl").display().to_string();
        let ran = revoked(&town, &["--all", "--audit", &nowhere]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
        assert!(ran.stderr.starts_with("handfast: cannot write ") && ran.stderr.lines().count() == 1, "{ran:?}");
        assert_eq!(town.states(), UNTOUCHED, "nothing was done");

        // It can be opened, but not written to.
        let ran = revoked(&town, &["--all", "--audit", "/dev/full"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (3, ""));
        assert!(ran.stderr.starts_with("handfast: 6 were revoked, and there may be more; run it again: /dev/full: "));
        assert!(ran.stderr.contains("No space left") && ran.stderr.lines().count() == 1, "{ran:?}");
    }
}

#[test]
fn an_audit_file_is_for_its_owners_eyes() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new("revoke-audit-mode");
    let town = Town::sqlite(&scratch, "handles.db");
    let path = scratch.path("new.jsonl");

    revoked(&town, &["--all", "--audit", &path.display().to_string()]);

    assert_eq!(std::fs::metadata(path).expect("it was made").permissions().mode() & 0o777, 0o600);
}

#[test]
fn purging_removes_what_has_been_dead_for_long() {
    let scratch = Scratch::new("purge");
    for town in Town::both(&scratch) {
        let audit = scratch.path("purged.jsonl");
        let shown = audit.display().to_string();
        let gone = |at: &[usize]| -> [String; TOWN.len()] {
            std::array::from_fn(|one| if at.contains(&one) { "-".to_owned() } else { UNTOUCHED[one].to_owned() })
        };
        for (arguments, count, states) in [
            (&["--dead-for", "8d"][..], "0 removed\n", gone(&[])),
            // Never used, the oldest one ended a day after it was made: seven days ago. The idle one ended a day ago.
            (&["--dead-for", "2d", "--audit", &shown], "1 removed\n", gone(&[0])),
            (&[], "1 removed\n", gone(&[0, 1])),
            (&["--dead-for", "0s"], "1 removed\n", gone(&[0, 1, 6])),
            (&["--dead-for", "0s"], "0 removed\n", gone(&[0, 1, 6])),
            (&["--dead-for", "500y"], "0 removed\n", gone(&[0, 1, 6])),
        ] {
            let ran = town.ran(&[&["purge"], arguments].concat());

            assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, count, ""), "{arguments:?}");
            assert_eq!(town.states(), states, "{arguments:?}");
        }
        let event: Value = serde_json::from_str(&std::fs::read_to_string(&audit).expect("written")).expect("JSON");
        assert_eq!((&event["action"], &event["count"]), (&Value::from("purge"), &Value::from(1)));
        std::fs::remove_file(audit).expect("removed");
    }
}
