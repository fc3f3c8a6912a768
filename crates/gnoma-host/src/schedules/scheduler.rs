//! Begins the runs of schedules that are due, as a client of the sessions of its process.
//!
//! A run is claimed in the schedule's file before it begins, under a lock that all servers share, so that it begins once;
//! one that is cut off is not begun again.

use std::{collections::HashSet, sync::Arc, time::Duration};

use gnoma_core::{
    Content,
    protocol::{
        Client, Detach, Environment, Overrides, Reply, Request, RequestError, RequestErrorKind,
        RequestId, ServerMessage, SessionSpec, Start, TaskRequest,
    },
    session::{PermissionMode, SessionState},
    store::SessionId,
    task::box_future,
};
use gnoma_extend::tasks::schedule::{
    NextRun, RunLease, ScheduleRecord, ScheduleStore, ScheduleStoreError, ScheduledRun,
};
use gnoma_guard::firewall::Firewall;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout_at},
};

use super::schedule_store;
use crate::{
    HostError, Notices, ProcessResources, Project, Result,
    agent::stricter_mode,
    blocking_work::off_loop,
    clock,
    continuation::CONTINUE_MESSAGE,
    live::Host,
    tasks::{Tasks, quoted_line},
};

/// Longest time between two looks at the schedules: a clock can jump, and others change the files.
const MAX_WAIT: Duration = Duration::from_secs(20);
/// Shortest time between two looks.
const MIN_WAIT: Duration = Duration::from_millis(250);
/// Runs of schedules that go on at once; others begin later.
const MAX_RUNS: usize = 32;
/// The time that a run may take, its open questions included.
const MAX_RUN: Duration = Duration::from_secs(3 * 24 * 60 * 60);
/// The time that the session may take to end after a run.
const LEAVE_PATIENCE: Duration = Duration::from_secs(10);

/// Runs the schedules of a person. Dropping it stops what it waits for; the sessions belong to the host.
pub struct Scheduler {
    host: Arc<Host>,
    environment: Environment,
    umask: Option<u32>,
    store: ScheduleStore,
    runs: JoinSet<u32>,
    /// The ids of the schedules in `runs`.
    running: HashSet<u32>,
}

impl Scheduler {
    /// A scheduler whose runs are sessions of `host` with this environment and umask.
    #[must_use]
    pub fn new(host: Arc<Host>, environment: Environment, umask: Option<u32>) -> Self {
        let store = schedule_store(&environment);
        let (runs, running) = (JoinSet::new(), HashSet::new());
        Self { host, environment, umask, store, runs, running }
    }

    /// Runs what is due, as long as it is polled.
    pub async fn run(mut self) {
        loop {
            let wait = self.begin_due().await;
            tokio::select! {
                Some(ended) = self.runs.join_next() => match ended {
                    Ok(id) => {
                        self.running.remove(&id);
                        // What could not be claimed is still due, and is not tried at once.
                        sleep(MIN_WAIT).await;
                    }
                    // A run that panicked has let go of its lease.
                    Err(_) => {
                        self.running.clear();
                        sleep(MIN_WAIT).await;
                    }
                },
                () = sleep(wait) => (),
            }
        }
    }

    /// Begins what is due, and returns how long nothing else will be.
    async fn begin_due(&mut self) -> Duration {
        let now_ms = clock::now_ms();
        let store = self.store.clone();
        let looked = off_loop(move || async move { Ok(look_at_all(&store, now_ms)) }).await;
        // A look that crashed is repeated after the wait.
        let (due, next_ms) = looked.unwrap_or_default();
        for id in due {
            if self.running.len() >= MAX_RUNS || !self.running.insert(id) {
                continue;
            }
            let (host, store) = (Arc::clone(&self.host), self.store.clone());
            let base = self.base_spec();
            self.runs.spawn(box_future(async move {
                // Where the disk refuses, the next look tries again.
                let _refused = run_schedule(&host, base, store, id).await;
                id
            }));
        }
        let left_ms = next_ms.map_or(i64::MAX, |next| next.saturating_sub(now_ms));
        Duration::from_millis(u64::try_from(left_ms).unwrap_or(0)).clamp(MIN_WAIT, MAX_WAIT)
    }

    fn base_spec(&self) -> SessionSpec {
        SessionSpec {
            environment: self.environment.clone(),
            umask: self.umask,
            start: Start::New,
            // What needs approval waits for whoever attaches.
            interactive: true,
            detach: Detach::Close,
            ..SessionSpec::default()
        }
    }
}

