//! Starting a command: which shell, with which environment, connected to what.
//!
//! No terminal is ever made: what a command would ask a person, it must not ask here.

use std::{
    io::{self, ErrorKind},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::{
    net::unix::pipe,
    process::{ChildStdin, Command},
};

use super::process::Process;

/// The shell that every Unix has.
const FALLBACK_SHELL: &str = "/bin/sh";

/// What commands find in their environment besides what gnoma inherited: who runs them, and that
/// nobody is there to page or to answer.
const VARIABLES: [(&str, &str); 7] = [
    ("GNOMA", "1"),
    ("AGENT", "gnoma"),
    ("AI_AGENT", "gnoma"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("TERM", "dumb"),
];

/// Starts commands.
#[derive(Debug)]
pub(super) struct Shell {
    program: PathBuf,
    hidden_variables: Vec<String>,
}

impl Shell {
    /// A shell whose commands do not see `hidden_variables`.
    pub(super) fn new(program: PathBuf, hidden_variables: Vec<String>) -> Self {
        Self { program, hidden_variables }
    }

    /// Starts a command that cannot read anything.
    ///
    /// # Errors
    /// Why it could not be started, for the model.
    pub(super) fn start(&self, command: &str, cwd: &Path) -> Result<Process, String> {
        self.launch(command, cwd, Stdio::null).map(|(process, _)| process)
    }

    /// Starts a command that reads what is written to the returned end of a pipe.
    ///
    /// # Errors
    /// Why it could not be started, for the model.
    pub(super) fn start_with_input(
        &self,
        command: &str,
        cwd: &Path,
    ) -> Result<(Process, Option<ChildStdin>), String> {
        self.launch(command, cwd, Stdio::piped)
    }

    fn launch(
        &self,
        command: &str,
        cwd: &Path,
        stdin: fn() -> Stdio,
    ) -> Result<(Process, Option<ChildStdin>), String> {
        let started = match self.spawn(&self.program, command, cwd, stdin()) {
            Err(error) if error.kind() == ErrorKind::NotFound && cwd.is_dir() => {
                self.spawn(Path::new(FALLBACK_SHELL), command, cwd, stdin())
            }
            started => started,
        };
        started.map_err(|error| refusal(&error, cwd))
    }

    fn spawn(
        &self,
        shell: &Path,
        command: &str,
        cwd: &Path,
        stdin: Stdio,
    ) -> io::Result<(Process, Option<ChildStdin>)> {
        // One pipe for both outputs keeps them in the order they were written.
        let (reader, writer) = io::pipe()?;
        let output = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
        let mut shell = Command::new(shell);
        shell
            .arg("-c")
            .arg(command)
            .current_dir(cwd)
            .stdin(stdin)
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .process_group(0)
            .envs(VARIABLES);
        for name in &self.hidden_variables {
            shell.env_remove(name);
        }
        let mut child = shell.spawn()?;
        let input = child.stdin.take();
        Ok((Process::new(child, output), input))
    }
}

fn refusal(error: &io::Error, cwd: &Path) -> String {
    let folder = cwd.display();
    if !cwd.is_dir() {
        return format!("the folder `{folder}` is gone, so nothing was run; make it again first");
    }
    match error.kind() {
        ErrorKind::ArgumentListTooLong => {
            "the command is too long to be started; write it to a file and run that".to_owned()
        }
        _ => format!("the command could not be started in `{folder}`: {error}"),
    }
}
