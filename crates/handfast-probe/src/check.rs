//! What a check is: a value with a page, and a function that runs it.

use std::{future::Future, pin::Pin};

use crate::{
    owasp::Owasp,
    trial::Trial,
    verdict::{Judgement, Severity},
};

/// The strength of the duty that a check tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The specification says MUST.
    Must,
    /// The specification says SHOULD.
    Should,
    /// Good practice.
    Hardening,
}

impl Level {
    /// The word of the specification.
    pub fn word(self) -> &'static str {
        match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
            Self::Hardening => "hardening",
        }
    }
}

/// The running of a check.
pub type Running<'r> = Pin<Box<dyn Future<Output = Judgement> + 'r>>;

/// One check of the catalogue.
#[derive(Debug)]
pub struct Check {
    /// A permanent slug, `<family>-<weakness>`.
    pub id: &'static str,
    /// A few words.
    pub title: &'static str,
    /// The weakness that *confirmed* asserts.
    pub claim: &'static str,
    /// The sentence of the specification that it serves.
    pub spec: &'static str,
    /// Where that sentence stands.
    pub spec_url: &'static str,
    /// Its page, in Markdown.
    pub help: &'static str,
    /// The strength of the duty.
    pub level: Level,
    /// How bad a confirmed weakness is, at most.
    pub severity: Severity,
    /// CWE numbers, the primary one first.
    pub cwe: &'static [u32],
    /// CVSS vectors of a finding, one for each severity that it can have, the worst first.
    pub cvss: &'static [&'static str],
    /// Entries of OWASP lists, the closest first.
    pub owasp: &'static [Owasp],
    /// Runs it.
    pub run: for<'r> fn(&'r mut Trial<'_, '_>) -> Running<'r>,
}
