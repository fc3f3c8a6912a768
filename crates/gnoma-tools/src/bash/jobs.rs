//! Commands in the background: the table of jobs that both tools share.
//!
//! The table owns every job's task and process group; dropping it ends them all.

use std::{
    collections::BTreeMap,
    fmt, io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use gnoma_core::{ToolCx, duration, task::box_future};
use tokio::{io::AsyncWriteExt, process::ChildStdin, task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    capture::ScreenCapture,
    full_screen::ScreenWatch,
    guarded_names::AbsentNames,
    process::{Group, Process, ShellEnd},
    shell::Shell,
    start_error::CommandStartError,
    write_limits::Room,
};

/// Most jobs that are remembered; the oldest that has ended makes room for a new one.
pub(super) const MAX_JOBS: usize = 8;
/// The time that a job may take to accept a line of input.
const SEND_WAIT: Duration = Duration::from_secs(2);

/// Names a job; counts up over a session.
pub(super) type JobId = u32;

/// The table is full of running jobs.
#[derive(thiserror::Error)]
#[error("{MAX_JOBS} jobs are running, the maximum; kill one first")]
pub(super) struct TooManyJobs;

/// The reason why a job could not be started or used, for the model.
#[derive(thiserror::Error)]
pub(super) enum JobError {
    #[error(transparent)]
    TooMany(#[from] TooManyJobs),
    #[error(transparent)]
    Start(#[from] CommandStartError),
    #[error("`id` is missing: which job? `list` shows the jobs")]
    NoId,
    #[error("`input` is missing: the line to send")]
    NoLine,
    #[error("there is no job {0}; `list` shows the jobs")]
    Unknown(JobId),
    #[error("job {id} no longer runs: {state}")]
    NotRunning { id: JobId, state: JobState },
    #[error("job {0} was started without input")]
    NoInput(JobId),
    #[error("job {id} does not read its input: {error}")]
    Write {
        id: JobId,
        #[source]
        error: io::Error,
    },
    #[error(
        "job {0} did not read the line within {limit}; it may have got a part of it",
        limit = duration::format_duration(SEND_WAIT)
    )]
    Slow(JobId),
}

gnoma_core::debug_as_display!(TooManyJobs, JobError);

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobState {
    /// The shell of the job, or something that it left in the background, still runs.
    Running,
    /// The job ended on its own.
    Ended(ShellEnd),
    /// The job was killed on request.
    Killed,
}

impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running => f.write_str("Running"),
            Self::Ended(ending) => ending.fmt(f),
            Self::Killed => f.write_str("Killed"),
        }
    }
}

/// The answer to a poll of a job.
#[derive(Debug)]
pub(super) struct JobPoll {
    /// The command as it was started.
    pub(super) command: String,
    /// The state of the job.
    pub(super) state: JobState,
    /// The time since the job was started.
    pub(super) age: Duration,
    /// Output since the last poll.
    pub(super) output: String,
    /// True if the job has drawn on a full screen and waits for a person.
    pub(super) wants_person: bool,
    /// A warning about what appeared in the workspace that programs may run; empty if nothing did.
    pub(super) warning: String,
}

/// All jobs of a session.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    table: Mutex<JobTable>,
}

#[derive(Debug, Default)]
struct JobTable {
    jobs: BTreeMap<JobId, JobEntry>,
    last_id: JobId,
    tasks: JoinSet<()>,
}

#[derive(Debug)]
struct JobEntry {
    command: String,
    started: Instant,
    group: Arc<Group>,
    input: Option<Arc<tokio::sync::Mutex<ChildStdin>>>,
    log: Arc<Mutex<Log>>,
    stop: CancellationToken,
    over: CancellationToken,
    absent: AbsentNames,
}

#[derive(Debug)]
struct Log {
    unread: ScreenCapture,
    screen: ScreenWatch,
    state: JobState,
}

impl Log {
    fn push(&mut self, text: &str) {
        self.unread.push(text);
        self.screen.push(text, tokio::time::Instant::now());
    }
}

impl Jobs {
    /// Starts a command in the background.
    ///
    /// # Errors
    /// The table is full, or the command could not be started.
    pub(super) fn start(
        &self,
        shell: &Shell,
        command: &str,
        cx: &ToolCx,
    ) -> Result<JobId, JobError> {
        let mut table = self.lock_table();
        table.make_room()?;
        let room = shell.session_room(cx);
        let absent = AbsentNames::find_absent(&cx.roots);
        let (process, input) = shell.start_with_input(command, cx)?;
        Ok(table.add_job(command, (process, input), room, absent))
    }

    /// Takes over a process whose shell has ended while something it started still runs.
    ///
    /// # Errors
    /// The table is full; then the process is killed.
    pub(super) fn adopt_process(
        &self,
        command: &str,
        process: Process,
        room: Room,
        roots: &[PathBuf],
    ) -> Result<JobId, TooManyJobs> {
        let mut table = self.lock_table();
        table.make_room()?;
        Ok(table.add_job(command, (process, None), room, AbsentNames::find_absent(roots)))
    }

