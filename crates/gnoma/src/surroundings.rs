//! What the program finds around itself: environment, folders, terminals. Read once.

use std::{
    collections::BTreeMap,
    io::{IsTerminal as _, stderr, stdin, stdout},
    path::PathBuf,
};

/// See the module.
#[derive(Clone)]
pub(crate) struct Surroundings {
    /// Environment variables that are text.
    pub env: BTreeMap<String, String>,
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
}

impl Surroundings {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the process")]
    pub(crate) fn of_process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self {
            env: std::env::vars_os().filter_map(text).collect(),
            cwd: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            stdin_is_terminal: stdin().is_terminal(),
            stdout_is_terminal: stdout().is_terminal(),
            stderr_is_terminal: stderr().is_terminal(),
            ignores_hangup: std::fs::read_to_string("/proc/self/status")
                .is_ok_and(|status| ignores_hangup(&status)),
        }
    }

    /// A variable that is set to something.
    pub(crate) fn var(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Whether standard error shows colour: only a terminal, and never with `NO_COLOR`.
    pub(crate) fn colour(&self) -> bool {
        self.stderr_is_terminal
            && self.var("NO_COLOR").is_none()
            && self.var("TERM") != Some("dumb")
            && self.var("ACCESSIBLE").is_none()
    }

    /// Whether a line may be redrawn on standard error.
    pub(crate) fn animated(&self) -> bool {
        self.stderr_is_terminal
            && self.var("TERM") != Some("dumb")
            && self.var("ACCESSIBLE").is_none()
    }

    /// `~/.config/gnoma`, or where XDG says.
    pub(crate) fn config_dir(&self) -> PathBuf {
        self.xdg("XDG_CONFIG_HOME", ".config").join("gnoma")
    }

    /// `~/.local/state/gnoma`, or where XDG says.
    pub(crate) fn state_dir(&self) -> PathBuf {
        self.xdg("XDG_STATE_HOME", ".local/state").join("gnoma")
    }

    /// The person's own list of what git ignores, where git looks for it unless told otherwise.
    pub(crate) fn git_excludes(&self) -> PathBuf {
        self.xdg("XDG_CONFIG_HOME", ".config").join("git/ignore")
    }

    /// The user's home: where `HOME` says, or the system's list of users.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        let told = self.var("HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        told.or_else(|| home_of(rustix::process::getuid().as_raw(), "/etc/passwd"))
    }

    fn xdg(&self, variable: &str, under_home: &str) -> PathBuf {
        let base = self.var(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        base.unwrap_or_else(|| PathBuf::from(self.var("HOME").unwrap_or("/")).join(under_home))
    }
}

/// The home of the user with that number, by a file of `passwd(5)`.
fn home_of(user: u32, file: &str) -> Option<PathBuf> {
    let users = std::fs::read_to_string(file).ok()?;
    let is_user = |line: &&str| line.split(':').nth(2) == Some(&*user.to_string());
    let home = users.lines().find(is_user)?.split(':').nth(5)?;
    Some(PathBuf::from(home)).filter(|path| path.is_absolute())
}

/// Whether SIGHUP, the first of the signals, is ignored. `status` is the file of `proc(5)`.
fn ignores_hangup(status: &str) -> bool {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.is_some_and(|set| u64::from_str_radix(set.trim(), 16).is_ok_and(|set| set & 1 == 1))
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
}
