//! What the program must do before anything else, so that it can be its own launcher.

use std::{
    ffi::{OsStr, OsString},
    process::ExitCode,
};

pub use crate::exit::NOT_BUILT;

/// The path under which a program finds itself, even when its file was replaced.
pub const ITSELF: &str = "/proc/self/exe";

/// True if a program's first argument says that it was started as a launcher.
#[must_use]
pub fn is_request(first_argument: &OsStr) -> bool {
    #[cfg(target_os = "linux")]
    {
        use crate::linux::launcher::{
            AWAIT_COMMAND, HOLD_SESSION, OPEN_MEMORY, OPEN_VIEW, RUN_COMMAND,
        };
        [RUN_COMMAND, AWAIT_COMMAND, HOLD_SESSION, OPEN_VIEW, OPEN_MEMORY]
            .iter()
            .any(|known| first_argument == *known)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = first_argument;
        false
    }
}

/// Does what the arguments after the program's name ask for. To be called before anything else
/// is set up: it closes inherited files and counts on being the only thread.
#[must_use]
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    #[cfg(target_os = "linux")]
    {
        crate::linux::launcher::main(args.into_iter())
    }
    #[cfg(not(target_os = "linux"))]
    {
        drop(args);
        ExitCode::from(NOT_BUILT)
    }
}
