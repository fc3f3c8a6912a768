//! How much commands may write that nobody is asked about: temporary files of the session, and layers of trials. They
//! end with the session, but until then they take the room of others.

use std::{
    collections::VecDeque,
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rustix::fs::statvfs;
use tokio::{task::spawn_blocking, time::sleep};

/// Bytes that temporary files of a session and its layers may take together on a small disk.
const MIN_OWN_BYTES: u64 = 4 << 30;
/// On a larger one they may take this part of what was free when the session's first command began.
const OWN_SHARE: u64 = 4;
/// Bytes that a command must leave free on their disk.
const MIN_LEFT_BYTES: u64 = 256 << 20;
/// The time between two checks of the room that is left.
const INTERVAL: Duration = Duration::from_millis(100);
/// After so many bytes fewer are free, the files are counted.
const STEP_BYTES: u64 = 128 << 20;
/// A loss of free bytes that other programs have all the time.
const NOISE_BYTES: u64 = 4 << 20;
/// Most entries that are counted.
const MAX_ENTRIES: usize = 500_000;
/// Bytes of a block in which file systems tell what a file takes.
const BLOCK_BYTES: u64 = 512;

/// The reason why a command was stopped for lack of room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoRoom {
    /// The session's own files take more than these bytes.
    Own(u64),
    /// The disk is nearly full.
    Disk,
}

impl NoRoom {
    /// Describes the reason to a person and the model.
    pub(super) fn describe(self) -> String {
        match self {
            Self::Own(most) => format!(
                "Stopped: the files that this session keeps in /tmp, and what trial runs changed, have reached \
                 {} GB, the most that they may take. Delete what is not needed in /tmp, write to a folder of the \
                 workspace, or start a new session.",
                most >> 30
            ),
            Self::Disk => {
                "Stopped: it filled the disk with temporary files. Delete some in /tmp.".to_owned()
            }
        }
    }
}

/// The limits of a session.
#[derive(Clone, Copy, Debug)]
struct RoomLimits {
    /// Bytes that its own files may take in any case.
    own: u64,
    /// They may take one part of so many of what was free at first.
    share: u64,
    /// Bytes that stay free.
    left: u64,
    step: u64,
}

impl Default for RoomLimits {
    fn default() -> Self {
        Self { own: MIN_OWN_BYTES, share: OWN_SHARE, left: MIN_LEFT_BYTES, step: STEP_BYTES }
    }
}

/// The knowledge that all commands of a session share about the room that their files take.
#[derive(Debug, Default)]
pub(super) struct RoomWatch {
    limits: RoomLimits,
    seen: Mutex<FreeRoom>,
}

/// Free bytes, as they were seen.
#[derive(Clone, Copy, Debug, Default)]
struct FreeRoom {
    /// The free bytes when the first command began.
    first: Option<u64>,
    /// The free bytes when the files were last counted, or more if more was free since.
    counted: Option<u64>,
}

impl FreeRoom {
    /// Reports whether so many fewer bytes are free that the files have to be counted again.
    fn is_count_due(&mut self, now: u64, step: u64) -> bool {
        self.first.get_or_insert(now);
        let then = self.counted.map_or(now, |then| then.max(now));
        let is_due = now.saturating_add(step) <= then && then > 0;
        self.counted = Some(if is_due { now } else { then });
        is_due
    }
}

/// The folders in which one command may write as much as there is room for.
#[derive(Clone, Debug)]
pub(super) struct Room {
    watch: Arc<RoomWatch>,
    folders: Vec<PathBuf>,
}

impl Room {
    pub(super) fn new(watch: Arc<RoomWatch>, folders: Vec<PathBuf>) -> Self {
        Self { watch, folders }
    }

    /// The same, with the folders of its layers.
    #[cfg(target_os = "linux")]
    pub(super) fn with_layers(mut self, layers: impl Iterator<Item = PathBuf>) -> Self {
        self.folders.extend(layers);
        self
    }

