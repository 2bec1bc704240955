//! `handfast handles list`: what an operator sees of a store, which is no handle and no user.

#[path = "support/stores.rs"]
mod stores;
mod support;

use serde_json::Value;
use stores::{ISSUER, SCHEMA, TOWN, Town, assert_valid, by_hand, empty};
use support::{Scratch, handfast};

const EXPIRED: usize = 0;
const IDLE: usize = 1;
const REVOKED: usize = 6;

#[test]
fn lines_have_a_column_for_everything() {
    let scratch = Scratch::new("handles-lines");
    for town in Town::both(&scratch) {
        let ran = town.ran(&["list"]);

        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        let lines: Vec<Vec<&str>> = ran.stdout.lines().map(|line| line.split('\t').collect()).collect();
        assert_eq!(lines.len(), TOWN.len());
        assert!(lines.is_sorted_by_key(|line| line[0]), "in the order of their digests");
        for (at, (name, _, policy, tenant, client, object)) in TOWN.into_iter().enumerate() {
            let line = lines.iter().find(|line| line[0] == town.digest(at)).expect("it is there");
            let state = ["expired", "idle", "alive", "alive", "alive", "alive", "revoked"][at];
            let kind = object.split('/').next().expect("a type");
            assert_eq!([line[1], line[4], line[5]], [state, kind, "read write"], "{name}");
            assert_eq!(line[6..9], [policy, tenant, client], "{name}");
            assert!(line[2].ends_with('Z') && line[3].ends_with('Z') && line[9].len() == 16 + 1 + 64, "{line:?}");
        }
    }
}

#[test]
fn neither_a_user_nor_a_reference_is_shown() {
    let scratch = Scratch::new("handles-silent");
    for town in Town::both(&scratch) {
        for format in ["table", "lines", "json"] {
            let ran = town.ran(&["list", "--format", format]);

            assert_eq!(ran.code, 0, "{ran:?}");
            for secret in ["alice", "carol", ISSUER, "b-1", "o-1"] {
                assert!(!ran.said().contains(secret), "{format}: {secret} in {}", ran.stdout);
            }
        }
    }
}

#[test]
fn what_turns_text_around_is_not_passed_on() {
    let scratch = Scratch::new("handles-turned");
    let town = Town::sqlite(&scratch, "handles.db");
    by_hand(&scratch.path("handles.db"), "UPDATE handfast_handles SET tenant = 'a' || char(0x202e) || 'cme'");
    for format in ["table", "lines"] {
        let ran = town.ran(&["list", "--format", format]);

        assert!(ran.stdout.contains("a cme") && !ran.stdout.contains('\u{202e}'), "{}", ran.stdout);
    }
}

#[test]
fn the_table_is_for_people() {
    let scratch = Scratch::new("handles-table");
    for town in Town::both(&scratch) {
        let ran = town.ran(&["list", "--format", "table"]);

        let lines: Vec<&str> = ran.stdout.lines().collect();
        assert_eq!(lines.len(), 1 + TOWN.len());
        assert!(lines[0].starts_with("DIGEST         STATE  "), "{}", ran.stdout);
        let of = |at: usize| {
            let digest = format!("{}…  ", &town.digest(at)[..12]);
            *lines.iter().find(|line| line.starts_with(&digest)).expect("it is there")
        };
        for (at, told) in
            [(EXPIRED, "expired 1d ago"), (IDLE, "idle 1d ago"), (2, "alive, 23h "), (REVOKED, "revoked ")]
        {
            assert!(of(at).contains(&format!("  {told}")), "{}", ran.stdout);
        }
        assert!(of(EXPIRED).contains("  8d ago  basket  read write  2025-1  acme    web     "), "{}", ran.stdout);
        let state = lines[0].find("STATE").expect("a heading");
        assert!(lines.iter().all(|line| line.chars().nth(state - 1) == Some(' ')), "columns stand below each other");
    }
}

