//! Finds out what this machine permits, by trying it in a process that ends at once.

use std::{fs, io, os::fd::AsFd};

use rustix::{
    mount::{OpenTreeFlags, open_tree},
    process::{WaitOptions, waitpid},
    thread::UnshareFlags,
};

use super::raw_syscalls::{self, mount_attributes::READ_ONLY};

/// The trial got everything.
const FINE: u8 = 0;
/// A user namespace was refused.
const NO_NAMESPACE: u8 = 1;
/// The namespace was made, but mounts in it cannot be changed.
const NO_MOUNTS: u8 = 2;

/// The reason why namespaces cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// They cannot be made.
    Namespaces,
    /// They can be made and are of no use.
    Mounts,
    /// The trial itself failed, so the answer is unknown.
    Trial,
}

/// Checks that namespaces can be made and used.
pub(crate) fn try_namespaces() -> Result<(), Refusal> {
    // The child only makes system calls: this may be called in a process with many threads.
    let trial = raw_syscalls::fork_for(|| {
        let spaces = UnshareFlags::NEWUSER | UnshareFlags::NEWNS;
        // A system may refuse these two alone. Processes have theirs only for children, which are not needed here.
        let of_session = UnshareFlags::NEWNET | UnshareFlags::NEWIPC;
        if raw_syscalls::unshare(spaces | of_session | UnshareFlags::NEWPID).is_err() {
            return NO_NAMESPACE;
        }
        let flags = OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let root = open_tree(rustix::fs::CWD, c"/", flags);
        match root.map(|root| raw_syscalls::set_mount(root.as_fd(), READ_ONLY, true)) {
            Ok(Ok(())) => FINE,
            _ => NO_MOUNTS,
        }
    });
    let ended = trial.ok().and_then(|child| waitpid(Some(child), WaitOptions::empty()).ok()?);
    match ended.and_then(|(_, status)| status.exit_status()).map(u8::try_from) {
        Some(Ok(FINE)) => Ok(()),
        Some(Ok(NO_NAMESPACE)) => Err(Refusal::Namespaces),
        Some(Ok(NO_MOUNTS)) => Err(Refusal::Mounts),
        _ => Err(Refusal::Trial),
    }
}

/// The version of Landlock, where it is switched on.
pub(crate) fn landlock_version() -> Option<u32> {
    raw_syscalls::landlock_version().ok()
}

/// True if system calls can be filtered: the kernel lists what a filter may answer.
pub(crate) fn can_filter_calls() -> bool {
    let actions = fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail");
    actions
        .map_or_else(|error| error.kind() != io::ErrorKind::NotFound, |all| all.contains("errno"))
}
