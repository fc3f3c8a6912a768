//! Exit codes of a launcher that are not the command's own, and the end that it tells before its own.

use std::{os::unix::process::ExitStatusExt, process::ExitStatus};

/// Exit code when the walls could not be built, and the command was not run.
pub const NOT_BUILT: u8 = 125;

/// Bytes in which a [`spare`](crate::Walls::spare) tells how its command ended.
pub const ENDING_BYTES: usize = 3;

/// How the command ended, by what its launcher has told.
#[must_use]
pub fn ending([by_signal, number, _is_all]: [u8; ENDING_BYTES]) -> ExitStatus {
    let number = i32::from(number);
    ExitStatus::from_raw(if by_signal == 1 { number } else { number << 8 })
}
