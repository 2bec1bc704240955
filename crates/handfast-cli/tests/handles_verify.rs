//! `handfast handles verify`: on sound stores everything holds, and on a broken one it says so.

#[path = "support/stores.rs"]
mod stores;
mod support;

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use handfast_testbed::{Cluster, Ending};
use serde_json::Value;
use stores::{Lock, PATIENT, SCHEMA, Town, assert_valid, by_hand, empty};
use support::{Ran, Scratch, handfast, ran};

const PROPERTIES: [&str; 17] = [
    "owner-accepted",
    "guessing-refused",
    "subject-bound",
    "client-bound",
    "tenant-bound",
    "scope-not-escalated",
    "object-and-version-bound",
    "policy-version-bound",
    "expiry-exact",
    "revocation-final",
    "revocation-race",
    "bulk-revocation-complete",
    "concurrent-use-consistent",
    "digest-unique",
    "outage-fails-closed",
    "audit-reconciled",
    "nothing-left-behind",
];

#[test]
fn every_property_holds_and_nobody_else_is_touched() {
    let scratch = Scratch::new("verify-held");
    for town in Town::both(&scratch) {
        let before = town.ran(&["list"]).stdout;

        let ran = town.ran(&["verify"]);

        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
        let lines: Vec<&str> = ran.stdout.lines().collect();
        for (line, property) in lines.iter().zip(PROPERTIES) {
            assert!(line.starts_with(&format!("held    {property:<26} ")) && line.len() > 40, "{line}");
        }
        assert_eq!(lines[PROPERTIES.len()..], ["", "17 held, 0 failed"]);
        assert_eq!(town.ran(&["list"]).stdout, before, "what others have is as it was");
    }
}

#[test]
fn the_same_as_json() {
    let scratch = Scratch::new("verify-json");
    for town in Town::both(&scratch) {
        let ran = town.ran(&["verify", "--format", "json"]);

        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:?}");
        let document = ran.json();
        assert_valid(&document);
        let names: Vec<&Value> =
            document["properties"].as_array().expect("a list").iter().map(|one| &one["name"]).collect();
        assert_eq!(names, PROPERTIES);
        assert_eq!([&document["held"], &document["failed"]], [17, 0]);
        for member in ["version", "properties", "held", "failed", "finished"] {
            let mut less = document.clone();
            less.as_object_mut().expect("an object").remove(member);
            assert!(!SCHEMA.is_valid(&less), "without `{member}`");
        }
    }
}

#[test]
fn a_store_that_is_not_there_yet_is_made() {
    let scratch = Scratch::new("verify-new");
    for name in ["new.db", ":memory:", "file:x?mode=memory"] {
        // By a name that means something else to SQLite.
        let command =
            ["handles", "verify", "--store", &format!("sqlite:{name}"), "--timeout", "30s"].map(str::to_owned);
        let ran = Ran::of(handfast().args(command).current_dir(scratch.path("")));

        assert_eq!(ran.code, 0, "{name}: {ran:?}");
        assert!(ran.stderr.starts_with("handfast: there was no such file: it was made, "), "{ran:?}");
        assert!(std::fs::read(scratch.path(name)).expect("a file").starts_with(b"SQLite format 3"), "{name}");
    }
}

#[test]
fn tables_that_are_not_there_yet_are_made_and_that_is_told() {
    let url = Cluster::shared().database();
    for told in
        ["handfast: there was no table of handfast in it: it was made, and what follows is about an empty store\n", ""]
    {
        let ran = ran(&["handles", "verify", "--store", &url, "--timeout", "30s"]);

        assert_eq!((ran.code, ran.stderr.as_str()), (0, told), "{ran:?}");
    }
}

/// Somebody has rebuilt the table, and forgot that the digest is its key.
const WITHOUT_KEY: &str = "CREATE TABLE t AS SELECT * FROM handfast_handles; DROP TABLE handfast_handles; \
     ALTER TABLE t RENAME TO handfast_handles";

#[test]
fn a_key_that_somebody_dropped_is_found() {
    let scratch = Scratch::new("verify-broken");
    let path = scratch.path("handles.db");
    let sqlite = format!("sqlite:{}", path.display());
    drop(empty(&sqlite));
    by_hand(&path, WITHOUT_KEY);
    let cluster = Cluster::shared();
    let postgres = cluster.database();
    drop(empty(&postgres));
    cluster.sql(&postgres, "ALTER TABLE handfast_handles DROP CONSTRAINT handfast_handles_pkey");
    for url in [sqlite, postgres] {
        let text = ran(&["handles", "verify", "--store", &url, "--timeout", "30s"]);
        let json = ran(&["handles", "verify", "--store", &url, "--timeout", "30s", "--format", "json"]);

        let failed: Vec<&str> = text.stdout.lines().filter(|line| line.starts_with("FAILED")).collect();
        let told =
            "FAILED  digest-unique              of two inserts of one digest at once 2 succeeded: is it a primary key?";
        assert_eq!((text.code, failed), (1, vec![told]), "{text:?}");
        assert!(text.stdout.ends_with("\n\n16 held, 1 failed\n"), "{}", text.stdout);
        let document = json.json();
        assert_valid(&document);
        assert_eq!((json.code, &document["failed"], &document["finished"]), (1, &Value::from(1), &Value::from(true)));
    }
}

