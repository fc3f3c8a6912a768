//! Forgetting the oldest snapshots, so that a vault stays within its limits.
//!
//! A workspace that a process keeps is in use: only that process itself forgets snapshots of it.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    time::{Duration, SystemTime},
};

use super::{
    collect::{CollectionReport, objects_size},
    error::Error,
    lock,
    options::Limits,
    places::replace_file,
    record,
    snapshot_id::SnapshotId,
    vault::{SNAPSHOTS, Vault, in_use_path},
    workspace::Workspace,
};

/// The most rounds in which snapshots go and their objects are counted again.
const MAX_ROUNDS: usize = 12;

/// Of the snapshots that may go, this part goes in a round, at least one.
const PART: usize = 4;

/// Looking through all snapshots takes a while: at most so often, unless the vault is too large.
const TIDY_EVERY: Duration = Duration::from_secs(24 * 60 * 60);

/// The part of its limit by which the vault must grow before pruning is tried again, where all that is left is in
/// use.
const PART_GROWN: u64 = 8;

/// The result of pruning a vault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VaultPruneReport {
    /// Snapshots that were forgotten.
    pub snapshots: usize,
    /// The result of collecting the objects.
    pub collected: CollectionReport,
}

/// A snapshot with the folder of its workspace.
type ForgettableSnapshot = (SnapshotId, PathBuf);

impl Vault {
    /// Deletes snapshots until they are within `limits`, oldest first. Those of workspaces in use, the newest of
    /// each other one and those in `pinned` always stay. Setting `cancel` stops it.
    ///
    /// # Errors
    ///
    /// As [`collect_garbage`](Self::collect_garbage). What was deleted before stays deleted.
    pub fn prune(
        &self,
        limits: &Limits,
        pinned: &HashSet<SnapshotId>,
        cancel: &AtomicBool,
    ) -> Result<VaultPruneReport, Error> {
        VaultPruner { vault: self, own: None, limits, pinned, cancel }.run()
    }

    /// Reports whether it is time to tidy up, or the vault too large.
    pub(super) fn is_due(&self) -> bool {
        let last = self.0.objects.places.last_prune_path().symlink_metadata();
        let age = last
            .and_then(|about| about.modified())
            .ok()
            .and_then(|last| SystemTime::now().duration_since(last).ok());
        age.is_none_or(|age| age >= TIDY_EVERY) || self.is_too_large()
    }

    fn is_too_large(&self) -> bool {
        let mut known = self.0.size.lock();
        if known.bytes.is_none() {
            known.bytes = objects_size(&self.0.objects.places).ok();
        }
        let most_bytes = self.0.options.limits.store_bytes.max(known.bearable_bytes);
        known.bytes.is_some_and(|bytes| bytes > most_bytes)
    }

    /// Remembers that this is what pruning could do.
    fn raise_prune_threshold(&self) {
        let mut known = self.0.size.lock();
        let room_bytes = self.0.options.limits.store_bytes / PART_GROWN;
        known.bearable_bytes = known.bytes.unwrap_or(0).saturating_add(room_bytes);
    }
}

impl Workspace {
    /// Forgets snapshots until the vault's limits hold, this workspace's too unless another process
    /// keeps it.
    pub(super) fn prune_to_limits(
        &self,
        pinned: &HashSet<SnapshotId>,
        cancel: &AtomicBool,
    ) -> Result<VaultPruneReport, Error> {
        let (vault, limits) = (&self.vault, &self.vault.0.options.limits);
        let pruned = VaultPruner { vault, own: Some(self), limits, pinned, cancel }.run()?;
        vault.raise_prune_threshold();
        let places = &vault.0.objects.places;
        replace_file(places, &places.last_prune_path(), b"", false)?;
        Ok(pruned)
    }

    /// Prunes other workspaces where the vault has become too large.
    pub(super) fn make_room(&self, cancel: &AtomicBool) {
        if self.vault.is_too_large() {
            // A failure comes again when it is tried again; files are kept all the same.
            drop(self.vault.prune(&self.vault.0.options.limits, &HashSet::new(), cancel));
            self.vault.raise_prune_threshold();
        }
    }
}

