//! Bad input, and stores that are none: one line on standard error that says what, where and what to do, exit code 2,
//! nothing on standard output; never a password, a handle, a key or a user. And no panic, whatever comes.

#[path = "support/stores.rs"]
mod stores;
mod support;

use std::{path::Path, process::Command};

use handfast_testbed::Cluster;
use stores::{Town, by_hand, empty};
use support::{Ran, Scratch, handfast, ran};

const PASSWORD: &str = "hunter2hunter2";
const HANDLE: &str = "bsk_QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE";
const SUBJECT: &str = "alice@example.com";
const WHY: [&str; 4] = ["--reason", "r", "--receipt", "c"];

fn assert_one_line(command: &mut Command, words: &[&str]) {
    let told = format!("{command:?}");
    let ran = Ran::of(command);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{told}: {ran:?}");
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert!(lines.len() == 1 && lines[0].starts_with("handfast: "), "{told}: {:?}", ran.stderr);
    for word in words {
        assert!(lines[0].contains(word), "{told}: `{word}` is not in `{}`", lines[0]);
    }
    for secret in [PASSWORD, &HANDLE[4..], SUBJECT] {
        assert!(!lines[0].contains(secret), "{told} repeats a secret: {}", lines[0]);
    }
}

/// `handles` with these words, split at spaces.
fn assert_told(arguments: &str, words: &[&str]) {
    assert_one_line(handfast().arg("handles").args(arguments.split(' ')), words);
}

#[test]
fn a_url_that_is_none() {
    for url in ["mysql://u:hunter2hunter2@h/d", "handles.db", "u:hunter2hunter2", "postgres:", "SQLITE:x", ":", "%00"] {
        for command in ["list", "purge", "verify", "revoke --all --reason r --receipt c"] {
            assert_told(&format!("{command} --store {url}"), &["sqlite:FILE or postgres://USER@HOST/DATABASE"]);
        }
    }
    for (url, words) in [
        ("sqlite:", "names no file"),
        ("sqlite://", "names no file"),
        ("sqlite:/", "cannot open /: it is a directory"),
        ("postgres://u:hunter2hunter2@127.0.0.1:port/d", "cannot be read"),
        ("postgres://u:hunter2hunter2@127.0.0.1/d?nonsense=1", "cannot be read"),
        ("postgres://u:hunter2hunter2@127.0.0.1/d?sslmode=hunter2hunter2", "cannot be read"),
        ("postgres://u%00:hunter2hunter2@127.0.0.1:1/d%00", "postgres://…@127.0.0.1:1/d%00"),
        ("postgres://u:hunter2hunter2", "the database"),
        ("postgres://", "the database"),
        ("postgres://%", "the database"),
    ] {
        for command in ["list", "verify"] {
            assert_told(&format!("{command} --store {url}"), &[words]);
        }
    }
    assert_told("list", &["no store", "--store URL", "HANDFAST_STORE"]);
    assert_one_line(handfast().args(["handles", "list", "--store", ""]), &["no store", "--store URL"]);
    assert_told("list --store handles.db", &["for a file write sqlite:handles.db"]);
    let from_environment = "postgres://u:hunter2hunter2@127.0.0.1:1/d";
    assert_one_line(handfast().args(["handles", "list"]).env("HANDFAST_STORE", from_environment), &["127.0.0.1:1/d"]);
    let help = Ran::of(handfast().args(["handles", "list", "--help"]).env("HANDFAST_STORE", from_environment));
    assert!(help.code == 0 && help.stdout.contains("HANDFAST_STORE") && !help.said().contains(PASSWORD));
}

#[test]
fn secrets_in_the_wrong_place_are_not_repeated() {
    for keywords in [format!("host=db password={PASSWORD}"), format!("postgres:u:{PASSWORD}@h/db")] {
        assert_one_line(handfast().args(["handles", "list", "--store", &keywords]), &["sqlite:FILE"]);
        assert_one_line(handfast().args(["handles", "list", &keywords]), &[]);
    }
    // With an escape sequence in its middle, which clap leaves out when it says what it was given.
    let (head, tail) = HANDLE.split_at(20);
    assert_one_line(handfast().args(["handles", "revoke", &format!("{head}\u{1b}[0m{tail}")]), &[]);
    for arguments in [
        format!("list postgres://u:{PASSWORD}@h/d"),
        format!("postgres://u:{PASSWORD}@h/d"),
        format!("list --stor=postgres://u:{PASSWORD}@h/d"),
        format!("list --format postgres://u:{PASSWORD}@h/d"),
        format!("revoke {HANDLE}"),
        format!("revoke --store sqlite:x --all --reason r --receipt c {HANDLE}"),
        format!("list --store sqlite:x --digest {HANDLE}"),
        format!("list --store sqlite:x --limit {HANDLE}"),
        format!("list --store sqlite:x --minted-before {HANDLE}"),
        format!("list --store sqlite:x --object {HANDLE}"),
        format!("list --store sqlite:x --subject {SUBJECT}"),
        format!("list --store sqlite:x --subject https://id.example.com {SUBJECT}"),
        format!("list --store sqlite:x --subject https://id.example.com {SUBJECT} --keys /no/such/keys"),
    ] {
        assert_told(&arguments, &[]);
    }
}

