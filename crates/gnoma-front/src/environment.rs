//! The process environment: variables, folders, terminals. The binary reads it once.

use std::path::PathBuf;

use gnoma_core::protocol::Environment;

/// Environment, folders and terminals as the program found them when it started.
#[derive(Clone, Default)]
pub struct ProcessEnvironment {
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
    /// Returns the value of an environment variable that is set to something.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.environment.get(name)
    }

    /// True if standard error may show colour: it must be a terminal, and `NO_COLOR` must not be set.
    pub fn uses_colour(&self) -> bool {
        self.can_redraw_line() && self.var("NO_COLOR").is_none()
    }

    /// True if a line on standard error may be redrawn.
    pub fn can_redraw_line(&self) -> bool {
        self.stderr_is_terminal
            && self.var("TERM") != Some("dumb")
            && self.var("ACCESSIBLE").is_none()
    }
}