/// One pruning: what is forgotten, and the workspace that may forget it.
struct VaultPruner<'a> {
    vault: &'a Vault,
    /// The workspace that this process keeps, where its snapshots may go as well.
    own: Option<&'a Workspace>,
    limits: &'a Limits,
    pinned: &'a HashSet<SnapshotId>,
    cancel: &'a AtomicBool,
}

impl VaultPruner<'_> {
    fn run(&self) -> Result<VaultPruneReport, Error> {
        let (mut snapshots, loose) = self.forget_old()?;
        let mut collected = self.vault.collect_with_cancel(self.cancel)?;
        let mut oldest = loose.into_iter();
        for _ in 0..MAX_ROUNDS {
            // What is too young to be deleted goes by itself; forgetting more would not help.
            let wanted_bytes = collected.kept_bytes.saturating_sub(collected.young_bytes);
            if wanted_bytes <= self.limits.store_bytes || oldest.len() == 0 {
                break;
            }
            let part = oldest.len().div_ceil(PART);
            snapshots +=
                oldest.by_ref().take(part).map(|found| self.forget_snapshot(&found)).sum::<usize>();
            let round = self.vault.collect_with_cancel(self.cancel)?;
            let freed_bytes = collected.freed_bytes + round.freed_bytes;
            collected = CollectionReport { freed_bytes, ..round };
        }
        Ok(VaultPruneReport { snapshots, collected })
    }

    /// Forgets what is too old or too much; gives how many that were, and what may go besides, oldest
    /// first.
    fn forget_old(&self) -> Result<(usize, Vec<ForgettableSnapshot>), Error> {
        let (mut forgotten, mut loose) = (0, Vec::new());
        for folder in self.vault.workspace_folders()? {
            let records = folder.join(SNAPSHOTS);
            if !records.exists() || self.while_unused(&folder, || ()).is_none() {
                continue;
            }
            let mut ids = record::list_ids(&records)?;
            ids.pop();
            ids.retain(|id| !self.pinned.contains(id));
            let old = past_limits(&ids, self.limits, SystemTime::now());
            for id in ids.drain(..old) {
                forgotten += self.forget_snapshot(&(id, folder.clone()));
            }
            loose.extend(ids.into_iter().map(|id| (id, folder.clone())));
        }
        gnoma_core::sort::sort_items(&mut loose);
        Ok((forgotten, loose))
    }

    fn forget_snapshot(&self, (id, folder): &ForgettableSnapshot) -> usize {
        let record = folder.join(SNAPSHOTS).join(id.as_str());
        let forgotten = self.while_unused(folder, || std::fs::remove_file(record).is_ok());
        usize::from(forgotten == Some(true))
    }

    /// Does something while nobody keeps the workspace of a folder; `None` where somebody does, or
    /// where nobody can tell.
    fn while_unused<T>(&self, folder: &Path, act: impl FnOnce() -> T) -> Option<T> {
        let own = self.own.filter(|own| own.folder == folder);
        match own.map(|own| own.seat.lock()).as_deref() {
            Some(Some(seat)) => seat.while_alone(act),
            Some(None) | None => {
                let alone = lock::try_alone(&in_use_path(folder)).ok().filter(|held| held.is_real);
                alone.map(|_held| act())
            }
        }
    }
}

/// Returns how many of the ids, oldest first, are too many or too old.
fn past_limits(ids: &[SnapshotId], limits: &Limits, now: SystemTime) -> usize {
    let too_many = (ids.len() + 1).saturating_sub(limits.snapshots.max(1));
    let age = |id: &SnapshotId| now.duration_since(id.taken_at()).unwrap_or(Duration::ZERO);
    let too_old = ids.iter().take_while(|id| age(id) > limits.age).count();
    too_many.max(too_old).min(ids.len())
}
