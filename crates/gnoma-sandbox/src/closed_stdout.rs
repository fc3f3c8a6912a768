//! Whether standard output was closed when the program started. The standard library opens `/dev/null` in its place
//! before `main`, and what is written there is lost without an error; so it is looked at before that.
#![expect(unsafe_code, reason = "what runs before `main`; it says why it is sound")]

use std::sync::atomic::{AtomicBool, Ordering};

/// The descriptor of standard output.
const STDOUT: i32 = 1;

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

extern "C" fn record_stdout_state() {
    // SAFETY: this call reads a flag of a descriptor and touches no memory; it needs nothing of the standard library,
    // which is not set up yet.
    let flags = unsafe { libc::fcntl(STDOUT, libc::F_GETFD) };
    WAS_CLOSED.store(flags == -1, Ordering::Relaxed);
}

// SAFETY: the section holds pointers to functions without arguments, which the C library calls before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = record_stdout_state;

/// True if standard output was closed when the program started, as with `gnoma … >&-`.
#[must_use]
pub fn stdout_was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}
