//! Reads what the program finds around itself: environment, folders, terminals. Once.

use std::{
    io::{IsTerminal as _, stderr, stdin, stdout},
    path::PathBuf,
};

use gnoma_core::protocol::Environment;
pub(crate) use gnoma_front::ProcessEnvironment;

/// Reads the environment, folders and terminals of this process.
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the process")]
pub(crate) fn read_process() -> ProcessEnvironment {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ProcessEnvironment {
        environment: Environment::new(gnoma_core::sort::to_map(
            std::env::vars_os().filter_map(text),
        )),
        line: std::env::args_os().filter_map(|word| word.into_string().ok()).collect(),
        cwd: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
        stdin_is_terminal: stdin().is_terminal(),
        stdout_is_terminal: stdout().is_terminal(),
        stderr_is_terminal: stderr().is_terminal(),
        ignores_hangup: ignores_hangup(&status),
        umask: parse_umask(&status),
    }
}

/// True if the process ignores SIGHUP, the first of the signals. `status` is the content of the status file that
/// `proc(5)` describes.
fn ignores_hangup(status: &str) -> bool {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.is_some_and(|set| u64::from_str_radix(set.trim(), 16).is_ok_and(|set| set & 1 == 1))
}

/// The umask, by the file of `proc(5)`.
fn parse_umask(status: &str) -> Option<u32> {
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(umask.trim(), 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_hangup_is_seen() {
        assert!(ignores_hangup("Name:\tgnoma\nSigBlk:\t0000\nSigIgn:\t0000000000001001\n"));
        assert!(!ignores_hangup("SigIgn:\t0000000000001000\nSigCgt:\t0000000000000001\n"));
        assert!(!ignores_hangup(""));
    }

    #[test]
    fn the_umask_is_read() {
        assert_eq!(parse_umask("Name:\tgnoma\nUmask:\t0077\n"), Some(0o077));
        assert_eq!(parse_umask("Name:\tgnoma\n"), None);
    }
}
