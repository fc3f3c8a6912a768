//! The port [`Checkpoints`] over a [`Workspace`]: one owned thread does the blocking work, so that
//! callers need no runtime.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use gnoma_core::store::{Checkpoints, StoreError, StoreFuture};
use tokio::sync::{OwnedMutexGuard, mpsc, oneshot};

use super::{
    error::{Error, PathErrorExt},
    prune::VaultPruneReport,
    snapshot_id::SnapshotId,
    workspace::Workspace,
};

/// Jobs that may wait; whoever brings one more waits with it.
const QUEUE_JOBS: usize = 64;

type KeeperJob = Box<dyn FnOnce(&Workspace, &AtomicBool) + Send>;

/// Keeps a workspace's files for an engine. While it lives no other process forgets its snapshots,
/// and when the vault grows past its limit those of other workspaces go. Dropping it stops a snapshot under way, forgets what
/// waits, and waits for a restore to end.
pub struct Checkpointer {
    workspace: Arc<Workspace>,
    queue: Option<mpsc::Sender<KeeperJob>>,
    thread: Option<JoinHandle<()>>,
    cancel: Arc<AtomicBool>,
    is_prepared: AtomicBool,
    /// Held by who brings a copy back.
    merging: Arc<tokio::sync::Mutex<()>>,
}

impl Checkpointer {
    /// Starts the thread that works on `workspace`.
    ///
    /// # Errors
    ///
    /// The system gives no thread, or the vault cannot be written.
    pub fn start(workspace: Arc<Workspace>) -> Result<Self, Error> {
        workspace.take_seat()?;
        let (queue, mut jobs) = mpsc::channel::<KeeperJob>(QUEUE_JOBS);
        let cancel = Arc::new(AtomicBool::new(false));
        let (place, stop) = (Arc::clone(&workspace), Arc::clone(&cancel));
        let thread = thread::Builder::new()
            .name("gnoma-checkpoints".to_owned())
            .spawn(move || {
                while let Some(job) = jobs.blocking_recv() {
                    if stop.load(Ordering::Acquire) {
                        break;
                    }
                    job(&place, &stop);
                    if jobs.is_empty() {
                        place.make_room(&stop);
                    }
                }
            })
            .io_context("start a thread for", workspace.root())?;
        let (queue, thread) = (Some(queue), Some(thread));
        let (is_prepared, merging) = Default::default();
        Ok(Self { workspace, queue, thread, cancel, is_prepared, merging })
    }

    /// The workspace, for [`Workspace::set_session`] and for work on a thread of one's own.
    #[must_use]
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.workspace
    }

    /// Waits until nobody else of the process brings copies back: from the look at what a merge would come
    /// to, until it has landed.
    pub async fn lock_merges(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.merging).lock_owned().await
    }

    /// Reports whether the vault should be tidied.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.workspace.vault.is_due()
    }

    /// Deletes the oldest snapshots until the vault is within its limits, including those of this workspace unless
    /// another process saves it. Those in `pinned` stay, and the newest of each workspace.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] if another process does the same, [`Error::Cancelled`] if the keeper is dropped, or the
    /// vault is damaged. What was deleted before stays deleted.
    pub async fn prune_to_limits(
        &self,
        pinned: HashSet<SnapshotId>,
    ) -> Result<VaultPruneReport, Error> {
        self.run_on_thread(move |workspace, cancel| workspace.prune_to_limits(&pinned, cancel))
            .await
    }

    /// Keeps the files for a session, whichever others the keeper serves. Gives the snapshot's id.
    ///
    /// # Errors
    ///
    /// As [`Checkpoints::save_checkpoint`].
    pub async fn keep_for(
        &self,
        session: Option<String>,
        label: String,
    ) -> Result<String, StoreError> {
        let kept = self.run_on_thread(move |workspace, cancel| {
            // Snapshots are taken on this thread alone.
            workspace.set_session(session.as_deref());
            workspace.save_snapshot(&label, cancel)
        });
        kept.await.map(String::from).map_err(StoreError::from)
    }

    /// Does blocking work for a session on the keeper's thread, such as a merge.
    ///
    /// # Errors
    ///
    /// As the work's, or [`Error::Cancelled`] when the keeper is dropped.
    pub async fn run_for_session<T: Send + 'static>(
        &self,
        session: Option<String>,
        work: impl FnOnce(&Workspace) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let work = move |workspace: &Workspace, _: &AtomicBool| {
            workspace.set_session(session.as_deref());
            work(workspace)
        };
        self.run_on_thread(work).await
    }

    /// Does blocking work on the keeper's thread, after what was asked before.
    async fn run_on_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Workspace, &AtomicBool) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let job: KeeperJob = Box::new(move |workspace, cancel| {
            // Nobody may wait any more: the work is done all the same.
            drop(reply.send(work(workspace, cancel)));
        });
        let queue = self.queue.as_ref().ok_or(Error::Cancelled)?;
        queue.send(job).await.map_err(|_| Error::Cancelled)?;
        answer.await.map_err(|_| Error::Cancelled)?
    }
}

impl Checkpoints for Checkpointer {
    fn preload_workspace(&self) {
        if self.is_prepared.swap(true, Ordering::AcqRel) {
            return;
        }
        // A failure comes again, with somebody to tell, when something is kept.
        let job: KeeperJob = Box::new(|workspace, cancel| drop(workspace.scan_baseline(cancel)));
        if let Some(queue) = &self.queue {
            // A full queue reads everything anyway.
            drop(queue.try_send(job));
        }
    }

    fn save_checkpoint(&self, label: String) -> StoreFuture<'_, String> {
        Box::pin(async move {
            let kept = self
                .run_on_thread(move |workspace, cancel| workspace.save_snapshot(&label, cancel));
            kept.await.map(String::from).map_err(StoreError::from)
        })
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.cancel.store(true, Ordering::Release);
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            // A panic on the thread has failed its job already.
            drop(thread.join());
        }
    }
}
