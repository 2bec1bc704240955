//! What is said of ids of which none was foretold: of how many one is drawn, at most.

use super::{SAMPLE, dated, entropy};
use crate::clock;

/// The choice from which ids are drawn: a bound from above, with 95 % confidence.
#[derive(Debug, PartialEq)]
pub(crate) struct Choice {
    pub(crate) bits: f64,
    /// What each id is, where it says when it was made.
    form: Option<&'static str>,
}

impl Choice {
    /// The bound for these ids. When an id was made is known to about an hour, so that its time counts no more than that.
    pub(crate) fn of(ids: &[String]) -> Self {
        let whole = entropy::bits(ids);
        match dated::read(ids, clock::since_1970()) {
            Some(dated) => {
                let bits = entropy::bits(&dated.rest) + (dated.ticks * HOUR).log2();
                Self { bits: bits.min(whole), form: Some(dated.form) }
            }
            None => Self { bits: whole, form: None },
        }
    }

    /// `24 handles were minted` and what the probe could not tell from them.
    pub(crate) fn untold(&self, what_was_done: &str) -> String {
        let bits = self.bits;
        let form =
            self.form.map(|form| format!("; each is {form}, whose time is known to an hour")).unwrap_or_default();
        format!(
            "{SAMPLE} {what_was_done}, drawn from no more than 2^{bits:.0} (95 % confidence{form}), and the next one could not be told from them by any counter, step, address, time, ObjectId or digest that the probe knows"
        )
    }
}

const HOUR: f64 = 3600.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_counts_as_an_hour_and_what_is_beside_it_as_it_is() {
        let now = u64::try_from(clock::since_1970().as_millis()).expect("not so late");
        let ids = |tail: fn(u64) -> String| -> Vec<String> {
            (0..24).map(|at| format!("{}-{}", now + at * 70_000 % 3_000, tail(at))).collect()
        };
        let mut drawn = ids(|_| crate::random::hex(16));
        drawn.sort();
        let drawn = Choice::of(&drawn);
        assert!((127.9..150.1).contains(&drawn.bits), "{drawn:?}");
        assert!(
            drawn.untold("handles were minted").contains("(95 % confidence; each is a time in milliseconds, whose")
        );
        let mut fixed = ids(|_| "a1b2".to_owned());
        fixed.sort();
        let fixed = Choice::of(&fixed);
        assert!((0.0..23.0).contains(&fixed.bits), "{fixed:?}");
        let plain = Choice::of(&(0..24).map(|_| crate::random::hex(16)).collect::<Vec<_>>());
        assert!((127.9..128.1).contains(&plain.bits) && plain.form.is_none(), "{plain:?}");
    }
}
