//! `handfast keys new`: a key that nobody else can read, and that overwrites nothing.

mod support;

use std::os::unix::fs::PermissionsExt;

use handfast::Keys;
use support::{Scratch, ran};

#[test]
fn a_key_is_one_line_that_a_server_reads() {
    let (one, other) = (ran(&["keys", "new"]), ran(&["keys", "new"]));

    assert_eq!((one.code, one.stderr.as_str()), (0, ""));
    assert!(one.stdout.ends_with('\n') && one.stdout.lines().count() == 1);
    assert_ne!(one.stdout, other.stdout);
    let both = Keys::parse(&format!("{}{}", one.stdout, other.stdout)).expect("two keys");
    assert_eq!(both.ids().count(), 2);
}

#[test]
fn a_file_is_for_its_owners_eyes_and_the_key_is_nowhere_else() {
    let scratch = Scratch::new("keys-file");
    let path = scratch.path("keys.txt");

    let made = ran(&["keys", "new", "--output", &path.display().to_string()]);

    assert_eq!((made.code, made.stdout.as_str()), (0, ""));
    assert_eq!(made.stderr, format!("handfast: a new key is in {}, for its owner's eyes only\n", path.display()));
    assert_eq!(std::fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o600);
    assert_eq!(Keys::from_file(&path).expect("a key").ids().count(), 1);
}

#[test]
fn nothing_is_overwritten() {
    let scratch = Scratch::new("keys-there");
    let there = scratch.file("keys.txt", "mine\n");
    let link = scratch.path("link.txt");
    std::os::unix::fs::symlink(scratch.path("elsewhere.txt"), &link).expect("linked");
    for path in [there.clone(), scratch.path("").display().to_string(), link.display().to_string()] {
        let made = ran(&["keys", "new", "--output", &path]);

        assert_eq!((made.code, made.stdout.as_str(), made.stderr.lines().count()), (2, "", 1), "{made:?}");
        assert!(
            made.stderr.contains("a key is not overwritten: choose another name") || path.ends_with('/'),
            "{made:?}"
        );
    }
    assert_eq!(std::fs::read_to_string(there).expect("it is there"), "mine\n");
    assert!(!scratch.path("elsewhere.txt").exists(), "no link is followed");
}

#[test]
fn what_cannot_be_written_is_told() {
    for (arguments, words) in [
        (
            &["keys", "new", "--output", "/no/such/folder/keys.txt"][..],
            "cannot write /no/such/folder/keys.txt: No such",
        ),
        (&["keys", "new", "--output", ""], "a value is required for '--output <FILE>'"),
        (&["keys", "new", "--outptu", "keys.txt"], "--output"),
        (&["keys", "old"], "old"),
        (&["keys"], "a command is missing: handfast keys <COMMAND>"),
    ] {
        let made = ran(arguments);

        assert_eq!((made.code, made.stdout.as_str(), made.stderr.lines().count()), (2, "", 1), "{made:?}");
        assert!(made.stderr.contains(words), "{made:?}");
    }
}
