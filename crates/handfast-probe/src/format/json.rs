//! The report as JSON, version 1. Its schema is `schema/report.v1.json`.

use crate::report::Report;

/// Writes the report.
pub fn write(report: &Report) -> String {
    // A report is made of strings, numbers and maps with string keys: it always serialises.
    serde_json::to_string_pretty(report).map(|text| text + "\n").unwrap_or_default()
}
