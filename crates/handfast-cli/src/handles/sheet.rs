//! Records as a table, as lines, or as JSON, page by page. Of the object only its type is shown: its reference is the
//! server's own affair.

use std::{fmt::Write, time::Duration};

use handfast::{Record, clock::Timestamp};
use serde_json::{Value, json};

use super::list::Format;
use crate::output::on_one_line;

/// What has been written so far.
pub(super) struct Sheet {
    format: Format,
    /// The rows of a table, whose widths are known when all of them are.
    rows: Vec<[String; 9]>,
    /// How many records were written.
    count: u64,
}

impl Sheet {
    pub(super) fn new(format: Format) -> Self {
        Self { format, rows: Vec::new(), count: 0 }
    }

    /// The text of the next records, at this time.
    pub(super) fn page(&mut self, records: &[Record], now: Timestamp) -> String {
        let mut text = String::new();
        if self.format == Format::Json && self.count == 0 {
            let _ = write!(text, "{{\n\"version\": 1,\n\"command\": \"list\",\n\"now\": \"{now}\",\n\"handles\": [");
        }
        for record in records {
            match self.format {
                Format::Table => self.rows.push(row(record, now)),
                Format::Lines => text.push_str(&line(record, now)),
                Format::Json => {
                    let comma = if self.count == 0 { "" } else { "," };
                    let _ = write!(text, "{comma}\n{}", object(record, now));
                }
            }
            self.count += 1;
        }
        text
    }

    /// The text after the last record.
    pub(super) fn end(self, more: bool) -> String {
        match self.format {
            Format::Table if self.rows.is_empty() => String::new(),
            Format::Table => table(&self.rows),
            Format::Lines => String::new(),
            Format::Json => format!("\n],\n\"more\": {more}\n}}\n"),
        }
    }
}

/// What has become of a handle: alive until then, or dead since then.
fn state(record: &Record, now: Timestamp) -> (&'static str, Timestamp) {
    match &record.revoked {
        Some(revoked) => ("revoked", revoked.at),
        None if now >= record.expires => ("expired", record.expires),
        None if now >= record.ends => ("idle", record.ends),
        None => ("alive", record.ends),
    }
}

fn line(record: &Record, now: Timestamp) -> String {
    let (state, at) = state(record, now);
    let partition = &record.partition;
    let columns = [
        record.digest.to_string(),
        state.to_owned(),
        at.to_string(),
        record.created.to_string(),
        record.object.kind.to_string(),
        record.scopes.text(),
        record.policy.to_string(),
        text(&partition.tenant),
        text(&partition.client),
        text(&partition.subject),
    ];
    columns.map(|column| on_one_line(&column)).join("\t") + "\n"
}

fn object(record: &Record, now: Timestamp) -> Value {
    let (state, _) = state(record, now);
    let partition = &record.partition;
    let scopes: Vec<&str> = record.scopes.iter().map(|scope| scope.as_str()).collect();
    json!({
        "digest": record.digest.to_string(),
        "state": state,
        "object_type": record.object.kind,
        "scopes": scopes,
        "policy_version": record.policy,
        "tenant": partition.tenant,
        "client": partition.client,
        "subject": partition.subject.map(|subject| subject.to_string()),
        "created_at": record.created.to_string(),
        "expires_at": record.expires.to_string(),
        "ends_at": record.ends.to_string(),
        "revocation": record.revoked.as_ref().map(|revoked| json!({
            "at": revoked.at.to_string(),
            "reason": revoked.why.reason,
            "receipt": revoked.why.receipt,
        })),
    })
}

const HEADINGS: [&str; 9] = ["DIGEST", "STATE", "MADE", "OBJECT", "SCOPES", "POLICY", "TENANT", "CLIENT", "USER"];

fn row(record: &Record, now: Timestamp) -> [String; 9] {
    let ago = |at: Timestamp| format!("{} ago", roughly(now.duration_since(at).unsigned_abs()));
    let state = match state(record, now) {
        ("alive", ends) => format!("alive, {} left", roughly(ends.duration_since(now).unsigned_abs())),
        (state, at) => format!("{state} {}", ago(at)),
    };
    let partition = &record.partition;
    // Of a user the keyed digest is what tells them apart; before the colon stands under which key.
    let user = partition.subject.map(|subject| subject.to_string().split_off(17)).unwrap_or_default();
    [
        short(&record.digest.to_string(), 12),
        state,
        ago(record.created),
        short(record.object.kind.as_str(), 24),
        short(&record.scopes.text(), 24),
        short(record.policy.as_str(), 24),
        short(&text(&partition.tenant), 24),
        short(&text(&partition.client), 24),
        short(&user, 12),
    ]
}

fn table(rows: &[[String; 9]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0).max(HEADINGS[column].len())
    };
    let widths: [usize; 9] = std::array::from_fn(width);
    let headings = HEADINGS.map(str::to_owned);
    let mut text = String::new();
    for row in std::iter::once(&headings).chain(rows) {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    text
}

/// The first characters of a text, marked where some are missing.
fn short(text: &str, most: usize) -> String {
    let text = on_one_line(text);
    if text.chars().count() <= most {
        return text;
    }
    text.chars().take(most).chain(['…']).collect()
}

/// A duration in its largest unit, and in the next one where that is not nothing.
fn roughly(duration: Duration) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3600, "h"), (60, "m"), (1, "s")];
    let seconds = duration.as_secs();
    let largest = UNITS.iter().position(|(size, _)| seconds >= *size).unwrap_or(UNITS.len() - 1);
    let (size, unit) = UNITS[largest];
    let first = format!("{}{unit}", seconds / size);
    match UNITS.get(largest + 1).map(|(less, unit)| (seconds % size / less, unit)) {
        Some((rest @ 1.., unit)) => format!("{first} {rest}{unit}"),
        _ => first,
    }
}

fn text(part: &Option<impl ToString>) -> String {
    part.as_ref().map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_told_in_two_units_at_most() {
        for (seconds, expected) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (3599, "59m 59s"),
            (3600, "1h"),
            (86_399, "23h 59m"),
            (86_402, "1d"),
            (90_000, "1d 1h"),
            (100 * 86_400, "100d"),
        ] {
            assert_eq!(roughly(Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn long_texts_are_shortened_and_stay_on_their_line() {
        assert_eq!(short("acme", 4), "acme");
        assert_eq!(short("acme!", 4), "acme…");
        assert_eq!(short("é\u{202e}\nb", 9), "é  b");
    }
}
