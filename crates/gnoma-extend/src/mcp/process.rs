//! An MCP server as a child process: sandboxed, its standard error recorded, ended with all its children.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    path::{Path, PathBuf},
    pin::Pin,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use gnoma_core::{Secret, sync::Mutex, task::box_future};
use gnoma_net::Http;
use gnoma_sandbox::{Policy, SessionSandbox, Strength, Support};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, ReadBuf},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    task::JoinSet,
    time::timeout,
};

use super::{
    definition::{Definition, ServerReach},
    keyring::Keyring,
    limits::{MAX_STDERR_BYTES, MAX_UNASKED_BYTES},
    message_report::MessageReporter,
    oauth::Tokens,
};
use crate::process_group::ProcessGroup;

/// The time to wait for the end of a program's standard error.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The sandbox around servers that are programs.
#[derive(Clone, Debug)]
pub struct ServerSandbox {
    /// The program that builds the walls, see [`gnoma_sandbox::launcher`].
    pub launcher: PathBuf,
    /// The policy on what every server may touch; what its definition declares comes on top.
    pub policy: Policy,
    /// Without all of the walls no server runs.
    pub required: bool,
    /// A definition may declare that its server uses the network.
    pub network_on_demand: bool,
}

/// The environment in which servers run, and the connections to others.
#[derive(Clone, Debug)]
pub struct ServerEnvironment {
    /// Connections to those that are no programs.
    pub http: Http,
    /// The folder that tokens are kept in; `None` where nothing is kept.
    pub state: Option<PathBuf>,
    /// The person's keyring, if there is one: it then stores the tokens.
    pub keyring: Option<Keyring>,
    /// The folder they start in.
    pub cwd: PathBuf,
    /// Their environment, without what only gnoma may know.
    pub environment: Vec<(String, String)>,
    /// Walls; `None` where the user wants none.
    pub enclosure: Option<ServerSandbox>,
    /// Takes a report of each message; `None` if messages are not logged.
    pub reporter: Option<MessageReporter>,
}

impl ServerEnvironment {
    /// The tokens of the server at an address.
    pub(super) fn tokens_for(&self, url: &str) -> Tokens {
        let kept = |state: &PathBuf| Tokens::in_state(state, url, self.keyring.clone());
        self.state.as_ref().map_or_else(Tokens::in_memory, kept)
    }
}

/// A running program with its ends.
#[derive(Debug)]
pub struct StartedProcess {
    /// The process, with all that it starts.
    pub process: Process,
    /// The standard input of the process.
    pub stdin: ChildStdin,
    /// The standard output of the process.
    pub stdout: MeteredOutput,
}

/// A running program. Dropped, it is killed with all that it has started.
#[derive(Debug)]
pub struct Process {
    // Before `child`: the group is killed while its leader still holds the number.
    group: ProcessGroup,
    _child: Child,
    _walls: Option<SessionSandbox>,
    reading: JoinSet<()>,
    /// The count of bytes that arrived since something was last requested.
    pub(super) unasked: Arc<AtomicU64>,
}

impl Process {
    /// The output so far was requested: only later output counts as unsolicited.
    pub fn reset_unsolicited(&self) {
        self.unasked.store(0, Ordering::Relaxed);
    }

    /// Waits until all that it wrote to its standard error is read, where it has ended; not for long, since what
    /// it has started may hold that open.
    pub async fn wrote_all(&mut self) {
        let read = async { while self.reading.join_next().await.is_some() {} };
        timeout(LAST_WORDS, read).await.ok();
    }

    /// Returns the number of the process, which it has as long as it was not waited for.
    pub(super) fn id(&self) -> Option<i32> {
        self.group.id()
    }
}

/// The end of what a server wrote to its standard error, and to its standard output without its being a message.
#[derive(Clone, Debug, Default)]
pub struct Stderr(Arc<Mutex<VecDeque<u8>>>);

impl Stderr {
    fn push(&self, bytes: &[u8]) {
        let mut kept = self.0.lock();
        kept.extend(bytes);
        let over = kept.len().saturating_sub(MAX_STDERR_BYTES);
        if over > 0 {
            kept.drain(..over);
            // A part of a line might be a part of a secret, which nobody would recognise.
            let end = kept.iter().position(|byte| *byte == b'\n').unwrap_or(kept.len() - 1);
            kept.drain(..=end);
        }
    }

    /// Adds a line.
    pub(super) fn push_line(&self, line: &str) {
        self.push(format!("{}\n", line.trim_end()).as_bytes());
    }

    /// Forgets it, before the server is started again.
    pub(super) fn clear(&self) {
        self.0.lock().clear();
    }

    /// Returns the stored part of the text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut kept = self.0.lock();
        String::from_utf8_lossy(kept.make_contiguous()).into_owned()
    }

    /// Returns the last lines that say something, joined into one.
    #[must_use]
    pub fn last_lines(&self, count: usize) -> String {
        last_lines(&self.text(), count)
    }
}

/// The last lines of a text that say something, in one.
pub(super) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.get(lines.len().saturating_sub(count)..).unwrap_or_default().join(" | ")
}

/// A server's standard output, which ends when too much comes unasked.
#[derive(Debug)]
pub struct MeteredOutput {
    inner: ChildStdout,
    unasked: Arc<AtomicU64>,
}

impl AsyncRead for MeteredOutput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buffer);
        let came = (buffer.filled().len() - before) as u64;
        if self.unasked.fetch_add(came, Ordering::Relaxed) + came > MAX_UNASKED_BYTES {
            return Poll::Ready(Err(io::Error::other("it keeps sending without being asked")));
        }
        read
    }
}

