//! Runs a hook's program in the sandbox, with JSON on standard input and a time-out.
//!
//! Walls take longer to build than most hooks to run, so one shell inside them is started with the first
//! hook, and starts all others on orders. It ends with its owner. Where a hook takes too long, it is
//! left, and ended with all that it has started once nobody waits for it any more.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, OnceLock},
    thread,
    time::Duration,
};

use gnoma_core::{sync::Mutex, task::box_future, written_text};
use gnoma_sandbox::{Policy, SessionSandbox};
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, ChildStdout, Command},
    sync::oneshot,
    task::JoinSet,
    time::{Instant, timeout_at},
};

use super::{
    answer::{HookEnd, HookRun},
    error::{HookLineError, HookStartError},
    folder::HookFolder,
    pipes::{BackgroundRun, LOOK, MAX_FIRST_LINE, PipedHook, read_output},
};
use crate::process_group::ProcessGroup;

/// Starts a hook for each number that it reads, and says how it ended. A file that cannot be opened must
/// not pass for a hook that blocks, as it would by the shell's own exit code.
const LOOP: &str = "while IFS= read -r id; do d=\"$0/$id\"; { \
    if true <\"$d/in\" >\"$d/out\" 2>\"$d/err\"; \
    then /bin/sh \"$d/run\" <\"$d/in\" >\"$d/out\" 2>\"$d/err\"; echo \"$id $?\"; \
    else echo \"$id 126\"; fi; } & done; wait";

/// The longest wait for the shell to end when the session does.
const MAX_SHUTDOWN: Duration = Duration::from_millis(500);
/// The time between two looks at whether it has ended.
const SHUTDOWN_POLL: Duration = Duration::from_millis(1);

/// The sandbox around hooks.
#[derive(Debug)]
pub struct HookSandbox {
    /// The builder of the sandbox.
    pub walls: SessionSandbox,
    /// The policy on what hooks may touch.
    pub policy: Policy,
}

/// Runs hooks of one session.
#[derive(Debug)]
pub struct HookRunner {
    walls: Option<HookSandbox>,
    variables: Vec<(OsString, OsString)>,
    cwd: PathBuf,
    /// The folder for those of all sessions, which commands of a model must not reach; `None` where nothing may be
    /// saved, not even for a moment.
    base: Option<PathBuf>,
    folder: OnceLock<Option<HookFolder>>,
    worker: Mutex<Option<Arc<HookWorker>>>,
    /// The reason why no hook can be run, if none can.
    refusal: Option<String>,
}

/// The shell that starts hooks.
#[derive(Debug)]
struct HookWorker {
    orders: Mutex<HookOrders>,
    waiting: ExitCodeWaiters,
    /// The folder in which the shell finds what it is to run.
    folder: tempfile::TempDir,
    _reading: JoinSet<()>,
    group: ProcessGroup,
    child: Child,
}

#[derive(Debug)]
struct HookOrders {
    /// `None` once the shell is to end.
    input: Option<File>,
    next: u64,
}

impl Drop for HookWorker {
    /// Lets the shell end by itself: its sandbox then removes what stands in the workspace for absent protected paths
    /// before this returns. A shell that is killed leaves that to a process which nobody waits for.
    fn drop(&mut self) {
        self.orders.lock().input = None;
        let is_busy = self.waiting.lock().as_ref().is_some_and(|running| !running.is_empty());
        let leader = self.group.id().and_then(Pid::from_raw).filter(|_| is_busy);
        if let Some(leader) = leader {
            // The only failure is that it has ended.
            kill_process(leader, Signal::TERM).ok();
        }
        let since = std::time::Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && since.elapsed() < MAX_SHUTDOWN {
            thread::sleep(SHUTDOWN_POLL);
        }
    }
}

/// The channels on which the exit codes of hooks are sent, by the hook's id; `None` once the shell is gone.
type ExitCodeWaiters = Arc<Mutex<Option<HashMap<u64, oneshot::Sender<i32>>>>>;

impl HookRunner {
    /// Runs hooks in `cwd` with these variables, inside `walls` if there are any. Their input files are below
    /// `base`, which commands of a model must not reach; without it they have none, and no transcript.
    #[must_use]
    pub fn new(
        walls: Option<HookSandbox>,
        variables: Vec<(OsString, OsString)>,
        cwd: PathBuf,
        base: Option<PathBuf>,
    ) -> Self {
        let (worker, folder) = (Mutex::new(None), OnceLock::new());
        Self { walls, variables, cwd, base, folder, worker, refusal: None }
    }

