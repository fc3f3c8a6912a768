//! Forgetting the oldest snapshots, so that a vault stays within its limits.

use std::{
    collections::HashSet,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use super::{
    collect::Collected,
    error::Error,
    record::{self, SnapshotId},
    vault::{Limits, SNAPSHOTS, Vault},
};

/// How often snapshots go before their objects are counted again.
const MAX_ROUNDS: usize = 12;

/// Of the snapshots that may go, this part goes in a round, at least one.
const PART: usize = 4;

/// What pruning did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Snapshots that were forgotten.
    pub snapshots: usize,
    /// What became of the objects.
    pub collected: Collected,
}

/// A snapshot with the folder of its record.
type Found = (SnapshotId, PathBuf);

impl Vault {
    /// Forgets snapshots until `limits` hold, oldest first. The newest of each workspace and those
    /// in `pinned` (of sessions in use) always stay.
    ///
    /// # Errors
    ///
    /// As [`collect_garbage`](Self::collect_garbage). What was forgotten before stays forgotten.
    pub fn prune(&self, limits: &Limits, pinned: &HashSet<SnapshotId>) -> Result<Pruned, Error> {
        let mut loose = Vec::new();
        let mut forgotten = 0;
        for folder in self.workspace_folders()? {
            let records = folder.join(SNAPSHOTS);
            if !records.exists() {
                continue;
            }
            let mut ids = record::list(&records)?;
            ids.pop();
            ids.retain(|id| !pinned.contains(id));
            let old = past_limits(&ids, limits, SystemTime::now());
            for id in ids.drain(..old) {
                forgotten += forget(&(id, records.clone()));
            }
            loose.extend(ids.into_iter().map(|id| (id, records.clone())));
        }
        loose.sort_unstable();
        let mut collected = self.collect_garbage()?;
        let mut oldest = loose.into_iter();
        for _ in 0..MAX_ROUNDS {
            // What is too young to be deleted goes by itself; forgetting more would not help.
            let wanted_bytes = collected.kept_bytes.saturating_sub(collected.young_bytes);
            if wanted_bytes <= limits.store_bytes || oldest.len() == 0 {
                break;
            }
            let part = oldest.len().div_ceil(PART);
            forgotten += oldest.by_ref().take(part).map(|found| forget(&found)).sum::<usize>();
            let round = self.collect_garbage()?;
            let freed_bytes = collected.freed_bytes + round.freed_bytes;
            collected = Collected { freed_bytes, ..round };
        }
        Ok(Pruned { snapshots: forgotten, collected })
    }
}

/// How many of the ids, oldest first, are too many or too old.
fn past_limits(ids: &[SnapshotId], limits: &Limits, now: SystemTime) -> usize {
    let too_many = (ids.len() + 1).saturating_sub(limits.snapshots.max(1));
    let age = |id: &SnapshotId| now.duration_since(id.taken()).unwrap_or(Duration::ZERO);
    let too_old = ids.iter().take_while(|id| age(id) > limits.age).count();
    too_many.max(too_old).min(ids.len())
}

fn forget((id, records): &Found) -> usize {
    usize::from(std::fs::remove_file(records.join(id.as_str())).is_ok())
}
