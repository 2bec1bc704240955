//! The four verdicts, the named reasons, and the proofs without which neither *confirmed* nor *refuted* can be said.

use std::cmp::Reverse;

use serde::Serialize;

pub use crate::reason::Reason;
use crate::{disposition::Disposition, evidence::Step, trial::Answer};

/// What a check concludes. Its claim states the weakness: confirmed is bad news, refuted is good news.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The weakness is there, shown by the server's own words.
    Confirmed,
    /// It is not there, and the controls show that the experiment could have found it.
    Refuted,
    /// A precondition is missing.
    Skipped,
    /// The experiment failed.
    Errored,
}

impl Verdict {
    /// In the order in which totals are printed.
    pub const ALL: [Self; 4] = [Self::Confirmed, Self::Refuted, Self::Skipped, Self::Errored];

    /// The verdict as one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Refuted => "refuted",
            Self::Skipped => "skipped",
            Self::Errored => "errored",
        }
    }
}

/// How bad a confirmed weakness is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing to act on.
    Info,
    /// Hardening.
    Low,
    /// A weakness without a shown effect.
    Medium,
    /// One user acts with the rights or data of another.
    High,
    /// Without any credential.
    Critical,
}

impl Severity {
    /// The next one down.
    pub fn lower(self) -> Self {
        match self {
            Self::Critical => Self::High,
            Self::High => Self::Medium,
            Self::Medium => Self::Low,
            Self::Low | Self::Info => Self::Info,
        }
    }
}

/// Something worth knowing that is no finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Observation {
    /// A stable slug.
    pub id: &'static str,
    /// A sentence.
    pub text: String,
}

/// The end of an experiment that could not be carried through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Halt {
    /// Skipped or errored.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
    /// A sentence.
    pub detail: String,
}

impl Halt {
    /// Whether nothing more can be tried in this run: the server is gone, or a bound is reached.
    pub fn is_final(&self) -> bool {
        matches!(self.reason, Reason::TimedOut | Reason::Unreachable | Reason::CallLimit)
    }

    /// A precondition is missing.
    pub fn skipped(reason: Reason, detail: impl Into<String>) -> Self {
        Self { verdict: Verdict::Skipped, reason, detail: detail.into() }
    }

    /// The experiment failed.
    pub fn errored(reason: Reason, detail: impl Into<String>) -> Self {
        Self { verdict: Verdict::Errored, reason, detail: detail.into() }
    }
}

/// One entry point under test, with its own controls.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// For example `tools/call read_basket#basket_id`.
    pub entry: String,
    /// What was concluded for it.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
    /// A sentence.
    pub detail: String,
    /// How bad, where confirmed.
    #[serde(skip)]
    pub severity: Option<Severity>,
    /// The exchanges that tell the story, by their place in the evidence.
    #[serde(rename = "exchanges")]
    pub story: Vec<usize>,
    /// Facts for the evidence: handles, marker, mutation.
    #[serde(skip)]
    pub facts: serde_json::Map<String, serde_json::Value>,
}

impl Row {
    /// The weakness is there. Needs the controls that show that it could have been otherwise.
    pub fn confirmed(_: &Controls, entry: &str, reason: Reason, severity: Severity, detail: String) -> Self {
        Self { severity: Some(severity), ..Self::halted(entry, Halt { verdict: Verdict::Confirmed, reason, detail }) }
    }

    /// The weakness is not there. Needs the controls that show that it would have been found.
    pub fn refuted(_: &Controls, entry: &str, reason: Reason, detail: String) -> Self {
        Self::halted(entry, Halt { verdict: Verdict::Refuted, reason, detail })
    }

    /// Nothing was concluded.
    pub fn halted(entry: &str, halt: Halt) -> Self {
        let Halt { verdict, reason, detail } = halt;
        Self {
            entry: entry.to_owned(),
            verdict,
            reason,
            detail,
            severity: None,
            facts: Default::default(),
            story: Vec::new(),
        }
    }
}

