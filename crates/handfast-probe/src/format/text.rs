//! The report for a person: one line for each check, the story of the exchange under a confirmed one, totals at the end.

use std::{collections::BTreeMap, fmt::Write};

use anstyle::{AnsiColor, Style};
use handfast_wire::text::is_printable;

use crate::{
    coverage::State,
    evidence::Step,
    report::{CheckReport, EntryPoint, Report, is_not_given},
    verdict::Verdict,
};

/// Writes the report, with or without colour.
pub fn write(report: &Report, colour: bool) -> String {
    let mut out = Writer { text: String::new(), colour };
    out.heading(report);
    for alike in report.checks.chunk_by(says_the_same) {
        match alike {
            [first, _, ..] => out.group(first, alike.len()),
            _ => alike.iter().for_each(|check| out.check(check)),
        }
    }
    out.access(report);
    for note in &report.notes {
        out.line(&format!("note: {note}"));
    }
    out.totals(report);
    out.text
}

/// Whether two checks of one family were not made, for one reason: that is worth one line.
fn says_the_same(one: &CheckReport, other: &CheckReport) -> bool {
    let is_idle = |check: &CheckReport| {
        matches!(check.verdict, Verdict::Skipped | Verdict::Errored) && check.observations.is_empty()
    };
    family(one) == family(other)
        && is_idle(one)
        && is_idle(other)
        && (one.verdict, one.reason, &one.detail) == (other.verdict, other.reason, &other.detail)
}

fn family(check: &CheckReport) -> &str {
    check.id.split('-').next().unwrap_or_default()
}

struct Writer {
    text: String,
    colour: bool,
}

impl Writer {
    fn heading(&mut self, report: &Report) {
        let at = report.target.endpoint.as_ref().unwrap_or(&report.target.address);
        let mut heading = format!("{} {} on {at} ({})", report.tool.name, report.tool.version, report.target.transport);
        if let Some(handshake) = &report.handshake {
            let _ = write!(heading, ", {}, {} tools", handshake.era, handshake.tools);
            if handshake.prompts + handshake.resources > 0 {
                let _ = write!(heading, ", {} prompts, {} resources", handshake.prompts, handshake.resources);
            }
            let _ = write!(heading, ", {} identities", handshake.identities);
        }
        self.line(&printable(&heading));
        self.line("");
    }

    /// Checks that were not made, as one.
    fn group(&mut self, first: &CheckReport, count: usize) {
        let verdict = self.painted(style_of(first.verdict), &format!("{:<9}", first.verdict.word()));
        self.line(&format!("{verdict}  {}-* ({count} checks)  [{}]", family(first), first.reason.slug()));
        self.wrapped(&first.detail, "           ");
        self.line("");
    }

    fn check(&mut self, check: &CheckReport) {
        let verdict = self.painted(style_of(check.verdict), &format!("{:<9}", check.verdict.word()));
        let weight = match check.verdict {
            Verdict::Confirmed => {
                let cwe = check.cwe.first().map(|number| format!(", CWE-{number}")).unwrap_or_default();
                format!("  {}{cwe}", format!("{:?}", check.severity).to_lowercase())
            }
            _ => String::new(),
        };
        let agreeing = check.runs.iter().filter(|seen| **seen == check.verdict).count();
        let times = match check.runs.len() {
            1 => String::new(),
            runs => format!("  {agreeing} of {runs}"),
        };
        self.line(&format!("{verdict}  {}  [{}]{weight}{times}", check.id, check.reason.slug()));
        self.wrapped(&check.detail, "           ");
        let confirmed = check.evidence.entry_points.iter().filter(|point| point.row.verdict == Verdict::Confirmed);
        for (number, point) in confirmed.enumerate() {
            // The first in full; the others differ only in their entry point.
            if number == 0 {
                self.story(check, point);
            } else {
                self.line(&format!(
                    "           also {}: {}",
                    printable(&point.row.entry),
                    printable(&point.row.detail)
                ));
            }
        }
        let is_idle = |point: &&EntryPoint| matches!(point.row.verdict, Verdict::Skipped | Verdict::Errored);
        let idle = check.evidence.entry_points.iter().filter(is_idle);
        let idle: Vec<String> =
            idle.map(|point| format!("{} [{}]", point.row.entry, point.row.reason.slug())).collect();
        if matches!(check.verdict, Verdict::Confirmed | Verdict::Refuted) && !idle.is_empty() {
            self.wrapped(&format!("not tested: {}", idle.join(", ")), "           ");
        }
        for observation in &check.observations {
            self.wrapped(&format!("observed {}: {}", observation.id, observation.text), "           ");
        }
        if check.verdict == Verdict::Confirmed {
            self.line(&format!("           remedy: handfast checks {}", check.id));
        }
        self.line("");
    }

