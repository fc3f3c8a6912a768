//! How much commands may write that nobody is asked about: temporary files of the session, and layers of trials. They
//! end with the session, but until then they take the room of others.

use std::{
    collections::VecDeque,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::statvfs;
use tokio::{task::spawn_blocking, time::sleep};

/// Bytes that temporary files of a session and its layers may take together.
const MAX_OWN_BYTES: u64 = 4 << 30;
/// Bytes that a command must leave free on their disk.
const MIN_LEFT_BYTES: u64 = 256 << 20;
/// How often it is looked whether there is still room.
const INTERVAL: Duration = Duration::from_millis(100);
/// After so many bytes fewer are free, the files are counted.
const STEP_BYTES: u64 = 128 << 20;
/// A loss of free bytes that other programs have all the time.
const NOISE_BYTES: u64 = 4 << 20;
/// Most entries that are counted.
const MAX_ENTRIES: usize = 500_000;
/// Bytes of a block in which file systems tell what a file takes.
const BLOCK_BYTES: u64 = 512;

/// Why a command was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoRoom {
    /// The session's own files are too large.
    Own,
    /// The disk is nearly full.
    Disk,
}

impl NoRoom {
    /// What a person and the model are told.
    pub(super) fn describe(self) -> String {
        let gigabytes = MAX_OWN_BYTES >> 30;
        match self {
            Self::Own => format!(
                "Stopped: the files that this session keeps in /tmp, and what trial runs changed, have reached \
                 {gigabytes} GB, the most that they may take. Delete some in /tmp."
            ),
            Self::Disk => {
                "Stopped: it filled the disk with temporary files. Delete some in /tmp.".to_owned()
            }
        }
    }
}

/// The limits of a session.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoomLimits {
    /// Bytes that its own files may take.
    pub(super) own: u64,
    /// Bytes that stay free.
    pub(super) left: u64,
    step: u64,
}

impl Default for RoomLimits {
    fn default() -> Self {
        Self { own: MAX_OWN_BYTES, left: MIN_LEFT_BYTES, step: STEP_BYTES }
    }
}

impl RoomLimits {
    /// Ends when a command has filled these folders, or their disk.
    pub(super) async fn exceeded(self, folders: Vec<PathBuf>) -> NoRoom {
        let free = |folders: &[PathBuf]| folders.iter().filter_map(|it| free_bytes(it)).min();
        let first = free(&folders);
        let mut counted_at = first;
        loop {
            sleep(INTERVAL).await;
            let (Some(first), Some(then), Some(now)) = (first, counted_at, free(&folders)) else {
                continue;
            };
            if now < self.left && now + NOISE_BYTES < first {
                return NoRoom::Disk;
            }
            if now + self.step > then {
                continue;
            }
            counted_at = Some(now);
            let counted = folders.clone();
            let size = spawn_blocking(move || size_of(&counted)).await;
            if size.is_ok_and(|size| size > self.own) {
                return NoRoom::Own;
            }
        }
    }
}

fn free_bytes(folder: &Path) -> Option<u64> {
    let facts = statvfs(folder).ok()?;
    facts.f_bavail.checked_mul(facts.f_frsize)
}

/// What all files below these folders take. Links are not followed.
fn size_of(folders: &[PathBuf]) -> u64 {
    let mut waiting: VecDeque<PathBuf> = folders.iter().cloned().collect();
    let (mut bytes, mut left) = (0_u64, MAX_ENTRIES);
    while let Some(folder) = waiting.pop_front() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Some(fewer) = left.checked_sub(1) else { return bytes };
            left = fewer;
            let Ok(facts) = entry.metadata() else { continue };
            bytes = bytes.saturating_add(facts.blocks().saturating_mul(BLOCK_BYTES));
            if facts.is_dir() {
                waiting.push_back(entry.path());
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn temporary_files_that_are_too_large_are_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let limits = RoomLimits { own: 1 << 20, left: 0, step: 0 };
        let mut watch = tokio::task::JoinSet::new();
        watch.spawn(limits.exceeded(vec![folder.path().to_owned()]));
        fs::create_dir(folder.path().join("below")).unwrap();
        fs::write(folder.path().join("below/file"), vec![1; 3 << 20]).unwrap();
        assert_eq!(watch.join_next().await.unwrap().unwrap(), NoRoom::Own);
    }

    #[test]
    fn what_files_take_is_counted_and_links_are_not_followed() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(elsewhere.path().join("large"), vec![1; 1 << 20]).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), folder.path().join("link")).unwrap();
        let folders = [folder.path().to_owned()];
        assert!(size_of(&folders) < 1 << 20);
        fs::write(folder.path().join("large"), vec![1; 1 << 20]).unwrap();
        assert!(size_of(&folders) >= 1 << 20);
    }
}
