//! The library's example of a whole server, probed as a stranger would: two users over HTTP. Nothing is found.

mod support;

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use support::{Scratch, check, example, outcomes, ran, report};

#[test]
fn nothing_is_found_in_the_example() {
    let scratch = Scratch::new("basket");
    let mut shop = Command::new(example("basket"))
        .args(["--store", &format!("sqlite:{}", scratch.path("baskets.db").display())])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    let mut lines = BufReader::new(shop.stdout.take().expect("it is piped")).lines();
    let mut after = |mark: &str| {
        let line = lines.next().expect("it says where it is").expect("text");
        line.strip_prefix(mark).unwrap_or_else(|| panic!("not `{mark}`: {line}")).to_owned()
    };
    let (url, alice, bob) = (after("listening on "), after("alice: "), after("bob: "));

    let probed = ran(&["probe", &url, "--identity-a", &alice, "--identity-b", &bob]);

    let _ = shop.kill();
    let _ = shop.wait();
    assert_eq!(probed.code, 0, "{probed:?}");
    assert!(probed.stdout.contains("refuted    handle-foreign-principal  [handle-bound]"), "{probed:?}");
    assert!(probed.stdout.contains("refuted    state-tampered  [state-integrity-held]"), "{probed:?}");
    assert!(probed.stdout.contains("no-session-issued"), "{probed:?}");
}

/// There everybody is whoever started it. A basket that was ordered is gone, which is no reason to think that callers are told apart.
#[test]
fn over_stdio_the_example_tells_nobody_apart() {
    let scratch = Scratch::new("basket-stdio");
    let (shop, store) = (example("basket"), format!("sqlite:{}", scratch.path("baskets.db").display()));
    let shop = shop.to_str().expect("text");

    let (code, report) =
        report(&["--identity-a", "alice", "--identity-b", "bob", "--", shop, "--stdio", "--store", &store]);

    assert_eq!(code, 0, "{report}");
    assert_eq!(outcomes(&report), ["skipped identities-not-distinguished", "refuted state-integrity-held"], "{report}");
    let foreign = check(&report, "state-foreign-principal");
    assert_eq!((&foreign["verdict"], &foreign["reason"]), (&"skipped".into(), &"identities-not-distinguished".into()));
}
