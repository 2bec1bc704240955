//! The report of a run: the one thing that formats see. Its JSON form is version 1 and has a schema of its own in
//! `schema/report.v1.json`.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    access::Access,
    check::{Check, Level},
    coverage::Cell,
    cvss::{self, Scored},
    evidence::Step,
    owasp::Owasp,
    redact::Redactor,
    target::Era,
    verdict::{Halt, Judgement, Observation, Reason, Row, Severity, Verdict},
};

const LONGEST_TEXT: usize = 600;

/// Version of the JSON form.
pub const VERSION: u32 = 1;

/// Everything that a run concluded.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Version of this form.
    pub version: u32,
    /// What made it.
    pub tool: Tool,
    /// What was tested.
    pub target: TargetReport,
    /// What was agreed on; null where nothing answered.
    pub handshake: Option<HandshakeReport>,
    /// One entry for each check, in the order of the catalogue.
    pub checks: Vec<CheckReport>,
    /// Every property on every surface: tested, not applicable, or not tested and why.
    pub coverage: Vec<Cell>,
    /// Who is served with A's handle, at one way in for each kind.
    pub access: Vec<Access>,
    /// How many checks ended in which verdict.
    pub totals: Totals,
    /// Side remarks about the run: noise on standard output, limits.
    pub notes: Vec<String>,
    /// Calls made.
    pub calls: usize,
    /// How long the run took.
    pub duration_ms: u64,
    /// When it ended, in seconds since 1970.
    pub finished_at: u64,
}

/// What made a report.
#[derive(Debug, Clone, Serialize)]
pub struct Tool {
    /// `handfast`.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
}

/// What was tested.
#[derive(Debug, Clone, Serialize)]
pub struct TargetReport {
    /// The address as given, without secrets.
    pub address: String,
    /// The endpoint that answered, without secrets; null where nothing did.
    pub endpoint: Option<String>,
    /// `http` or `stdio`.
    pub transport: &'static str,
}

/// What was agreed on.
#[derive(Debug, Clone, Serialize)]
pub struct HandshakeReport {
    /// `stateless(2026-07-28)` or `legacy(initialize)`.
    pub era: String,
    /// The revision of the protocol.
    pub version: String,
    /// The server's name for itself.
    pub server: Value,
    /// How many tools, prompts and resource templates it lists.
    pub tools: usize,
    /// Prompts.
    pub prompts: usize,
    /// Resources and templates.
    pub resources: usize,
    /// `given` by the operator or `synthetic`.
    pub identities: &'static str,
}

/// What one check concluded.
#[derive(Debug, Clone, Serialize)]
pub struct CheckReport {
    /// Permanent slug.
    pub id: &'static str,
    /// A few words.
    pub title: &'static str,
    /// The weakness that *confirmed* asserts.
    pub claim: &'static str,
    /// The verdict.
    pub verdict: Verdict,
    /// Stable slug of the reason.
    pub reason: Reason,
    /// A sentence.
    pub detail: String,
    /// Of the finding where confirmed, else of the check.
    pub severity: Severity,
    /// MUST, SHOULD or hardening.
    pub level: Level,
    /// CWE numbers, the primary one first.
    pub cwe: Vec<u32>,
    /// The CVSS vector of that severity, and its score.
    pub cvss: Option<Scored>,
    /// Entries of OWASP lists, the closest first.
    pub owasp: &'static [Owasp],
    /// The sentence of the specification.
    pub spec: &'static str,
    /// Where it stands.
    pub spec_url: &'static str,
    /// Near misses and side remarks.
    pub observations: Vec<Observation>,
    /// What each run came to, where there were several (`--repeat`).
    pub runs: Vec<Verdict>,
    /// What backs the verdict.
    pub evidence: Evidence,
}

/// What backs a verdict.
#[derive(Debug, Clone, Serialize)]
pub struct Evidence {
    /// One row for each entry point.
    pub entry_points: Vec<EntryPoint>,
    /// Every exchange, in order, shortened and redacted.
    pub exchanges: Vec<Step>,
}

/// One entry point under test.
#[derive(Debug, Clone, Serialize)]
pub struct EntryPoint {
    /// What was concluded for it.
    #[serde(flatten)]
    pub row: Row,
    /// Handles, marker, mutation: whatever the check shows.
    pub facts: Map<String, Value>,
}

