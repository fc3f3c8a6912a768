//! Programs that are started for the person: editor, shell, and what gives the clipboard.

use std::{
    fs::File,
    io::{self, Read, Write as _},
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use gnoma_core::{duration, terminal_text::TerminalText};

use gnoma_host::Project;
use gnoma_tools::{UnattendedEnvironment, unattended_remedy};
use gnoma_tui::Input;
use gnoma_tui::run::Job;
use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid},
};

use super::image::{MAX_IMAGE_BYTES, parse_image};
use crate::environment::ProcessEnvironment;

/// Most bytes of a shell line's output that are kept.
const MAX_OUTPUT_BYTES: usize = 1 << 20;
/// Most bytes that an editor may give back.
const MAX_EDITED_BYTES: usize = 16 << 20;
/// A shell line that runs longer is ended.
const MAX_RUN: Duration = Duration::from_secs(300);
/// The longest wait for the program that reads the clipboard.
const MAX_PASTE: Duration = Duration::from_secs(3);
/// The time that a program that has the terminal may take to leave it when gnoma is ended.
const MAX_LEAVING: Duration = Duration::from_millis(500);
/// The interval at which gnoma checks that the program has left the terminal.
const LEAVING_STEP: Duration = Duration::from_millis(5);
/// Editors that every system may have, where the environment names none.
const USUAL_EDITOR: &str = "vi";

/// The programs that run for the person; all of them are ended when this is dropped.
#[derive(Debug, Default)]
pub(in crate::tui) struct RunningShells {
    /// The process groups of the shell lines.
    lines: Arc<Mutex<Vec<Pid>>>,
    /// The program that has the terminal; never more than one.
    lent: Arc<Mutex<Vec<Pid>>>,
}

impl RunningShells {
    /// Ends the shell lines.
    pub(in crate::tui) fn kill_all(&self) {
        for group in lock_pids(&self.lines).iter() {
            // It may have ended since it was listed.
            kill_process_group(*group, Signal::KILL).unwrap_or_default();
        }
    }

    /// Ends the program that has the terminal as a closed window would, and waits a moment for it to
    /// leave the terminal in order.
    pub(in crate::tui) fn end_lent(&self) {
        for program in lock_pids(&self.lent).iter() {
            kill_process(*program, Signal::HUP).unwrap_or_default();
        }
        let until = Instant::now() + MAX_LEAVING;
        while !lock_pids(&self.lent).is_empty() && Instant::now() < until {
            thread::sleep(LEAVING_STEP);
        }
    }
}

impl Drop for RunningShells {
    fn drop(&mut self) {
        self.kill_all();
    }
}

fn lock_pids(of: &Mutex<Vec<Pid>>) -> MutexGuard<'_, Vec<Pid>> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The settings with which programs are started.
pub(super) struct Programs {
    pub cwd: PathBuf,
    editor: String,
    shell: String,
    /// The environment that tells the person's shell lines that they run unattended.
    unattended: UnattendedEnvironment,
    has_wayland: bool,
    has_x: bool,
    /// True if the output of a program cannot be seen any more once it has ended.
    hides_output: bool,
}

impl Programs {
    pub(super) fn for_project(
        project: &Project,
        full_screen: bool,
        around: &ProcessEnvironment,
    ) -> Self {
        let editor = around.var("VISUAL").or_else(|| around.var("EDITOR")).unwrap_or(USUAL_EDITOR);
        Self {
            cwd: project.spec.folder.clone(),
            editor: editor.to_owned(),
            shell: around.var("SHELL").unwrap_or("/bin/sh").to_owned(),
            unattended: UnattendedEnvironment::new(around.environment.variables()),
            has_wayland: around.var("WAYLAND_DISPLAY").is_some(),
            has_x: around.var("DISPLAY").is_some(),
            hides_output: full_screen,
        }
    }

    /// Lets the person write on in an editor.
    pub(super) fn edit_text(&self, text: String, shells: &RunningShells) -> Job {
        let (editor, cwd) = (self.editor.clone(), self.cwd.clone());
        let lent = Arc::clone(&shells.lent);
        Box::new(move || match run_editor(&editor, &cwd, &text, &lent) {
            Ok(text) => Input::Edited(text),
            Err(error) => Input::Failed(format!("cannot use `{editor}`: {error}")),
        })
    }

    /// Gives the terminal to a program, or to a shell.
    pub(super) fn hand_over(&self, program: Option<&str>, shells: &RunningShells) -> Job {
        let mut command = Command::new(&self.shell);
        if let Some(program) = program {
            command.args(["-c", program]);
        }
        self.lend_to(command, self.shell.clone(), program.is_some(), shells)
    }

