//! Ids as numbers: what they have in common, how they go on, and which the next ones would be.

/// Ids that differ in one number alone: `session-0004711`, `55d31c4002a0`, `1764500000123`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Series {
    prefix: String,
    suffix: String,
    radix: u32,
    /// Digits, where all numbers have as many.
    width: usize,
    numbers: Vec<u128>,
    /// They count down.
    falls: bool,
}

impl Series {
    /// The number in each of these ids, if it is all in which they differ.
    pub(super) fn of(ids: &[String]) -> Option<Self> {
        let [first, rest @ ..] = ids else { return None };
        if rest.is_empty() || ids.iter().any(|id| !id.is_ascii()) {
            return None;
        }
        let common = |one: &str, two: &str| one.bytes().zip(two.bytes()).take_while(|(one, two)| one == two).count();
        let before = rest.iter().map(|id| common(first, id)).min()?;
        // A number keeps its leading digits: what it shares with the others belongs to it.
        let before = first[..before].rfind(|c: char| !c.is_ascii_hexdigit()).map_or(0, |at| at + 1);
        let shortest = ids.iter().map(String::len).min()?;
        let back =
            |one: &str, two: &str| one.bytes().rev().zip(two.bytes().rev()).take_while(|(one, two)| one == two).count();
        let after = rest.iter().map(|id| back(first, id)).min()?.min(shortest - before);
        let tail = &first[first.len() - after..];
        let after = tail.find(|c: char| !c.is_ascii_hexdigit()).map_or(0, |at| after - at);
        let digits: Vec<&str> = ids.iter().map(|id| &id[before..id.len() - after]).collect();
        let all = |is_digit: fn(&char) -> bool| {
            digits.iter().all(|digits| !digits.is_empty() && digits.chars().all(|c| is_digit(&c)))
        };
        let radix = if all(char::is_ascii_digit) {
            10
        } else if all(char::is_ascii_hexdigit) {
            16
        } else {
            return None;
        };
        let numbers: Option<Vec<u128>> = digits.iter().map(|digits| u128::from_str_radix(digits, radix).ok()).collect();
        let width = digits.first().map_or(0, |first| first.len());
        let width = if digits.iter().all(|digits| digits.len() == width) { width } else { 0 };
        let numbers = numbers?;
        Some(Self {
            prefix: first[..before].to_owned(),
            suffix: first[first.len() - after..].to_owned(),
            radix,
            width,
            falls: numbers.windows(2).all(|pair| pair[1] < pair[0]),
            numbers,
        })
    }

    /// `more`, or `less` where they count down.
    pub(super) fn direction(&self) -> &'static str {
        if self.falls { "less" } else { "more" }
    }

    /// Whether there is anything to foretell by: one step, or small ones.
    pub(super) fn is_a_habit(&self) -> bool {
        self.step().is_some() || (self.is_narrow() && self.is_roomy())
    }

    /// Whether so many ids are possible that thousands of candidates do not hit by chance.
    pub(super) fn is_roomy(&self) -> bool {
        let digits = u32::try_from(self.width).unwrap_or(u32::MAX);
        let written = u128::from(self.radix).checked_pow(digits);
        let largest = self.numbers.iter().max().copied().unwrap_or_default();
        if self.width > 0 { written.is_none_or(|room| room >= ROOMY) } else { largest >= ROOMY }
    }

    /// The step from each number to the next, where it is always the same.
    pub(super) fn step(&self) -> Option<u128> {
        let steps = self.steps()?;
        let first = *steps.first()?;
        steps.iter().all(|step| *step == first).then_some(first)
    }

    /// Whether every number follows closely on the one before, counted in units.
    pub(super) fn is_narrow(&self) -> bool {
        let unit = self.unit();
        self.steps().is_some_and(|steps| steps.iter().all(|step| step / unit <= NARROW))
    }

    /// What every step is a multiple of. A clock whose lowest bits name a machine ("snowflake") moves in steps of 2^22.
    fn unit(&self) -> u128 {
        let divisor = |one: u128, two: u128| {
            let (mut one, mut two) = (one, two);
            while two > 0 {
                (one, two) = (two, one % two);
            }
            one
        };
        self.steps().into_iter().flatten().fold(0, divisor).max(1)
    }

    /// The steps, where every number is greater than the one before, or every one less.
    fn steps(&self) -> Option<Vec<u128>> {
        let step = |pair: &[u128]| if self.falls { pair[0].checked_sub(pair[1]) } else { pair[1].checked_sub(pair[0]) };
        let steps = self.numbers.windows(2).map(|pair| step(pair).filter(|step| *step > 0));
        steps.collect::<Option<Vec<u128>>>().filter(|steps| steps.len() >= FEWEST)
    }

    /// The id `by` after this one; `None` where this one is none of the series.
    pub(super) fn after(&self, id: &str, by: u128) -> Option<String> {
        let digits = id.strip_prefix(self.prefix.as_str())?.strip_suffix(self.suffix.as_str())?;
        let last = u128::from_str_radix(digits, self.radix).ok()?;
        let next = if self.falls { last.checked_sub(by)? } else { last.checked_add(by)? };
        let (width, upper) = (self.width, digits.chars().any(|c| c.is_ascii_uppercase()));
        let written = match (self.radix, upper) {
            (10, _) => format!("{next:0width$}"),
            (_, true) => format!("{next:0width$X}"),
            (_, false) => format!("{next:0width$x}"),
        };
        Some(format!("{}{written}{}", self.prefix, self.suffix))
    }

    /// Whether an id lies within `most` units after another.
    pub(super) fn follows(&self, id: &str, last: &str, most: u128) -> bool {
        let number = |id: &str| {
            let digits = id.strip_prefix(self.prefix.as_str())?.strip_suffix(self.suffix.as_str())?;
            u128::from_str_radix(digits, self.radix).ok()
        };
        match (number(id), number(last)) {
            (Some(next), Some(last)) => {
                let (last, next) = if self.falls { (next, last) } else { (last, next) };
                let unit = self.unit();
                next > last && (next - last) % unit == 0 && (next - last) / unit <= most
            }
            _ => false,
        }
    }
}

