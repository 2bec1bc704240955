//! Every twin against every check, over HTTP: `matrix.txt` is the table. Its stdio half is in the tests of the command line.

mod support;
#[path = "support/table.rs"]
mod table;

use futures_util::{StreamExt, stream};
use handfast_probe::{report::Report, verdict::Verdict};
use handfast_twins::{Answers, Twin};
use support::{probed, served, sessions, tokens, verdict, verdicts, whole_run_of};

const TABLE: &str = include_str!("matrix.txt");

async fn seen(answers: Answers) -> Vec<(String, String)> {
    let all = stream::iter(handfast_twins::all()).map(|twin| line(twin, answers));
    // Several at once: much of the time is waiting.
    all.buffered(AT_ONCE).collect().await
}

async fn line(twin: &Twin, answers: Answers) -> (String, String) {
    let served = served(twin.name, answers).await;
    let report = probed(&whole_run_of(twin, &served.url())).await;
    for check in report.checks.iter().filter(|check| check.verdict == Verdict::Confirmed) {
        assert!(check.cvss.is_some(), "{}: {} has no vector for {:?}", twin.name, check.id, check.severity);
    }
    let cells = [verdicts(&report), sessions(&report), tokens(&report), further(&report)];
    (twin.name.to_owned(), cells.join(" | ").trim_end().to_owned())
}

const AT_ONCE: usize = 4;

fn further(report: &Report) -> String {
    let cells: Vec<(String, String)> =
        report.checks.iter().map(|check| (check.id.to_owned(), verdict(check))).collect();
    table::further(&cells, false)
}

#[test]
fn no_twin_is_missing_from_the_table() {
    table::assert_complete(TABLE);
}

#[tokio::test]
#[expect(clippy::print_stdout, reason = "`make matrix` shows the table")]
async fn every_twin_gets_its_verdicts_over_http_with_json() {
    let seen = seen(Answers::Json).await;

    for (twin, verdicts) in &seen {
        println!("{twin:<26} | {verdicts}");
    }
    // `BLESS=1` writes what was seen, for a person to look at before it is committed.
    if std::env::var_os("BLESS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/matrix.txt");
        std::fs::write(path, table::rewritten(TABLE, &seen)).expect("the table can be written");
        return;
    }
    table::assert_agrees(TABLE, "http with JSON", &seen);
}

#[tokio::test]
async fn every_twin_gets_its_verdicts_over_http_with_event_streams() {
    let seen = seen(Answers::Sse).await;

    table::assert_agrees(TABLE, "http with SSE", &seen);
}
