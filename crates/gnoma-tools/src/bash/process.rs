//! A running command: its process group, its output, and how it ends.
//!
//! Everything that a command starts stays in its group unless it leaves on purpose (`setsid`); what
//! leaves, and what a command put into the background with its output sent elsewhere, lives on.

use std::{
    collections::BTreeSet,
    fmt, io,
    os::unix::{net, process::ExitStatusExt},
    path::{Path, PathBuf},
    process::ExitStatus,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use gnoma_core::tool::CommandReport;
use gnoma_sandbox::{ENDING_BYTES, Policy};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::AsyncReadExt,
    net::{UnixStream, unix::pipe},
    process::Child,
    time::timeout,
};

use super::decode::Utf8Decoder;

/// The time for which output is read on after the shell has ended, when something else still holds the pipe.
const DRAIN_GRACE: Duration = Duration::from_millis(50);
/// The time that a process group may take to end itself when asked to.
const TERM_GRACE: Duration = Duration::from_millis(500);
/// The time that the system may take to end a process group by force.
const KILL_GRACE: Duration = Duration::from_millis(200);

/// A process group, killed when dropped unless it was released.
#[derive(Debug)]
pub(super) struct Group {
    leader: Option<Pid>,
    released: AtomicBool,
}

impl Group {
    fn led_by(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self { leader: id.and_then(Pid::from_raw), released: AtomicBool::new(false) }
    }

    /// Ends the group by force.
    pub(super) fn kill(&self) {
        self.send_signal(Signal::KILL);
    }

    fn send_signal(&self, signal: Signal) {
        if let Some(leader) = self.leader
            && !self.released.load(Ordering::Acquire)
        {
            // The only failure is that nobody is left.
            kill_process_group(leader, signal).ok();
        }
    }

    /// Lets go of the group: its number may soon belong to somebody else.
    fn release(&self) {
        self.released.store(true, Ordering::Release);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The way in which a shell ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShellEnd {
    /// By itself, with this exit code.
    Code(i32),
    /// By a signal of this number.
    Signal(i32),
    /// The system did not say.
    Unknown,
}

impl ShellEnd {
    fn from_status(status: &io::Result<ExitStatus>) -> Self {
        let Ok(status) = status else {
            return Self::Unknown;
        };
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Unknown,
        }
    }

    /// The exit code, if there is one.
    pub(super) fn exit_code(self) -> Option<i32> {
        match self {
            Self::Code(code) => Some(code),
            Self::Signal(_) | Self::Unknown => None,
        }
    }

    /// The end of `command`, for the engine.
    pub(super) fn into_report(self, command: String) -> CommandReport {
        CommandReport { command, exit_code: self.exit_code(), walled: None, trial: None }
    }
}

impl fmt::Display for ShellEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "Exit code {code}"),
            Self::Signal(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "Killed by {name}"),
                None => write!(f, "Killed by signal {signal}"),
            },
            Self::Unknown => f.write_str("Ended, exit code unknown"),
        }
    }
}

fn signal_name(number: i32) -> Option<&'static str> {
    Some(match Signal::from_named_raw(number)? {
        Signal::HUP => "SIGHUP",
        Signal::INT => "SIGINT",
        Signal::QUIT => "SIGQUIT",
        Signal::ILL => "SIGILL",
        Signal::TRAP => "SIGTRAP",
        Signal::ABORT => "SIGABRT",
        Signal::BUS => "SIGBUS",
        Signal::FPE => "SIGFPE",
        Signal::KILL => "SIGKILL",
        Signal::SEGV => "SIGSEGV",
        Signal::PIPE => "SIGPIPE",
        Signal::ALARM => "SIGALRM",
        Signal::TERM => "SIGTERM",
        Signal::XCPU => "SIGXCPU",
        Signal::XFSZ => "SIGXFSZ",
        _ => return None,
    })
}

/// An event in the life of a process.
#[derive(Debug)]
pub(super) enum ProcessEvent<'a> {
    /// The process wrote this text; empty when only part of a character came.
    Wrote(&'a str),
    /// The shell of the process ended. There may be unread output.
    Ended(ShellEnd),
}

/// The limits of the sandbox that a command met, as its launcher reports them.
#[derive(Debug, Default)]
struct SandboxDenials {
    /// The sealed files that the command tried to open, as indices.
    tried: BTreeSet<usize>,
    /// `true` if the command tried to reach a server that the sandbox does not have.
    missed_server: bool,
    /// `true` if processes that the command left in the background were ended.
    left_running: bool,
    /// `true` for processes and the root of the machine if the command listed those that the sandbox shows.
    partial_lists: [bool; 2],
}

impl SandboxDenials {
    /// Takes a message; whether it was about this.
    fn record_message(&mut self, message: [u8; ENDING_BYTES]) -> bool {
        let (file, missed) =
            (gnoma_sandbox::decode_tried_file(message), gnoma_sandbox::is_unreached(message));
        self.tried.extend(file);
        let left = gnoma_sandbox::is_left_running(message);
        let listed =
            [gnoma_sandbox::is_process_list(message), gnoma_sandbox::is_root_list(message)];
        self.missed_server |= missed;
        self.left_running |= left;
        for (known, new) in self.partial_lists.iter_mut().zip(listed) {
            *known |= new;
        }
        file.is_some() || missed || left || listed.contains(&true)
    }
}

