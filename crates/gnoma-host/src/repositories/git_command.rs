//! The git command with which gnoma reads a repository.

use std::process::{Command, Stdio};

/// Returns a git command that reads no settings of the machine or the person, asks for nothing, fetches nothing and
/// writes no lock. `path` is the `PATH` on which git and its programs are found. Its output is for the caller.
pub(crate) fn git_command(path: &str) -> Command {
    let mut git = Command::new("git");
    git.env_clear()
        .env("PATH", path)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    git
}
