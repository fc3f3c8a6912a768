//! Runs a hook on pipes alone, for sessions that save nothing: its line and its facts are never in a file.

use std::{
    io,
    os::unix::process::ExitStatusExt as _,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, Command},
    task::JoinSet,
    time::{Instant, timeout, timeout_at},
};

use super::{
    answer::{HookEnd, HookRun},
    hook::MAX_TIMEOUT,
};

/// Most that is read of what a hook says, in bytes.
pub(super) const MAX_OUTPUT_BYTES: u64 = 1 << 20;
/// How often a hook that takes long is checked for saying that it continues by itself.
pub(super) const LOOK: Duration = Duration::from_millis(50);
/// Most bytes of the line by which it does.
pub(super) const MAX_FIRST_LINE: u64 = 4 << 10;
/// How long what a hook wrote before it ended is waited for, where a program that it started holds its pipes open.
const DRAIN: Duration = Duration::from_millis(200);
/// Added to the number of the signal that ended a hook, as shells do.
const SIGNAL_BASE: i32 = 128;

/// A process group, killed when dropped.
#[derive(Debug)]
pub(super) struct HookGroup(Option<Pid>);

impl HookGroup {
    pub(super) fn led_by(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }
}

impl Drop for HookGroup {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // The only failure is that no process is left.
            kill_process_group(leader, Signal::KILL).ok();
        }
    }
}

/// A hook has said that the session need not wait for it.
#[derive(Debug)]
pub(crate) struct GoesOn {
    /// How long it may continue, where it said so.
    pub(crate) limit: Option<Duration>,
}

impl GoesOn {
    /// Reads the first line of a hook's output: `{"async": true}`, perhaps with `asyncTimeout` in milliseconds.
    pub(super) fn parse(output: &[u8]) -> Option<Self> {
        let line = output.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let value = serde_json::from_slice::<Value>(line).unwrap_or_default();
        let goes_on = value.get("async").and_then(Value::as_bool) == Some(true);
        let limit = value.get("asyncTimeout").and_then(Value::as_u64).map(Duration::from_millis);
        goes_on.then(|| Self { limit: limit.map(|limit| limit.min(MAX_TIMEOUT)) })
    }
}

/// A hook that runs on pipes. Dropped, it ends with all that it has started.
#[derive(Debug)]
pub(crate) struct PipedHook {
    child: Child,
    stdout: PipedOutput,
    stderr: PipedOutput,
    reading: JoinSet<()>,
    _writing: JoinSet<()>,
    _group: HookGroup,
}

type PipedOutput = Arc<Mutex<Vec<u8>>>;

impl PipedHook {
    /// Starts a program with `input` on its standard input.
    pub(super) fn start(mut command: Command, input: String) -> io::Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let (stdout, stderr) = (PipedOutput::default(), PipedOutput::default());
        let (mut reading, mut writing) = (JoinSet::new(), JoinSet::new());
        if let Some(pipe) = child.stdout.take() {
            reading.spawn(collect(pipe, Arc::clone(&stdout)));
        }
        if let Some(pipe) = child.stderr.take() {
            reading.spawn(collect(pipe, Arc::clone(&stderr)));
        }
        if let Some(mut pipe) = child.stdin.take() {
            // A hook need not read what it is told.
            writing
                .spawn(async move { pipe.write_all(input.as_bytes()).await.unwrap_or_default() });
        }
        let group = HookGroup::led_by(&child);
        Ok(Self { child, stdout, stderr, reading, _writing: writing, _group: group })
    }

    /// Waits for its end until that time; an error where it has said that the session need not wait, and `may_go_on`.
    /// Safe to drop.
    pub(super) async fn end(&mut self, until: Instant, may_go_on: bool) -> Result<HookEnd, GoesOn> {
        loop {
            let look = if may_go_on { until.min(Instant::now() + LOOK) } else { until };
            match timeout_at(look, self.child.wait()).await {
                Ok(Ok(status)) => {
                    let drained = async { while self.reading.join_next().await.is_some() {} };
                    timeout(DRAIN, drained).await.unwrap_or_default();
                    return Ok(exit_code(status));
                }
                Ok(Err(error)) => return Ok(HookEnd::Failed(format!("was lost: {error}"))),
                Err(_) if look < until => {
                    if let Some(goes_on) = GoesOn::parse(&locked(&self.stdout)) {
                        return Err(goes_on);
                    }
                }
                Err(_) => return Ok(HookEnd::TimedOut),
            }
        }
    }

    /// Returns what it has said, once it has ended so.
    pub(super) fn said(&self, end: HookEnd) -> HookRun {
        let text = |output: &PipedOutput| String::from_utf8_lossy(&locked(output)).into_owned();
        HookRun { end, stdout: text(&self.stdout), stderr: text(&self.stderr) }
    }
}

fn exit_code(status: ExitStatus) -> HookEnd {
    match (status.code(), status.signal()) {
        (Some(code), _) => HookEnd::Code(code),
        (None, Some(signal)) => HookEnd::Code(SIGNAL_BASE + signal),
        (None, None) => HookEnd::Failed("was killed".to_owned()),
    }
}

/// Collects the beginning of an output, and reads the rest so that its writer does not wait.
async fn collect(mut pipe: impl AsyncRead + Unpin, output: PipedOutput) {
    let mut chunk = [0; 8 << 10];
    while let Ok(length @ 1..) = pipe.read(&mut chunk).await {
        let mut output = locked(&output);
        let room = usize::try_from(MAX_OUTPUT_BYTES).unwrap_or(usize::MAX) - output.len();
        output.extend(chunk.iter().take(length.min(room)));
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