/// Returns the schedules that are due, and when the next one will be. Notes clocks that were set back.
fn look_at_all(store: &ScheduleStore, now_ms: i64) -> (Vec<u32>, Option<i64>) {
    let (mut due, mut next) = (Vec::new(), None::<i64>);
    for record in store.list_schedules() {
        match record.peek_next_run(now_ms) {
            Some(NextRun::Due { .. }) => due.push(record.id),
            Some(NextRun::At(at_ms)) => next = Some(next.map_or(at_ms, |next| next.min(at_ms))),
            Some(NextRun::Over) | None => (),
        }
        let is_noted = |record: &mut ScheduleRecord| {
            let mut later = record.clone();
            let is_due = matches!(later.advance_clock(now_ms), None | Some(NextRun::Due { .. }));
            let changes = !is_due && later.progress != record.progress;
            if changes {
                *record = later;
            }
            changes
        };
        if is_noted(&mut record.clone()) {
            // It is noted at the next look if the disk refuses now.
            let _refused = store.edit(record.id, is_noted);
        }
    }
    (due, next)
}

/// Runs a schedule, unless another server does or it is not due any more.
async fn run_schedule(host: &Host, base: SessionSpec, store: ScheduleStore, id: u32) -> Result<()> {
    let claiming = store.clone();
    let claimed =
        off_loop(move || async move { claim_run(&claiming, id, clock::now_ms()) }).await?;
    let Some((record, _lease)) = claimed else { return Ok(()) };
    let prepared = off_loop({
        let record = record.clone();
        move || async move { prepare_run(base, &record) }
    });
    let end = match prepared.await {
        Ok((spec, firewall)) => {
            let told = run_in_session(host, spec, &store, &record).await;
            let told = told.unwrap_or_else(|error| HostError::from(error).to_string());
            firewall.redact_text(&told).into_owned()
        }
        Err(error) => format!("did not run: {error}"),
    };
    note_run(&store, id, move |run| run.end = Some(end)).await
}

/// Claims the run that is due: from now on it counts as begun.
fn claim_run(
    store: &ScheduleStore,
    id: u32,
    now_ms: i64,
) -> Result<Option<(ScheduleRecord, RunLease)>> {
    let failed = |error: ScheduleStoreError| HostError::failure(error.to_string());
    let Some(lease) = store.lease_run(id).map_err(failed)? else { return Ok(None) };
    let mut is_due = false;
    let record = store.edit(id, |record| {
        is_due = matches!(record.advance_clock(now_ms), Some(NextRun::Due { .. }));
        if is_due {
            record.last =
                Some(ScheduledRun { began_ms: now_ms, session: String::new(), end: None });
        }
        is_due
    });
    let record = record.map_err(failed)?;
    Ok(is_due.then_some((record, lease)))
}

/// Returns what the run's session is opened with. Refuses what cannot run before there is a session.
fn prepare_run(base: SessionSpec, record: &ScheduleRecord) -> Result<(SessionSpec, Arc<Firewall>)> {
    let spec = SessionSpec {
        folder: record.folder.clone(),
        more_folders: record.more_folders.clone(),
        profile: record.profile.clone(),
        overrides: Overrides {
            provider: record.provider.clone(),
            model: record.model.clone(),
            budget_micro_usd: record.session.is_none().then_some(record.budget_micro_usd),
            ..Overrides::default()
        },
        start: match &record.session {
            Some(id) => Start::Stored { id: id.clone(), fork: false },
            None => Start::New,
        },
        ..base
    };
    let project = Project::open(spec, Notices::without_sink(), ProcessResources::default())?;
    project.refuse_whole_system()?;
    if project.is_incognito() {
        return Err(HostError::usage("nothing is saved in incognito, so no schedule runs"));
    }
    if record.session.is_none() {
        let (name, arguments) =
            record.words.split_first().ok_or_else(|| HostError::usage("no task is named"))?;
        Tasks::find(&project).plan(name, arguments)?;
    }
    let own = project.guard.permission.mode;
    let mode = record.mode.unwrap_or_else(|| stricter_mode(own, Some(PermissionMode::Plan)));
    let mut spec = project.spec.clone();
    spec.overrides.mode = Some(mode);
    Ok((spec, Arc::clone(&project.firewall)))
}

