//! One folder under checkpoints: taking snapshots of it.

use std::{
    ffi::OsStr,
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::available_parallelism,
    time::{Duration, Instant},
};

use gnoma_core::sync::Mutex;
use rustix::fs::{CWD, Mode, fstat, openat};

use super::{
    compare::compare_trees,
    error::{Error, PathErrorExt},
    folder::FOLDER_FLAGS,
    hash::Hash,
    links::Links,
    lock::{self, HeldLock},
    places::{now_ns, own_folder, replace_file},
    record::{self, MAX_NAMED_SKIPPED, Snapshot, clip_label},
    rules::OuterRules,
    skipped::{SkipCause, SkippedPath},
    snapshot_cause::SnapshotCause,
    snapshot_id::SnapshotId,
    stamp::Stamp,
    state::{Folder, Node, ThreadQuota},
    state_file,
    unlock::UnlockedFolder,
    vault::{SNAPSHOTS, Session, Vault, in_use_path},
    walk::Walk,
    watch::Watcher,
    write::Batch,
};

/// Threads of one walk.
pub(super) const MAX_THREADS: usize = 4;

/// A watcher cannot hear everything, so everything is looked at this often.
const FULL_WALK_EVERY: Duration = Duration::from_secs(300);

/// Bytes stored since the state was last written, above which it is written again.
const STATE_AFTER_BYTES: u64 = 16 << 20;

/// The number of times that another process may take the id meant for a snapshot.
const MAX_ID_TRIES: usize = 100;

/// A folder whose files are kept. One call at a time works; others wait.
pub struct Workspace {
    pub(super) vault: Vault,
    pub(super) root: PathBuf,
    /// The workspace's part of the vault.
    pub(super) folder: PathBuf,
    /// For whom snapshots are taken.
    session: Mutex<Option<Arc<str>>>,
    pub(super) state: Mutex<WorkspaceState>,
    /// While it is held no other process forgets snapshots of the folder.
    pub(super) seat: Mutex<Option<HeldLock>>,
}

/// The state that is known between calls.
#[derive(Default)]
pub(super) struct WorkspaceState {
    pub(super) known: Folder,
    watcher: Option<Watcher>,
    is_loaded: bool,
    /// The last walk failed half-way.
    is_doubtful: bool,
    generation: Vec<u8>,
    last_full: Option<Instant>,
    unwritten_bytes: u64,
    /// The newest snapshot, as far as is known: other processes take some too.
    newest: Option<Snapshot>,
}

/// The manner in which a scan works.
#[derive(Clone, Copy)]
struct ScanOptions<'a> {
    cancel: &'a AtomicBool,
    /// Open up what is closed to its owner, and note it here.
    unlocked: Option<&'a Mutex<Vec<UnlockedFolder>>>,
}

/// A state of the files that is stored.
#[derive(Clone, Copy)]
pub(super) struct ScannedState {
    pub(super) tree: Hash,
    pub(super) links: Option<Hash>,
}

impl Vault {
    /// The workspace at `root`.
    ///
    /// # Errors
    ///
    /// `root` is no readable folder, or the vault cannot be written.
    pub fn open_workspace(&self, root: &Path) -> Result<Workspace, Error> {
        let root = root.canonicalize().io_context("open", root)?;
        let name = Hash::of_bytes(root.as_os_str().as_bytes()).to_string();
        let folder = self.0.objects.places.workspaces_folder().join(name);
        own_folder(&folder)?;
        own_folder(&folder.join(SNAPSHOTS))?;
        let about = folder.join("root");
        if !about.exists() {
            let places = &self.0.objects.places;
            replace_file(places, &about, root.as_os_str().as_bytes(), false)?;
        }
        Ok(Workspace::new(self.clone(), root, folder))
    }
}

impl Workspace {
    fn new(vault: Vault, root: PathBuf, folder: PathBuf) -> Self {
        let (session, state, seat) = Default::default();
        Self { vault, root, folder, session, state, seat }
    }

    /// The workspace at another folder, in the same vault.
    ///
    /// # Errors
    ///
    /// As [`Vault::open_workspace`].
    pub fn open_sibling(&self, root: &Path) -> Result<Self, Error> {
        self.vault.open_workspace(root)
    }

    /// The folder that is kept.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Says for which session snapshots are taken from now on; [`rewind`](Self::rewind) and
    /// [`redo`](Self::redo) go along that session's. Without one all snapshots count as one
    /// session's.
    pub fn set_session(&self, session: Option<&str>) {
        *self.session.lock() = session.filter(|session| !session.is_empty()).map(Arc::from);
    }