    fn story(&mut self, check: &CheckReport, point: &EntryPoint) {
        self.line("");
        for step in point.row.story.iter().filter_map(|&at| check.evidence.exchanges.get(at)) {
            self.step(step);
        }
        for (name, value) in &point.facts {
            let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            self.wrapped(&format!("{}: {shown}", name.replace('_', " ")), "             ");
        }
    }

    fn step(&mut self, step: &Step) {
        let arguments = step.arguments.as_object().filter(|arguments| !arguments.is_empty());
        let arguments = arguments.map(|_| shortened(&step.arguments.to_string(), 200)).unwrap_or_default();
        self.line(&printable(&format!("             {:<12} {} -> {} {arguments}", step.who, step.step, step.call)));
        let status = step.http_status.map(|status| format!(" (HTTP {status})")).unwrap_or_default();
        let answer = shortened(&step.answer.replace('\n', " "), 200);
        self.line(&printable(&format!("             {:<12} {}{status}: {answer}", "", step.disposition)));
    }

    /// Who is served with what is A's: a line for each way in.
    fn access(&mut self, report: &Report) {
        for (at, access) in report.access.iter().enumerate() {
            if at == 0 {
                self.line("who is served with what is A's");
            }
            let met: Vec<String> = access.callers.iter().map(|met| format!("{}: {}", met.who, met.outcome)).collect();
            self.wrapped(&format!("{} - {}", access.entry, met.join(", ")), "           ");
        }
        if !report.access.is_empty() {
            self.line("");
        }
    }

    fn totals(&mut self, report: &Report) {
        let totals = &report.totals;
        let parts: Vec<String> = Verdict::ALL
            .iter()
            .zip(totals.counted())
            .map(|(verdict, count)| {
                let text = format!("{count} {}", verdict.word());
                if count == 0 { text } else { self.painted(style_of(*verdict), &text) }
            })
            .collect();
        let line = format!(
            "{}; {} observations; {} calls in {} ms",
            parts.join(", "),
            totals.observations,
            report.calls,
            report.duration_ms
        );
        self.line(&line);
        let count = |state: State| report.coverage.iter().filter(|cell| cell.state == state).count();
        let [tested, absent, untested] = [State::Tested, State::NotApplicable, State::NotTested].map(count);
        let all = report.coverage.len();
        self.line(&format!(
            "coverage: {tested} of {all} tested (a property on a surface), {absent} not applicable, {untested} not tested"
        ));
        let mut wanted: BTreeMap<&str, usize> = BTreeMap::new();
        for check in report.checks.iter().filter(|check| is_not_given(check.verdict, check.reason)) {
            *wanted.entry(check.reason.slug()).or_default() += 1;
        }
        if !wanted.is_empty() {
            let wanted: Vec<String> = wanted.iter().map(|(slug, count)| format!("{slug} ({count})")).collect();
            let text = format!(
                "not given, and so not tested: {} (identities are named in a profile; --max-wait gives time)",
                wanted.join(", ")
            );
            self.wrapped(&text, "");
        }
        if totals.confirmed + totals.refuted == 0 && tested == 0 {
            self.line("nothing could be tested: this says nothing about the server's safety");
        }
    }

    fn painted(&self, style: Style, text: &str) -> String {
        if self.colour { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    fn wrapped(&mut self, text: &str, indent: &str) {
        let text = printable(text);
        let mut line = String::new();
        for word in text.split_whitespace() {
            if !line.is_empty() && indent.len() + line.chars().count() + word.chars().count() >= WIDTH {
                self.line(&format!("{indent}{line}"));
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        self.line(&format!("{indent}{line}"));
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }
}

/// A server's words must not move the cursor or ring the bell.
fn printable(text: &str) -> String {
    text.chars().map(|c| if is_printable(c) { c } else { ' ' }).collect()
}

fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

fn style_of(verdict: Verdict) -> Style {
    let colour = match verdict {
        Verdict::Confirmed => AnsiColor::Red,
        Verdict::Refuted => AnsiColor::Green,
        Verdict::Skipped => AnsiColor::Yellow,
        Verdict::Errored => AnsiColor::Magenta,
    };
    colour.on_default().bold()
}

const WIDTH: usize = 110;
