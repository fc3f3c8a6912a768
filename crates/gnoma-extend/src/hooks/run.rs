//! Runs one hook's program: inside walls, with its facts on standard input, for so long and no longer.
//!
//! A launcher stands ready for the next one, so that walls need not be waited for. What is dropped is
//! ended, with all that it has started.

use std::{
    ffi::OsString,
    fs::File,
    io::Write as _,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gnoma_sandbox::{Policy, Walls};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::{Child, Command},
    time::timeout,
};

use super::answer::{HookEnd, HookRun};

/// Most that is read of what a hook says, in bytes; the rest is thrown away.
const MAX_OUTPUT_BYTES: u64 = 1 << 20;
/// Most bytes of an order to a launcher that stands ready: a pipe takes so many at once.
const MAX_ORDER_BYTES: usize = 48 * 1024;
/// How long output is read on after the hook has ended, where something else still holds it open.
const DRAIN: Duration = Duration::from_millis(100);

/// What stands around hooks.
#[derive(Debug)]
pub struct HookWalls {
    /// Builds them.
    pub walls: Walls,
    /// What hooks may touch.
    pub policy: Policy,
}

/// Runs hooks of one session.
#[derive(Debug)]
pub struct HookRunner {
    walls: Option<HookWalls>,
    variables: Vec<(OsString, OsString)>,
    cwd: PathBuf,
    spare: Mutex<Option<Spare>>,
    /// Why no hook can be run, where none can.
    refusal: Option<String>,
}

/// A launcher that waits for its hook.
#[derive(Debug)]
struct Spare {
    child: Child,
    _group: HookGroup,
    runtime: tokio::runtime::Id,
}

/// A process group, killed when dropped.
#[derive(Debug)]
struct HookGroup(Option<Pid>);

impl HookGroup {
    fn led_by(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }
}

impl Drop for HookGroup {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // The only failure is that nobody is left.
            kill_process_group(leader, Signal::KILL).ok();
        }
    }
}

impl HookRunner {
    /// Runs hooks in `cwd` with these variables, inside `walls` where there are any.
    #[must_use]
    pub fn new(
        walls: Option<HookWalls>,
        variables: Vec<(OsString, OsString)>,
        cwd: PathBuf,
    ) -> Self {
        Self { walls, variables, cwd, spare: Mutex::new(None), refusal: None }
    }

    /// One that runs nothing, and says why.
    #[must_use]
    pub fn refusing(why: String) -> Self {
        let none = Self::new(None, Vec::new(), PathBuf::new());
        Self { refusal: Some(why), ..none }
    }

    /// Gets a launcher ready for the next hook.
    pub(crate) fn get_ready(&self) {
        let Some(walls) = &self.walls else { return };
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.is_some() {
            return;
        }
        let Some(launcher) = walls.walls.spare(&walls.policy) else { return };
        let mut launcher = Command::from(launcher);
        self.equip(&mut launcher, Stdio::piped());
        if let Ok(child) = launcher.spawn() {
            let group = HookGroup::led_by(&child);
            let runtime = tokio::runtime::Handle::current().id();
            *spare = Some(Spare { child, _group: group, runtime });
        }
    }

    fn equip(&self, command: &mut Command, stdin: Stdio) {
        command
            .current_dir(&self.cwd)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
    }

    /// Runs a shell line with `input` on its standard input.
    pub(crate) async fn run(
        self: Arc<Self>,
        line: String,
        input: String,
        most: Duration,
    ) -> HookRun {
        if let Some(why) = &self.refusal {
            return failed(why.clone());
        }
        match self.started(&line, &input).await {
            Err(why) => failed(why),
            // The file with the facts is there until the hook has ended.
            Ok((child, group, _facts)) => ended(child, group, most).await,
        }
    }

    async fn started(
        &self,
        line: &str,
        input: &str,
    ) -> Result<(Child, HookGroup, Option<tempfile::NamedTempFile>), String> {
        let why = |error: std::io::Error| format!("could not be started: {error}");
        let facts = facts(input).map_err(why)?;
        let script = format!("exec <'{}'\n{line}", facts.path().display());
        if let Some((child, group)) = self.ordered(&script) {
            return Ok((child, group, Some(facts)));
        }
        let mut command = match &self.walls {
            Some(walls) => {
                Command::from(walls.walls.command("/bin/sh", ["-c", &script], &walls.policy))
            }
            None => {
                let mut plain = Command::new("/bin/sh");
                plain.arg("-c").arg(&script).env_clear().envs(self.variables.iter().cloned());
                plain
            }
        };
        self.equip(&mut command, Stdio::null());
        let child = command.spawn().map_err(why)?;
        let group = HookGroup::led_by(&child);
        Ok((child, group, Some(facts)))
    }

    /// Has the launcher that stands ready run it, where one does.
    fn ordered(&self, script: &str) -> Option<(Child, HookGroup)> {
        let walls = self.walls.as_ref()?;
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let Spare { mut child, _group: group, runtime } = spare;
        if runtime != tokio::runtime::Handle::current().id()
            || !matches!(child.try_wait(), Ok(None))
        {
            return None;
        }
        let order =
            walls.walls.order("/bin/sh", ["-c", script], Path::new(&self.cwd), &walls.policy)?;
        if order.len() > MAX_ORDER_BYTES {
            return None;
        }
        let input = child.stdin.take()?.into_owned_fd().ok()?;
        // A part of an order is none.
        let written = File::from(input).write(&order).ok()?;
        (written == order.len()).then_some((child, group))
    }
}

/// The facts in a file that only its owner reads.
fn facts(input: &str) -> std::io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix("gnoma-hook-").tempfile_in("/tmp")?;
    file.write_all(input.as_bytes())?;
    Ok(file)
}

fn failed(why: String) -> HookRun {
    HookRun { end: HookEnd::Failed(why), stdout: String::new(), stderr: String::new() }
}

async fn ended(mut child: Child, group: HookGroup, most: Duration) -> HookRun {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let end = {
        let reading = async {
            tokio::join!(take(out, &mut stdout), take(err, &mut stderr));
        };
        tokio::pin!(reading);
        let work = async {
            let mut is_read = false;
            let status = loop {
                tokio::select! {
                    () = &mut reading, if !is_read => is_read = true,
                    status = child.wait() => break status,
                }
            };
            if !is_read {
                let _held_open = timeout(DRAIN, &mut reading).await;
            }
            status
        };
        match timeout(most, work).await {
            Err(_) => HookEnd::TimedOut,
            Ok(Err(error)) => HookEnd::Failed(error.to_string()),
            Ok(Ok(status)) => status
                .code()
                .map_or_else(|| HookEnd::Failed("was killed".to_owned()), HookEnd::Code),
        }
    };
    drop(group);
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    HookRun { end, stdout: text(stdout), stderr: text(stderr) }
}

/// Reads as much as is wanted, and then lets the rest pass.
async fn take(from: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) {
    let Some(mut from) = from else { return };
    let _broken = (&mut from).take(MAX_OUTPUT_BYTES).read_to_end(into).await;
    let _rest = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
}
