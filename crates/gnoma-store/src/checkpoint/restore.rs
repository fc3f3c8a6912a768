//! Restores a snapshot.
//!
//! The current state is saved first, as a separate snapshot. Only what differs is touched, each file as a whole by
//! a rename, and only while it is still what was saved. What was never saved is never deleted and never
//! overwritten.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::atomic::AtomicBool,
};

use gnoma_core::sync::Mutex;

use super::{
    apply::TreeRestore,
    compare::{compare_trees, find_item},
    error::Error,
    folder::open_parent,
    hash::Hash,
    links::Links,
    lock,
    places::replace_file,
    record::Snapshot,
    snapshot_cause::SnapshotCause,
    snapshot_id::SnapshotId,
    state::Folder,
    tree::Item,
    unlock::{OWNER_ALL, UnlockedFolder, set_mode},
    unrestored_paths::UnrestoredPath,
    vault::Session,
    workspace::{ScannedState, Workspace, WorkspaceState},
};

/// The choice for a restore that would overwrite what was changed otherwise than by the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// Change nothing and say which files.
    Refuse,
    /// Keep theirs in a snapshot, then overwrite; restoring [`RestoreReport::before`] brings them back.
    KeepTheirs,
}

/// The result of a restore.
#[derive(Clone, Debug)]
pub struct RestoreReport {
    /// The snapshot that was restored.
    pub target: SnapshotId,
    /// The files as they were before; restoring it undoes this.
    pub before: SnapshotId,
    /// The files as they are now.
    pub after: SnapshotId,
    /// Files, links and folders that were written.
    pub written: usize,
    /// Files, links and folders that were removed.
    pub removed: usize,
    /// The paths that had changed since the session's newest snapshot, or between its turns, and were overwritten:
    /// the person's work, or another session's. Their last contents are in `before`.
    pub theirs: Vec<PathBuf>,
    /// The paths that differ from the snapshot.
    pub left: Vec<UnrestoredPath>,
}

impl Workspace {
    /// Restores the files as they were at `id`. What a command closed to its owner is opened for that, saved, and
    /// restored; if nothing is restored, it is closed again.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] if it would overwrite someone's changes and should refuse; [`Error::Damaged`] if the
    /// snapshot is incomplete; [`Error::Busy`] if another process restores. Nothing was changed then.
    pub fn restore(&self, id: &SnapshotId, conflict: Conflict) -> Result<RestoreReport, Error> {
        self.restore_turns(id, &[], conflict)
    }

    /// As [`restore`](Self::restore), going back over turns. `starts` are snapshots that turns began
    /// with: what differs from the one before was changed between the turns, by somebody else.
    ///
    /// # Errors
    ///
    /// As [`restore`](Self::restore).
    pub fn restore_turns(
        &self,
        id: &SnapshotId,
        starts: &[SnapshotId],
        conflict: Conflict,
    ) -> Result<RestoreReport, Error> {
        let mut state = self.state.lock();
        let session = self.vault.begin_session()?;
        let _alone = lock::lock_exclusive(&self.restore_lock())?;
        self.vault.0.objects.refresh()?;
        self.finish_merge(&mut state, &session)?;
        let target = self.get(id)?;
        let unlocked = Mutex::default();
        let restored =
            self.restore_open(&mut state, &session, (&target, starts), conflict, &unlocked);
        if restored.is_err() {
            self.lock_again(&unlocked.lock(), None);
        }
        restored
    }

    /// Restores, opening up what is closed.
    fn restore_open(
        &self,
        state: &mut WorkspaceState,
        session: &Session,
        (target, starts): (&Snapshot, &[SnapshotId]),
        conflict: Conflict,
        unlocked: &Mutex<Vec<UnlockedFolder>>,
    ) -> Result<RestoreReport, Error> {
        self.unlock_root();
        self.clean_up(state, session)?;
        let now = self.scan_closed(state, session, unlocked)?;
        self.is_whole(now.tree, target.tree)?;
        let theirs = self.overwritten_paths(target, starts, now.tree)?;
        if conflict == Conflict::Refuse && !theirs.is_empty() {
            return Err(Error::Conflict { paths: theirs });
        }
        let id = &target.id;
        let (forced, target_links) = self.differing_links(now, target)?;
        let kept = SnapshotCause::BeforeRestore { target: id.clone() };
        let before = self.record_snapshot(state, &format!("before restoring {id}"), kept, now)?.id;
        self.mark_begun()?;
        let mut apply = TreeRestore::new(&self.vault.0.objects, &forced);
        apply.run(&self.open_root()?, &state.known, target.tree)?;
        for group in &target_links.0 {
            self.relink_group(&mut apply, &state.known, (target.tree, group))?;
        }
        let done = apply.finish(&self.open_root()?);
        self.lock_again(&unlocked.lock(), Some(target.tree));
        let now = self.scan(state, session, &AtomicBool::new(false))?;
        let made = SnapshotCause::Restored { target: id.clone(), before: before.clone() };
        let after = self.record_snapshot(state, &format!("restored {id}"), made, now)?.id;
        self.unmark_begun();
        let (target, written, removed) = (id.clone(), done.written.len(), done.removed);
        Ok(RestoreReport { target, before, after, written, removed, theirs, left: done.left })
    }