    /// One that runs nothing, and says why.
    #[must_use]
    pub fn with_refusal(why: String) -> Self {
        let none = Self::new(None, Vec::new(), PathBuf::new(), None);
        Self { refusal: Some(why), ..none }
    }

    /// The folder of what is handed to hooks, where any can be run and may be written.
    pub(crate) fn folder(&self) -> Option<&Path> {
        let base = self.base.as_ref().filter(|_| self.refusal.is_none())?;
        self.folder.get_or_init(|| HookFolder::create_in(base).ok()).as_ref().map(HookFolder::path)
    }

    /// Starts a shell line with `input` on its standard input.
    ///
    /// # Errors
    /// The run of a hook that was not started.
    pub(crate) fn start_hook(
        self: &Arc<Self>,
        line: &str,
        input: &str,
    ) -> Result<RunningHook, HookRun> {
        self.try_start_hook(line, input).map_err(|error| {
            let (stdout, stderr) = (String::new(), String::new());
            HookRun { end: HookEnd::Failed(error.to_string()), stdout, stderr }
        })
    }

    fn try_start_hook(
        self: &Arc<Self>,
        line: &str,
        input: &str,
    ) -> Result<RunningHook, HookStartError> {
        if let Some(why) = &self.refusal {
            return Err(HookStartError::Refused(why.clone()));
        }
        if self.base.is_none() {
            let started = PipedHook::start(self.shell_command(["-c", line]), input.to_owned())?;
            return Ok(RunningHook::Piped(Box::new(started)));
        }
        let worker = self.running_worker()?;
        let (id, ended) = worker.start_hook(line, input)?;
        Ok(RunningHook::Shared(SharedHook { runner: Arc::clone(self), worker, id, ended }))
    }

    /// Runs a shell line with `input` on its standard input, for at most `limit`, and returns what it printed.
    ///
    /// # Errors
    /// The line could not be started, took too long, was killed, or ended with another exit code than 0.
    pub async fn run_line(
        self: &Arc<Self>,
        line: &str,
        input: &str,
        limit: Duration,
    ) -> Result<String, HookLineError> {
        let run = match self.start_hook(line, input) {
            Ok(mut running) => {
                let end = running.wait_for_end(Instant::now() + limit, false).await;
                running.collect_run(end.unwrap_or(HookEnd::TimedOut))
            }
            Err(run) => run,
        };
        match run.end {
            HookEnd::Code(0) => Ok(run.stdout),
            HookEnd::Code(code) => Err(HookLineError::ExitCode(code)),
            HookEnd::TimedOut => Err(HookLineError::TimedOut(limit)),
            HookEnd::Failed(why) => Err(HookLineError::Failed(why)),
        }
    }

    /// The shell that starts hooks; the first one starts it.
    fn running_worker(&self) -> Result<Arc<HookWorker>, HookStartError> {
        let mut worker = self.worker.lock();
        if let Some(running) = worker.as_ref().filter(|running| running.waiting.lock().is_some()) {
            return Ok(Arc::clone(running));
        }
        let folder = self.folder().ok_or(HookStartError::NoFolder)?;
        let started = HookWorker::start(folder, |folder| {
            self.shell_command(["-c".as_ref(), LOOP.as_ref(), folder.as_os_str()])
        });
        Ok(Arc::clone(worker.insert(Arc::new(started?))))
    }

    /// No other hook is started by it.
    fn release_worker(&self, left: &Arc<HookWorker>) {
        let mut worker = self.worker.lock();
        if worker.as_ref().is_some_and(|running| Arc::ptr_eq(running, left)) {
            *worker = None;
        }
    }

    fn shell_command<'a, A: AsRef<OsStr> + 'a>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Command {
        let mut command = match &self.walls {
            Some(walls) => Command::from(walls.walls.command("/bin/sh", arguments, &walls.policy)),
            None => {
                let mut plain = Command::new("/bin/sh");
                plain.args(arguments).env_clear().envs(self.variables.iter().cloned());
                plain
            }
        };
        command.current_dir(&self.cwd);
        command
    }
}

/// A hook that runs.
pub(crate) enum RunningHook {
    /// Started by the shell that all hooks of the session share.
    Shared(SharedHook),
    /// A process of its own.
    Piped(Box<PipedHook>),
}

impl RunningHook {
    /// Waits for its end until that time; an error where it has said that nobody need wait for it, with
    /// how long it may continue from then, and `may_go_on`. Safe to drop.
    pub(crate) async fn wait_for_end(
        &mut self,
        until: Instant,
        may_go_on: bool,
    ) -> Result<HookEnd, BackgroundRun> {
        match self {
            Self::Shared(hook) => hook.wait_for_end(until, may_go_on).await,
            Self::Piped(hook) => hook.wait_for_end(until, may_go_on).await,
        }
    }

