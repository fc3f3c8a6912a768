//! The file mode creation mask and the session of a command that no launcher starts.
#![expect(unsafe_code, reason = "what runs between `fork` and `exec`; it says why it is sound")]

use std::{os::unix::process::CommandExt, process::Command};

use rustix::{
    fs::Mode,
    process::{setsid, umask},
};

/// Has `command` start with this mask in place of the one of this process.
pub fn set_umask(command: &mut Command, mask: u32) {
    let mask = Mode::from_bits_retain(mask as _);
    // SAFETY: between `fork` and `exec` only one system call is made; it neither fails nor allocates.
    unsafe {
        command.pre_exec(move || {
            umask(mask);
            Ok(())
        });
    }
}

/// Has `command` start in a session of its own, which has no terminal that it could ask somebody at. It leads a process
/// group of its own as well, so it must not be given another.
pub fn leave_terminal(command: &mut Command) {
    // SAFETY: between `fork` and `exec` only one system call is made; it does not allocate.
    unsafe {
        command.pre_exec(|| {
            setsid()?;
            Ok(())
        });
    }
}