    /// Lets the owner into the workspace itself, whose mode is not kept.
    fn unlock_root(&self) {
        use std::os::unix::fs::PermissionsExt;
        let Ok(about) = std::fs::metadata(&self.root) else { return };
        let mode = about.permissions().mode();
        if mode & OWNER_ALL != OWNER_ALL {
            let opened = std::fs::Permissions::from_mode(mode | OWNER_ALL);
            // Where that fails, opening it says why.
            drop(std::fs::set_permissions(&self.root, opened));
        }
    }

    /// Gives folders that were opened up the mode they have in `tree`, or else had before.
    fn lock_again(&self, unlocked: &[UnlockedFolder], tree: Option<Hash>) {
        let Ok(root) = self.open_root() else { return };
        // What is inside first: the way there leads through the outer folders.
        for UnlockedFolder { path, mode } in unlocked.iter().rev() {
            let item = tree.and_then(|tree| find_item(&self.vault.0.objects, tree, path).ok()?);
            let mode = match item {
                Some(Item::Folder { mode, .. }) => mode,
                _ => *mode,
            };
            if let Ok((parent, name)) = open_parent(&root, path) {
                // It may be gone.
                let _ = set_mode(&parent, name, mode);
            }
        }
    }

    fn begun_mark(&self) -> PathBuf {
        self.folder.join("restoring")
    }

    fn mark_begun(&self) -> Result<(), Error> {
        replace_file(&self.vault.0.objects.places, &self.begun_mark(), b"", false)
    }

    fn unmark_begun(&self) {
        // A mark that stays makes the next restore look for leftovers, no more.
        drop(std::fs::remove_file(self.begun_mark()));
    }

    /// Removes half-written files of a restore that was killed.
    fn clean_up(&self, state: &mut WorkspaceState, session: &Session) -> Result<(), Error> {
        if self.begun_mark().exists() {
            self.scan(state, session, &AtomicBool::new(false))?;
            super::apply::remove_unfinished(&self.open_root()?, &state.known);
        }
        Ok(())
    }

    /// Fails where contents are missing that a restore needs.
    fn is_whole(&self, now: Hash, target: Hash) -> Result<(), Error> {
        let objects = &self.vault.0.objects;
        let mut missing = None;
        compare_trees(objects, Some(now), Some(target), &mut |path, _, wanted| {
            if let Some(Item::File { hash, .. }) = wanted
                && !objects.contains(hash)
            {
                missing = Some(path.to_vec());
            }
        })?;
        let Some(path) = missing else { return Ok(()) };
        let path = String::from_utf8_lossy(&path);
        Err(Error::Damaged(format!("the contents of `{path}` are missing")))
    }

    /// Paths whose hard links differ, and the groups to make.
    fn differing_links(
        &self,
        now: ScannedState,
        target: &Snapshot,
    ) -> Result<(BTreeSet<Vec<u8>>, Links), Error> {
        let now = self.read_links(now.links)?;
        let target = self.read_links(target.links)?;
        let (is, shall) = (now.by_path(), target.by_path());
        let differs = |path: &[u8], other: &BTreeMap<&[u8], &[Vec<u8>]>, group: &[Vec<u8>]| {
            other.get(path) != Some(&group)
        };
        let mut forced = BTreeSet::new();
        for (here, there) in [(&is, &shall), (&shall, &is)] {
            for (path, group) in here {
                if differs(path, there, group) {
                    forced.insert(path.to_vec());
                }
            }
        }
        Ok((forced, target))
    }

    fn read_links(&self, hash: Option<Hash>) -> Result<Links, Error> {
        let Some(hash) = hash else { return Ok(Links::default()) };
        Links::decode(&self.vault.0.objects.read(&hash)?)
            .ok_or_else(|| Error::Damaged(format!("object `{hash}` is not a list of links")))
    }

    /// Makes the paths of a group one file again, as far as they are equal.
    fn relink_group(
        &self,
        apply: &mut TreeRestore<'_>,
        now: &Folder,
        (tree, group): (Hash, &[Vec<u8>]),
    ) -> Result<(), Error> {
        if !group.iter().any(|path| apply.done.written.contains(path)) {
            return Ok(());
        }
        let mut first: Option<(&[u8], Item)> = None;
        for path in group {
            if apply.is_left(path) {
                continue;
            }
            let Some(item @ Item::File { .. }) = find_item(&self.vault.0.objects, tree, path)?
            else {
                continue;
            };
            match &first {
                None => first = Some((path, item)),
                Some((source, same)) if *same == item => {
                    apply.create_hard_link(&self.open_root()?, now, source, path);
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}
