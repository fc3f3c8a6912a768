//! The loop of the writing thread.
//!
//! All that waits goes into one transaction, so that many small appends share one commit; each job
//! is undone alone when it fails. Answers are given after the commit. What can wait is done in
//! pauses, and between jobs only when it has waited for too long.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::Duration,
};

use gnoma_core::store::{Durability, StoreError};
use rusqlite::Connection;

use crate::{
    error::Result,
    job::{Job, QueuedJob, closed_error},
    sql::execute_cached,
    text_index,
};

/// Most jobs that share a transaction.
const BATCH_JOBS: usize = 64;

/// This long without a job is a pause.
const PAUSE: Duration = Duration::from_millis(150);

/// Between two pieces of upkeep, so that other processes get their turn.
const BREATH: Duration = Duration::from_millis(5);

/// After this many jobs upkeep no longer waits for a pause.
const MOST_UNTENDED_JOBS: usize = 2000;

/// The decisions and tasks of the owner of a writing thread.
pub(crate) trait Upkeep: Send + 'static {
    /// Fails when the database must not be written any more.
    fn may_write(&self) -> Result<()>;
    /// Brings what is committed to the disk.
    fn flush(&self) -> Result<()>;
    /// A turn has ended and everybody has their answers: what should not wait for a pause.
    fn turn_ended(&self, connection: &Connection) -> Result<()>;
    /// Does one bounded piece of what can wait; says whether there is more.
    fn run_maintenance(&self, connection: &Connection) -> Result<bool>;
    /// Runs when the thread ends.
    fn on_thread_end(&self, connection: &Connection);
}

enum WriterStep {
    Job(QueuedJob),
    Tending,
}

/// A connection that writes.
pub(crate) struct Writer<U> {
    connection: Connection,
    upkeep: U,
    /// Jobs since upkeep was last complete.
    untended_jobs: usize,
    pause: Duration,
}

impl<U: Upkeep> Writer<U> {
    /// A writer at the beginning of its thread.
    pub(crate) fn new(connection: Connection, upkeep: U) -> Self {
        Self { connection, upkeep, untended_jobs: 0, pause: PAUSE }
    }

    /// Works until nobody can bring jobs any more.
    pub(crate) fn run(mut self, jobs: &Receiver<QueuedJob>) {
        while let Some(next) = self.next(jobs) {
            match next {
                WriterStep::Job(first) => self.run_batch(collect_batch(first, jobs)),
                WriterStep::Tending => self.maintain_database(),
            }
        }
        self.upkeep.on_thread_end(&self.connection);
    }

    fn next(&self, jobs: &Receiver<QueuedJob>) -> Option<WriterStep> {
        if self.untended_jobs == 0 {
            return jobs.recv().ok().map(WriterStep::Job);
        }
        if self.untended_jobs > MOST_UNTENDED_JOBS {
            return Some(WriterStep::Tending);
        }
        match jobs.recv_timeout(self.pause) {
            Ok(job) => Some(WriterStep::Job(job)),
            Err(RecvTimeoutError::Timeout) => Some(WriterStep::Tending),
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }

    fn maintain_database(&mut self) {
        // Nothing that is stored depends on upkeep; the next jobs bring the next try.
        let has_more = self.upkeep.run_maintenance(&self.connection).unwrap_or(false);
        if !self.connection.is_autocommit() {
            drop(execute_cached(&self.connection, "ROLLBACK"));
        }
        let left = self.untended_jobs.saturating_sub(text_index::AT_ONCE_ENTRIES);
        self.untended_jobs = if has_more { left.max(1) } else { 0 };
        self.pause = BREATH;
    }

    fn run_batch(&mut self, mut batch: Vec<Box<dyn Job>>) {
        self.untended_jobs += batch.len();
        self.pause = PAUSE;
        match self.commit_batch(&mut batch) {
            Ok(outcomes) => self.answer_jobs(batch, outcomes),
            Err(error) => {
                for job in batch {
                    job.finish(Err(error.clone()));
                }
            }
        }
    }

    /// The outcome of each job; an error when nothing of the batch was kept.
    fn commit_batch(&self, batch: &mut [Box<dyn Job>]) -> Result<Vec<Result<()>>> {
        self.upkeep.may_write()?;
        execute_cached(&self.connection, "BEGIN IMMEDIATE")?;
        let mut outcomes = Vec::with_capacity(batch.len());
        for job in batch {
            match run_in_savepoint(&self.connection, job.as_mut()) {
                Ok(outcome) => outcomes.push(outcome),
                Err(error) => return Err(self.give_up(error)),
            }
        }
        match execute_cached(&self.connection, "COMMIT") {
            Ok(()) => Ok(outcomes),
            Err(error) => Err(self.give_up(error)),
        }
    }

    /// Flushes where a job wants that, and answers.
    fn answer_jobs(&self, batch: Vec<Box<dyn Job>>, outcomes: Vec<Result<()>>) {
        let turn_ends = batch.iter().any(|job| job.durability() == Durability::Disk);
        let flushed = if turn_ends { self.upkeep.flush() } else { Ok(()) };
        for (job, outcome) in batch.into_iter().zip(outcomes) {
            let durable = match job.durability() {
                Durability::Disk => flushed.clone(),
                Durability::Process => Ok(()),
            };
            job.finish(outcome.and(durable));
        }
        if turn_ends {
            // Nothing that is stored depends on it, and the next turn's end is the next try.
            drop(self.upkeep.turn_ended(&self.connection));
        }
    }

    fn give_up(&self, error: StoreError) -> StoreError {
        if !self.connection.is_autocommit() {
            // The error that led here is the one to tell.
            drop(execute_cached(&self.connection, "ROLLBACK"));
        }
        error
    }
}

fn collect_batch(first: QueuedJob, jobs: &Receiver<QueuedJob>) -> Vec<Box<dyn Job>> {
    let mut batch = vec![first.into_job()];
    while batch.len() < BATCH_JOBS
        && let Ok(next) = jobs.try_recv()
    {
        batch.push(next.into_job());
    }
    for job in &mut batch {
        job.prepare();
    }
    batch
}

/// Runs one job so that it can be undone alone. The outer error says that the whole transaction is
/// gone.
fn run_in_savepoint(connection: &Connection, job: &mut dyn Job) -> Result<Result<()>> {
    execute_cached(connection, "SAVEPOINT job")?;
    let outcome = job.run(connection);
    if connection.is_autocommit() {
        return Err(outcome.err().unwrap_or_else(closed_error));
    }
    if outcome.is_err() {
        execute_cached(connection, "ROLLBACK TO job")?;
    }
    execute_cached(connection, "RELEASE job")?;
    Ok(outcome)
}
