//! One folder under checkpoints: taking snapshots of it.

use std::{
    ffi::OsStr,
    os::{
        fd::OwnedFd,
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    thread::available_parallelism,
    time::{Duration, Instant},
};

use rustix::fs::{CWD, Mode, fstat, openat};

use super::{
    compare::compare,
    error::{At, Error},
    hash::Hash,
    links::Links,
    objects::hold,
    places::now_ns,
    record::{self, MAX_NAMED_SKIPPED, Skipped, Snapshot, SnapshotId, Why, clip_label},
    rules::OuterRules,
    stamp::Stamp,
    state::{Folder, Node, Spare},
    state_file,
    vault::{SNAPSHOTS, Session, Vault},
    walk::{FOLDER_FLAGS, Walk},
    watch::Watcher,
    write::Batch,
};

/// Threads of one walk.
const MAX_THREADS: usize = 4;

/// A watcher cannot hear everything, so everything is looked at this often.
const FULL_WALK_EVERY: Duration = Duration::from_secs(300);

/// Bytes stored since the state was last written, above which it is written again.
const STATE_AFTER_BYTES: u64 = 16 << 20;

/// How often another process may take the id meant for a snapshot.
const MAX_ID_TRIES: usize = 100;

/// A folder whose files are kept. One call at a time works; others wait.
pub struct Workspace {
    pub(super) vault: Vault,
    pub(super) root: PathBuf,
    /// Its part of the vault.
    pub(super) folder: PathBuf,
    state: Mutex<State>,
}

/// What is known between calls.
#[derive(Default)]
pub(super) struct State {
    pub(super) known: Folder,
    watcher: Option<Watcher>,
    is_loaded: bool,
    /// The last walk failed half-way.
    is_doubtful: bool,
    generation: Vec<u8>,
    last_full: Option<Instant>,
    unwritten_bytes: u64,
    last: Option<(SnapshotId, Hash)>,
}

/// A state of the files that is stored.
#[derive(Clone, Copy)]
pub(super) struct Scanned {
    pub(super) tree: Hash,
    pub(super) links: Option<Hash>,
}

impl Workspace {
    pub(super) fn new(vault: Vault, root: PathBuf, folder: PathBuf) -> Self {
        Self { vault, root, folder, state: Mutex::default() }
    }

    /// The folder that is kept.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Reads everything for the first time, which may take seconds; later snapshots then cost only
    /// what changed. Setting `cancel` stops it; what was read stays known.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`], or the vault cannot be written.
    pub fn baseline(&self, cancel: &AtomicBool) -> Result<(), Error> {
        let mut state = self.state();
        let session = self.vault.session()?;
        self.scan(&mut state, &session, cancel).map(|_| ())
    }

    /// Keeps the files as they are now. Waits for a running [`baseline`](Self::baseline).
    ///
    /// Take one before everything that may write, and one at the end of a turn: what differs from
    /// the newest snapshot counts as the person's own change.
    ///
    /// # Errors
    ///
    /// The workspace cannot be opened or the vault not be written. Nothing is lost then.
    pub fn snapshot(&self, label: &str) -> Result<Snapshot, Error> {
        let mut state = self.state();
        let session = self.vault.session()?;
        let scanned = self.scan(&mut state, &session, &AtomicBool::new(false))?;
        self.record(&mut state, label, scanned)
    }

    /// All snapshots, oldest first.
    ///
    /// # Errors
    ///
    /// The vault cannot be read.
    pub fn snapshots(&self) -> Result<Vec<SnapshotId>, Error> {
        record::list(&self.records())
    }

    /// What is known of one snapshot.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`], or the vault cannot be read.
    pub fn get(&self, id: &SnapshotId) -> Result<Snapshot, Error> {
        Snapshot::read(&self.records(), id)
    }

    /// Whether changes are heard of instead of looked for.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.state().watcher.as_ref().is_some_and(|watcher| !watcher.is_broken())
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        hold(&self.state)
    }

    pub(super) fn records(&self) -> PathBuf {
        self.folder.join(SNAPSHOTS)
    }

    /// Opens the workspace's folder anew: it may have been replaced.
    pub(super) fn open_root(&self) -> Result<OwnedFd, Error> {
        openat(CWD, &self.root, FOLDER_FLAGS, Mode::empty()).at("open", &self.root)
    }

    /// Brings what is known up to date and stores what is new.
    pub(super) fn scan(
        &self,
        state: &mut State,
        session: &Session,
        cancel: &AtomicBool,
    ) -> Result<Scanned, Error> {
        let root = self.open_root()?;
        let mut is_full = self.prepare(state, session, &root);
        let begun = Instant::now();
        let scanned = loop {
            match self.walk(state, &root, is_full, cancel) {
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

    /// Whether the next walk must look at everything.
    fn prepare(&self, state: &mut State, session: &Session, root: &OwnedFd) -> bool {
        let mut is_full = state.is_doubtful;
        if state.generation != session.generation {
            state.generation.clone_from(&session.generation);
            state.is_doubtful = true;
            is_full = true;
        }
        if !state.is_loaded {
            state.is_loaded = true;
            state.is_doubtful = true;
            state.known = state_file::read(&self.state_path()).unwrap_or_default();
            if self.vault.0.options.watch {
                state.watcher = Watcher::start(root);
            }
            is_full = true;
        }
        let replaced = fstat(root).is_ok_and(|stat| {
            let (now, then) = (Stamp::of(&stat), state.known.stamp);
            (now.device, now.inode) != (then.device, then.inode)
        });
        if replaced {
            state.known = Folder::default();
        }
        let heard = match &state.watcher {
            Some(watcher) if !watcher.is_broken() => watcher.drain(&mut state.known),
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
        state: &mut State,
        root: &OwnedFd,
        is_full: bool,
        cancel: &AtomicBool,
    ) -> Result<(Scanned, bool), Error> {
        let inner = &*self.vault.0;
        let batch = Batch::new(&inner.objects, inner.options.durable);
        let outer = OuterRules::read(&self.root, inner.options.excludes.as_deref());
        let vault = std::fs::metadata(inner.objects.places.root())
            .at("read", inner.objects.places.root())?;
        let threads = available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        let walk = Walk {
            batch: &batch,
            objects: &inner.objects,
            limits: &inner.options.limits,
            outer: &outer,
            watcher: state.watcher.as_ref(),
            cancel,
            root: &self.root,
            device: Stamp::of(&fstat(root).at("read", &self.root)?).device,
            vault: (vault.dev(), vault.ino()),
            spare: Spare::new(threads.saturating_sub(1) as u32),
            is_full,
            is_doubtful: state.is_doubtful,
            needs_full: AtomicBool::new(false),
        };
        let walked = walk.run(root, &mut state.known);
        let needs_full = walk.needs_full.load(Ordering::Relaxed);
        let links = walked.and_then(|()| {
            let links = Links::of(&state.known);
            (!links.0.is_empty()).then(|| batch.put(&links.encode())).transpose()
        });
        // Also after a cancelled walk: what was read is known and must be found.
        state.unwritten_bytes += batch.finish()?;
        let links = links?;
        let tree = state.known.tree.ok_or(Error::Cancelled)?;
        Ok((Scanned { tree, links }, needs_full))
    }

    /// Names a scanned state.
    pub(super) fn record(
        &self,
        state: &mut State,
        label: &str,
        scanned: Scanned,
    ) -> Result<Snapshot, Error> {
        let records = self.records();
        if state.last.is_none() {
            state.last = self.newest()?.map(|newest| (newest.id, newest.tree));
        }
        let (last, last_tree) = state.last.clone().unzip();
        let changed = self.count_changes(last_tree, scanned.tree)?;
        let (skipped, skipped_count) = skipped(&state.known);
        let mut snapshot = Snapshot {
            id: SnapshotId::next(now_ns(), last.as_ref(), &super::places::unique_name()),
            label: clip_label(label),
            changed,
            skipped,
            skipped_count,
            tree: scanned.tree,
            links: scanned.links,
        };
        let sync = self.vault.0.options.durable && last_tree != Some(scanned.tree);
        for _ in 0..MAX_ID_TRIES {
            if snapshot.write(&self.vault.0.objects.places, &records, sync)? {
                state.last = Some((snapshot.id.clone(), snapshot.tree));
                return Ok(snapshot);
            }
            let salt = super::places::unique_name();
            snapshot.id = SnapshotId::next(now_ns(), Some(&snapshot.id), &salt);
        }
        Err(Error::Busy)
    }

    /// The newest snapshot that can be read.
    pub(super) fn newest(&self) -> Result<Option<Snapshot>, Error> {
        let ids = self.snapshots()?;
        Ok(ids.iter().rev().find_map(|id| self.get(id).ok()))
    }

    fn count_changes(&self, before: Option<Hash>, after: Hash) -> Result<usize, Error> {
        let mut count = 0;
        let counted =
            compare(&self.vault.0.objects, before, Some(after), &mut |_, _, _| count += 1);
        match counted {
            Ok(()) => Ok(count),
            // The older one is damaged or was deleted by another process: everything is new.
            Err(_) => {
                let mut count = 0;
                compare(&self.vault.0.objects, None, Some(after), &mut |_, _, _| count += 1)?;
                Ok(count)
            }
        }
    }

    fn state_path(&self) -> PathBuf {
        self.folder.join("state")
    }

    fn write_state(&self, state: &mut State) {
        // Losing it costs time only.
        let written =
            state_file::write(&self.vault.0.objects.places, &self.state_path(), &state.known);
        if written.is_ok() {
            state.unwritten_bytes = 0;
        }
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let mut state = std::mem::take(&mut *self.state());
        if state.unwritten_bytes > 0 && !state.is_doubtful {
            self.write_state(&mut state);
        }
    }
}

fn skipped(root: &Folder) -> (Vec<Skipped>, usize) {
    let (mut named, mut count) = (Vec::new(), 0);
    root.visit_noted(&mut Vec::new(), &mut |path, node| {
        let why = match node {
            Node::Unsaved(why) => *why,
            Node::File(file) if file.is_unsteady => Why::Unsteady,
            Node::File(_) | Node::Link { .. } | Node::Folder(_) => return,
        };
        count += 1;
        if named.len() < MAX_NAMED_SKIPPED {
            named.push(Skipped { path: OsStr::from_bytes(path).into(), why });
        }
    });
    (named, count)
}