/// The largest step that still counts as close.
const NARROW: u128 = 1024;
/// How many ids must be possible for that.
const ROOMY: u128 = 1 << 32;
/// Fewer steps show no habit.
const FEWEST: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn series(ids: &[&str]) -> Option<Series> {
        Series::of(&ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn what_counts_down_has_a_step_as_well() {
        let down = series(&["s-905", "s-904", "s-903", "s-902", "s-901", "s-900"]).expect("a series");
        assert_eq!(down.step(), Some(1));
        assert_eq!(down.after("s-900", 1).as_deref(), Some("s-899"));
        assert!(down.follows("s-890", "s-900", 10) && !down.follows("s-901", "s-900", 10));
        let mixed = series(&["s-905", "s-904", "s-906", "s-902", "s-901", "s-900"]).expect("a series");
        assert_eq!(mixed.step(), None);
    }

    #[test]
    fn counters_and_addresses_have_a_step() {
        let counter =
            ["session-00098", "session-00099", "session-00100", "session-00101", "session-00102", "session-00103"];
        let counter = series(&counter).expect("a series");
        assert_eq!(counter.step(), Some(1));
        assert_eq!(counter.after("session-00103", 1).as_deref(), Some("session-00104"));

        let addresses =
            ["55d31c4002c0", "55d31c400300", "55d31c400340", "55d31c400380", "55d31c4003c0", "55d31c400400"];
        let addresses = series(&addresses).expect("a series");
        assert_eq!(addresses.step(), Some(0x40));
        assert_eq!(addresses.after("55d31c400fc0", 0x40).as_deref(), Some("55d31c401000"));

        let suffixed = ["s9-eu", "s10-eu", "s11-eu", "s12-eu", "s13-eu", "s14-eu"];
        let suffixed = series(&suffixed).expect("a series");
        assert_eq!(suffixed.after("s99-eu", 1).as_deref(), Some("s100-eu"));
    }

    #[test]
    fn times_are_narrow_and_have_no_step() {
        let times =
            ["1764500000001", "1764500000003", "1764500000004", "1764500000009", "1764500000010", "1764500000030"];
        let times = series(&times).expect("a series");
        assert_eq!(times.step(), None);
        assert!(times.is_narrow() && times.follows("1764500000035", "1764500000030", 4096));
        assert!(
            !times.follows("1764500000030", "1764500000030", 4096)
                && !times.follows("1764500009999", "1764500000030", 4096)
        );
    }

    #[test]
    fn clocks_with_a_machine_behind_them_move_in_units() {
        let at = |ms: u64| (((ms - 1_288_834_974_657) << 22) | (7 << 12)).to_string();
        let ids: Vec<String> = [0, 2, 3, 7, 8, 15].iter().map(|ms| at(1_764_500_000_000 + ms)).collect();
        let snowflakes = Series::of(&ids).expect("a series");
        assert!(snowflakes.is_a_habit() && snowflakes.step().is_none());
        assert!(snowflakes.follows(&at(1_764_500_000_040), &at(1_764_500_000_015), 4096));
        assert!(!snowflakes.follows(&at(1_764_500_009_000), &at(1_764_500_000_015), 4096));
        let between = (at(1_764_500_000_040).parse::<u64>().expect("a number") + 1).to_string();
        assert!(!snowflakes.follows(&between, &at(1_764_500_000_015), 4096));
    }

    #[test]
    fn what_is_random_or_too_little_is_no_series_with_a_habit() {
        let random = [
            "9f3c11aa90b14c2e",
            "01b2c3d4e5f60718",
            "77aa88bb99cc00dd",
            "1234abcd5678ef90",
            "0f0e0d0c0b0a0908",
            "a1b2c3d4e5f6a7b8",
        ];
        assert!(series(&random).is_none_or(|series| series.step().is_none() && !series.is_narrow()));
        for ids in [&[][..], &["a1"], &["xyz", "xyw"], &["a-1", "b-2"]] {
            assert!(series(ids).is_none_or(|series| series.step().is_none() && !series.is_narrow()), "{ids:?}");
        }
        let few = series(&["s1", "s2", "s3"]).expect("a series");
        assert_eq!(few.step(), None, "two steps are no habit");
        assert!(series(&["é1", "é2"]).is_none());
    }
}