/// Rows that can be seen and not changed are an answer: it is the store that is broken, not the way to it.
#[test]
fn a_store_that_does_not_revoke_is_found() {
    let cluster = Cluster::shared();
    let url = cluster.database();
    drop(empty(&url));
    cluster.sql(
        &url,
        "CREATE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.revoked_at IS NOT NULL THEN RETURN \
         NULL; END IF; RETURN NEW; END $$; \
         CREATE TRIGGER never BEFORE UPDATE ON handfast_handles FOR EACH ROW EXECUTE FUNCTION never()",
    );

    let ran = ran(&["handles", "verify", "--store", &url, "--timeout", "1s"]);

    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.lines().any(|line| line.starts_with("FAILED  revocation-final ")), "{ran:?}");
    assert!(ran.stdout.contains("\nFAILED  bulk-revocation-complete "), "{ran:?}");
}

/// A verification whose first line has been read, and the rest of what it writes.
fn begun(url: &str, format: &str) -> std::process::Child {
    let mut command = handfast();
    command.args(["handles", "verify", "--store", url, "--format", format]).args(PATIENT);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs")
}

#[test]
fn a_store_that_goes_away_is_no_failure_of_a_property() {
    let cluster = Cluster::start(&["-c", "fsync=off"]);
    let url = cluster.database();
    drop(empty(&url));
    let mut child = begun(&url, "text");
    let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut first = String::new();
    output.read_line(&mut first).expect("it begins");
    cluster.end(Ending::Killed);

    let rest: Vec<String> = output.lines().map_while(Result::ok).collect();
    let ended = Ran::from(child.wait_with_output().expect("it ends"));

    assert!(first.starts_with("held    owner-accepted"), "{first}");
    assert_eq!(ended.code, 3, "{ended:?}");
    let unknown = rest.iter().position(|line| line.starts_with("unknown ")).expect("a property is not known");
    assert!(rest[unknown].contains("the store did not answer"), "{}", rest[unknown]);
    assert_eq!(rest[unknown + 1..], [String::new(), format!("{} held, 0 failed", unknown + 1)]);
    assert!(ended.stderr.starts_with("handfast: stopped before the end") && ended.stderr.lines().count() == 1);
}

#[test]
fn a_store_that_does_not_answer_is_told_within_the_timeout_and_as_json() {
    let cluster = Cluster::shared();
    let url = cluster.database();
    drop(empty(&url));
    let _lock = Lock::hold(cluster, &url);

    let ran = ran(&["handles", "verify", "--store", &url, "--timeout", "1s", "--format", "json"]);

    assert_eq!(ran.code, 3, "{ran:?}");
    let document = ran.json();
    assert_valid(&document);
    assert_eq!((&document["finished"], &document["failed"]), (&Value::from(false), &Value::from(0)));
    let last = document["properties"].as_array().and_then(|all| all.last()).expect("one");
    assert_eq!(last["outcome"], "unknown");
}

#[test]
fn a_person_can_end_it() {
    let cluster = Cluster::shared();
    let url = cluster.database();
    drop(empty(&url));
    // It waits, so that it cannot be done before it is ended.
    let _lock = Lock::hold(cluster, &url);
    let child = begun(&url, "text");
    Lock::is_waited_for(cluster, &url);

    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    let ended = Ran::from(child.wait_with_output().expect("it ends"));

    assert!(killed.success());
    assert_eq!((ended.code, ended.stderr.as_str()), (130, "handfast: interrupted\n"));
}

#[test]
fn and_also_while_it_computes() {
    let scratch = Scratch::new("verify-interrupt");
    let url = format!("sqlite:{}", scratch.path("handles.db").display());
    drop(empty(&url));
    let mut child = begun(&url, "text");
    let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
    output.read_line(&mut String::new()).expect("it begins");

    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    let ended = Ran::from(child.wait_with_output().expect("it ends"));

    assert!(killed.success());
    // On a machine that is busy with other things it may have been done before.
    assert!(ended.code == 130 && ended.stderr == "handfast: interrupted\n" || ended.code == 0, "{ended:?}");
}