    /// Ends when a command has filled these folders, or their disk.
    pub(super) async fn wait_until_full(self) -> NoRoom {
        let Self { watch, folders } = self;
        let free = || folders.iter().filter_map(|it| free_bytes(it)).min();
        let at_start = free();
        // What was too much before may be there, so that it can be deleted.
        let (mut was_full, mut allowed) = (watch.is_full(), 0);
        loop {
            let Some((at_start, now)) = at_start.zip(free()) else {
                sleep(INTERVAL).await;
                continue;
            };
            if now < watch.limits.left && now + NOISE_BYTES < at_start {
                return NoRoom::Disk;
            }
            if let Some(most) = watch.due_limit(now) {
                let counted = folders.clone();
                let size = spawn_blocking(move || size_of(&counted)).await;
                let size = size.unwrap_or_default();
                if size > most {
                    watch.count_again();
                    if std::mem::take(&mut was_full) {
                        allowed = size;
                    } else if size > allowed {
                        return NoRoom::Own(most);
                    }
                }
            }
            sleep(INTERVAL).await;
        }
    }
}

impl RoomWatch {
    /// The most that the files may take, if they have to be counted now.
    fn due_limit(&self, now: u64) -> Option<u64> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = seen.is_count_due(now, self.limits.step);
        let share = seen.first.unwrap_or_default() / self.limits.share;
        is_due.then(|| self.limits.own.max(share))
    }

    /// Reports whether the last count found too much.
    fn is_full(&self) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.counted == Some(u64::MAX)
    }

    /// Has the next command count at once: too much is there until somebody deletes it.
    fn count_again(&self) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.counted = Some(u64::MAX);
    }
}

fn free_bytes(folder: &Path) -> Option<u64> {
    let facts = statvfs(folder).ok()?;
    facts.f_bavail.checked_mul(facts.f_frsize)
}

/// Returns the bytes that all files below these folders take. Links are not followed.
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
    async fn disk_limit_for_temporary_files_also_stops_the_next_command() {
        let folder = tempfile::tempdir().unwrap();
        let limits = RoomLimits { own: 1 << 20, share: u64::MAX, left: 0, step: 0 };
        let watch = Arc::new(RoomWatch { limits, seen: Mutex::default() });
        let room = Room::new(watch, vec![folder.path().to_owned()]);
        let mut commands = tokio::task::JoinSet::new();
        commands.spawn(room.clone().wait_until_full());
        fs::create_dir(folder.path().join("below")).unwrap();
        fs::write(folder.path().join("below/file"), vec![1; 3 << 20]).unwrap();
        assert_eq!(commands.join_next().await.unwrap().unwrap(), NoRoom::Own(1 << 20));
        // The next may look and delete, and not add to it.
        commands.spawn(room.wait_until_full());
        tokio::time::timeout(3 * INTERVAL, commands.join_next()).await.unwrap_err();
        fs::write(folder.path().join("below/more"), vec![1; 3 << 20]).unwrap();
        assert_eq!(commands.join_next().await.unwrap().unwrap(), NoRoom::Own(1 << 20));
    }

    #[test]
    fn disk_usage_is_recounted_after_many_small_writes() {
        let mut seen = FreeRoom::default();
        let due: Vec<_> = [100, 97, 94, 95, 91, 90, 89, 200, 195, 190]
            .map(|now| seen.is_count_due(now, 10))
            .into();
        let expected =
            [false, false, false, false, false, true, false, false, false, true].to_vec();
        assert_eq!(due, expected);
    }

    #[test]
    fn disk_usage_counts_files_and_does_not_follow_symlinks() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(elsewhere.path().join("large"), vec![1; 1 << 20]).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), folder.path().join("link")).unwrap();
        let folders = [folder.path().to_owned()];
        assert!(size_of(&folders) < 1 << 20);
        fs::write(folder.path().join("large"), vec![1; 1 << 20]).unwrap();
        assert!(size_of(&folders) >= 1 << 20);
    }
}