#[test]
fn criteria_that_are_none() {
    for (arguments, words) in [
        ("list --digest 00", &["--digest", "64 hexadecimal digits", "--handle-stdin"][..]),
        ("list --minted-before yesterday", &["--minted-before", "2026-01-31T12:00:00Z"]),
        ("list --minted-before 2026-02-30T00:00:00Z", &["--minted-before"]),
        ("list --minted-before 2026-01-31", &["--minted-before"]),
        ("list --object Basket", &["--object: an object type must be lower-case"]),
        ("list --object basket/", &["--object: an object reference must not be empty"]),
        ("list --limit 0", &["--limit"]),
        ("list --limit 99999999999999999999", &["--limit"]),
        ("list --timeout 0s", &["--timeout", "more than nothing", "1h"]),
        ("list --timeout 1y", &["--timeout", "at most 1h"]),
        ("list --timeout soon", &["--timeout", "soon"]),
        ("list --format yaml", &["yaml", "table", "lines", "json"]),
        ("list --keys keys.txt", &["--subject"]),
        ("purge --dead-for long", &["--dead-for", "long"]),
        ("purge --dead-for 99999999999999999y", &["--dead-for"]),
        ("revoke --tenant acme", &["--reason", "--receipt"]),
        ("revoke --tenant acme --reason r", &["--receipt"]),
        ("revoke --reason r --receipt c", &["which handles?", "--tenant", "--all"]),
        ("revoke --reason r --receipt c --all --tenant acme", &["--all", "--tenant"]),
        ("revoke --reason r --receipt c --all --handle-stdin", &["--all", "--handle-stdin"]),
        ("revoke --reason r --receipt c --digest 00 --handle-stdin", &["--digest", "--handle-stdin"]),
    ] {
        assert_told(&format!("{arguments} --store sqlite:none.db"), words);
    }
    assert_told("lst", &["lst", "list", "(see `handfast handles --help`)"]);
    assert_told("list --limit 0", &["(see `handfast handles list --help`)"]);
    assert_one_line(handfast().arg("handles"), &["a command is missing", "handfast handles --help"]);
    let long = "x".repeat(600);
    for (option, value, words) in [
        ("--tenant", "", "--tenant: a tenant must not be empty"),
        ("--tenant", "a\tb", "--tenant: a tenant has a control character"),
        ("--client", &long, "--client: a client id has 600 bytes"),
        ("--policy-version", " ", "--policy-version: a policy version must not be empty"),
        ("--reason", "", "--reason: a reason must not be empty"),
        ("--receipt", "\u{7}", "--receipt: a receipt"),
    ] {
        let rest: Vec<&str> = if option.starts_with("--re") {
            let other = if option == "--reason" { "--receipt" } else { "--reason" };
            vec!["--all", other, "x"]
        } else {
            WHY.to_vec()
        };
        let mut command = handfast();
        command.args(["handles", "revoke", "--store", "sqlite:none.db", option, value]).args(rest);
        assert_one_line(&mut command, &[words]);
    }
}

#[test]
fn files_of_keys_that_are_none() {
    let scratch = Scratch::new("errors-keys");
    let url = format!("sqlite:{}", scratch.path("handles.db").display());
    drop(empty(&url));
    let key = ran(&["keys", "new"]).stdout;
    let bytes = scratch.path("bytes").display().to_string();
    std::fs::write(&bytes, [0xff, 0xfe, 0]).expect("written");
    for (path, words) in [
        (scratch.path("none").display().to_string(), &["cannot read", "No such file"][..]),
        (scratch.path("").display().to_string(), &["a directory"]),
        ("/dev/zero".to_owned(), &["not a file"]),
        (bytes, &["UTF-8"]),
        (scratch.file("empty", "# nothing\n"), &["there is no key", "handfast keys new"]),
        (scratch.file("cut", &key[..40]), &["line 1: not a key"]),
        (scratch.file("nul", &format!("{}\0", key.trim())), &["line 1: not a key"]),
        (scratch.file("twice", &format!("{key}{key}")), &["line 2", "there already"]),
        (scratch.file("long", &key.repeat(30_000)), &["longer than"]),
    ] {
        let mut command = handfast();
        command.args([
            "handles",
            "list",
            "--store",
            &url,
            "--subject",
            "https://id.example.com",
            SUBJECT,
            "--keys",
            &path,
        ]);
        assert_one_line(&mut command, words);
        assert!(!Ran::of(&mut command).said().contains(&key[5..30]), "{path}");
    }
}

