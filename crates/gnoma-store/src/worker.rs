//! Threads that own a connection and work through a bounded queue: one that writes, others that
//! only look. How writing is done is [`crate::writer`]'s.

use std::{
    sync::{
        Arc,
        mpsc::{self, Receiver, Sender},
    },
    thread::{self, JoinHandle},
};

use gnoma_core::store::{Durability, StoreError, StoreErrorKind};
use rusqlite::Connection;
use tokio::sync::{Semaphore, oneshot};

use crate::{
    error::Result,
    job::{Job, QueuedJob, closed_error, create_job},
    sql::execute_cached,
    writer::{Upkeep, Writer},
};

/// Jobs that may wait; whoever brings one more waits with it.
const QUEUE_JOBS: usize = 256;

/// A thread with a connection.
pub(crate) struct Worker {
    queue: Option<Sender<QueuedJob>>,
    places: Arc<Semaphore>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// A thread whose jobs change the database.
    pub(crate) fn spawn_writer(connection: Connection, upkeep: impl Upkeep) -> Result<Self> {
        Self::start("gnoma-store-writer", move |jobs| Writer::new(connection, upkeep).run(&jobs))
    }

    /// A thread whose jobs only look. It connects when there is something to look at.
    pub(crate) fn spawn_reader(
        connect: impl Fn() -> Result<Connection> + Send + 'static,
    ) -> Result<Self> {
        Self::start("gnoma-store-reader", move |jobs| {
            let mut connection = None;
            while let Ok(queued) = jobs.recv() {
                let mut job = queued.into_job();
                job.prepare();
                let outcome = ensure_connected(&mut connection, &connect)
                    .and_then(|connection| run_in_snapshot(connection, job.as_mut()));
                job.finish(outcome);
            }
        })
    }

    fn start(name: &str, body: impl FnOnce(Receiver<QueuedJob>) + Send + 'static) -> Result<Self> {
        let (queue, jobs) = mpsc::channel();
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || body(jobs));
        let thread = thread.map_err(|error| {
            let sentence = format!("cannot start the session store: {error}");
            StoreError::new(StoreErrorKind::Io, sentence)
        })?;
        let places = Arc::new(Semaphore::new(QUEUE_JOBS));
        Ok(Self { queue: Some(queue), places, thread: Some(thread) })
    }

    /// Runs `work` on the thread's connection.
    pub(crate) async fn run_job<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.ask_prepared(Durability::Process, || Ok(()), |connection, ()| work(connection)).await
    }

    /// Runs `prepare` outside and `work` inside a transaction that survives what `durability`
    /// says.
    pub(crate) async fn ask_prepared<I: Send + 'static, T: Send + 'static>(
        &self,
        durability: Durability,
        prepare: impl FnOnce() -> Result<I> + Send + 'static,
        work: impl FnOnce(&Connection, I) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (job, answer) = create_job(durability, prepare, work);
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| closed_error())?;
        self.send(QueuedJob { job, _place: Some(place) })?;
        answer.await.map_err(|_| closed_error())?
    }

    /// Runs `work` on the thread's connection, whether or not anybody waits for the answer. Takes no
    /// place in the queue: the caller bounds how many there are.
    pub(crate) fn queue_job<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<oneshot::Receiver<Result<T>>> {
        let (job, answer) =
            create_job(Durability::Process, || Ok(()), |connection, ()| work(connection));
        self.send(QueuedJob { job, _place: None }).map(|()| answer)
    }

    fn send(&self, queued: QueuedJob) -> Result<()> {
        let queue = self.queue.as_ref().ok_or_else(closed_error)?;
        queue.send(queued).map_err(|_| closed_error())
    }
}

impl Drop for Worker {
    /// Backoff until what was queued is done.
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            // A panic on the thread has failed its job already.
            drop(thread.join());
        }
    }
}

fn ensure_connected<'c>(
    slot: &'c mut Option<Connection>,
    connect: &impl Fn() -> Result<Connection>,
) -> Result<&'c Connection> {
    match slot {
        Some(connection) => Ok(connection),
        None => connect().map(|connection| &*slot.insert(connection)),
    }
}

/// One look at the database is one moment of it.
fn run_in_snapshot(connection: &Connection, job: &mut dyn Job) -> Result<()> {
    execute_cached(connection, "BEGIN DEFERRED")?;
    let outcome = job.run(connection);
    let ended = execute_cached(connection, "ROLLBACK");
    outcome.and(ended)
}
