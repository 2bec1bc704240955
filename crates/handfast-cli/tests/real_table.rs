//! The table of docs/real-servers.md says what the servers of `interop/real.py` come to. They are installed by
//! `interop/install.sh` (`make check` does it). Only what stands in the page is compared: a check that it does not name for a
//! server may come to whatever it comes to, except that nothing which a MUST forbids is found on a clean control.

mod support;

use std::{collections::BTreeMap, process::Command};

use support::{HANDFAST, example, interop};

/// Server, transport and check.
type Key<'t> = (&'t str, &'t str, &'t str);
/// Version, verdict and reason.
type Found<'t> = (&'t str, &'t str, &'t str);

/// The rows of the table in a text: those of six cells, of which the third is a transport.
fn table(text: &str) -> BTreeMap<Key<'_>, Found<'_>> {
    let cells = |line| -> Option<[&str; 6]> {
        let cells: Vec<&str> = str::strip_prefix(line, "| ")?.strip_suffix(" |")?.split(" | ").collect();
        cells.try_into().ok()
    };
    let rows = text.lines().filter_map(cells).filter(|row| ["http", "stdio"].contains(&row[2]));
    rows.map(|[server, version, transport, check, verdict, reason]| {
        ((server, transport, check), (version, verdict, reason))
    })
    .collect()
}

#[test]
fn the_table_of_real_servers_is_what_they_come_to() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/real-servers.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let mut run = Command::new("python3");
    run.arg(interop().join("real.py")).arg("--all").env("HANDFAST", HANDFAST).env("BASKET", example("basket"));
    let run = run.output().expect("python3 runs");
    let said = String::from_utf8_lossy(&run.stderr);
    let printed = String::from_utf8(run.stdout).expect("text");
    let (expected, found) = (table(&page), table(&printed));

    let mut wrong = Vec::new();
    for (key, row) in &expected {
        if found.get(key) != Some(row) {
            wrong.push(format!("{key:?}: the page says {row:?}, and it is {:?}", found.get(key)));
        }
    }
    for (key @ (server, transport, check), row) in &found {
        let named = || expected.keys().any(|other| (other.0, other.1) == (*server, *transport));
        if (*check == "every MUST" && !expected.contains_key(key)) || !named() {
            wrong.push(format!("{key:?}: {row:?} stands nowhere in the page"));
        }
    }

    assert!(!expected.is_empty(), "the page has a table");
    assert!(wrong.is_empty(), "{}\n{said}", wrong.join("\n"));
    // A control that is not clean, or no report.
    assert!(run.status.success(), "{said}");
}