#[test]
fn json_follows_its_schema() {
    let scratch = Scratch::new("handles-json");
    for town in Town::both(&scratch) {
        let ran = town.ran(&["list", "--format", "json"]);

        let listed = ran.json();
        assert_valid(&listed);
        assert_eq!((&listed["version"], &listed["more"]), (&Value::from(1), &Value::from(false)));
        let of = |at: usize| {
            let all = listed["handles"].as_array().expect("a list");
            all.iter().find(|one| one["digest"] == town.digest(at)).expect("it is there")
        };
        assert_eq!(of(REVOKED)["revocation"]["reason"], "left");
        assert_eq!(of(REVOKED)["revocation"]["receipt"], "HR-1");
        assert_eq!(of(IDLE)["scopes"], serde_json::json!(["read", "write"]));
        assert_eq!(of(2)["subject"], of(3)["subject"], "one user, two handles");
        assert_ne!(of(2)["subject"], of(4)["subject"]);
        let ends = |at: usize| of(at)["ends_at"].as_str().expect("a time").to_owned();
        assert!(ends(2).as_str() < of(2)["expires_at"].as_str().expect("a time"));
        assert!(ends(IDLE).as_str() < listed["now"].as_str().expect("a time"));
    }
}

#[test]
fn the_schema_would_notice_what_is_missing_or_wrong() {
    let scratch = Scratch::new("handles-schema");
    let listed = Town::sqlite(&scratch, "handles.db").ran(&["list", "--format", "json"]).json();
    assert_valid(&listed);
    for member in ["version", "command", "now", "handles", "more"] {
        let mut less = listed.clone();
        less.as_object_mut().expect("an object").remove(member);
        assert!(!SCHEMA.is_valid(&less), "without `{member}`");
    }
    let members: Vec<String> = listed["handles"][0].as_object().expect("an object").keys().cloned().collect();
    assert_eq!(members.len(), 12);
    for member in members {
        let mut less = listed.clone();
        less["handles"][0].as_object_mut().expect("an object").remove(&member);
        assert!(!SCHEMA.is_valid(&less), "a handle without `{member}`");
    }
    for (at, value) in [
        ("/version", Value::from(2)),
        ("/command", "purge".into()),
        ("/now", "yesterday".into()),
        ("/handles/0/digest", "ABC".into()),
        ("/handles/0/state", "undead".into()),
        ("/handles/0/scopes", serde_json::json!([])),
        ("/handles/0/subject", "alice".into()),
        ("/handles/0/tenant", "".into()),
        ("/handles/0/revocation", serde_json::json!({"at": "2026-01-01T00:00:00Z"})),
    ] {
        let mut other = listed.clone();
        *other.pointer_mut(at).unwrap_or_else(|| panic!("{at} is there")) = value;
        assert!(!SCHEMA.is_valid(&other), "{at}");
    }
}

/// Which handles of the town a selection names.
fn chosen(town: &Town, arguments: &[&str]) -> Vec<usize> {
    let ran = town.ran(&[&["list"], arguments].concat());
    assert_eq!(ran.code, 0, "{arguments:?}: {ran:?}");
    let lists = |at: &usize| ran.stdout.contains(&town.digest(*at));
    let chosen: Vec<usize> = (0..TOWN.len()).filter(lists).collect();
    assert_eq!(ran.stdout.lines().count(), chosen.len(), "{arguments:?}: {}", ran.stdout);
    chosen
}

#[test]
fn every_criterion_selects_what_it_says() {
    let scratch = Scratch::new("handles-select");
    for town in Town::both(&scratch) {
        let keys = scratch.file("keys.txt", &format!("# of the server\n{}\n", town.keys));
        let digest = town.digest(4);
        for (arguments, expected) in [
            (&["--tenant", "acme"][..], &[0, 1, 2, 3, 4][..]),
            (&["--tenant", "globex"], &[5, 6]),
            (&["--tenant", "acm"], &[]),
            (&["--client", "cli"], &[3]),
            (&["--object", "basket"], &[0, 1, 2, 3, 5, 6]),
            (&["--object", "order/o-1"], &[4]),
            (&["--object", "order/o-2"], &[]),
            (&["--policy-version", "2025-1"], &[0]),
            (&["--minted-before", "1970-01-01T00:00:00Z"], &[]),
            (&["--minted-before", "2999-12-31T23:59:59.999+01:00"], &[0, 1, 2, 3, 4, 5, 6]),
            (&["--digest", &digest], &[4]),
            (&["--digest", &digest.to_uppercase()], &[4]),
            (&["--digest", &"0".repeat(64)], &[]),
            (&["--subject", ISSUER, "alice", "--keys", &keys], &[2, 3, 5]),
            (&["--subject", ISSUER, "Alice", "--keys", &keys], &[]),
            (&["--subject", "https://other.example.com", "alice", "--keys", &keys], &[]),
            (&["--tenant", "acme", "--object", "basket", "--client", "web"], &[0, 1, 2]),
            (&["--subject", ISSUER, "alice", "--keys", &keys, "--tenant", "globex"], &[5]),
            (&["--subject", ISSUER, "alice", "--keys", &keys, "--digest", &digest], &[]),
        ] {
            assert_eq!(chosen(&town, arguments), expected, "{arguments:?}");
        }
    }
}

