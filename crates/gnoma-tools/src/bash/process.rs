//! A running command: its process group, its output, and how it ends.
//!
//! Everything that a command starts stays in its group unless it leaves on purpose (`setsid`); what
//! leaves, and what a command put into the background with its output sent elsewhere, lives on.

use std::{
    collections::BTreeSet,
    fmt, io,
    os::unix::{net, process::ExitStatusExt},
    path::PathBuf,
    process::ExitStatus,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use gnoma_core::tool::CommandReport;
use gnoma_sandbox::ENDING_BYTES;
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
}

impl SandboxDenials {
    /// Takes a message; whether it was about this.
    fn record_message(&mut self, message: [u8; ENDING_BYTES]) -> bool {
        let (file, missed) =
            (gnoma_sandbox::decode_tried_file(message), gnoma_sandbox::is_unreached(message));
        self.tried.extend(file);
        self.missed_server |= missed;
        file.is_some() || missed
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

    /// The same, with what its sandbox seals.
    pub(super) fn with_sealed(self, sealed: Vec<PathBuf>) -> Self {
        Self { sealed, ..self }
    }

    /// The sealed files that it tried to open. Complete when the shell has ended. Where the launcher cannot see it,
    /// `output` tells: programs name the file that they were refused.
    pub(super) fn tried_files(&mut self, output: &str) -> Vec<PathBuf> {
        if let Some(socket) = &self.told {
            let mut message = [0; ENDING_BYTES];
            // Not by way of the runtime, which may not have heard yet that there is something.
            while rustix::io::read(socket, &mut message) == Ok(ENDING_BYTES) {
                self.met.record_message(message);
            }
        }
        if self.met.tried.is_empty() {
            return refused_files(output, &self.sealed);
        }
        self.met.tried.iter().filter_map(|place| self.sealed.get(*place).cloned()).collect()
    }

    /// Reports whether the command tried to reach a server that the sandbox does not have; complete like
    /// [`Self::tried_files`].
    pub(super) fn has_missed_server(&self) -> bool {
        self.met.missed_server
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

/// The sealed files that lines of an output name together with a refusal.
fn refused_files(output: &str, sealed: &[PathBuf]) -> Vec<PathBuf> {
    let lines = output.lines().filter(|line| {
        let line = line.to_ascii_lowercase();
        REFUSALS.iter().any(|words| line.contains(words))
    });
    let lines: Vec<&str> = lines.collect();
    let is_named = |path: &&PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        lines.iter().any(|line| line.contains(&*name))
    };
    sealed.iter().filter(|_| !lines.is_empty()).filter(is_named).cloned().collect()
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
