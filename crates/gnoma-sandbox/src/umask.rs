//! The file mode creation mask of a command that no launcher starts.
#![expect(unsafe_code, reason = "what runs between `fork` and `exec`; it says why it is sound")]

use std::{os::unix::process::CommandExt, process::Command};

use rustix::{fs::Mode, process::umask};

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