    /// Every job with its command and state, oldest first.
    pub(super) fn list(&self) -> Vec<(JobId, String, JobState)> {
        self.lock_table()
            .jobs
            .iter()
            .map(|(id, job)| (*id, job.command.clone(), lock_ignoring_poison(&job.log).state))
            .collect()
    }

    /// Returns the number of running jobs.
    pub(super) fn count_running(&self) -> usize {
        let table = self.lock_table();
        table
            .jobs
            .values()
            .filter(|job| lock_ignoring_poison(&job.log).state == JobState::Running)
            .count()
    }

    /// Returns the news of a job since the last poll.
    ///
    /// # Errors
    /// There is no such job.
    pub(super) fn poll(&self, id: JobId) -> Result<JobPoll, JobError> {
        let mut table = self.lock_table();
        let warning = table.jobs.get_mut(&id).map(|job| job.absent.note_of_new());
        let job = table.find_job(id)?;
        let mut log = lock_ignoring_poison(&job.log);
        Ok(JobPoll {
            command: job.command.clone(),
            state: log.state,
            age: job.started.elapsed(),
            output: log.unread.take_text(),
            wants_person: log.state == JobState::Running
                && log.screen.waits_at(tokio::time::Instant::now()),
            warning: warning.unwrap_or_default(),
        })
    }

    /// Writes a line to a job's input.
    ///
    /// # Errors
    /// There is no such job, or it did not take the line.
    pub(super) async fn send_line(&self, id: JobId, line: &str) -> Result<(), JobError> {
        let input = {
            let table = self.lock_table();
            let job = table.find_job(id)?;
            let state = lock_ignoring_poison(&job.log).state;
            if state != JobState::Running {
                return Err(JobError::NotRunning { id, state });
            }
            job.input.clone()
        };
        let input = input.ok_or(JobError::NoInput(id))?;
        let mut input = input.lock().await;
        match timeout(SEND_WAIT, input.write_all(format!("{line}\n").as_bytes())).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(JobError::Write { id, error }),
            Err(_) => Err(JobError::Slow(id)),
        }
    }

    /// Ends a job and returns when it has ended.
    ///
    /// # Errors
    /// There is no such job.
    pub(super) async fn kill(&self, id: JobId) -> Result<(), JobError> {
        let over = {
            let table = self.lock_table();
            let job = table.find_job(id)?;
            job.stop.cancel();
            job.over.clone()
        };
        over.cancelled().await;
        Ok(())
    }

    fn lock_table(&self) -> MutexGuard<'_, JobTable> {
        lock_ignoring_poison(&self.table)
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        // Aborting the tasks would do it too, but only once the runtime comes round to them.
        for job in self.lock_table().jobs.values() {
            job.group.kill();
        }
    }
}

impl JobTable {
    fn find_job(&self, id: JobId) -> Result<&JobEntry, JobError> {
        self.jobs.get(&id).ok_or(JobError::Unknown(id))
    }

    fn make_room(&mut self) -> Result<(), TooManyJobs> {
        while self.tasks.try_join_next().is_some() {}
        if self.jobs.len() < MAX_JOBS {
            return Ok(());
        }
        let ended = self.jobs.iter().find_map(|(id, job)| {
            (lock_ignoring_poison(&job.log).state != JobState::Running).then_some(*id)
        });
        self.jobs.remove(&ended.ok_or(TooManyJobs)?);
        Ok(())
    }

    /// `own` are the folders that it may fill up to a limit.
    fn add_job(
        &mut self,
        command: &str,
        (process, input): (Process, Option<ChildStdin>),
        room: Room,
        absent: AbsentNames,
    ) -> JobId {
        let job = JobEntry {
            command: command.to_owned(),
            started: Instant::now(),
            group: process.group(),
            input: input.map(|input| Arc::new(tokio::sync::Mutex::new(input))),
            log: Arc::new(Mutex::new(Log {
                unread: ScreenCapture::new(),
                screen: ScreenWatch::default(),
                state: JobState::Running,
            })),
            stop: CancellationToken::new(),
            over: CancellationToken::new(),
            absent,
        };
        let (stop, over) = (job.stop.clone(), job.over.clone());
        self.tasks.spawn(box_future(follow_job(process, Arc::clone(&job.log), stop, over, room)));
        self.last_id += 1;
        self.jobs.insert(self.last_id, job);
        self.last_id
    }
}

/// Keeps a job's log until it ends or is told to stop.
async fn follow_job(
    mut process: Process,
    log: Arc<Mutex<Log>>,
    stop: CancellationToken,
    over: CancellationToken,
    room: Room,
) {
    let _over = over.drop_guard();
    let keep = |text: &str| lock_ignoring_poison(&log).push(text);
    let state = tokio::select! {
        biased;
        () = stop.cancelled() => JobState::Killed,
        why = room.wait_until_full() => {
            keep(&format!("[{}]\n", why.describe()));
            JobState::Killed
        }
        ending = process.wait_for_end(keep) => JobState::Ended(ending),
    };
    if state == JobState::Killed {
        process.terminate(keep).await;
    }
    lock_ignoring_poison(&log).state = state;
}

/// A panic elsewhere leaves the data as sound as it was: no law spans two statements.
fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
