//! Threads that own a connection and work through a bounded queue.
//!
//! The writing lane takes all that waits into one transaction, so that many small appends share
//! one commit; each job is undone alone when it fails. Answers are given after the commit.

use std::{
    thread::{self, JoinHandle},
    time::Duration,
};

use gnoma_core::store::{Durability, StoreError, StoreErrorKind};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::error::{Explain, Result};

/// Jobs that may wait; whoever brings one more waits with it.
const QUEUE_JOBS: usize = 256;

/// Most jobs that share a transaction.
const BATCH_JOBS: usize = 64;

/// A piece of work and the way to answer.
trait Job: Send {
    /// What its transaction must survive.
    fn durability(&self) -> Durability;
    /// What needs no database and would only make others wait inside the transaction.
    fn prepare(&mut self);
    /// The work. Called once.
    fn run(&mut self, connection: &Connection) -> Result<()>;
    /// Answers. Called once, after the commit.
    fn finish(self: Box<Self>, outcome: Result<()>);
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
        self.prepared = self.prepare.take().map(|prepare| prepare());
    }

    fn run(&mut self, connection: &Connection) -> Result<()> {
        let (Some(prepared), Some(work)) = (self.prepared.take(), self.work.take()) else {
            return Ok(());
        };
        self.value = Some(work(connection, prepared?)?);
        Ok(())
    }

    fn finish(self: Box<Self>, outcome: Result<()>) {
        let Self { value, reply, .. } = *self;
        let answer = outcome.and_then(|()| value.ok_or_else(closed));
        // Nobody may wait any more: the work is done all the same.
        drop(reply.send(answer));
    }
}

/// A thread with a connection.
pub(crate) struct Lane {
    queue: Option<mpsc::Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
}

impl Lane {
    /// A lane whose jobs change the database. Before each transaction `may_write` is asked; at the
    /// end `last` is called.
    pub(crate) fn writing(
        connection: Connection,
        may_write: impl Fn() -> Result<()> + Send + 'static,
        last: impl FnOnce(&Connection) + Send + 'static,
    ) -> Result<Self> {
        let (queue, mut jobs) = mpsc::channel::<Box<dyn Job>>(QUEUE_JOBS);
        let thread = spawn("gnoma-store-writer", move || {
            let mut writer = Writer { connection, may_write, flushes: false };
            while let Some(first) = jobs.blocking_recv() {
                writer.transact(batch(first, &mut jobs));
            }
            last(&writer.connection);
        })?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    /// A lane whose jobs only look.
    pub(crate) fn reading(connection: Connection) -> Result<Self> {
        let (queue, mut jobs) = mpsc::channel::<Box<dyn Job>>(QUEUE_JOBS);
        let thread = spawn("gnoma-store-reader", move || {
            while let Some(mut job) = jobs.blocking_recv() {
                job.prepare();
                let outcome = read(&connection, job.as_mut());
                job.finish(outcome);
            }
        })?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
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
        let (reply, answer) = oneshot::channel();
        let job = Asked {
            durability,
            prepare: Some(prepare),
            prepared: None,
            work: Some(work),
            value: None,
            reply,
        };
        let queue = self.queue.as_ref().ok_or_else(closed)?;
        queue.send(Box::new(job)).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
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

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(body).map_err(|error| {
        StoreError::new(StoreErrorKind::Io, format!("no thread for the session store: {error}"))
    })
}

fn closed() -> StoreError {
    StoreError::new(StoreErrorKind::Io, "the session store has ended")
}

fn batch(first: Box<dyn Job>, jobs: &mut mpsc::Receiver<Box<dyn Job>>) -> Vec<Box<dyn Job>> {
    let mut batch = vec![first];
    while batch.len() < BATCH_JOBS
        && let Ok(next) = jobs.try_recv()
    {
        batch.push(next);
    }
    for job in &mut batch {
        job.prepare();
    }
    batch
}

/// One look at the database is one moment of it.
fn read(connection: &Connection, job: &mut dyn Job) -> Result<()> {
    connection.execute_batch("BEGIN DEFERRED").explain()?;
    let outcome = job.run(connection);
    let ended = connection.execute_batch("ROLLBACK").explain();
    outcome.and(ended)
}

struct Writer<M> {
    connection: Connection,
    may_write: M,
    /// Commits wait for the disk now.
    flushes: bool,
}

impl<M: Fn() -> Result<()>> Writer<M> {
    fn transact(&mut self, mut batch: Vec<Box<dyn Job>>) {
        let outcomes = self.run(&mut batch);
        match outcomes {
            Ok(outcomes) => {
                for (job, outcome) in batch.into_iter().zip(outcomes) {
                    job.finish(outcome);
                }
            }
            Err(error) => {
                for job in batch {
                    job.finish(Err(error.clone()));
                }
            }
        }
    }

    /// The outcome of each job; an error when nothing of the batch was kept.
    fn run(&mut self, batch: &mut [Box<dyn Job>]) -> Result<Vec<Result<()>>> {
        (self.may_write)()?;
        let flush = batch.iter().any(|job| job.durability() == Durability::Disk);
        self.set_flushing(flush)?;
        self.connection.execute_batch("BEGIN IMMEDIATE").explain()?;
        let mut outcomes = Vec::with_capacity(batch.len());
        for job in batch {
            match alone(&self.connection, job.as_mut()) {
                Ok(outcome) => outcomes.push(outcome),
                Err(error) => return Err(self.give_up(error)),
            }
        }
        match self.connection.execute_batch("COMMIT").explain() {
            Ok(()) => Ok(outcomes),
            Err(error) => Err(self.give_up(error)),
        }
    }

    fn give_up(&self, error: StoreError) -> StoreError {
        if !self.connection.is_autocommit() {
            // The error that led here is the one to tell.
            drop(self.connection.execute_batch("ROLLBACK"));
        }
        error
    }

    fn set_flushing(&mut self, flush: bool) -> Result<()> {
        if self.flushes != flush {
            let mode = if flush { "FULL" } else { "NORMAL" };
            self.connection.pragma_update(None, "synchronous", mode).explain()?;
            self.flushes = flush;
        }
        Ok(())
    }
}

/// Runs one job so that it can be undone alone. The outer error says that the whole transaction is
/// gone.
fn alone(connection: &Connection, job: &mut dyn Job) -> Result<Result<()>> {
    connection.execute_batch("SAVEPOINT job").explain()?;
    let outcome = job.run(connection);
    if connection.is_autocommit() {
        return Err(outcome.err().unwrap_or_else(closed));
    }
    if outcome.is_err() {
        connection.execute_batch("ROLLBACK TO job").explain()?;
    }
    connection.execute_batch("RELEASE job").explain()?;
    Ok(outcome)
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
