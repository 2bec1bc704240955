//! `docs/checks/`: a page for each check and an index, written from the catalogue. `BLESS=1` writes them.

use std::{fmt::Write, fs, path::PathBuf};

use handfast_probe::{check::Check, checks, cvss};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/checks")
}

fn severity(check: &Check) -> String {
    format!("{:?}", check.severity).to_lowercase()
}

/// The page of a check: what its code says, and its text below that.
fn page(check: &Check) -> String {
    let mut text = format!("# `{}`: {}\n\n{}\n\n", check.id, check.title, check.claim);
    let cwe: Vec<String> = check.cwe.iter().map(|number| format!("CWE-{number}")).collect();
    let owasp: Vec<String> = check.owasp.iter().map(|entry| format!("{} {}", entry.id, entry.title)).collect();
    let scores: Vec<String> = check
        .cvss
        .iter()
        .filter_map(|vector| {
            let scored = SEVERITIES.iter().find_map(|severity| cvss::of(&[vector], *severity))?;
            Some(format!("{:.1} `{}`", scored.score, scored.vector))
        })
        .collect();
    let _ = write!(
        text,
        "| | |\n|---|---|\n| severity | {}, at most |\n| duty | {} |\n| CVSS | {} |\n| CWE | {} |\n| OWASP | {} |\n\n",
        severity(check),
        check.level.word(),
        scores.join("; "),
        cwe.join(", "),
        owasp.join("; ")
    );
    let _ = write!(text, "> {}\n\n<{}>\n\n", check.spec, check.spec_url);
    // Its headings are below the page's own.
    for line in check.help.lines() {
        let heading = line.strip_prefix("# ").map(|heading| format!("## {heading}"));
        let _ = writeln!(text, "{}", heading.as_deref().unwrap_or(line));
    }
    text
}

fn index() -> String {
    let mut text = String::from(
        "# The checks\n\nWritten from the catalogue; `handfast checks` prints the same.\n\n| check | severity | duty | claims that |\n|---|---|---|---|\n",
    );
    for check in checks::all() {
        let (id, word) = (check.id, check.level.word());
        let _ = writeln!(text, "| [`{id}`]({id}.md) | {} | {word} | {} |", severity(check), check.claim);
    }
    text
}

const SEVERITIES: [handfast_probe::verdict::Severity; 5] = {
    use handfast_probe::verdict::Severity::*;
    [Info, Low, Medium, High, Critical]
};

#[test]
fn there_is_a_current_page_for_each_check_and_no_other() {
    let pages = checks::all().map(|check| (format!("{}.md", check.id), page(check)));
    let wanted: Vec<(String, String)> = pages.chain([("README.md".to_owned(), index())]).collect();
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all(folder()).expect("the folder can be made");
        for (name, text) in &wanted {
            fs::write(folder().join(name), text).expect("the page can be written");
        }
    }
    for (name, text) in &wanted {
        let there = fs::read_to_string(folder().join(name)).unwrap_or_default();
        assert!(there == *text, "docs/checks/{name} is not what the catalogue says: BLESS=1 writes it");
    }
    let found = fs::read_dir(folder()).expect("the folder is there");
    let found = found.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
    let strays: Vec<String> = found.filter(|name| wanted.iter().all(|(known, _)| known != name)).collect();
    assert_eq!(strays, [""; 0], "pages of checks that are not there");
}
