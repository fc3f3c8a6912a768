//! The folder for what one session hands to its hooks: their facts while they run, and the transcript.
//!
//! It goes with the session. What a session that was killed has left is removed at the next start.

use std::{
    fs::{self, File},
    io,
    path::Path,
    time::{Duration, SystemTime},
};

use gnoma_core::private_file;

/// Held while the session lives.
const LOCK: &str = "lock";
const PREFIX: &str = "session-";
/// Most entries that are looked at for what killed sessions have left.
const MAX_LEFT: usize = 1_000;
/// The age from which an entry without a lock is removed: versions before this one made some.
const OLD: Duration = Duration::from_secs(24 * 60 * 60);
/// The number of attempts at making a folder, because another process may take it for one left behind and remove
/// it.
const MAX_TRIES: usize = 8;

/// The folder of one session's hooks, removed when dropped.
#[derive(Debug)]
pub(super) struct HookFolder {
    folder: tempfile::TempDir,
    _lock: File,
}

impl HookFolder {
    /// Makes one in `base`.
    pub(super) fn create_in(base: &Path) -> io::Result<Self> {
        private_file::create_folder(base)?;
        for _ in 0..MAX_TRIES {
            let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(base)?;
            let lock = File::create(folder.path().join(LOCK));
            if let Ok(lock) = lock
                && lock.try_lock().is_ok()
            {
                return Ok(Self { folder, _lock: lock });
            }
        }
        Err(io::Error::other("its folder is removed again and again"))
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes from `base` what sessions that were killed have left there.
pub fn remove_left_files(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten().take(MAX_LEFT) {
        let path = entry.path();
        let is_left = match File::open(path.join(LOCK)) {
            Ok(lock) => lock.try_lock().is_ok(),
            Err(_) => entry.metadata().and_then(|facts| facts.modified()).is_ok_and(is_old),
        };
        if is_left && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            fs::remove_dir_all(&path).ok();
        } else if is_left {
            fs::remove_file(&path).ok();
        }
    }
}

fn is_old(modified: SystemTime) -> bool {
    modified.elapsed().is_ok_and(|age| age > OLD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hook_files_of_killed_sessions_are_removed_and_those_of_living_ones_stay() {
        let base = tempfile::tempdir().unwrap();
        let living = HookFolder::create_in(base.path()).unwrap();
        let at = |name: &str| base.path().join(name);
        fs::create_dir(at("session-killed")).unwrap();
        fs::write(at("session-killed/lock"), "").unwrap();
        fs::write(at("session-killed/transcript.jsonl"), "words").unwrap();
        fs::write(at("transcript-old.jsonl"), "words").unwrap();
        fs::write(at("transcript-new.jsonl"), "words").unwrap();
        let old = SystemTime::now() - 2 * OLD;
        File::options()
            .write(true)
            .open(at("transcript-old.jsonl"))
            .unwrap()
            .set_modified(old)
            .unwrap();
        remove_left_files(base.path());
        assert!(living.path().join(LOCK).is_file());
        let left = ["session-killed", "transcript-old.jsonl", "transcript-new.jsonl"];
        assert_eq!(left.map(|name| at(name).exists()), [false, false, true]);
        drop(living);
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 1);
    }
}
