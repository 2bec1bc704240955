//! The documents name everything that the probe can say, and nothing that there is not.

#[path = "support/page.rs"]
mod page;
#[path = "support/table.rs"]
mod table;

use std::collections::BTreeSet;

use handfast_probe::{checks, verdict::Reason};

const VERDICTS: &str = include_str!("../../../docs/verdicts.md");
const LIMITS: &str = include_str!("../../../docs/limits.md");
const TABLE: &str = include_str!("matrix.txt");

#[test]
fn every_reason_is_explained() {
    for reason in Reason::ALL {
        let row = format!("| `{}` |", reason.slug());
        assert!(VERDICTS.contains(&row), "docs/verdicts.md has no row for {}", reason.slug());
    }
}

#[test]
fn no_reason_is_explained_that_does_not_exist() {
    let (_, table) = VERDICTS.split_once("## Reasons").expect("a chapter");
    let (table, _) = table.split_once("## Further observations").expect("the next chapter");
    let named = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`')).map(|(slug, _)| slug);

    let unknown: Vec<&str> = named.filter(|slug| Reason::ALL.iter().all(|reason| reason.slug() != *slug)).collect();

    assert_eq!(unknown, [""; 0]);
}

#[test]
fn limits_name_checks_and_twins_that_there_are() {
    let known: Vec<&str> = checks::all().map(|check| check.id).collect();
    let is_twin = |word: &str| handfast_twins::find(word).is_some();
    let mut unknown: BTreeSet<&str> = page::like_ids(LIMITS, &known).into_iter().collect();
    for report in reports() {
        unknown.extend(report.checks);
        assert!(report.twins.iter().all(|twin| is_twin(twin)), "{}: {:?}", report.title, report.twins);
    }

    unknown.retain(|word| !known.contains(word) && !is_twin(word));

    assert!(unknown.is_empty(), "no such checks: {unknown:?}");
}

/// Each report has a twin with a check that finds it there, or a reason.
#[test]
fn every_report_is_found_on_a_twin_or_says_why_not() {
    let without: Vec<_> =
        reports().into_iter().filter(|report| report.twins.is_empty() != report.checks.is_empty()).collect();
    let without: Vec<_> = without.iter().map(|report| (report.title, &report.checks)).collect();
    assert!(without.is_empty(), "a twin without a check, or checks that no twin shows: {without:#?}");
    for report in reports() {
        let Report { title, twins, checks, remark } = &report;
        assert!(title.contains("](https://") || *title == "the same", "{title}: no link");
        assert!(!twins.is_empty() || remark.ends_with('.'), "{title}: neither a twin nor a reason: `{remark}`");
        let verdict = ["refuted", "skipped", "errored"].into_iter().find(|verdict| remark.starts_with(verdict));
        let verdict = verdict.unwrap_or("confirmed");
        for twin in twins {
            let line = table::lines(TABLE).into_iter().find(|line| line.twin == *twin);
            let line = line.unwrap_or_else(|| panic!("{title}: matrix.txt has no line for {twin}"));
            let said: Vec<&str> = checks.iter().map(|check| line.of(check)).collect();
            assert!(said.iter().any(|said| said.starts_with(verdict)), "{title}: {twin} is not {verdict}: {said:?}");
        }
    }
}

/// A public report of `limits.md`.
struct Report {
    title: &'static str,
    twins: Vec<&'static str>,
    checks: Vec<&'static str>,
    /// What stands behind the checks, or in their place.
    remark: &'static str,
}

fn reports() -> Vec<Report> {
    let read = page::rows(LIMITS).into_iter().map(|(_, cells)| {
        let [title, _, twins, found] = cells[..] else { panic!("not four cells: {cells:?}") };
        let (twins, rest) = page::named(twins);
        assert!(rest.is_empty() || twins.is_empty(), "{title}: what is {rest} beside {twins:?}?");
        let (checks, remark) = page::named(found);
        Report { title, twins, checks, remark }
    });
    let reports: Vec<Report> = read.collect();
    assert!(reports.len() > 30, "only {} reports were read", reports.len());
    reports
}
