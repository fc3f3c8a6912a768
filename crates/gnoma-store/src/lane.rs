//! Threads that own a connection and work through a bounded queue: one that writes, others that
//! only look. How writing is done is [`crate::writer`]'s.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc,
        mpsc::{self, Receiver, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use gnoma_core::store::{Durability, StoreError, StoreErrorKind};
use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::{
    error::{Explain, Result},
    writer::{Upkeep, Writer},
};

/// Jobs that may wait; whoever brings one more waits with it.
const QUEUE_JOBS: usize = 256;

/// A piece of work and the way to answer.
pub(crate) trait Job: Send {
    /// What its transaction must survive.
    fn durability(&self) -> Durability;
    /// What needs no database and would only make others wait inside the transaction.
    fn prepare(&mut self);
    /// The work. Called once.
    fn run(&mut self, connection: &Connection) -> Result<()>;
    /// Answers. Called once, after the commit.
    fn finish(self: Box<Self>, outcome: Result<()>);
}

/// A job on its way, with its place in the queue where it had to wait for one.
pub(crate) struct Queued {
    job: Box<dyn Job>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Queued {
    /// The job; its place is free for another.
    pub(crate) fn take(self) -> Box<dyn Job> {
        self.job
    }
}

struct Asked<P, W, I, T> {
    durability: Durability,
    prepare: Option<P>,
    prepared: Option<Result<I>>,
    work: Option<W>,
    value: Option<T>,
    reply: oneshot::Sender<Result<T>>,
}

impl<P, W, I, T> Job for Asked<P, W, I, T>
where
    P: FnOnce() -> Result<I> + Send,
    W: FnOnce(&Connection, I) -> Result<T> + Send,
    I: Send,
    T: Send,
{
    fn durability(&self) -> Durability {
        self.durability
    }

    fn prepare(&mut self) {
        self.prepared = self.prepare.take().map(unbroken);
    }

    fn run(&mut self, connection: &Connection) -> Result<()> {
        let (Some(prepared), Some(work)) = (self.prepared.take(), self.work.take()) else {
            return Ok(());
        };
        let prepared = prepared?;
        self.value = Some(unbroken(|| work(connection, prepared))?);
        Ok(())
    }

    fn finish(self: Box<Self>, outcome: Result<()>) {
        let Self { value, reply, .. } = *self;
        let answer = outcome.and_then(|()| value.ok_or_else(closed));
        // Nobody may wait any more: the work is done all the same.
        drop(reply.send(answer));
    }
}

/// A job and where its answer arrives.
fn asked<I: Send + 'static, T: Send + 'static>(
    durability: Durability,
    prepare: impl FnOnce() -> Result<I> + Send + 'static,
    work: impl FnOnce(&Connection, I) -> Result<T> + Send + 'static,
) -> (Box<dyn Job>, oneshot::Receiver<Result<T>>) {
    let (reply, answer) = oneshot::channel();
    let job = Asked {
        durability,
        prepare: Some(prepare),
        prepared: None,
        work: Some(work),
        value: None,
        reply,
    };
    (Box::new(job), answer)
}

/// A thread with a connection.
pub(crate) struct Lane {
    queue: Option<Sender<Queued>>,
    places: Arc<Semaphore>,
    thread: Option<JoinHandle<()>>,
}

impl Lane {
    /// A lane whose jobs change the database.
    pub(crate) fn writing(connection: Connection, upkeep: impl Upkeep) -> Result<Self> {
        Self::start("gnoma-store-writer", move |jobs| Writer::new(connection, upkeep).run(&jobs))
    }

    /// A lane whose jobs only look. It connects when there is something to look at.
    pub(crate) fn reading(
        connect: impl Fn() -> Result<Connection> + Send + 'static,
    ) -> Result<Self> {
        Self::start("gnoma-store-reader", move |jobs| {
            let mut connection = None;
            while let Ok(queued) = jobs.recv() {
                let mut job = queued.take();
                job.prepare();
                let outcome = connected(&mut connection, &connect)
                    .and_then(|connection| read(connection, job.as_mut()));
                job.finish(outcome);
            }
        })
    }

    fn start(name: &str, body: impl FnOnce(Receiver<Queued>) + Send + 'static) -> Result<Self> {
        let (queue, jobs) = mpsc::channel();
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || body(jobs));
        let thread = thread.map_err(|error| {
            let sentence = format!("no thread for the session store: {error}");
            StoreError::new(StoreErrorKind::Io, sentence)
        })?;
        let places = Arc::new(Semaphore::new(QUEUE_JOBS));
        Ok(Self { queue: Some(queue), places, thread: Some(thread) })
    }

    /// Runs `work` on the lane's connection.
    pub(crate) async fn ask<T: Send + 'static>(
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
        let (job, answer) = asked(durability, prepare, work);
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| closed())?;
        self.send(Queued { job, _place: Some(place) })?;
        answer.await.map_err(|_| closed())?
    }

    /// Runs `work` on the lane's connection, whether or not anybody waits for the answer. Takes no
    /// place in the queue: the caller bounds how many there are.
    pub(crate) fn tell<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<oneshot::Receiver<Result<T>>> {
        let (job, answer) =
            asked(Durability::Process, || Ok(()), |connection, ()| work(connection));
        self.send(Queued { job, _place: None }).map(|()| answer)
    }

    fn send(&self, queued: Queued) -> Result<()> {
        let queue = self.queue.as_ref().ok_or_else(closed)?;
        queue.send(queued).map_err(|_| closed())
    }
}

impl Drop for Lane {
    /// Waits until what was queued is done.
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            // A panic on the lane has failed its job already.
            drop(thread.join());
        }
    }
}

/// What is told when a lane has ended.
pub(crate) fn closed() -> StoreError {
    StoreError::new(StoreErrorKind::Io, "the session store has ended")
}

/// A panic in one job is that job's failure: what it did is undone, and the lane goes on.
fn unbroken<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let sentence = "gnoma made a mistake with what was to be stored or read; please report it";
        Err(StoreError::new(StoreErrorKind::Io, sentence))
    })
}

fn connected<'c>(
    slot: &'c mut Option<Connection>,
    connect: &impl Fn() -> Result<Connection>,
) -> Result<&'c Connection> {
    match slot {
        Some(connection) => Ok(connection),
        None => connect().map(|connection| &*slot.insert(connection)),
    }
}

/// One look at the database is one moment of it.
fn read(connection: &Connection, job: &mut dyn Job) -> Result<()> {
    execute(connection, "BEGIN DEFERRED")?;
    let outcome = job.run(connection);
    let ended = execute(connection, "ROLLBACK");
    outcome.and(ended)
}

/// Runs a statement without values that is used again and again.
pub(crate) fn execute(connection: &Connection, sql: &str) -> Result<()> {
    connection.prepare_cached(sql).and_then(|mut run| run.execute([])).map(|_| ()).explain()
}

/// Waits a little longer each time, until `patience` is used up.
pub(crate) struct Waits {
    left: Duration,
    next: Duration,
}

impl Waits {
    /// A new row of waits.
    pub(crate) fn new(patience: Duration) -> Self {
        Self { left: patience, next: Duration::from_millis(1) }
    }

    /// Waits once; `false` when the patience is used up.
    pub(crate) fn wait(&mut self) -> bool {
        const LONGEST: Duration = Duration::from_millis(50);
        if self.left.is_zero() {
            return false;
        }
        let wait = self.next.min(self.left);
        thread::sleep(wait);
        self.left -= wait;
        self.next = (self.next * 2).min(LONGEST);
        true
    }
}
