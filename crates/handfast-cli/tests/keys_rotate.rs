//! `handfast keys rotate` and `inspect`: a key is exchanged in three steps, and at no time does a replica that is one step
//! behind meet a key that it does not know.

mod support;

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
};

use handfast::{
    Audience, Caller, KeyUse, Keys,
    seal::{RequestDigest, Sealer, StateContext},
};
use support::{Ran, Scratch, handfast, ran};

fn new_file(scratch: &Scratch) -> PathBuf {
    let path = scratch.path("keys.txt");
    let made = ran(&["keys", "new", "--output", &path.display().to_string()]);
    assert_eq!(made.code, 0, "{made:?}");
    path
}

fn rotate(path: &Path, more: &[&str]) -> Ran {
    ran(&[&["keys", "rotate", &path.display().to_string()], more].concat())
}

fn uses(path: &Path) -> Vec<KeyUse> {
    Keys::from_file(path).expect("keys").uses().map(|(_, used)| used).collect()
}

/// What one replica has sealed, opened by another.
fn opens(one: &Keys, other: &Keys) -> bool {
    let (caller, request) = (Caller::anonymous(), RequestDigest::resource("file:///a"));
    let context = StateContext { caller: &caller, request: &request };
    let sealer = |keys: &Keys| Sealer::new(keys.clone(), "urn:server".parse::<Audience>().expect("an audience"));
    let sealed = sealer(one).seal(b"s", &[], &context).expect("sealed");
    sealer(other).open(sealed.expose(), &context).is_ok()
}

#[test]
fn a_key_is_exchanged_in_three_steps() {
    use KeyUse::{Opening, Retired, Sealing};
    let scratch = Scratch::new("rotate");
    let path = new_file(&scratch);
    let old = Keys::from_file(&path).expect("a key");
    let mut before = old.clone();
    for (number, more, expected) in [
        (1, &[][..], vec![Sealing, Opening]),
        (2, &[], vec![Sealing, Opening]),
        (3, &["--now"], vec![Sealing, Retired]),
        (1, &[], vec![Sealing, Opening, Retired]),
    ] {
        let stepped = rotate(&path, more);

        assert_eq!((stepped.code, stepped.stderr.as_str()), (0, ""), "{stepped:?}");
        assert!(stepped.stdout.starts_with(&format!("step {number} of 3: ")), "{stepped:?}");
        assert_eq!(uses(&path), expected, "after step {number}");
        let after = Keys::from_file(&path).expect("keys");
        assert!(opens(&before, &after) || number == 3, "what was sealed a step before, in step {number}");
        assert!(opens(&after, &before), "who is a step behind, in step {number}");
        before = after;
    }
    assert!(!opens(&old, &before), "the old key is retired");
    assert_eq!(before.ids().last(), Some(old.current()), "and still tells whose handles are");
}

#[test]
fn a_state_is_not_cut_off_by_accident() {
    let scratch = Scratch::new("rotate-early");
    let path = new_file(&scratch);
    rotate(&path, &[]);
    rotate(&path, &[]);
    let before = std::fs::read(&path).expect("it is there");

    let early = rotate(&path, &[]);

    assert_eq!((early.code, early.stdout.as_str(), early.stderr.lines().count()), (2, "", 1), "{early:?}");
    assert!(early.stderr.contains("may live for an hour: wait, or say --now"), "{early:?}");
    assert_eq!(std::fs::read(&path).expect("it is there"), before);
}

#[test]
fn what_a_person_wrote_stays_and_so_does_who_may_read_it() {
    let scratch = Scratch::new("rotate-file");
    let path = new_file(&scratch);
    let text = format!("# the shop's keys\n\n{}# the end\n", std::fs::read_to_string(&path).expect("a key"));
    std::fs::write(&path, text).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("allowed");
    let link = scratch.path("link.txt");
    std::os::unix::fs::symlink(&path, &link).expect("linked");
    let before = std::fs::read_to_string(&path).expect("it is there");

    let next = rotate(&link, &["--dry-run"]);
    assert_eq!(next.stdout, "next: step 1 of 3: a new key, which only opens at first\n");
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), before);
    rotate(&link, &[]);

    let after = std::fs::read_to_string(&path).expect("it is there");
    let lines: Vec<&str> = after.lines().collect();
    assert_eq!([lines[0], lines[1], lines[4]], ["# the shop's keys", "", "# the end"]);
    assert!(lines[2].ends_with(" opening") && lines[3].ends_with(" sealing"), "the newest stands first");
    assert_eq!(std::fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o640);
    assert!(std::fs::symlink_metadata(&link).expect("it is there").is_symlink());
    assert_eq!(std::fs::read_dir(scratch.path("")).expect("ours").count(), 2, "nothing is left beside it");
}