/// Runs the task in a session of its own, and says how it ended.
async fn run_in_session(
    host: &Host,
    spec: SessionSpec,
    store: &ScheduleStore,
    record: &ScheduleRecord,
) -> Result<String, RequestError> {
    let deadline = Instant::now() + MAX_RUN;
    let mut client = host.connect(&format!("schedule {} {:016x}", record.id, clock::random_bits()));
    let opening = client.send_request(None, Request::Open(Box::new(spec)))?;
    let Reply::Opened { session } = reply_to(&mut client, opening, deadline).await? else {
        return Err(unexpected_reply());
    };
    let id = session.to_string();
    note_run(store, record.id, move |run| run.session = id).await?;
    client.send_request(Some(&session), Request::Attach { from: None })?;
    let ended = match &record.session {
        Some(_) => continue_turn(&mut client, &session, deadline).await,
        None => run_task(&mut client, &session, record, deadline).await,
    };
    leave_session(&mut client, &session, ended.is_err()).await;
    ended
}

/// Runs the task of a schedule, and says how it ended.
async fn run_task(
    client: &mut Client,
    session: &SessionId,
    record: &ScheduleRecord,
    deadline: Instant,
) -> Result<String, RequestError> {
    let run = Request::Task(TaskRequest::Run { line: quoted_line(&record.words) });
    let run = client.send_request(Some(session), run)?;
    match reply_to(client, run, deadline).await? {
        Reply::Task(report) => Ok(report.summary),
        _ => Err(unexpected_reply()),
    }
}

/// Continues the last turn of a session, and waits until the session rests. Its questions wait for whoever attaches.
async fn continue_turn(
    client: &mut Client,
    session: &SessionId,
    deadline: Instant,
) -> Result<String, RequestError> {
    let content = vec![Content::from_text(CONTINUE_MESSAGE)];
    let sent = client.send_request(Some(session), Request::Send { content })?;
    reply_to(client, sent, deadline).await?;
    loop {
        let wait = client.send_request(Some(session), Request::Wait { max_seconds: None })?;
        let Reply::Status(status) = reply_to(client, wait, deadline).await? else {
            return Err(unexpected_reply());
        };
        match status.state {
            // A question at rest is the offer to continue again, which nobody sees here.
            SessionState::Idle if status.questions > 0 => {
                return Ok("the turn was continued and ended at a limit again".to_owned());
            }
            SessionState::Idle | SessionState::Closed => {
                return Ok("the turn was continued, and its session rests".to_owned());
            }
            _ => sleep(MIN_WAIT).await,
        }
    }
}

/// Leaves the session, which ends unless somebody else is attached. What did not end in time is closed.
async fn leave_session(client: &mut Client, session: &SessionId, closes: bool) {
    let request = if closes { Request::Close } else { Request::Detach };
    if let Ok(left) = client.send_request(Some(session), request) {
        // A session that is gone has ended.
        let _gone = reply_to(client, left, Instant::now() + LEAVE_PATIENCE).await;
    }
}

/// Waits for the reply to a request, and takes in all else.
async fn reply_to(
    client: &mut Client,
    asked: RequestId,
    deadline: Instant,
) -> Result<Reply, RequestError> {
    loop {
        match timeout_at(deadline, client.next()).await {
            Ok(Some(ServerMessage::Reply { id, result })) if id == asked => return result,
            Ok(Some(_)) => (),
            Ok(None) => {
                let cause = "the server ended before the run did";
                return Err(RequestError::new(RequestErrorKind::Closed, cause));
            }
            Err(_) => {
                let cause = "the run was stopped, because it took more than three days";
                return Err(RequestError::new(RequestErrorKind::Failed, cause));
            }
        }
    }
}

fn unexpected_reply() -> RequestError {
    RequestError::new(
        RequestErrorKind::Failed,
        "the session gave another answer than was asked for",
    )
}

/// Notes something about the run in the schedule's file, unless the schedule was deleted.
async fn note_run(
    store: &ScheduleStore,
    id: u32,
    note: impl FnOnce(&mut ScheduledRun) + Send + 'static,
) -> Result<()> {
    let store = store.clone();
    off_loop(move || async move {
        match store.edit(id, |record| record.last.as_mut().map(note).is_some()) {
            Ok(_) | Err(ScheduleStoreError::Missing(_)) => Ok(()),
            Err(error) => Err(HostError::failure(error.to_string())),
        }
    })
    .await
}
