//! Ways to write a report. A format sees the report and nothing else.

pub mod cxg;
pub mod json;
pub mod text;
