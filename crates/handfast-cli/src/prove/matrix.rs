//! Every twin against every check, over every transport: one letter for each verdict.

use std::{fmt::Write, sync::Arc};

use futures_util::{StreamExt, TryStreamExt, stream};
use handfast_probe::{
    checks,
    identity::{Identities, Who},
    report::Report,
    runner::Run,
    verdict::Verdict,
};
use handfast_twins::Twin;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::{finished, served::started};
use crate::{
    output::{Failure, Progress},
    twin::Transport,
};

/// What the probe says of one twin over one transport.
pub(super) struct Line {
    twin: &'static str,
    transport: Transport,
    /// In the order of the catalogue.
    verdicts: Vec<Verdict>,
}

/// Probes every twin over these transports, as two users whom somebody named. Each transport has two threads of its own.
pub(super) async fn probed(transports: &[Transport]) -> Result<Vec<Line>, Failure> {
    let progress = Arc::new(Progress::start());
    let mut halves = Vec::new();
    for (&transport, part) in transports.iter().flat_map(|transport| (0..PARTS).map(move |part| (transport, part))) {
        let (done, half) = oneshot::channel();
        let progress = Arc::clone(&progress);
        // Nobody waits for it once nobody wants to know: an interrupted run ends at once.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let lines = match runtime {
                Ok(runtime) => runtime.block_on(over(transport, part, &progress)),
                Err(error) => Err(Failure(error.to_string())),
            };
            let _ = done.send(lines);
        });
        halves.push(half);
    }
    let mut lines = Vec::new();
    for half in halves {
        lines.extend(half.await.map_err(|_| Failure("a thread of the matrix ended early".to_owned()))??);
    }
    let place = |line: &Line| {
        let transport = transports.iter().position(|transport| *transport == line.transport);
        (transport, handfast_twins::all().iter().position(|twin| twin.name == line.twin))
    };
    lines.sort_by_key(place);
    Ok(lines)
}

/// Several twins at once: most of the time is waiting.
async fn over(transport: Transport, part: usize, progress: &Progress) -> Result<Vec<Line>, Failure> {
    let lines = stream::iter(handfast_twins::all().iter().skip(part).step_by(PARTS)).map(|twin| {
        progress.say(&format!("matrix: {} over {}", twin.name, word(transport)));
        line(twin, transport)
    });
    lines.buffered(AT_ONCE).try_collect().await
}

async fn line(twin: &'static Twin, transport: Transport) -> Result<Line, Failure> {
    let served = started(transport, twin.name).await?;
    let report = finished(Run::new(served.address(), identities(twin)?)).await;
    served.stop().await;
    Ok(Line { twin: twin.name, transport, verdicts: verdicts(&report?) })
}

const AT_ONCE: usize = 8;
const PARTS: usize = 2;

/// What the twins take for tokens that were renewed, of another client and another tenant, whose time is over, for another server,
/// and for the client itself.
fn identities(twin: &Twin) -> Result<Identities, Failure> {
    let token = |text: &str| twin.token(text).into();
    let given = Identities::new(Some(token("alice")), Some(token("bob")));
    let given = given.map_err(|error| Failure(error.to_string()))?;
    Ok(given
        .with(Who::NewToken, token("renewed-alice"))
        .with(Who::OtherClient, token("phone-alice"))
        .with(Who::OtherTenant, token("acme-carol"))
        .with(Who::Expired, token("expired-alice"))
        .with(Who::WrongAudience, token("elsewhere-alice"))
        .with(Who::ClientIdAudience, token("client-alice")))
}

fn verdicts(report: &Report) -> Vec<Verdict> {
    report.checks.iter().map(|check| check.verdict).collect()
}

/// Checks that no twin is confirmed by, or that no twin is refuted by: they would prove nothing.
pub(super) fn unproved(lines: &[Line]) -> Vec<&'static str> {
    let seen = |at: usize, verdict: Verdict| lines.iter().any(|line| line.verdicts.get(at) == Some(&verdict));
    let ids = checks::all().map(|check| check.id).enumerate();
    // There are no session ids over stdio.
    let testable = |at: usize| lines.iter().any(|line| line.verdicts.get(at).is_some_and(|v| *v != Verdict::Skipped));
    ids.filter(|(at, _)| testable(*at) && !(seen(*at, Verdict::Confirmed) && seen(*at, Verdict::Refuted)))
        .map(|(_, id)| id)
        .collect()
}

/// The table for a person: a column for each check, its letter explained below.
pub(super) fn text(lines: &[Line], transports: &[Transport]) -> String {
    let mut text = String::from("Every twin and every check: C confirmed, r refuted, . skipped, E errored\n\n");
    let letters: String = LETTERS.chars().take(checks::all().count()).collect();
    let width = letters.len() + 2;
    let cells = |cells: Vec<String>| {
        cells.iter().map(|cell| format!("{cell:<width$}")).collect::<String>().trim_end().to_owned()
    };
    let headings = transports.iter().map(|transport| word(*transport).to_owned()).collect();
    let _ = writeln!(text, "{:<26}{}", "", cells(headings));
    let _ = writeln!(text, "{:<26}{}", "", cells(vec![letters.clone(); transports.len()]));
    for twin in handfast_twins::all() {
        let of_twin = lines.iter().filter(|line| line.twin == twin.name);
        let row = of_twin.map(|line| line.verdicts.iter().map(|verdict| letter(*verdict)).collect()).collect();
        let _ = writeln!(text, "{:<26}{}", twin.name, cells(row));
    }
    text.push('\n');
    for (letter, check) in letters.chars().zip(checks::all()) {
        let _ = writeln!(text, "{letter} {}", check.id);
    }
    text.push('\n');
    text
}

/// The same for a program.
pub(super) fn json(lines: &[Line]) -> Value {
    let line = |line: &Line| {
        let ids = checks::all().map(|check| check.id.to_owned());
        let verdicts: serde_json::Map<String, Value> =
            ids.zip(line.verdicts.iter().map(|verdict| json!(verdict.word()))).collect();
        json!({"twin": line.twin, "transport": word(line.transport), "checks": verdicts})
    };
    lines.iter().map(line).collect()
}

/// One for each check.
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

fn letter(verdict: Verdict) -> char {
    match verdict {
        Verdict::Confirmed => 'C',
        Verdict::Refuted => 'r',
        Verdict::Skipped => '.',
        Verdict::Errored => 'E',
    }
}

/// A transport as both forms name it.
pub(super) fn word(transport: Transport) -> &'static str {
    if transport == Transport::Http { "http" } else { "stdio" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(verdict: Verdict) -> Line {
        let twin = handfast_twins::all()[0].name;
        Line { twin, transport: Transport::Http, verdicts: vec![verdict; checks::all().count()] }
    }

    #[test]
    fn a_check_that_never_says_yes_or_never_says_no_proves_nothing() {
        let all = checks::all().count();
        assert_eq!(unproved(&[line(Verdict::Confirmed)]).len(), all);
        assert_eq!(unproved(&[line(Verdict::Refuted), line(Verdict::Errored)]).len(), all);
        assert!(unproved(&[line(Verdict::Refuted), line(Verdict::Confirmed)]).is_empty());
        assert!(unproved(&[line(Verdict::Skipped)]).is_empty(), "what cannot be tested there is not missed there");
    }
}
