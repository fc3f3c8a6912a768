//! What the program finds around itself: environment, folders, terminals. Read once.

use std::{
    io::{IsTerminal as _, stderr, stdin, stdout},
    path::PathBuf,
};

use gnoma_core::protocol::Environment;

/// Environment, folders and terminals as the program found them when it started.
#[derive(Clone)]
pub(crate) struct ProcessEnvironment {
    /// Environment variables that are text.
    pub environment: Environment,
    /// The command line, as far as it is text.
    pub line: Vec<String>,
    /// Folder the program was started in.
    pub cwd: PathBuf,
    /// Standard input is a terminal.
    pub stdin_is_terminal: bool,
    /// Standard output is a terminal.
    pub stdout_is_terminal: bool,
    /// Standard error is a terminal.
    pub stderr_is_terminal: bool,
    /// The program was started to outlive its terminal (`nohup`).
    pub ignores_hangup: bool,
    /// Permission bits that new files do not get.
    pub umask: Option<u32>,
}

impl ProcessEnvironment {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the process")]
    pub(crate) fn of_process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        Self {
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

    /// A variable that is set to something.
    pub(crate) fn var(&self, name: &str) -> Option<&str> {
        self.environment.get(name)
    }

    /// True if standard error may show colour: it must be a terminal, and `NO_COLOR` must not be set.
    pub(crate) fn uses_colour(&self) -> bool {
        self.stderr_is_terminal
            && self.var("NO_COLOR").is_none()
            && self.var("TERM") != Some("dumb")
            && self.var("ACCESSIBLE").is_none()
    }

    /// True if a line on standard error may be redrawn.
    pub(crate) fn can_redraw_line(&self) -> bool {
        self.stderr_is_terminal
            && self.var("TERM") != Some("dumb")
            && self.var("ACCESSIBLE").is_none()
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
