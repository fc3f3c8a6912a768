//! Runs one command in a sandbox.
//!
//! On Linux there are four layers, and each works without the others: namespaces with a read-only view
//! of the file system, Landlock, a filter of system calls, and no way to gain privileges. The sandbox
//! is not built between `fork` and `exec` of a program with threads, where nearly nothing is safe to
//! do, but by a *launcher*: the program starts itself again, and the new process, which has one thread,
//! builds the sandbox around itself and becomes the command. The policy is in the launcher's arguments,
//! before the command and separate from it: nothing a model writes can reach it.
//!
//! The parts:
//!
//! - namespaces of the session (user, network, IPC), shared by its commands, so that one can talk to
//!   the server another has started; namespaces of each command (mounts, processes);
//! - the file system read-only except the writable roots; protected paths held by mounts; absent ones
//!   by stand-ins; what is hidden, and sockets of the host, under empty files; `/dev`, `/proc` and
//!   `/run` of its own. `/tmp` is shared: files are handed from call to call and to the user;
//! - Landlock with the same rules, as far as it can say them;
//! - a filter that takes away what reaches past all that: other processes' memory, mounts, namespaces,
//!   keys, kernel interfaces, raw and foreign sockets, modes that change the user;
//! - no capabilities, no core dumps, a bound on processes, no inherited files, no keys in the
//!   environment, no terminal. What a command leaves in the background ends with gnoma at the latest.
//!
//! Building all that takes longer than most commands, so a launcher can be started before its command
//! is known and have ready what cannot be seen from outside ([`SessionSandbox::spare_command`]). It is used only where
//! it is what the command's own plan asks for.
//!
//! A command can also be tried: a [`layer`] over the folders it may write takes what it changes, and
//! what that is can be read, kept or dropped when it has ended.
//!
//! Where namespaces are refused Landlock and the filter still hold; [`Support`] says what is lost.
//!
//! Not here: which command may run and with which policy (the guard), and reading its output (the
//! tools). No CPU or memory bound either: builds need what there is.

#[cfg(target_os = "linux")]
mod closed_stdout;
mod environment;
mod error;
mod exit;
pub mod launcher;
#[cfg(target_os = "linux")]
pub mod layer;
#[cfg(target_os = "linux")]
mod linux;
mod memory;
mod parent_lifetime;
#[cfg(target_os = "linux")]
mod plan;
mod policy;
mod sandbox_denial;
mod scratch;
pub mod seatbelt;
mod session_sandbox;
mod support;
mod umask;
#[cfg(target_os = "linux")]
mod word_codec;

#[cfg(target_os = "linux")]
pub use closed_stdout::stdout_was_closed;
pub use environment::{SCRUBBED, is_scrubbed, renumber_git_settings};
pub use error::{DescriptorError, MemoryFolderError};
pub use exit::{
    ENDING_BYTES, decode_exit_status, decode_tried_file, is_left_running, is_process_list,
    is_root_list, is_unreached,
};
pub use memory::MemoryFolder;
pub use policy::{CommandLimits, DEFAULT_PROCESSES, Overlay, Policy, ReadScope, STAND_IN_MODE};
pub use scratch::{Scratch, TEMPORARY, holds_temporary, scratch_place};
pub use support::{SandboxPart, Strength, Support};
pub use umask::{leave_terminal, set_umask};

/// Reports whether standard output was closed when the program started. On this platform it is not checked, and the
/// result is always false.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn stdout_was_closed() -> bool {
    false
}

/// True if the sandbox reports which sealed files a command tries to open. Otherwise only the command's output
/// tells.
#[cfg(target_os = "linux")]
#[must_use]
pub fn reports_tried_files() -> bool {
    linux::seals::reports_tried_files()
}
pub use parent_lifetime::end_with_parent;
pub use sandbox_denial::describe_sandbox_denial;
pub use session_sandbox::SessionSandbox;

/// True if the sandbox reports which sealed files a command tries to open: nowhere but on Linux.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn reports_tried_files() -> bool {
    false
}
