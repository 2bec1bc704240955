//! Open files: each connection is one, and so is the one behind it. Where there are none left nobody is answered, so that no more
//! connections are taken than there are files for.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// How many connections there can be, of as many as are wanted.
pub(crate) fn connections(wanted: usize) -> usize {
    // What the process may have without asking anybody.
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
    let files = getrlimit(Resource::RLIMIT_NOFILE).map_or(USUAL, |(now, _)| now);
    wanted.min(usize::try_from(of(files)).unwrap_or(usize::MAX))
}

/// How many connections so many files are enough for.
fn of(files: u64) -> u64 {
    (files.saturating_sub(RESERVE) / 2).max(1)
}

/// What a process usually may have.
const USUAL: u64 = 1024;
/// For the store, the audit, health and whatever else is open.
const RESERVE: u64 = 128;

#[cfg(test)]
mod tests {
    use super::{connections, of};

    #[test]
    fn there_are_files_for_both_sides_and_for_the_rest() {
        for (files, connections) in [(1024, 448), (20_000, 9936), (130, 1), (0, 1), (u64::MAX, (u64::MAX - 128) / 2)] {
            assert_eq!(of(files), connections, "{files}");
        }
        assert_eq!(connections(3), 3);
        assert!(connections(usize::MAX) < usize::MAX);
    }
}
