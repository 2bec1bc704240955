//! Ids as MongoDB makes them (ObjectId): 24 hexadecimal digits, of which 8 are the time in seconds, 10 are the same as long as
//! the process lives, and 6 are a counter. Each half of that is in the last id, and so is the next one.

/// The parts of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Parts<'i> {
    seconds: u64,
    process: &'i str,
    counter: u64,
}

fn parts(id: &str) -> Option<Parts<'_>> {
    let is_one = id.len() == 24 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    is_one
        .then(|| Some(Parts { seconds: number(&id[..8])?, process: &id[8..18], counter: number(&id[18..])? }))
        .flatten()
}

/// Whether all of these are such ids of one process, in the order in which it made them.
pub(super) fn are_object_ids(ids: &[String]) -> bool {
    let all: Option<Vec<Parts<'_>>> = ids.iter().map(|id| parts(id)).collect();
    let follows = |pair: &[Parts<'_>]| {
        let (last, next) = (pair[0], pair[1]);
        let close = (last.seconds..=last.seconds.saturating_add(MOST_SECONDS)).contains(&next.seconds);
        close && next.process == last.process && next.counter == (last.counter + 1) % COUNTERS
    };
    all.is_some_and(|all| all.len() >= FEWEST && all.windows(2).all(follows))
}

/// The ids of which the next one will be one: one for each second that may have passed.
pub(super) fn candidates(last: &str) -> Vec<String> {
    let Some(Parts { seconds, process, counter }) = parts(last) else { return Vec::new() };
    let counter = (counter + 1) % COUNTERS;
    (seconds..=seconds.saturating_add(MOST_SECONDS)).map(|at| format!("{at:08x}{process}{counter:06x}")).collect()
}

/// How many seconds may lie between one id and the next.
pub(super) const MOST_SECONDS: u64 = 30;
const COUNTERS: u64 = 1 << 24;
const FEWEST: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    fn made(counter: u64, seconds: u64) -> String {
        format!("{:08x}a1b2c3d4e5{counter:06x}", 1_764_500_000 + seconds)
    }

    #[test]
    fn they_are_known_and_foretold() {
        let ids: Vec<String> = (0..10).map(|at| made(0xff_fffa + at % 6, at / 4)).take(6).collect();
        assert!(are_object_ids(&ids));
        let next = candidates(ids.last().expect("one"));
        assert!(next.contains(&made(0, 1)) && next.contains(&made(0, 3)), "{next:?}");
        assert!(!next.contains(&made(1, 1)) && !next.contains(&made(0, 300)));
        assert_eq!(next.len(), 31);
    }

    #[test]
    fn what_only_looks_like_them_is_none() {
        let random: Vec<String> =
            (0..8_u64).map(|at| format!("{:024x}", u128::from(at * 7919) << 64 | 12345)).collect();
        assert!(!are_object_ids(&random));
        let mut ids: Vec<String> = (0..8).map(|at| made(at, 0)).collect();
        assert!(are_object_ids(&ids));
        ids.swap(2, 3);
        assert!(!are_object_ids(&ids));
        assert!(!are_object_ids(&ids[..3]));
        assert!(candidates("é").is_empty() && candidates("session-1").is_empty());
    }
}
