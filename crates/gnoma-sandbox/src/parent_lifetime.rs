//! Tying a program that no launcher starts to the life of this process.
#![expect(unsafe_code, reason = "what runs between `fork` and `exec`; it says why it is sound")]

use std::process::Command;

/// Has `command` be killed when the thread that starts it ends, as all do when this process is killed. To
/// be started by a thread that lives as long as the process. What the program has started itself is not
/// reached; walls reach that. Only Linux knows such a tie.
pub fn end_with_parent(command: &mut Command) {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::process::CommandExt as _;

        use rustix::process::{Signal, getppid, set_parent_process_death_signal};

        let parent = std::process::id();
        // SAFETY: between `fork` and `exec` only two system calls are made; neither allocates.
        unsafe {
            command.pre_exec(move || {
                set_parent_process_death_signal(Some(Signal::KILL))?;
                // It may have died in between.
                let is_alive = getppid()
                    .is_some_and(|pid| u32::try_from(pid.as_raw_nonzero().get()) == Ok(parent));
                if is_alive {
                    Ok(())
                } else {
                    Err(std::io::Error::from_raw_os_error(rustix::io::Errno::SRCH.raw_os_error()))
                }
            });
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = command;
}
