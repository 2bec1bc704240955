//! Files that a person names.

use std::path::Path;

use crate::output::Failure;

/// Reads a file that is one, and not a device or a pipe that never ends.
pub(crate) fn read(path: &Path, what: &str) -> Result<String, Failure> {
    regular(path, what)?;
    std::fs::read_to_string(path).map_err(|error| unreadable(path, &error.to_string()))
}

/// Makes sure that a path names a file of a length that can be read whole.
pub(crate) fn regular(path: &Path, what: &str) -> Result<(), Failure> {
    let metadata = std::fs::metadata(path).map_err(|error| unreadable(path, &error.to_string()))?;
    if !metadata.is_file() {
        let kind = if metadata.is_dir() { "a directory" } else { "not a file" };
        return Err(unreadable(path, &format!("{kind}, and so not a {what}")));
    }
    if metadata.len() > LARGEST_FILE {
        return Err(unreadable(path, &format!("longer than {LARGEST_FILE} bytes: not a {what}")));
    }
    Ok(())
}

fn unreadable(path: &Path, why: &str) -> Failure {
    Failure(format!("cannot read {}: {why}", path.display()))
}

const LARGEST_FILE: u64 = 1 << 20;