    /// Gives the terminal to a command of the running program, which need not be in `PATH`.
    pub(super) fn run_gnoma(&self, command: &str, shells: &RunningShells) -> Job {
        match std::env::current_exe() {
            Ok(file) => {
                let mut program = Command::new(present_program(file));
                program.arg(command);
                self.lend_to(program, format!("gnoma {command}"), true, shells)
            }
            Err(error) => {
                let text = format!("cannot start `gnoma {command}`: {error}");
                Box::new(move || Input::Failed(text))
            }
        }
    }

    fn lend_to(
        &self,
        mut command: Command,
        shell: String,
        is_program: bool,
        shells: &RunningShells,
    ) -> Job {
        let cwd = self.cwd.clone();
        let lent = Arc::clone(&shells.lent);
        let waits = self.hides_output && is_program;
        Box::new(move || {
            match run_on_terminal(command.current_dir(cwd), &lent) {
                Ok(_) if waits => {
                    writeln!(io::stderr(), "Press Enter to return to gnoma").unwrap_or_default();
                    // Whatever comes of it, the person has had the time to look.
                    io::stdin().read_line(&mut String::new()).unwrap_or_default();
                    Input::Resumed
                }
                Ok(status) => match status.signal() {
                    None => Input::Resumed,
                    Some(number) => {
                        Input::Failed(format!("`{shell}` was killed by signal {number}"))
                    }
                },
                Err(error) => Input::Failed(format!("cannot start `{shell}`: {error}")),
            }
        })
    }

    /// Runs a line and takes down what it prints.
    pub(super) fn run_line(&self, line: String, shells: &RunningShells) -> Job {
        let running = Arc::clone(&shells.lines);
        let mut command = Command::new(&self.shell);
        command.arg("-c").arg(format!("exec 2>&1\n{line}")).current_dir(&self.cwd);
        command.envs(self.unattended.set.iter().map(|(name, value)| (name, value)));
        for name in self.unattended.removed {
            command.env_remove(name);
        }
        Box::new(move || match capture_output(&mut command, &running, MAX_OUTPUT_BYTES, MAX_RUN) {
            Ok((bytes, end)) => {
                let mut output = TerminalText::render(&String::from_utf8_lossy(&bytes));
                if let Some(remedy) = unattended_remedy(&output) {
                    output.push_str(remedy);
                    output.push('\n');
                }
                Input::Shell { line, output, failure: end.describe_failure() }
            }
            Err(error) => {
                let failure = Some(format!("cannot start: {error}"));
                Input::Shell { line, output: String::new(), failure }
            }
        })
    }

    /// Gives the clipboard: an image, else text.
    pub(super) fn read_clipboard(&self) -> Job {
        let mut asking: Vec<(&str, &[&str])> = Vec::new();
        if self.has_wayland {
            asking.push(("wl-paste", &["--type", "image/png"]));
            asking.push(("wl-paste", &["--no-newline"]));
        }
        if self.has_x {
            asking.push(("xclip", &["-selection", "clipboard", "-t", "image/png", "-o"]));
            asking.push(("xclip", &["-selection", "clipboard", "-o"]));
        }
        Box::new(move || {
            for (program, arguments) in asking {
                let mut command = Command::new(program);
                command.args(arguments);
                let asked =
                    capture_output(&mut command, &Mutex::default(), MAX_IMAGE_BYTES, MAX_PASTE);
                match asked {
                    Ok((bytes, End::By(status))) if status.success() && !bytes.is_empty() => {
                        return clipboard_bytes_to_input(&bytes);
                    }
                    Ok(_) | Err(_) => (),
                }
            }
            Input::Failed(
                "cannot read the clipboard: install wl-paste or xclip, or paste text with the terminal's own key"
                    .to_owned(),
            )
        })
    }
}

/// Returns the file of the running program; the one in its place if an update replaced it, which Linux marks.
fn present_program(file: PathBuf) -> PathBuf {
    let replaced = file.to_str().and_then(|file| file.strip_suffix(" (deleted)"));
    match replaced {
        Some(path) if !file.exists() => PathBuf::from(path),
        _ => file,
    }
}

fn clipboard_bytes_to_input(bytes: &[u8]) -> Input {
    match parse_image(bytes) {
        Some(image) => Input::Image { instead: String::new(), image, name: String::new() },
        None => Input::Paste(String::from_utf8_lossy(bytes).replace("\r\n", "\n")),
    }
}