/// Whoever rotates need not be who serves.
#[test]
fn the_file_stays_its_owners() {
    use std::os::unix::fs::{MetadataExt, chown};
    const NOBODY: u32 = 65534;
    let scratch = Scratch::new("rotate-owner");
    let path = new_file(&scratch);
    // Only root can give a file away; for anybody else it is theirs, and stays so.
    let given = chown(&path, Some(NOBODY), Some(NOBODY)).is_ok();
    let before = std::fs::metadata(&path).expect("it is there").uid();
    assert!(!given || before == NOBODY);

    assert_eq!(rotate(&path, &[]).code, 0);

    assert_eq!(std::fs::metadata(&path).expect("it is there").uid(), before);
}

#[test]
fn a_file_is_shown_without_its_keys() {
    let scratch = Scratch::new("inspect");
    let path = new_file(&scratch);
    rotate(&path, &[]);
    let keys = Keys::from_file(&path).expect("keys");
    let ids: Vec<String> = keys.ids().map(|id| id.to_string()).collect();
    let file = path.display().to_string();

    let shown = ran(&["keys", "inspect", &file]);

    let lines: Vec<&str> = shown.stdout.lines().collect();
    assert!(lines[0].starts_with(&format!("{}\topening\t", ids[1])), "{shown:?}");
    assert!(lines[1].starts_with(&format!("{}\tsealing\t", ids[0])), "{shown:?}");
    assert!(!shown.stdout.contains("hfk1_"));

    let sealer = Sealer::new(keys, "urn:server".parse::<Audience>().expect("an audience"));
    let (caller, request) = (Caller::anonymous(), RequestDigest::resource("file:///a"));
    let state = sealer.seal(b"s", &[], &StateContext { caller: &caller, request: &request }).expect("sealed");
    for (text, code, told) in [
        (format!("{}\n", state.expose()), 0, format!("{}\tsealing\t", ids[0])),
        ("eyJzdGVwIjoxfQ".to_owned(), 2, "this is no state of this kind (malformed)".to_owned()),
        (String::new(), 2, "this is no state of this kind".to_owned()),
    ] {
        let mut command = handfast();
        command.args(["keys", "inspect", &file, "--state-stdin"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let mut input = child.stdin.take().expect("it is piped");
        std::io::Write::write_all(&mut input, text.as_bytes()).expect("it reads");
        drop(input);
        let ended = Ran::from(child.wait_with_output().expect("it ends"));
        assert_eq!(ended.code, code, "{ended:?}");
        assert!(ended.said().contains(&told), "{ended:?}");
    }
}

#[test]
fn files_that_are_none_are_told_by_their_line() {
    let scratch = Scratch::new("rotate-bad");
    let key = Keys::generate();
    for (text, told) in [
        (String::new(), "there is no key"),
        ("nonsense\n".to_owned(), "line 1: not a key"),
        (format!("{} sealed\n", key.expose()), "line 1: after a key may stand"),
        (format!("{} opening\n", key.expose()), "no key is `sealing`"),
    ] {
        let path = scratch.file("bad.txt", &text);
        for command in ["rotate", "inspect"] {
            let ran = ran(&["keys", command, &path]);
            assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.lines().count()), (2, "", 1), "{ran:?}");
            assert!(ran.stderr.contains(told) && !ran.stderr.contains(&key.expose()[5..]), "{ran:?}");
        }
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), text);
    }
    let none = ran(&["keys", "rotate", "/no/such/file"]);
    assert!(none.code == 2 && none.stderr.contains("cannot read /no/such/file"), "{none:?}");
}
