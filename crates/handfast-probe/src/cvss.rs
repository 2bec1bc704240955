//! How a finding scores. A check names vectors, never numbers: the score is computed.

use cvss::Cvss;
use serde::Serialize;

use crate::verdict::Severity;

/// A vector and what it comes to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Scored {
    /// A base vector of CVSS 3.1.
    pub vector: &'static str,
    /// From 0 to 10.
    pub score: f64,
}

/// One user reads and changes what is another's.
pub const TAKEN: &str = "CVSS:3.1/AV:N/AC:L/PR:L/UI:N/S:U/C:H/I:H/A:N";
/// The same without any credential.
pub const TAKEN_BY_ANYBODY: &str = "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:N";
/// The same where something has to be lost, lured or guessed first.
pub const TAKEN_WITH_LUCK: &str = "CVSS:3.1/AV:N/AC:H/PR:N/UI:N/S:U/C:H/I:H/A:N";
/// The same where the owner has to take part.
pub const TAKEN_BY_LURE: &str = "CVSS:3.1/AV:N/AC:L/PR:N/UI:R/S:U/C:H/I:H/A:N";
/// One user sees, without any credential, what is another's.
pub const SEEN_BY_ANYBODY: &str = "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:N/A:N";
/// What needs somebody's consent is done without it.
pub const WITHOUT_CONSENT: &str = "CVSS:3.1/AV:N/AC:L/PR:L/UI:N/S:C/C:H/I:H/A:N";
/// One user sees or changes a little of what is another's.
pub const TOUCHED: &str = "CVSS:3.1/AV:N/AC:L/PR:L/UI:N/S:U/C:L/I:L/A:N";
/// Something is accepted that should not be, and nothing shows what it does.
pub const UNSHOWN: &str = "CVSS:3.1/AV:N/AC:L/PR:L/UI:N/S:U/C:N/I:L/A:N";
/// One more guard is missing behind others.
pub const HARDENING: &str = "CVSS:3.1/AV:N/AC:H/PR:L/UI:N/S:U/C:L/I:N/A:N";
/// Somebody loses what is theirs, and nobody gains.
pub const LOST: &str = "CVSS:3.1/AV:N/AC:H/PR:L/UI:N/S:U/C:N/I:N/A:L";
/// Advice.
pub const NOTHING: &str = "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:N";

/// The vector of the severity that a finding has; none where the check names none.
pub fn of(vectors: &[&'static str], severity: Severity) -> Option<Scored> {
    let scored = |vector: &&'static str| vector.parse::<Cvss>().ok().map(|parsed| (*vector, parsed));
    let fits = |(_, parsed): &(&str, Cvss)| band(parsed.severity()) == severity;
    vectors.iter().filter_map(scored).find(fits).map(|(vector, parsed)| Scored { vector, score: parsed.score() })
}

fn band(severity: cvss::Severity) -> Severity {
    match severity {
        cvss::Severity::None => Severity::Info,
        cvss::Severity::Low => Severity::Low,
        cvss::Severity::Medium => Severity::Medium,
        cvss::Severity::High => Severity::High,
        cvss::Severity::Critical => Severity::Critical,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_those_of_the_published_calculator() {
        let all = [
            (TAKEN, 8.1, Severity::High),
            (TAKEN_BY_ANYBODY, 9.1, Severity::Critical),
            (TAKEN_WITH_LUCK, 7.4, Severity::High),
            (TAKEN_BY_LURE, 8.1, Severity::High),
            (WITHOUT_CONSENT, 9.6, Severity::Critical),
            (SEEN_BY_ANYBODY, 7.5, Severity::High),
            (TOUCHED, 5.4, Severity::Medium),
            (UNSHOWN, 4.3, Severity::Medium),
            (HARDENING, 3.1, Severity::Low),
            (LOST, 3.1, Severity::Low),
            (NOTHING, 0.0, Severity::Info),
        ];
        for (vector, score, severity) in all {
            assert_eq!(of(&[vector], severity), Some(Scored { vector, score }), "{vector}");
        }
    }

    #[test]
    fn the_vector_is_that_of_the_severity() {
        let found = |severity| of(&[TAKEN, UNSHOWN], severity).map(|scored| scored.vector);
        assert_eq!([Severity::High, Severity::Medium, Severity::Low].map(found), [Some(TAKEN), Some(UNSHOWN), None]);
        assert_eq!(of(&["CVSS:3.1/AV:N"], Severity::High), None);
    }
}