#[test]
fn what_is_no_store_is_left_alone() {
    let scratch = Scratch::new("errors-files");
    let names = || {
        let mut names: Vec<_> =
            std::fs::read_dir(scratch.path("")).expect("ours").flatten().map(|one| one.file_name()).collect();
        names.sort();
        names
    };
    let none = |name: &str| scratch.path(name).display().to_string();
    scratch.file("text", "this is no database, and longer than the header of one would be ".repeat(20).as_str());
    by_hand(&scratch.path("theirs.db"), "CREATE TABLE t (x)");
    scratch.file("empty.db", "");
    let before = names();
    for (name, words) in [
        ("none.db", &["there is no file", "none.db", "see that this is the one"][..]),
        ("no/such/folder.db", &["there is no file"]),
        ("", &["it is a directory"]),
        ("text", &["cannot open", "not a database"]),
        ("theirs.db", &["there is no store in", "no tables of handfast"]),
        ("empty.db", &["there is no store in"]),
    ] {
        for command in ["list", "purge", "revoke --all --reason r --receipt c"] {
            assert_told(&format!("{command} --store sqlite:{}", none(name)), words);
        }
    }
    assert_eq!(names(), before, "nothing was made");
    assert_told(&format!("verify --store sqlite:{}", none("text")), &["not a database"]);
    assert_told(&format!("verify --store sqlite:{}", none("")), &["cannot open", "directory"]);
    assert_told(&format!("verify --store sqlite:{}", none("no/such/folder.db")), &["cannot open", "No such file"]);
    assert_told(&format!("list --store {}", Cluster::shared().database()), &["no tables of handfast"]);
    assert_told(&format!("list --store {}", Cluster::shared().url("nowhere")), &["\"nowhere\" does not exist"]);
    assert_told(&format!("list --store {}", Cluster::shared().url("no%00where")), &["cannot use the database"]);
}

#[test]
fn times_beyond_all_times_are_told_or_cannot_be_read() {
    let scratch = Scratch::new("errors-times");
    let [sqlite, postgres] = Town::both(&scratch);
    let path = scratch.path("handles.db");
    let least = i64::MIN;
    by_hand(&path, &format!("UPDATE handfast_handles SET created_at = {least}, ends_at = {least}"));
    for format in ["table", "lines", "json"] {
        assert_eq!(sqlite.ran(&["list", "--format", format]).code, 0);
    }
    for set in ["created_at = '-infinity'", "expires_at = 'infinity'", "created_at = '4713-01-01 BC'"] {
        let url = Town::postgres().url;
        Cluster::shared().sql(&url, &format!("UPDATE handfast_handles SET {set}"));
        for command in ["list", "list --format table", "purge", "revoke --all --reason r --receipt c"] {
            let ran = Ran::of(handfast().arg("handles").args(command.split(' ')).args(["--store", &url]));
            assert!(matches!(ran.code, 0 | 2) && !ran.stderr.contains("internal error"), "{set} {command}: {ran:?}");
        }
    }
    for time in
        ["-004800-01-02T00:00:00Z", "-009999-01-02T01:59:59Z", "9999-12-30T22:00:00.999999999Z", "0000-01-01T00:00:00Z"]
    {
        let option = format!("--minted-before={time}");
        for town in [&sqlite, &postgres] {
            let ran = town.ran(&["list", &option]);
            assert!(matches!(ran.code, 0 | 2) && ran.stderr.lines().count() <= 1, "{time}: {ran:?}");
            assert!(!ran.stderr.contains("did not answer"), "{time}: {ran:?}");
        }
    }
}

#[test]
fn a_store_of_a_newer_program_or_with_a_row_that_cannot_be_read() {
    let scratch = Scratch::new("errors-rows");
    let towns = Town::both(&scratch);
    let sql = |town: &Town, sql: &str| match town.url.strip_prefix("sqlite:") {
        Some(path) => by_hand(Path::new(path), sql),
        None => drop(Cluster::shared().sql(&town.url, sql)),
    };
    for town in &towns {
        sql(town, "UPDATE handfast_handles SET object_type = 'A b' WHERE object_ref = 'b-5'");
        for format in ["table", "lines"] {
            let list = format!("list --format {format} --store {}", town.url);
            assert_told(&list, &["a record that cannot be read", "an object type must be", &town.digest(5)]);
        }
        // What cannot be read can be revoked, and removed.
        assert_eq!(town.ran(&[&["revoke", "--digest", &town.digest(5)], &WHY[..]].concat()).stdout, "1 revoked\n");
        assert_eq!(town.ran(&["purge", "--dead-for", "0s"]).stdout, "4 removed\n");
        assert_eq!(town.ran(&["list"]).stdout.lines().count(), 3);

        sql(town, "ALTER TABLE handfast_handles RENAME COLUMN revocation_receipt TO slip");
        let told = ["the store's tables are not as this program makes them", "revocation_receipt"];
        assert_told(&format!("list --store {}", town.url), &told);
        let verified = town.ran(&["verify"]);
        let unknown = verified.stdout.lines().next().unwrap_or_default();
        assert!(unknown.starts_with("unknown ") && unknown.contains(told[0]), "{verified:?}");
        assert_eq!(verified.code, 3);

        sql(town, "INSERT INTO handfast_migrations (version) VALUES (7)");
        for command in ["list", "purge", "verify", "revoke --all --reason r --receipt c"] {
            let told = ["schema version 7", "use a newer handfast"];
            assert_told(&format!("{command} --store {}", town.url), &told);
        }
    }
}
