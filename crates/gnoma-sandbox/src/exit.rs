//! Exit codes of a launcher that are not the command's own, and the end that it tells before its own.

use std::{os::unix::process::ExitStatusExt, process::ExitStatus};

/// Exit code when the walls could not be built, and the command was not run.
pub const NOT_BUILT: u8 = 125;

/// Bytes in which a [`spare`](crate::Walls::spare) tells how its command ended.
pub const ENDING_BYTES: usize = 3;

/// Stands at the beginning of a message of the same length that tells of a sealed file instead.
const TRIED: u8 = 2;

/// Stands at the beginning of a message of the same length that a server was not reached.
const UNREACHED: u8 = 3;

/// Stands at the beginning of a message of the same length that processes were ended with the command.
const LEFT_RUNNING: u8 = 4;

/// Stands at the beginning of a message of the same length that processes were listed.
const LISTED_PROCESSES: u8 = 5;

/// Stands at the beginning of a message of the same length that the root of the machine was listed.
const LISTED_ROOT: u8 = 6;

/// The message that the command listed processes, and found only those of its sandbox.
#[cfg(target_os = "linux")]
pub(crate) const LISTED_PROCESSES_MESSAGE: [u8; ENDING_BYTES] = [LISTED_PROCESSES, 0, 0];

/// The message that the command listed the root of the machine, and found only what its sandbox shows.
#[cfg(target_os = "linux")]
pub(crate) const LISTED_ROOT_MESSAGE: [u8; ENDING_BYTES] = [LISTED_ROOT, 0, 0];

/// True if a message of the launcher says that the command listed processes, and found only those of its sandbox.
#[must_use]
pub fn is_process_list([kind, _, _]: [u8; ENDING_BYTES]) -> bool {
    kind == LISTED_PROCESSES
}

/// True if a message of the launcher says that the command listed the root of the machine, and found only what its
/// sandbox shows.
#[must_use]
pub fn is_root_list([kind, _, _]: [u8; ENDING_BYTES]) -> bool {
    kind == LISTED_ROOT
}

/// The message that the command left processes in the background, which its layer cannot outlive.
#[cfg(target_os = "linux")]
pub(crate) const LEFT_RUNNING_MESSAGE: [u8; ENDING_BYTES] = [LEFT_RUNNING, 0, 0];

/// True if a message of the launcher says that processes which the command left in the background were ended.
#[must_use]
pub fn is_left_running([kind, _, _]: [u8; ENDING_BYTES]) -> bool {
    kind == LEFT_RUNNING
}

/// The message that the command tried to reach a server that the sandbox does not have.
#[cfg(target_os = "linux")]
pub(crate) const UNREACHED_MESSAGE: [u8; ENDING_BYTES] = [UNREACHED, 0, 0];

/// True if a message of the launcher says that the command tried to reach a server that the sandbox does not have.
#[must_use]
pub fn is_unreached([kind, _, _]: [u8; ENDING_BYTES]) -> bool {
    kind == UNREACHED
}

/// The message that the command tried to open the sealed file of this number.
#[cfg(target_os = "linux")]
pub(crate) fn tried_message(number: u16) -> [u8; ENDING_BYTES] {
    let [low, high] = number.to_le_bytes();
    [TRIED, low, high]
}

/// The place of a file that the command tried to open in [`Policy::sealed`](crate::Policy::sealed) and, behind those,
/// [`Policy::outside_names`](crate::Policy::outside_names), where a message of the launcher tells of one.
#[must_use]
pub fn decode_tried_file([kind, low, high]: [u8; ENDING_BYTES]) -> Option<usize> {
    (kind == TRIED).then(|| u16::from_le_bytes([low, high]).into())
}

/// Returns the exit status of the command that its launcher has reported.
#[must_use]
pub fn decode_exit_status([by_signal, number, _is_all]: [u8; ENDING_BYTES]) -> ExitStatus {
    let number = i32::from(number);
    ExitStatus::from_raw(if by_signal == 1 { number } else { number << 8 })
}