    /// Returns the output of the hook, once it has ended with `end`.
    pub(crate) fn collect_run(&self, end: HookEnd) -> HookRun {
        match self {
            Self::Shared(hook) => hook.worker.collect_run(hook.id, end),
            Self::Piped(hook) => hook.collect_run(end),
        }
    }
}

/// A hook that the shell of the session runs.
pub(crate) struct SharedHook {
    runner: Arc<HookRunner>,
    worker: Arc<HookWorker>,
    id: u64,
    ended: oneshot::Receiver<i32>,
}

impl SharedHook {
    async fn wait_for_end(
        &mut self,
        until: Instant,
        may_go_on: bool,
    ) -> Result<HookEnd, BackgroundRun> {
        loop {
            let look = if may_go_on { until.min(Instant::now() + LOOK) } else { until };
            match timeout_at(look, &mut self.ended).await {
                Ok(Ok(code)) => return Ok(HookEnd::Code(code)),
                Ok(Err(_gone)) => {
                    self.runner.release_worker(&self.worker);
                    return Ok(HookEnd::Failed("was killed".to_owned()));
                }
                Err(_) if look < until => {
                    if let Some(goes_on) = self.worker.goes_on(self.id) {
                        return Err(goes_on);
                    }
                }
                Err(_) => {
                    self.runner.release_worker(&self.worker);
                    return Ok(HookEnd::TimedOut);
                }
            }
        }
    }
}

impl HookWorker {
    fn start(below: &Path, shell: impl FnOnce(&Path) -> Command) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("run-").tempdir_in(below)?;
        let mut child = shell(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("it has no input"));
        };
        let waiting: ExitCodeWaiters = Arc::new(Mutex::new(Some(HashMap::new())));
        let mut reading = JoinSet::new();
        reading.spawn(box_future(read_exit_codes(output, Arc::clone(&waiting))));
        Ok(Self {
            orders: Mutex::new(HookOrders { input: Some(input.into_owned_fd()?.into()), next: 0 }),
            waiting,
            folder,
            _reading: reading,
            group: ProcessGroup::with_leader(&child),
            child,
        })
    }

    /// Orders the shell to start a hook. Returns the hook's id and the channel of its exit code.
    fn start_hook(&self, line: &str, input: &str) -> io::Result<(u64, oneshot::Receiver<i32>)> {
        let mut orders = self.orders.lock();
        let id = orders.next;
        orders.next += 1;
        let folder = self.folder.path().join(id.to_string());
        fs::create_dir(&folder)?;
        fs::write(folder.join("run"), line)?;
        fs::write(folder.join("in"), input)?;
        let (ended, code) = oneshot::channel();
        if let Some(waiting) = self.waiting.lock().as_mut() {
            waiting.insert(id, ended);
        }
        if let Some(input) = &mut orders.input {
            input.write_all(format!("{id}\n").as_bytes())?;
        }
        Ok((id, code))
    }

    /// Reports whether the first line that a hook has printed is `{"async": true}`, and how long the hook may then
    /// continue.
    fn goes_on(&self, id: u64) -> Option<BackgroundRun> {
        let path = self.folder.path().join(id.to_string()).join("out");
        let mut bytes = Vec::new();
        let read =
            File::open(path).and_then(|it| it.take(MAX_FIRST_LINE as u64).read_to_end(&mut bytes));
        read.ok().and_then(|_| BackgroundRun::parse(&bytes))
    }

    /// Returns the output of a hook and removes its files.
    fn collect_run(&self, id: u64, end: HookEnd) -> HookRun {
        let folder = self.folder.path().join(id.to_string());
        let run = HookRun {
            end,
            stdout: read_output_text(&folder.join("out")),
            stderr: read_output_text(&folder.join("err")),
        };
        // Files that stay there are removed with the worker.
        fs::remove_dir_all(&folder).ok();
        run
    }
}

/// Hears how hooks ended, until the shell is gone.
async fn read_exit_codes(output: ChildStdout, waiting: ExitCodeWaiters) {
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let Some((id, code)) = line.split_once(' ') else { continue };
        if let (Ok(id), Ok(code)) = (id.parse(), code.trim().parse::<i32>())
            && let Some(ended) = waiting.lock().as_mut().and_then(|waiting| waiting.remove(&id))
        {
            let _nobody_waits = ended.send(code);
        }
    }
    *waiting.lock() = None;
}

fn read_output_text(path: &Path) -> String {
    let bytes = File::open(path).and_then(read_output).unwrap_or_default();
    written_text::decode_lossy(&bytes)
}
