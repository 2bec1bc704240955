//! The one place that randomness comes from: the operating system.

use rand::{RngExt, rand_core::UnwrapErr, rngs::SysRng};

/// The operating system's generator. It fails only where the system has no randomness at all, and then nothing can be
/// proved: the run must not go on.
pub(crate) fn source() -> UnwrapErr<SysRng> {
    UnwrapErr(SysRng)
}

/// A number below `bound`, which must not be zero.
pub(crate) fn below(bound: usize) -> usize {
    source().random_range(0..bound)
}

/// `bytes` random bytes in lower-case hexadecimal.
pub(crate) fn hex(bytes: usize) -> String {
    (0..bytes).map(|_| format!("{:02x}", source().random_range(0..=255u8))).collect()
}