/// How many checks ended in which verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Bad news.
    pub confirmed: usize,
    /// Good news.
    pub refuted: usize,
    /// Could not be tested.
    pub skipped: usize,
    /// Failed.
    pub errored: usize,
    /// Observations of all checks together.
    pub observations: usize,
}

impl Totals {
    /// The number of each verdict, in the order of [`Verdict::ALL`].
    pub fn counted(&self) -> [usize; 4] {
        [self.confirmed, self.refuted, self.skipped, self.errored]
    }
}

impl std::fmt::Display for Totals {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts =
            Verdict::ALL.iter().zip(self.counted()).map(|(verdict, count)| format!("{count} {}", verdict.word()));
        out.write_str(&parts.collect::<Vec<_>>().join(", "))
    }
}

impl CheckReport {
    /// The report of a check that ran.
    pub fn new(check: &'static Check, judgement: Judgement) -> Self {
        let severity = judgement.severity.unwrap_or(check.severity);
        let entry_points = judgement.rows.into_iter().map(|row| EntryPoint { facts: row.facts.clone(), row }).collect();
        Self {
            id: check.id,
            title: check.title,
            claim: check.claim,
            verdict: judgement.verdict,
            reason: judgement.reason,
            detail: judgement.detail,
            severity,
            level: check.level,
            cwe: if judgement.cwe.is_empty() { check.cwe.to_vec() } else { judgement.cwe },
            cvss: cvss::of(check.cvss, severity),
            owasp: check.owasp,
            spec: check.spec,
            spec_url: check.spec_url,
            observations: judgement.observations,
            runs: vec![judgement.verdict],
            evidence: Evidence { entry_points, exchanges: judgement.steps },
        }
    }

    /// The report of a check that never got to run.
    pub fn halted(check: &'static Check, halt: Halt) -> Self {
        Self::new(check, Judgement::halted(halt))
    }
}

impl Totals {
    /// Counts.
    pub fn of(checks: &[CheckReport]) -> Self {
        let count = |verdict: Verdict| checks.iter().filter(|check| check.verdict == verdict).count();
        Self {
            confirmed: count(Verdict::Confirmed),
            refuted: count(Verdict::Refuted),
            skipped: count(Verdict::Skipped),
            errored: count(Verdict::Errored),
            observations: checks.iter().map(|check| check.observations.len()).sum(),
        }
    }
}

/// Whether a reason says that there is nothing to test, and not that it could not be tested.
pub(crate) fn is_absence(verdict: Verdict, reason: Reason, handshake: Option<&HandshakeReport>) -> bool {
    // States that a client echoes came with the stateless revision.
    let has_states = handshake.is_none_or(|handshake| handshake.version == handfast_wire::meta::MODERN);
    let is_absent = reason_is_absence(reason) || (reason == Reason::NothingReturnedInputRequired && !has_states);
    verdict == Verdict::Skipped && is_absent
}

/// Whether a reason says that the operator gave no token of a rare kind, or no time to wait: what is not counted as left
/// untested, and was not tested all the same.
pub(crate) fn is_not_given(verdict: Verdict, reason: Reason) -> bool {
    verdict == Verdict::Skipped
        && matches!(
            reason,
            Reason::NeedsWait
                | Reason::NeedsIdentityWrongAudience
                | Reason::NeedsIdentityClientIdAudience
                | Reason::NeedsIdentityExpired
                | Reason::NeedsIdentityNewToken
                | Reason::NeedsIdentityOtherClient
                | Reason::NeedsIdentityOtherTenant
        )
}

fn reason_is_absence(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::NoSessionIssued
            | Reason::NeedsHttp
            | Reason::VerbNotOffered
            | Reason::NoToolEndsAHandle
            | Reason::NoLifetimeStated
            | Reason::NotStateless
            | Reason::NoAmbientState
            | Reason::NoOauthSeen
            | Reason::NoSignatureSeen
            | Reason::NoOtherRequest
            | Reason::NoApprovalAsked
            | Reason::NoTaskReturned
            | Reason::NoCursorGiven
            | Reason::CursorNotReadable
            | Reason::QuestionsNameNothing
    )
}

/// Whether a refutation says that somebody was let in, and that nothing shows to what: no proof of a weakness, and none of
/// its absence.
fn is_undecided(reason: Reason) -> bool {
    matches!(reason, Reason::CrossUseUnattributable | Reason::ForeignRequestUnattributable)
}