#[test]
fn a_limit_says_when_there_are_more() {
    let scratch = Scratch::new("handles-limit");
    for town in Town::both(&scratch) {
        for (limit, more) in [("1", true), ("6", true), ("7", false), ("8", false), ("18446744073709551615", false)] {
            let ran = town.ran(&["list", "--limit", limit]);

            assert_eq!(ran.code, 0);
            let expected = limit.parse::<u64>().expect("a number").min(7);
            assert_eq!(ran.stdout.lines().count() as u64, expected);
            assert_eq!(ran.stderr.contains("there are more: raise --limit"), more, "{limit}: {}", ran.stderr);
            assert_eq!(ran.stderr.lines().count(), usize::from(more));
        }
        let json = town.ran(&["list", "--limit", "3", "--format", "json", "--tenant", "acme"]);
        assert_valid(&json.json());
        assert_eq!((json.json()["handles"].as_array().map(Vec::len), &json.json()["more"]), (Some(3), &true.into()));
    }
}

#[test]
fn an_empty_answer_is_said_in_words_and_is_valid() {
    let scratch = Scratch::new("handles-empty");
    let url = format!("sqlite:{}", scratch.path("empty.db").display());
    drop(empty(&url));
    for (arguments, words) in
        [(&[][..], "there is no handle in this store"), (&["--tenant", "acme"], "there is no handle that meets these")]
    {
        for format in ["table", "lines", "json"] {
            let mut command = handfast();
            command.args(["handles", "list", "--format", format]).args(arguments).env("HANDFAST_STORE", &url);

            let ran = support::Ran::of(&mut command);

            assert_eq!(ran.code, 0, "{ran:?}");
            assert!(ran.stderr.contains(words), "{}", ran.stderr);
            if format == "json" {
                assert_valid(&ran.json());
            } else {
                assert_eq!(ran.stdout, "");
            }
        }
    }
}

#[test]
fn many_are_read_page_by_page_until_nobody_reads_on() {
    let scratch = Scratch::new("handles-pages");
    let path = scratch.path("many.db");
    let url = format!("sqlite:{}", path.display());
    drop(empty(&url));
    by_hand(
        &path,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1600) INSERT INTO handfast_handles \
         (digest, object_type, object_ref, object_version, scopes, policy_version, created_at, expires_at, ends_at) \
         SELECT randomblob(32), 'basket', 'b', '1', 'read', '1', i, i + 1, i + 1 FROM n",
    );
    for (limit, expected) in [("499", 499), ("500", 500), ("501", 501), ("1000", 1000), ("9999", 1600)] {
        let ran = support::ran(&["handles", "list", "--store", &url, "--limit", limit]);

        let digests: Vec<&str> = ran.stdout.lines().map(|line| &line[..64]).collect();
        assert!(digests.is_sorted_by(|one, next| one < next), "each once, in order");
        assert_eq!((ran.code, digests.len(), ran.stderr.lines().count()), (0, expected, usize::from(expected < 1600)));
    }
    let json = support::ran(&["handles", "list", "--store", &url, "--limit", "1600", "--format", "json"]).json();
    assert_valid(&json);
    assert_eq!((json["handles"].as_array().map(Vec::len), &json["more"]), (Some(1600), &Value::from(false)));

    let piped =
        format!("set -o pipefail; '{}' handles list --store '{url}' --limit 9999 | head -n 1", support::HANDFAST);
    let ran = support::Ran::of(std::process::Command::new("bash").args(["-c", &piped]));
    assert_eq!((ran.code, ran.stdout.lines().count(), ran.stderr.as_str()), (0, 1, ""));
}
