//! The few calls that no safe crate offers, each wrapped so that the rest need not be careful.
//!
//! All `unsafe` of gnoma but one call (`umask`) is here. The wrappers that matter (`fork`, closing, namespaces) are for the
//! launcher, which is a fresh process with one thread.
#![expect(unsafe_code, reason = "system calls without a safe binding; each says why it is sound")]

use std::{
    io, mem,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
    ptr,
};

use rustix::{
    process::{Pid, Signal},
    thread::{UnshareFlags, unshare_unsafe},
};

/// The process that a fork returned to.
pub(super) enum ForkResult {
    /// The new process, the child.
    Child,
    /// The old one, with the number of the new one.
    Parent(Pid),
}

/// Makes a second process. Only for a process with a single thread.
pub(super) fn fork() -> io::Result<ForkResult> {
    // SAFETY: the callers have one thread, so no lock can be held by somebody who is not copied.
    let number = unsafe { libc::fork() };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Pid::from_raw(number).map_or(ForkResult::Child, ForkResult::Parent))
}

/// Makes a second process that runs `body` and ends with the number it returns. Sound in a process
/// with many threads only while `body` neither allocates nor takes a lock: it makes system calls.
pub(super) fn fork_for(body: impl FnOnce() -> u8) -> io::Result<Pid> {
    match fork()? {
        ForkResult::Parent(child) => Ok(child),
        ForkResult::Child => {
            let code = body();
            // SAFETY: ends the process without running anything of the parent's, as it must here.
            unsafe { libc::_exit(libc::c_int::from(code)) }
        }
    }
}

/// Closes everything but the three standard streams.
pub(super) fn close_inherited() -> io::Result<()> {
    // SAFETY: called first in the launcher, before any value that owns a descriptor exists.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
    check_result(result).map(drop)
}

/// Gives this process namespaces of its own.
pub(super) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: descriptor tables are not among the flags that are passed here.
    unsafe { unshare_unsafe(flags) }.map_err(Into::into)
}

/// Attributes of a mount, for [`set_mount`].
pub(super) mod mount_attributes {
    /// Makes the whole mount read-only.
    pub(in crate::linux) const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;
    /// Programs do not gain rights.
    pub(in crate::linux) const NO_SETUID: u64 = libc::MOUNT_ATTR_NOSUID;
    /// Device files do nothing.
    pub(in crate::linux) const NO_DEVICES: u64 = libc::MOUNT_ATTR_NODEV;
}

/// Sets attributes on the mount at `mount`, and with `below` on every mount below it. What was
/// shared with other namespaces no longer is.
pub(super) fn set_mount(mount: BorrowedFd<'_>, attributes: u64, below: bool) -> io::Result<()> {
    let request = libc::mount_attr {
        attr_set: attributes,
        attr_clr: 0,
        propagation: libc::MS_PRIVATE,
        userns_fd: 0,
    };
    let recursive = if below { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is an empty string that ends in zero, and the kernel reads `request` for the
    // length that is passed.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | recursive,
            ptr::from_ref(&request),
            mem::size_of_val(&request),
        )
    };
    check_result(result).map(drop)
}

/// Switches the loopback of this network namespace on.
pub(super) fn raise_loopback(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: a request of zeros is a valid one.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    request.ifr_ifru.ifru_flags = UP;
    // SAFETY: the kernel reads `request`, which outlives the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &request) };
    check_result(result.into()).map(drop)
}

/// `IFF_UP` and `IFF_RUNNING`; the structure has a shorter field than the constants.
const UP: libc::c_short = 0x41;

/// The signals that are passed on to the command, and the one that tells of ended children.
pub(super) const WATCHED: [Signal; 7] = [
    Signal::CHILD,
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::USR1,
    Signal::USR2,
];

/// Lets the watched signals wait, to be read from the descriptor.
pub(super) fn watch_signals() -> io::Result<OwnedFd> {
    let set = signal_set(&WATCHED);
    // SAFETY: `set` is initialised; there is no old mask to store.
    let result = unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut()) };
    check_result(result.into())?;
    // SAFETY: `set` is initialised; the result is a descriptor that nobody owns yet.
    let descriptor =
        unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    check_result(descriptor.into())?;
    // SAFETY: just made, and owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Lets signals come again, as a program expects that is executed next.
pub(super) fn receive_signals() -> io::Result<()> {
    let none = signal_set(&[]);
    // SAFETY: `none` is initialised; there is no old mask to store.
    let result = unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut()) };
    check_result(result.into()).map(drop)
}

/// The number of a watched signal that came, if one did.
pub(super) fn next_signal(signals: &OwnedFd) -> Option<Signal> {
    let mut record = [0_u8; mem::size_of::<libc::signalfd_siginfo>()];
    let read = rustix::io::read(signals, &mut record).ok()?;
    let number: [u8; 4] = record.get(..4).filter(|_| read == record.len())?.try_into().ok()?;
    Signal::from_named_raw(i32::from_ne_bytes(number))
}

/// Ends this process the way another one ended, so that whoever waits for it sees the same.
pub(super) fn die_by(signal: i32) {
    let Some(signal) = Signal::from_named_raw(signal) else {
        return;
    };
    let set = signal_set(&[signal]);
    // SAFETY: the default action replaces one that the runtime set and nobody counts on any more;
    // `set` is initialised.
    unsafe {
        libc::signal(signal.as_raw(), libc::SIG_DFL);
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const set, ptr::null_mut());
        libc::raise(signal.as_raw());
    }
}

fn signal_set(signals: &[Signal]) -> libc::sigset_t {
    // SAFETY: `sigemptyset` initialises the set before it is used.
    unsafe {
        let mut set = mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, signal.as_raw());
        }
        set
    }
}

/// The version of Landlock that the kernel speaks.
pub(super) fn landlock_version() -> io::Result<u32> {
    /// Asks for the version instead of making a set of rules.
    const VERSION: u32 = 1;
    // SAFETY: no memory is passed.
    let result = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, ptr::null::<RawFd>(), 0_usize, VERSION)
    };
    check_result(result).map(|version| u32::try_from(version).unwrap_or(0))
}

fn check_result(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
