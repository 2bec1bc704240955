//! The catalogue: every check has an id, a page, a place in the specification, a twin that confirms it and one that refutes it.

mod support;
#[path = "support/table.rs"]
mod table;

use std::collections::BTreeSet;

use handfast_probe::{checks, cvss, identity::Who, verdict::Reason};

const HEADINGS: [&str; 5] = ["Claim", "Why it matters", "How it is tested", "Reading the evidence", "Remedy"];
const FAMILIES: [&str; 14] = [
    "handle",
    "state",
    "session",
    "token",
    "challenge",
    "task",
    "cursor",
    "design",
    "approval",
    "decline",
    "answers",
    "asks",
    "ambient",
    "response",
];
const TABLE: &str = include_str!("matrix.txt");

#[test]
fn ids_are_unique_slugs_of_family_and_weakness() {
    let ids: Vec<&str> = checks::all().map(|check| check.id).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
    for id in ids {
        let words: Vec<&str> = id.split('-').collect();
        assert!(words.len() >= 2, "{id}: a family and a weakness");
        assert!(FAMILIES.contains(&words[0]), "{id}");
        assert!(
            words
                .iter()
                .all(|word| !word.is_empty()
                    && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())),
            "{id}"
        );
    }
}

#[test]
fn every_check_has_a_page_with_its_five_headings_in_order() {
    for check in checks::all() {
        let headings: Vec<&str> =
            check.help.lines().filter_map(|line| line.strip_prefix("# ")).map(str::trim).collect();
        assert_eq!(headings, HEADINGS, "{}", check.id);
        for section in check.help.split("\n# ") {
            let (heading, text) = section.split_once('\n').unwrap_or((section, ""));
            assert!(text.split_whitespace().count() >= 10, "{}: nothing is said under `{heading}`", check.id);
        }
        assert!(check.help.contains("```"), "{}: the remedy shows code", check.id);
    }
}

#[test]
fn every_check_cites_its_weakness_and_its_specification() {
    for check in checks::all() {
        assert!(!check.cwe.is_empty() && check.cwe.iter().all(|number| (1..2000).contains(number)), "{}", check.id);
        assert!(check.spec.split_whitespace().count() >= 5, "{}: `{}` is no sentence", check.id, check.spec);
        assert!(
            check.spec.contains(check.level.word()) || check.level.word() == "hardening",
            "{}: the sentence says how strong it is",
            check.id
        );
        assert!(check.spec_url.starts_with("https://modelcontextprotocol.io/"), "{}", check.id);
        assert!(check.claim.ends_with('.') && !check.title.ends_with('.') && !check.title.is_empty(), "{}", check.id);
    }
}

#[test]
fn every_check_scores_as_its_severity_says_and_is_filed() {
    for check in checks::all() {
        let scored = cvss::of(check.cvss, check.severity).map(|scored| scored.vector);
        assert_eq!(scored, check.cvss.first().copied(), "{}: the worst vector is that of its severity", check.id);
        assert!(!check.owasp.is_empty(), "{}", check.id);
    }
}

#[test]
fn every_check_is_found_by_its_id_and_by_nothing_else() {
    for check in checks::all() {
        assert!(checks::find(check.id).is_some_and(|found| std::ptr::eq(found, check)));
    }
    for id in ["", "handle", "handle-foreign-principal ", "HANDLE-FOREIGN-PRINCIPAL", "no-such-check"] {
        assert!(checks::find(id).is_none(), "{id}");
    }
}

#[test]
fn every_check_has_a_twin_that_confirms_it_and_one_that_refutes_it() {
    for check in checks::all() {
        // What is asked of no particular credential is skipped only where there is none at all: `tokens.rs` sees that.
        let verdicts: &[&str] = match check.id {
            "token-none" => &["confirmed", "refuted"],
            _ => &["confirmed", "refuted", "skipped"],
        };
        for verdict in verdicts {
            let fires = table::lines(TABLE).iter().any(|line| line.of(check.id).starts_with(verdict));
            assert!(fires, "{}: no twin is {verdict}", check.id);
        }
        // Alone, or beside another one that its page names.
        let alone = table::lines(TABLE).iter().any(|line| {
            let mut others = checks::all().filter(|other| other.id != check.id && !check.help.contains(other.id));
            line.of(check.id).starts_with("confirmed")
                && others.all(|other| !line.of(other.id).starts_with("confirmed"))
        });
        assert!(alone, "{}: no twin is confirmed by it alone", check.id);
    }
}

#[test]
fn the_table_uses_reasons_that_exist() {
    let known: BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.slug()).collect();
    for line in table::lines(TABLE) {
        for check in checks::all() {
            let reason = line.of(check.id).split(' ').nth(1);
            assert!(reason.is_none_or(|reason| known.contains(reason)), "{}: {reason:?}", line.twin);
        }
    }
}

#[test]
fn the_schema_of_reports_knows_every_caller() {
    let schema: serde_json::Value = include_str!("../schema/report.v1.json").parse().expect("JSON");
    let known = schema["$defs"]["exchange"]["properties"]["who"]["enum"].as_array().expect("a list");
    let known: BTreeSet<&str> = known.iter().filter_map(|who| who.as_str()).collect();
    let callers =
        [Who::A, Who::B, Who::Nobody, Who::Impostor, Who::InQuery].into_iter().chain(Who::NAMED).chain(Who::FORGED);
    assert_eq!(callers.map(Who::label).collect::<BTreeSet<_>>(), known);
}
