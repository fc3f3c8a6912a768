//! Work for the thread that owns a connection, and the way its answer takes.

use std::panic::{self, AssertUnwindSafe};

use gnoma_core::store::{Durability, StoreError, StoreErrorKind};
use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::error::Result;

/// A piece of work and the way to answer.
pub(crate) trait Job: Send {
    /// Returns what the job's transaction must survive.
    fn durability(&self) -> Durability;
    /// Does the part of the work that needs no database and would only make others wait inside the transaction.
    fn prepare(&mut self);
    /// The work. Called once.
    fn run(&mut self, connection: &Connection) -> Result<()>;
    /// Answers. Called once, after the commit.
    fn finish(self: Box<Self>, outcome: Result<()>);
}

/// A job on its way, with its place in the queue where it had to wait for one.
pub(crate) struct QueuedJob {
    pub(crate) job: Box<dyn Job>,
    pub(crate) _place: Option<OwnedSemaphorePermit>,
}

impl QueuedJob {
    /// The job; its place is free for another.
    pub(crate) fn into_job(self) -> Box<dyn Job> {
        self.job
    }
}

struct ReplyingJob<P, W, I, T> {
    durability: Durability,
    prepare: Option<P>,
    prepared: Option<Result<I>>,
    work: Option<W>,
    value: Option<T>,
    reply: oneshot::Sender<Result<T>>,
}

impl<P, W, I, T> Job for ReplyingJob<P, W, I, T>
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
        self.prepared = self.prepare.take().map(catch_panic);
    }

    fn run(&mut self, connection: &Connection) -> Result<()> {
        let (Some(prepared), Some(work)) = (self.prepared.take(), self.work.take()) else {
            return Ok(());
        };
        let prepared = prepared?;
        self.value = Some(catch_panic(|| work(connection, prepared))?);
        Ok(())
    }

    fn finish(self: Box<Self>, outcome: Result<()>) {
        let Self { value, reply, .. } = *self;
        let answer = outcome.and_then(|()| value.ok_or_else(closed_error));
        // Nobody may wait any more: the work is done all the same.
        drop(reply.send(answer));
    }
}

/// A job and where its answer arrives.
pub(crate) fn create_job<I: Send + 'static, T: Send + 'static>(
    durability: Durability,
    prepare: impl FnOnce() -> Result<I> + Send + 'static,
    work: impl FnOnce(&Connection, I) -> Result<T> + Send + 'static,
) -> (Box<dyn Job>, oneshot::Receiver<Result<T>>) {
    let (reply, answer) = oneshot::channel();
    let job = ReplyingJob {
        durability,
        prepare: Some(prepare),
        prepared: None,
        work: Some(work),
        value: None,
        reply,
    };
    (Box::new(job), answer)
}

/// Returns the error for a store whose thread has ended.
pub(crate) fn closed_error() -> StoreError {
    StoreError::new(StoreErrorKind::Io, "the session store is closed")
}

/// A panic in one job is that job's failure: what it did is undone, and the thread continues.
fn catch_panic<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let sentence = "internal error in the session store; please report it";
        Err(StoreError::new(StoreErrorKind::Io, sentence))
    })
}