    /// The session snapshots are taken for.
    pub(super) fn session(&self) -> Option<Arc<str>> {
        self.session.lock().clone()
    }

    /// Reports whether a snapshot belongs to the session.
    pub(super) fn owns_snapshot(&self, snapshot: &Snapshot) -> bool {
        self.session().is_none_or(|session| snapshot.session.as_deref() == Some(&*session))
    }

    /// From now on the folder's snapshots are in use: other processes forget none of them.
    pub(super) fn take_seat(&self) -> Result<(), Error> {
        let held = lock::lock_shared(&in_use_path(&self.folder))?;
        *self.seat.lock() = Some(held);
        Ok(())
    }

    /// Reads everything for the first time, which may take seconds; later snapshots then cost only
    /// what changed. Setting `cancel` stops it; what was read stays known.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`], or the vault cannot be written.
    pub fn scan_baseline(&self, cancel: &AtomicBool) -> Result<(), Error> {
        let mut state = self.state.lock();
        let session = self.vault.begin_session()?;
        self.scan(&mut state, &session, cancel).map(|_| ())
    }

    /// Keeps the files as they are now. Waits for a running [`scan_baseline`](Self::scan_baseline).
    ///
    /// Take one before everything that may write, and one at the end of a turn: what differs from
    /// the newest snapshot counts as the person's own change.
    ///
    /// # Errors
    ///
    /// The workspace cannot be opened or the vault not be written. Nothing is lost then.
    pub fn take_snapshot(&self, label: &str) -> Result<Snapshot, Error> {
        let mut state = self.state.lock();
        let session = self.vault.begin_session()?;
        let scanned = self.scan(&mut state, &session, &AtomicBool::new(false))?;
        self.record_snapshot(&mut state, label, SnapshotCause::Asked, scanned)
    }

    /// As [`take_snapshot`](Self::take_snapshot), but a state the session has kept just before keeps its name.
    pub(super) fn save_snapshot(
        &self,
        label: &str,
        cancel: &AtomicBool,
    ) -> Result<SnapshotId, Error> {
        let mut state = self.state.lock();
        let session = self.vault.begin_session()?;
        let scanned = self.scan(&mut state, &session, cancel)?;
        self.find_newest(&mut state)?;
        let is_kept = |newest: &&Snapshot| {
            let same = (newest.tree, newest.links) == (scanned.tree, scanned.links);
            // After a restore the history needs a snapshot of its own to come back to.
            same && newest.made == SnapshotCause::Asked
                && newest.session.as_deref() == self.session().as_deref()
        };
        if let Some(newest) = state.newest.as_ref().filter(is_kept) {
            return Ok(newest.id.clone());
        }
        Ok(self.record_snapshot(&mut state, label, SnapshotCause::Asked, scanned)?.id)
    }

    /// All snapshots, oldest first.
    ///
    /// # Errors
    ///
    /// The vault cannot be read.
    pub fn snapshots(&self) -> Result<Vec<SnapshotId>, Error> {
        record::list_ids(&self.records_folder())
    }

    /// Returns what is known of one snapshot.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`], or the vault cannot be read.
    pub fn get(&self, id: &SnapshotId) -> Result<Snapshot, Error> {
        Snapshot::read(&self.records_folder(), id)
    }