/// Proof that an experiment is valid: what should be accepted was accepted, and what should be refused could be.
/// Only [`ControlPlan::hold`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Controls {
    negative: Negative,
}

impl Controls {
    /// What the negative control showed.
    pub fn negative(&self) -> &Negative {
        &self.negative
    }
}

/// What a control showed that presented something that nobody issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Negative {
    /// It was refused, in these (normalised) words: the clean case.
    Refused(String),
    /// It was ignored, and the server asked again.
    AskedAgain,
    /// It was honoured: acceptance shows nothing by itself.
    Honoured,
}

/// Collects controls until they prove something.
#[derive(Debug, Default)]
pub struct ControlPlan {
    accepted: usize,
    negative: Option<Negative>,
}

impl ControlPlan {
    /// A control that must be accepted. `otherwise` says what its failure means.
    pub fn accepts(&mut self, answer: &Answer, otherwise: impl FnOnce(String) -> Halt) -> Result<(), Halt> {
        match &answer.disposition {
            Disposition::Accepted => {
                self.accepted += 1;
                Ok(())
            }
            _ => Err(answer.unclear().unwrap_or_else(|| otherwise(answer.said()))),
        }
    }

    /// A control that must be asked something. `otherwise` says what its failure means.
    pub fn asks(&mut self, answer: &Answer, otherwise: impl FnOnce(String) -> Halt) -> Result<(), Halt> {
        match &answer.disposition {
            Disposition::Asked(_) => {
                self.accepted += 1;
                Ok(())
            }
            _ => Err(answer.unclear().unwrap_or_else(|| otherwise(answer.said()))),
        }
    }

    /// The negative control: something that nobody issued. Refused, asked again or honoured; anything else is no control.
    pub fn presents_unissued(&mut self, answer: &Answer, presented: &[String]) -> Result<(), Halt> {
        let negative = match &answer.disposition {
            Disposition::Refused(refusal) => Negative::Refused(refusal.normalised(presented)),
            Disposition::Asked(_) => Negative::AskedAgain,
            Disposition::Accepted => Negative::Honoured,
            Disposition::Task(_) | Disposition::Unclear(_) => {
                let said = format!("the negative control was not refused but answered unclearly: {}", answer.said());
                return Err(answer.lost().unwrap_or_else(|| Halt::errored(Reason::ControlFailed, said)));
            }
        };
        self.negative = Some(negative);
        Ok(())
    }

    /// The negative control where it was not taken, and the server asked again.
    pub fn was_asked_again(&mut self) {
        self.negative = Some(Negative::AskedAgain);
    }

    /// The negative control where it was refused in the words of a complete result.
    pub fn refused_in_words(&mut self, text: &str) {
        self.negative = Some(Negative::Refused(text.to_owned()));
    }

    /// The proof, if the controls are complete: at least one acceptance and one negative control.
    pub fn hold(self) -> Result<Controls, Halt> {
        match self.negative {
            Some(negative) if self.accepted > 0 => Ok(Controls { negative }),
            _ => Err(Halt::errored(Reason::ProbeBug, "a subject was tried without both kinds of control")),
        }
    }
}

/// What one check concluded, with everything that backs it.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
    /// A sentence or a few.
    pub detail: String,
    /// How bad, where confirmed.
    pub severity: Option<Severity>,
    /// CWE numbers, the primary one first.
    pub cwe: Vec<u32>,
    /// Near misses and side remarks.
    pub observations: Vec<Observation>,
    /// One row for each entry point.
    pub rows: Vec<Row>,
    /// The exchanges, in order.
    pub steps: Vec<Step>,
}

impl Judgement {
    /// A check that did not get as far as an entry point.
    pub fn halted(halt: Halt) -> Self {
        let Halt { verdict, reason, detail } = halt;
        Self {
            verdict,
            reason,
            detail,
            severity: None,
            cwe: Vec::new(),
            observations: Vec::new(),
            rows: Vec::new(),
            steps: Vec::new(),
        }
    }