/// A shell, what it started, and the pipe they write to. Dropped, it kills them all.
#[derive(Debug)]
pub(super) struct Process {
    // Before `child`: the group is killed while its leader still holds the number.
    group: Arc<Group>,
    child: Child,
    /// The socket on which the launcher may report the end of the command before its own.
    told: Option<UnixStream>,
    /// The files that the command finds and cannot open, in the order in which the launcher tells of them.
    sealed: Vec<PathBuf>,
    /// Names outside of what the command sees, which the launcher tells of behind these.
    outside_names: Vec<PathBuf>,
    met: SandboxDenials,
    output: pipe::Receiver,
    open: bool,
    decoder: Utf8Decoder,
}

impl Process {
    /// Takes charge of a child that leads a group and writes to `output`.
    pub(super) fn new(child: Child, output: pipe::Receiver) -> Self {
        Self {
            group: Arc::new(Group::led_by(&child)),
            child,
            told: None,
            sealed: Vec::new(),
            outside_names: Vec::new(),
            met: SandboxDenials::default(),
            output,
            open: true,
            decoder: Utf8Decoder::new(),
        }
    }

    /// The same, with where its launcher may tell the end.
    pub(super) fn told_by(self, launcher: net::UnixStream) -> Self {
        Self { told: UnixStream::from_std(launcher).ok(), ..self }
    }

    /// The same, with what its sandbox lets it find and not open.
    pub(super) fn with_policy(self, policy: &Policy) -> Self {
        let (sealed, outside_names) = (policy.sealed.clone(), policy.outside_names.clone());
        Self { sealed, outside_names, ..self }
    }

    /// The sealed files that it tried to open. Complete when the shell has ended. Where the launcher cannot see it,
    /// `output` of a command in `cwd` tells: programs name the file that they were refused.
    pub(super) fn tried_files(&mut self, output: &str, cwd: &Path) -> Vec<PathBuf> {
        if let Some(socket) = &self.told {
            let mut message = [0; ENDING_BYTES];
            // Not by way of the runtime, which may not have heard yet that there is something.
            while rustix::io::read(socket, &mut message) == Ok(ENDING_BYTES) {
                self.met.record_message(message);
            }
        }
        let tried = self.met.tried.iter().filter_map(|place| self.sealed.get(*place).cloned());
        let tried: Vec<_> = tried.collect();
        if tried.is_empty() { refused_files(output, &self.sealed, cwd) } else { tried }
    }

    /// The names outside of what it sees that it tried to open; complete after [`Self::tried_files`].
    pub(super) fn tried_outside(&self) -> Vec<PathBuf> {
        let places = self.met.tried.iter().filter_map(|place| place.checked_sub(self.sealed.len()));
        places.filter_map(|place| self.outside_names.get(place).cloned()).collect()
    }

    /// Reports whether the command tried to reach a server that the sandbox does not have; complete like
    /// [`Self::tried_files`].
    pub(super) fn has_missed_server(&self) -> bool {
        self.met.missed_server
    }

    /// Reports whether processes that the command left in the background were ended; complete like
    /// [`Self::tried_files`].
    pub(super) fn has_left_running(&self) -> bool {
        self.met.left_running
    }

    /// Reports for processes and the root of the machine whether the command listed those that the sandbox shows;
    /// complete like [`Self::tried_files`].
    pub(super) fn partial_lists(&self) -> [bool; 2] {
        self.met.partial_lists
    }

    /// The group, for those who must end it from outside.
    pub(super) fn group(&self) -> Arc<Group> {
        Arc::clone(&self.group)
    }

    /// Reports whether output may still come, though the shell has ended.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Waits for the next thing to happen. Nothing is lost when the future is dropped.
    pub(super) async fn next(&mut self) -> ProcessEvent<'_> {
        tokio::select! {
            // The end first: a child in the background that never stops writing must not hide it.
            biased;
            Some(ending) = read_launcher_report(&mut self.told, &mut self.met) => ProcessEvent::Ended(ending),
            status = self.child.wait() => ProcessEvent::Ended(ShellEnd::from_status(&status)),
            read = self.output.read_buf(self.decoder.buffer()), if self.open => {
                ProcessEvent::Wrote(self.decode_read(&read))
            }
        }
    }

    /// Reads what is left after the shell has ended, without waiting for a child in the background.
    pub(super) async fn drain_output(&mut self, sink: impl FnMut(&str)) {
        timeout(DRAIN_GRACE, self.read_to_end(sink)).await.ok();
        if !self.open {
            self.group.release();
        }
    }

    /// Waits until nobody can write any more and the shell has ended.
    pub(super) async fn wait_for_end(&mut self, sink: impl FnMut(&str)) -> ShellEnd {
        let ending = self.read_until_exit(sink).await;
        self.group.release();
        ending
    }

    /// Ends the group: asks first, then uses force.
    pub(super) async fn terminate(&mut self, mut sink: impl FnMut(&str)) {
        self.group.send_signal(Signal::TERM);
        timeout(TERM_GRACE, self.read_until_exit(&mut sink)).await.ok();
        self.group.kill();
        timeout(KILL_GRACE, self.read_until_exit(&mut sink)).await.ok();
        self.group.release();
    }

    async fn read_until_exit(&mut self, sink: impl FnMut(&str)) -> ShellEnd {
        self.read_to_end(sink).await;
        ShellEnd::from_status(&self.child.wait().await)
    }

    async fn read_to_end(&mut self, mut sink: impl FnMut(&str)) {
        while self.open {
            let read = self.output.read_buf(self.decoder.buffer()).await;
            sink(self.decode_read(&read));
        }
    }

    /// The text that a read brought. A pipe that fails is as good as closed.
    fn decode_read(&mut self, read: &io::Result<usize>) -> &str {
        self.open = matches!(read, Ok(1..));
        self.decoder.take_text(!self.open)
    }
}