/// Opens a text in an editor and returns the edited text; `None` if the editor ended with an error, as editors say
/// "discard".
fn run_editor(
    editor: &str,
    cwd: &Path,
    text: &str,
    lent: &Mutex<Vec<Pid>>,
) -> io::Result<Option<String>> {
    let mut file = tempfile::Builder::new().prefix("gnoma-").suffix(".md").tempfile()?;
    file.write_all(text.as_bytes())?;
    // The variable may hold arguments: a shell reads it, as git does it.
    let line = format!("{editor} \"$1\"");
    let mut command = Command::new("sh");
    let status =
        run_on_terminal(command.args(["-c", &line, "sh"]).arg(file.path()).current_dir(cwd), lent)?;
    if !status.success() {
        return Ok(None);
    }
    // Editors put another file in its place.
    let bytes = read_at_most(file.path(), MAX_EDITED_BYTES)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(Some(text.strip_suffix('\n').unwrap_or(&text).to_owned()))
}

/// Runs a program that has the terminal, to its end; as long as it runs it is in `lent`.
fn run_on_terminal(command: &mut Command, lent: &Mutex<Vec<Pid>>) -> io::Result<ExitStatus> {
    // The lock is held over the start, so that a thread that reads the list waits and sees the program.
    let mut listed = lock_pids(lent);
    let mut child = command.spawn()?;
    let program = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    listed.extend(program);
    drop(listed);
    if let Some(program) = program {
        // Not reaped yet: afterwards the system may give its number to another process.
        let until_over = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(program), until_over), Err(Errno::INTR)) {}
        lock_pids(lent).clear();
    }
    child.wait()
}

/// A file of at most so many bytes.
pub(super) fn read_at_most(path: &Path, max_bytes: usize) -> io::Result<Vec<u8>> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("not a file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(max_bytes as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > max_bytes {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "too large"));
    }
    Ok(bytes)
}

/// The end of a program.
enum End {
    /// The program ended, by itself or by a signal.
    By(ExitStatus),
    /// The program took too long or printed too much.
    CutOff,
}

impl End {
    /// Describes the failure in a few words; `None` if the program ended well.
    fn describe_failure(&self) -> Option<String> {
        match self {
            Self::By(status) if status.success() => None,
            Self::By(status) => Some(match (status.code(), status.signal()) {
                (Some(code), _) => format!("exit code {code}"),
                (None, Some(number)) => format!("killed by signal {number}"),
                (None, None) => "it failed".to_owned(),
            }),
            Self::CutOff => Some(format!(
                "stopped: a command may run for at most {} and print at most {} KB",
                duration::format_duration(MAX_RUN),
                MAX_OUTPUT_BYTES >> 10
            )),
        }
    }
}

/// Runs a program and returns its output, and how it ended. The function ends the program, and all that it has
/// started, when it takes too long or prints too much. While the program runs, `running` has its process group.
fn capture_output(
    command: &mut Command,
    running: &Mutex<Vec<Pid>>,
    max_bytes: usize,
    max: Duration,
) -> io::Result<(Vec<u8>, End)> {
    let until = Instant::now() + max;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    gnoma_sandbox::leave_terminal(command);
    let mut child = command.spawn()?;
    let Some(stdout) = child.stdout.take() else { return Ok((Vec::new(), End::CutOff)) };
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    lock_pids(running).extend(group);
    let (done, printed) = mpsc::channel();
    let read = move || {
        let mut bytes = Vec::new();
        // What was read before an error counts.
        drop(stdout.take(max_bytes as u64).read_to_end(&mut bytes));
        drop(done.send(bytes));
    };
    thread::Builder::new().name("gnoma-output".to_owned()).spawn(read)?;
    let bytes = printed.recv_timeout(until.saturating_duration_since(Instant::now()));
    let is_over = bytes.as_ref().is_ok_and(|bytes| bytes.len() < max_bytes);
    if let Some(group) = group.filter(|_| !is_over) {
        // It may have ended by now.
        kill_process_group(group, Signal::KILL).unwrap_or_default();
    }
    // After the wait, the system may give its number to another process.
    lock_pids(running).retain(|other| Some(*other) != group);
    let status = child.wait()?;
    let bytes = bytes.or_else(|_| printed.recv_timeout(MAX_PASTE)).unwrap_or_default();
    Ok((bytes, if is_over { End::By(status) } else { End::CutOff }))
}