    /// The verdict over several entry points: one confirmed is enough; refuted needs that nothing was left unclear.
    pub fn over(mut rows: Vec<Row>, observations: Vec<Observation>) -> Self {
        // The worst confirmed row comes first: it gives the headline, and its exchange is the one that is told.
        rows.sort_by_key(|row| Reverse(row.severity));
        let deciding = [Verdict::Confirmed, Verdict::Errored, Verdict::Refuted, Verdict::Skipped].into_iter().find_map(
            |verdict| {
                // Of several good news the most doubtful one speaks for all.
                let of_verdict = rows.iter().rev().filter(|row| row.verdict == verdict);
                of_verdict.max_by_key(|row| (row.severity, DOUBTFUL.contains(&row.reason)))
            },
        );
        let Some(row) = deciding else {
            return Self::halted(Halt::errored(Reason::ProbeBug, "no entry point was judged"));
        };
        Self {
            verdict: row.verdict,
            reason: row.reason,
            detail: row.detail.clone(),
            severity: row.severity,
            cwe: Vec::new(),
            observations,
            steps: Vec::new(),
            rows,
        }
    }
}

/// Reasons for a refutation that a reader should see before any other.
const DOUBTFUL: [Reason; 5] = [
    Reason::CrossUseUnattributable,
    Reason::BadStateIgnored,
    Reason::StateCarriesItsRequest,
    Reason::ForeignRequestUnattributable,
    Reason::StateAcceptedTwice,
];

/// What an experiment needs that may not be there; nothing where it is not. That the run is over is not hidden.
pub(crate) fn soft<T>(outcome: Result<T, Halt>) -> Result<Option<T>, Halt> {
    match outcome {
        Ok(found) => Ok(Some(found)),
        Err(halt) if halt.is_final() => Err(halt),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(verdict: Verdict) -> Row {
        let halt = Halt { verdict, reason: Reason::Unclear, detail: String::new() };
        Row::halted("x", halt)
    }

    #[test]
    fn one_confirmed_entry_is_enough_and_an_unclear_one_forbids_refuted() {
        use Verdict::*;
        let over =
            |verdicts: &[Verdict]| Judgement::over(verdicts.iter().copied().map(row).collect(), Vec::new()).verdict;
        assert_eq!(over(&[Refuted, Confirmed, Errored]), Confirmed);
        assert_eq!(over(&[Refuted, Errored]), Errored);
        assert_eq!(over(&[Refuted, Skipped]), Refuted);
        assert_eq!(over(&[Skipped]), Skipped);
        assert_eq!(over(&[]), Errored);
    }

    #[test]
    fn the_worst_confirmed_row_comes_first_and_gives_the_headline() {
        let found = |entry: &str, severity| Row {
            severity: Some(severity),
            detail: entry.to_owned(),
            ..Row { entry: entry.to_owned(), ..row(Verdict::Confirmed) }
        };
        let rows = vec![
            row(Verdict::Refuted),
            found("mild", Severity::Medium),
            found("first", Severity::High),
            found("second", Severity::High),
        ];
        let judgement = Judgement::over(rows, Vec::new());

        let order: Vec<&str> = judgement.rows.iter().map(|row| row.entry.as_str()).collect();
        assert_eq!((judgement.detail.as_str(), order), ("first", vec!["first", "second", "mild", "x"]));
    }

    #[test]
    fn there_are_no_controls_without_both_kinds() {
        assert!(ControlPlan::default().hold().is_err());
        let only_accepted = ControlPlan { accepted: 3, negative: None };
        assert!(only_accepted.hold().is_err());
        let only_refused = ControlPlan { accepted: 0, negative: Some(Negative::AskedAgain) };
        assert!(only_refused.hold().is_err());
        assert!(ControlPlan { accepted: 1, negative: Some(Negative::Honoured) }.hold().is_ok());
    }
}
