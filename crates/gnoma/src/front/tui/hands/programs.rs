//! Programs that are started for the person: editor, shell, and what gives the clipboard.

use std::{
    fs::File,
    io::{self, Read, Write as _},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use gnoma_tui::Input;
use gnoma_tui::run::Job;
use rustix::process::{Pid, Signal, kill_process_group};

use super::{MAX_IMAGE_BYTES, image};
use crate::{front::tui::plan::Session, surroundings::Surroundings};

/// Most bytes of a shell line's output that are kept.
const MAX_OUTPUT_BYTES: usize = 1 << 20;
/// Most bytes that an editor may give back.
const MAX_EDITED_BYTES: usize = 16 << 20;
/// A shell line that runs longer is ended.
const MAX_RUN: Duration = Duration::from_secs(300);
/// What asks for the clipboard waits no longer.
const MAX_PASTE: Duration = Duration::from_secs(3);
/// Editors that every system may have, where the environment names none.
const USUAL_EDITOR: &str = "vi";

/// The process groups of the shell lines that run; all are ended when this is dropped.
#[derive(Debug, Default)]
pub(in crate::front::tui) struct Shells(Arc<Mutex<Vec<Pid>>>);

impl Shells {
    /// Ends all of them.
    pub(in crate::front::tui) fn end(&self) {
        for group in groups(&self.0).iter() {
            // It may have ended meanwhile.
            kill_process_group(*group, Signal::KILL).unwrap_or_default();
        }
    }
}

impl Drop for Shells {
    fn drop(&mut self) {
        self.end();
    }
}

fn groups(of: &Mutex<Vec<Pid>>) -> MutexGuard<'_, Vec<Pid>> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How they are started.
pub(super) struct Programs {
    pub cwd: PathBuf,
    editor: String,
    shell: String,
    has_wayland: bool,
    has_x: bool,
    /// What a program prints is not seen any more once it has ended.
    hides_output: bool,
}

impl Programs {
    pub(super) fn of(session: &Session, around: &Surroundings) -> Self {
        let editor = around.var("VISUAL").or_else(|| around.var("EDITOR")).unwrap_or(USUAL_EDITOR);
        Self {
            cwd: session.cwd.clone(),
            editor: editor.to_owned(),
            shell: around.var("SHELL").unwrap_or("/bin/sh").to_owned(),
            has_wayland: around.var("WAYLAND_DISPLAY").is_some(),
            has_x: around.var("DISPLAY").is_some(),
            hides_output: session.args.full_screen,
        }
    }

    /// Lets the person write on in an editor.
    pub(super) fn edit(&self, text: String) -> Job {
        let (editor, cwd) = (self.editor.clone(), self.cwd.clone());
        Box::new(move || match edited(&editor, &cwd, &text) {
            Ok(text) => Input::Edited(text),
            Err(error) => Input::Failed(format!("`{editor}` cannot be used: {error}")),
        })
    }

    /// Gives the terminal to a program, or to a shell.
    pub(super) fn hand_over(&self, program: Option<String>) -> Job {
        let (shell, cwd) = (self.shell.clone(), self.cwd.clone());
        let waits = self.hides_output && program.is_some();
        Box::new(move || {
            let mut command = Command::new(&shell);
            if let Some(program) = &program {
                command.args(["-c", program]);
            }
            match command.current_dir(cwd).status() {
                Ok(_) if waits => {
                    writeln!(io::stderr(), "Enter goes back to gnoma").unwrap_or_default();
                    // Whatever comes of it, the person has had the time to look.
                    io::stdin().read_line(&mut String::new()).unwrap_or_default();
                    Input::Resumed
                }
                Ok(_) => Input::Resumed,
                Err(error) => Input::Failed(format!("`{shell}` cannot be started: {error}")),
            }
        })
    }

    /// Runs a line and takes down what it prints.
    pub(super) fn run(&self, line: String, shells: &Shells) -> Job {
        let running = Arc::clone(&shells.0);
        let mut command = Command::new(&self.shell);
        command.arg("-c").arg(format!("exec 2>&1\n{line}")).current_dir(&self.cwd);
        Box::new(move || match output(&mut command, &running, MAX_OUTPUT_BYTES, MAX_RUN) {
            Ok((bytes, success)) => {
                Input::Shell { line, output: String::from_utf8_lossy(&bytes).into_owned(), success }
            }
            Err(error) => Input::Shell { line, output: error.to_string(), success: false },
        })
    }

    /// Gives the clipboard: an image, else text.
    pub(super) fn clipboard(&self) -> Job {
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
                let asked = output(&mut command, &Mutex::default(), MAX_IMAGE_BYTES, MAX_PASTE);
                match asked {
                    Ok((bytes, true)) if !bytes.is_empty() => return pasted(&bytes),
                    Ok(_) | Err(_) => (),
                }
            }
            Input::Failed(
                "the clipboard cannot be read: that needs wl-paste or xclip; the terminal's own key \
                 pastes text"
                    .to_owned(),
            )
        })
    }
}

fn pasted(bytes: &[u8]) -> Input {
    match image(bytes) {
        Some(image) => Input::Image { instead: String::new(), image, name: String::new() },
        None => Input::Paste(String::from_utf8_lossy(bytes).replace("\r\n", "\n")),
    }
}

/// What an editor made of a text; `None` where it was left with an error, as editors say "discard".
fn edited(editor: &str, cwd: &Path, text: &str) -> io::Result<Option<String>> {
    let mut file = tempfile::Builder::new().prefix("gnoma-").suffix(".md").tempfile()?;
    file.write_all(text.as_bytes())?;
    // The variable may hold arguments: a shell reads it, as git does it.
    let line = format!("{editor} \"$1\"");
    let status =
        Command::new("sh").args(["-c", &line, "sh"]).arg(file.path()).current_dir(cwd).status()?;
    if !status.success() {
        return Ok(None);
    }
    // Editors put another file in its place.
    let bytes = read_at_most(file.path(), MAX_EDITED_BYTES)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(Some(text.strip_suffix('\n').unwrap_or(&text).to_owned()))
}

/// A file of at most so many bytes.
pub(super) fn read_at_most(path: &Path, max_bytes: usize) -> io::Result<Vec<u8>> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(max_bytes as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > max_bytes {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is too large"));
    }
    Ok(bytes)
}

/// What a program prints, and whether it ended well. Ends it, and all that it has started, when it
/// takes too long or prints too much. While it runs, `running` has its group.
fn output(
    command: &mut Command,
    running: &Mutex<Vec<Pid>>,
    max_bytes: usize,
    max: Duration,
) -> io::Result<(Vec<u8>, bool)> {
    let until = Instant::now() + max;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn()?;
    let Some(stdout) = child.stdout.take() else { return Ok((Vec::new(), false)) };
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    groups(running).extend(group);
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
        // It may have ended meanwhile.
        kill_process_group(group, Signal::KILL).unwrap_or_default();
    }
    // Once it has been waited for, its number may be somebody else's.
    groups(running).retain(|other| Some(*other) != group);
    let status = child.wait()?;
    let bytes = bytes.or_else(|_| printed.recv_timeout(MAX_PASTE)).unwrap_or_default();
    Ok((bytes, is_over && status.success()))
}