impl Report {
    /// The report as it may leave the program: no credential, no whole handle or state, no control character, and no text
    /// of a server's beyond a bound. Applied once, where a report is made, to every text in it.
    #[must_use]
    pub fn clean(mut self, redactor: &Redactor) -> Self {
        let short = |text: &mut String| *text = redactor.excerpt(text, LONGEST_TEXT);
        short(&mut self.target.address);
        self.target.endpoint.iter_mut().for_each(short);
        self.notes.iter_mut().for_each(short);
        if let Some(handshake) = &mut self.handshake {
            short(&mut handshake.version);
            handshake.server = redactor.json(&handshake.server, LONGEST_TEXT);
        }
        self.access.iter_mut().for_each(|access| short(&mut access.entry));
        for check in &mut self.checks {
            short(&mut check.detail);
            check.observations.iter_mut().for_each(|observation| short(&mut observation.text));
            for point in &mut check.evidence.entry_points {
                short(&mut point.row.entry);
                short(&mut point.row.detail);
                for value in point.facts.values_mut() {
                    *value = redactor.json(value, LONGEST_TEXT);
                }
            }
            for step in &mut check.evidence.exchanges {
                short(&mut step.call);
                short(&mut step.answer);
                step.arguments = redactor.json(&step.arguments, LONGEST_TEXT);
            }
        }
        self
    }

    /// The exit code, the same for every format: 1 something confirmed, advice (`info`) apart; 3 something errored, nothing tested at all, or
    /// (strict) something [left open](Self::left_open); 0 otherwise.
    ///
    /// What is `required` must have been tested, or it is 3 as well.
    pub fn exit_code(&self, strict: bool, required: &[&str]) -> u8 {
        let Totals { refuted, errored, .. } = self.totals;
        let is_bad = |check: &&CheckReport| check.verdict == Verdict::Confirmed && check.severity > Severity::Info;
        let confirmed = self.checks.iter().filter(is_bad).count();
        match () {
            () if confirmed > 0 => 1,
            () if errored > 0 || refuted + self.totals.confirmed == 0 || (strict && !self.left_open().is_empty()) => 3,
            () if !self.untested(required).is_empty() => 3,
            () => 0,
        }
    }

    /// Every check, or entry point of it, that was skipped although the server has such a thing, and every one where somebody
    /// was let in and nothing shows to what: the check, where, and the reason.
    pub fn left_open(&self) -> Vec<(&'static str, Option<&str>, Reason)> {
        // What the server does not have, or what only a token of a rare kind could show, was not left untested.
        let is_open = |verdict, reason| match verdict {
            Verdict::Skipped => !is_absence(verdict, reason, self.handshake.as_ref()) && !is_not_given(verdict, reason),
            Verdict::Refuted => is_undecided(reason),
            Verdict::Confirmed | Verdict::Errored => false,
        };
        let mut open = Vec::new();
        for check in &self.checks {
            let points = check.evidence.entry_points.iter();
            let points = points.filter(|point| is_open(point.row.verdict, point.row.reason));
            open.extend(points.map(|point| (check.id, Some(point.row.entry.as_str()), point.row.reason)));
            // Where no entry point tells why, the check itself does.
            if check.evidence.entry_points.is_empty() && is_open(check.verdict, check.reason) {
                open.push((check.id, None, check.reason));
            }
        }
        open
    }

    /// Those of these checks that ended neither in confirmed nor in refuted, or refuted for want of anything that shows what
    /// somebody was let in to; with the reason.
    pub fn untested(&self, required: &[&str]) -> Vec<(&'static str, Reason)> {
        let checks = self.checks.iter().filter(|check| required.contains(&check.id));
        let idle = checks.filter(|check| match check.verdict {
            Verdict::Skipped | Verdict::Errored => true,
            Verdict::Refuted => is_undecided(check.reason),
            Verdict::Confirmed => false,
        });
        idle.map(|check| (check.id, check.reason)).collect()
    }

    /// The handshake in the words of the report.
    pub(crate) fn era_shown(era: &Era) -> (String, String) {
        let version = match era {
            Era::Modern => handfast_wire::meta::MODERN.to_owned(),
            Era::Legacy(version) => version.clone(),
        };
        (era.shown(), version)
    }
}