/// Returns whether a program is where its name says, or in a folder of `PATH`; also if no `PATH` says where to look.
fn is_program_there(
    command: &str,
    cwd: &Path,
    around: &ServerEnvironment,
    env: &BTreeMap<String, Secret<String>>,
) -> bool {
    if command.contains('/') {
        return cwd.join(command).exists();
    }
    let own = env.get("PATH").map(|path| path.expose().as_str());
    let general = || {
        let mut all = around.environment.iter();
        all.find(|(name, _)| name == "PATH").map(|(_, value)| value.as_str())
    };
    let Some(path) = own.or_else(general) else { return true };
    std::env::split_paths(path).any(|folder| cwd.join(folder).join(command).exists())
}

/// The reason why the program of a server or agent was not started.
#[derive(thiserror::Error)]
pub enum ProgramStartError {
    /// The definition is of something that is reached over the network.
    #[error("it is not a program")]
    NoProgram,
    /// The folder that the program starts in does not exist.
    #[error("its folder `{}` does not exist", .0.display())]
    NoFolder(PathBuf),
    /// The program is not where its name says, nor in a folder of `PATH`.
    #[error("the program `{0}` was not found")]
    NotFound(String),
    /// The same of a name that is a command line.
    #[error("the program `{0}` was not found; put its arguments into `args`")]
    CommandLine(String),
    /// The sandbox that the settings require is not whole.
    #[error("{0}, and `sandbox.mode` is `required`")]
    WeakSandbox(Strength),
    /// The system could not start the program.
    #[error("`{command}` could not be started: {source}")]
    NotStarted {
        /// The program.
        command: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The program was started without its streams.
    #[error("its streams could not be connected")]
    NoStreams,
}

gnoma_core::debug_as_display!(ProgramStartError);

/// Starts the program of `definition`.
///
/// # Errors
/// The program, its folder or the required sandbox is missing, or the system cannot start it.
pub fn start_program(
    definition: &Definition,
    around: &ServerEnvironment,
    stderr: &Stderr,
) -> Result<StartedProcess, ProgramStartError> {
    let ServerReach::Process { command, args, env } = &definition.reach else {
        return Err(ProgramStartError::NoProgram);
    };
    let cwd = definition.cwd.as_ref().unwrap_or(&around.cwd);
    if !cwd.is_dir() {
        return Err(ProgramStartError::NoFolder(cwd.clone()));
    }
    if !is_program_there(command, cwd, around, env) {
        let is_command_line = args.is_empty() && command.contains(char::is_whitespace);
        let command = command.clone();
        return Err(match is_command_line {
            true => ProgramStartError::CommandLine(command),
            false => ProgramStartError::NotFound(command),
        });
    }
    let (mut program, walls) = sandboxed_command(definition, around, command, args)?;
    set_surroundings(&mut program, around, env, cwd);
    if walls.is_none() {
        gnoma_sandbox::end_with_parent(program.as_std_mut());
    }
    let mut child = program
        .spawn()
        .map_err(|source| ProgramStartError::NotStarted { command: command.clone(), source })?;
    let ends = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
    let ((stdin, stdout), errors) = ends.ok_or(ProgramStartError::NoStreams)?;
    let mut reading = JoinSet::new();
    reading.spawn(box_future(collect_stderr(errors, stderr.clone())));
    let unasked = Arc::new(AtomicU64::new(0));
    let process = Process {
        group: ProcessGroup::with_leader(&child),
        _child: child,
        _walls: walls,
        reading,
        unasked: Arc::clone(&unasked),
    };
    Ok(StartedProcess { process, stdin, stdout: MeteredOutput { inner: stdout, unasked } })
}

/// Sets the variables, the folder and the streams of a server's program.
fn set_surroundings(
    program: &mut Command,
    around: &ServerEnvironment,
    env: &BTreeMap<String, Secret<String>>,
    cwd: &Path,
) {
    let variables = around.environment.iter().map(|(name, value)| (name, value.as_str()));
    let declared = env.iter().map(|(name, value)| (name, value.expose().as_str()));
    program
        .env_clear()
        .envs(variables)
        .envs(declared)
        .current_dir(cwd)
        .process_group(0)
        .kill_on_drop(true)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
}

/// The command, behind walls if there are any.
fn sandboxed_command(
    definition: &Definition,
    around: &ServerEnvironment,
    command: &str,
    args: &[String],
) -> Result<(Command, Option<SessionSandbox>), ProgramStartError> {
    let plain = || {
        let mut plain = Command::new(command);
        plain.args(args);
        (plain, None)
    };
    let Some(enclosure) = &around.enclosure else { return Ok(plain()) };
    let support = Support::detect();
    match support.strength {
        Strength::Full => (),
        weak if enclosure.required => {
            return Err(ProgramStartError::WeakSandbox(weak));
        }
        Strength::Partial => (),
        Strength::None => return Ok(plain()),
    }
    let mut policy = enclosure.policy.clone();
    policy.network |= enclosure.network_on_demand && definition.network;
    policy.writable.extend(definition.writable.iter().cloned());
    // Scrubbing would remove variables that the definition declares; gnoma's own were left out before.
    policy.scrub.clear();
    let walls = SessionSandbox::new(enclosure.launcher.clone(), &support);
    let command = walls.command(command, args, &policy);
    Ok((command.into(), Some(walls)))
}

async fn collect_stderr(mut errors: ChildStderr, stderr: Stderr) {
    const PIECE_BYTES: usize = 4096;
    let mut piece = [0; PIECE_BYTES];
    while let Ok(length @ 1..) = errors.read(&mut piece).await {
        stderr.push(piece.get(..length).unwrap_or_default());
    }
}