    /// Reports whether changes are heard of instead of looked for.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.state.lock().watcher.as_ref().is_some_and(|watcher| !watcher.is_broken())
    }

    pub(super) fn records_folder(&self) -> PathBuf {
        self.folder.join(SNAPSHOTS)
    }

    /// Opens the workspace's folder again: it may have been replaced.
    pub(super) fn open_root(&self) -> Result<OwnedFd, Error> {
        openat(CWD, &self.root, FOLDER_FLAGS, Mode::empty()).io_context("open", &self.root)
    }

    /// Brings what is known up to date and stores what is new.
    pub(super) fn scan(
        &self,
        state: &mut WorkspaceState,
        session: &Session,
        cancel: &AtomicBool,
    ) -> Result<ScannedState, Error> {
        self.scan_by(state, session, ScanOptions { cancel, unlocked: None })
    }

    /// As [`scan`](Self::scan), opening up what is closed to its owner. What was opened up is added
    /// to `unlocked`, also when the scan fails.
    pub(super) fn scan_closed(
        &self,
        state: &mut WorkspaceState,
        session: &Session,
        unlocked: &Mutex<Vec<UnlockedFolder>>,
    ) -> Result<ScannedState, Error> {
        let cancel = &AtomicBool::new(false);
        self.scan_by(state, session, ScanOptions { cancel, unlocked: Some(unlocked) })
    }

    fn scan_by(
        &self,
        state: &mut WorkspaceState,
        session: &Session,
        manner: ScanOptions<'_>,
    ) -> Result<ScannedState, Error> {
        let root = self.open_root()?;
        let mut is_full = self.prepare_walk(state, session, &root);
        // What was closed is not watched.
        is_full |= manner.unlocked.is_some() && state.known.totals.noted > 0;
        let begun = Instant::now();
        let scanned = loop {
            match self.walk(state, &root, is_full, manner) {
                Ok((_, true)) if !is_full => is_full = true,
                Ok((scanned, _)) => break scanned,
                Err(failed) => {
                    state.is_doubtful = true;
                    return Err(failed);
                }
            }
        };
        state.is_doubtful = false;
        if is_full {
            state.last_full = Some(begun);
        }
        if state.unwritten_bytes > STATE_AFTER_BYTES {
            self.write_state(state);
        }
        Ok(scanned)
    }

    /// Prepares a walk and reports whether it must look at everything.
    fn prepare_walk(&self, state: &mut WorkspaceState, session: &Session, root: &OwnedFd) -> bool {
        let mut is_full = state.is_doubtful;
        if state.generation != session.generation {
            state.generation.clone_from(&session.generation);
            state.is_doubtful = true;
            is_full = true;
        }
        if !state.is_loaded {
            state.is_loaded = true;
            state.is_doubtful = true;
            state.known = state_file::read_state(&self.vault.0.objects.seal, &self.state_path())
                .unwrap_or_default();
            if self.vault.0.options.watch {
                state.watcher = Watcher::start(root);
            }
            is_full = true;
        }
        let replaced = fstat(root).is_ok_and(|stat| {
            let (now, then) = (Stamp::from_stat(&stat), state.known.stamp);
            (now.device, now.inode) != (then.device, then.inode)
        });
        if replaced {
            state.known = Folder::default();
        }
        let heard = match &state.watcher {
            Some(watcher) if !watcher.is_broken() => watcher.mark_changes(&mut state.known),
            _ => false,
        };
        if state.watcher.as_ref().is_some_and(Watcher::is_broken) {
            state.watcher = None;
            state.known.unwatch();
        }
        let due = state.last_full.is_none_or(|last| last.elapsed() > FULL_WALK_EVERY);
        is_full || replaced || !heard || due
    }

    /// Gives also whether a full walk must follow.
    fn walk(
        &self,
        state: &mut WorkspaceState,
        root: &OwnedFd,
        is_full: bool,
        manner: ScanOptions<'_>,
    ) -> Result<(ScannedState, bool), Error> {
        let inner = &*self.vault.0;
        let batch = Batch::new(&inner.objects, inner.options.durable);
        let outer = OuterRules::read(&self.root, inner.options.excludes.as_deref());
        let vault = std::fs::metadata(inner.objects.places.root())
            .io_context("read", inner.objects.places.root())?;
        let threads = available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        let walk = Walk {
            batch: &batch,
            objects: &inner.objects,
            limits: &inner.options.limits,
            outer: &outer,
            watcher: state.watcher.as_ref(),
            cancel: manner.cancel,
            root: &self.root,
            device: Stamp::from_stat(&fstat(root).io_context("read", &self.root)?).device,
            vault: (vault.dev(), vault.ino()),
            spare: ThreadQuota::new(threads.saturating_sub(1) as u32),
            is_full,
            is_doubtful: state.is_doubtful,
            unlocked: manner.unlocked,
            needs_full: AtomicBool::new(false),
        };
        let walked = walk.run(root, &mut state.known);
        let needs_full = walk.needs_full.load(Ordering::Relaxed);
        let links = walked.and_then(|()| {
            let links = Links::from_folder(&state.known);
            (!links.0.is_empty()).then(|| batch.store_bytes(&links.encode())).transpose()
        });
        // Also after a cancelled walk: what was read is known and must be found.
        let added_bytes = batch.finish()?;
        state.unwritten_bytes += added_bytes;
        inner.size.lock().add(added_bytes);
        let links = links?;
        let tree = state.known.tree.ok_or(Error::Cancelled)?;
        Ok((ScannedState { tree, links }, needs_full))
    }

    /// Names a scanned state.
    pub(super) fn record_snapshot(
        &self,
        state: &mut WorkspaceState,
        label: &str,
        made: SnapshotCause,
        scanned: ScannedState,
    ) -> Result<Snapshot, Error> {
        let records = self.records_folder();
        let last = self.find_newest(state)?;
        let last_tree = state.newest.as_ref().map(|newest| newest.tree);
        let changed = self.count_changes(last_tree, scanned.tree)?;
        let (skipped, skipped_count) = list_skipped(&state.known);
        let mut snapshot = Snapshot {
            id: SnapshotId::next(now_ns(), last.as_ref(), &super::places::unique_name()),
            label: clip_label(label),
            session: self.session().map(|session| session.as_ref().to_owned()),
            made,
            changed,
            skipped,
            skipped_count,
            tree: scanned.tree,
            links: scanned.links,
        };
        let sync = self.vault.0.options.durable;
        for _ in 0..MAX_ID_TRIES {
            if snapshot.write(&self.vault.0.objects.places, &records, sync)? {
                state.newest = Some(snapshot.clone());
                return Ok(snapshot);
            }
            let salt = super::places::unique_name();
            snapshot.id = SnapshotId::next(now_ns(), Some(&snapshot.id), &salt);
        }
        Err(Error::Busy)
    }

    /// Brings the newest snapshot that can be read up to date; gives the last id of all.
    ///
    /// Asked of the folder each time: an id that only sorts after this process's own snapshots can
    /// are before one that another process took within the same millisecond, which would then pass
    /// for the newest.
    fn find_newest(&self, state: &mut WorkspaceState) -> Result<Option<SnapshotId>, Error> {
        let mut ids = self.snapshots()?;
        let is_current = state.newest.as_ref().is_some_and(|newest| ids.last() == Some(&newest.id));
        if !is_current {
            state.newest = ids.iter().rev().find_map(|id| self.get(id).ok());
        }
        Ok(ids.pop())
    }

    /// The session's newest snapshot; if it has none, the newest of all.
    pub(super) fn newest_own(&self) -> Result<Option<Snapshot>, Error> {
        let ids = self.snapshots()?;
        let readable = ids.iter().rev().filter_map(|id| self.get(id).ok());
        let mut readable = readable.filter(|snapshot| snapshot.made.is_state()).peekable();
        let newest = readable.peek().cloned();
        Ok(readable.find(|snapshot| self.owns_snapshot(snapshot)).or(newest))
    }

    fn count_changes(&self, before: Option<Hash>, after: Hash) -> Result<usize, Error> {
        let objects = &self.vault.0.objects;
        if before.is_some_and(|tree| !objects.contains(&tree)) {
            objects.find_new_packs()?;
        }
        let mut count = 0;
        let counted = compare_trees(objects, before, Some(after), &mut |_, _, _| count += 1);
        if counted.is_err() {
            // The older one is damaged or was deleted by another process: everything is new.
            count = 0;
            compare_trees(objects, None, Some(after), &mut |_, _, _| count += 1)?;
        }
        Ok(count)
    }

    fn state_path(&self) -> PathBuf {
        self.folder.join("state")
    }

    pub(super) fn write_state(&self, state: &mut WorkspaceState) {
        // Losing it costs time only.
        let written = state_file::write_state(
            &self.vault.0.objects.places,
            &self.vault.0.objects.seal,
            &self.state_path(),
            &state.known,
        );
        if written.is_ok() {
            state.unwritten_bytes = 0;
        }
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let mut state = std::mem::take(&mut *self.state.lock());
        if state.unwritten_bytes > 0 && !state.is_doubtful {
            self.write_state(&mut state);
        }
    }
}

fn list_skipped(root: &Folder) -> (Vec<SkippedPath>, usize) {
    let (mut named, mut count) = (Vec::new(), 0);
    root.visit_noted(&mut Vec::new(), &mut |path, node| {
        let why = match node {
            Node::Unsaved(why) => *why,
            Node::File(file) if file.is_unsteady => SkipCause::Unsteady,
            Node::File(_) | Node::Link { .. } | Node::Folder(_) => return,
        };
        count += 1;
        if named.len() < MAX_NAMED_SKIPPED {
            named.push(SkippedPath { path: OsStr::from_bytes(path).into(), why });
        }
    });
    (named, count)
}