/// The messages that programs print when they were refused a file.
const REFUSALS: [&str; 6] = [
    "permission denied",
    "eacces",
    "os error 13",
    "errno 13",
    "device or resource busy",
    "operation not permitted",
];

/// The sealed files that lines of an output name together with a refusal: in each line those of which it has most of
/// the path, and of several the one in the folder where the command ran.
fn refused_files(output: &str, sealed: &[PathBuf], cwd: &Path) -> Vec<PathBuf> {
    let is_refusal = |line: &&str| {
        let line = line.to_ascii_lowercase();
        REFUSALS.iter().any(|words| line.contains(words))
    };
    let mut refused: Vec<PathBuf> = Vec::new();
    for line in output.lines().filter(is_refusal) {
        let lengths: Vec<usize> = sealed.iter().map(|path| named_length(line, path)).collect();
        let longest = lengths.iter().max().copied().unwrap_or_default();
        let named = sealed.iter().zip(&lengths).filter(|(_, length)| **length == longest);
        let named: Vec<&PathBuf> = named.filter(|_| longest > 0).map(|(path, _)| path).collect();
        let own = named.iter().copied().find(|path| path.parent() == Some(cwd));
        for path in own.map_or(named, |own| vec![own]) {
            if !refused.contains(path) {
                refused.push(path.clone());
            }
        }
    }
    refused
}

/// Returns how many names of the end of a path stand in a line, as a word of it.
fn named_length(line: &str, path: &Path) -> usize {
    let is_of_name = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
    let is_named = |end: &Path| {
        let end = end.to_string_lossy();
        line.match_indices(&*end).any(|(at, _)| {
            let before = line.get(..at).and_then(|text| text.chars().next_back());
            let behind = line.get(at + end.len()..).and_then(|text| text.chars().next());
            !before.is_some_and(is_of_name) && !behind.is_some_and(is_of_name)
        })
    };
    let (mut end, mut length) = (PathBuf::new(), 0);
    for name in path.iter().rev() {
        end = if length == 0 { name.into() } else { Path::new(name).join(end) };
        if !is_named(&end) {
            break;
        }
        length += 1;
    }
    length
}

/// Returns the end of the shell that a launcher reports, once; `None` if it reports nothing. Dropping the future
/// loses nothing.
async fn read_launcher_report(
    launcher: &mut Option<UnixStream>,
    met: &mut SandboxDenials,
) -> Option<ShellEnd> {
    let socket = launcher.as_ref()?;
    let mut bytes = [0; ENDING_BYTES];
    loop {
        socket.readable().await.ok()?;
        match socket.try_read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // So few bytes come all at once.
            Ok(ENDING_BYTES) if met.record_message(bytes) => {}
            read => {
                *launcher = None;
                let is_whole = matches!(read, Ok(ENDING_BYTES));
                return is_whole
                    .then(|| ShellEnd::from_status(&Ok(gnoma_sandbox::decode_exit_status(bytes))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denied_sealed_file_is_identified_by_its_path_in_the_error_output() {
        let sealed = ["/w/.env", "/w/conf/.env", "/w/inst/.env"].map(PathBuf::from);
        for (line, cwd, expected) in [
            ("rm: cannot remove 'conf/.env': Device or resource busy", "/w", &["/w/conf/.env"][..]),
            ("rm: cannot remove './.env': Device or resource busy", "/w", &["/w/.env"]),
            ("cat: .env: Permission denied", "/w/inst", &["/w/inst/.env"]),
            ("cat: /w/.env: Permission denied", "/w/conf", &["/w/.env"]),
            (
                "cannot remove `.env`: Operation not permitted",
                "/w/src",
                &["/w/.env", "/w/conf/.env", "/w/inst/.env"],
            ),
            ("cat: .env.local: Permission denied", "/w", &[]),
            ("conf/.env was read", "/w", &[]),
        ] {
            let refused = refused_files(line, &sealed, Path::new(cwd));
            assert_eq!(refused, expected.iter().map(PathBuf::from).collect::<Vec<_>>(), "{line}");
        }
    }
}
