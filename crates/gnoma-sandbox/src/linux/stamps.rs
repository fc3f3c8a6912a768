//! Whether folders have changed since they were looked at, told by one look at each instead of a look
//! at everything in them.
//!
//! A name that appears, vanishes or comes to mean something else changes the time of its folder. File
//! systems tell times in steps: a change in the same step as the look could not be seen, so a folder
//! that had just changed when it was looked at counts as changed. Mounts change no folder; whoever
//! relies on stamps watches the table of mounts as well.

use std::{
    collections::HashMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// Longest step of a file system that tells parts of a second.
const FINE_STEP: Duration = Duration::from_millis(20);
/// Longest step of one that tells seconds.
const COARSE_STEP: Duration = Duration::from_secs(3);

/// Folders as they were when they were first noted.
#[derive(Debug, Default)]
pub(super) struct Stamps(HashMap<PathBuf, Option<Stamp>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    place: (u64, u64),
    changed: (i64, i64),
    written: (i64, i64),
}

impl Stamps {
    /// Notes a folder that is about to be looked at.
    pub(super) fn record_folder(&mut self, folder: &Path) {
        if !self.0.contains_key(folder) {
            let now = SystemTime::now();
            let stamp = Stamp::read_folder(folder).filter(|stamp| stamp.is_settled(now));
            self.0.insert(folder.to_owned(), stamp);
        }
    }

    /// True if later changes of the folders can be detected at all; this is not so for a folder that has just
    /// changed.
    pub(super) fn are_settled(&self) -> bool {
        self.0.values().all(Option::is_some)
    }

    /// True if every folder is certainly unchanged.
    pub(super) fn are_unchanged(&self) -> bool {
        self.0.iter().all(|(folder, stamp)| stamp.is_some() && Stamp::read_folder(folder) == *stamp)
    }
}

impl Stamp {
    fn read_folder(folder: &Path) -> Option<Self> {
        let facts = fs::symlink_metadata(folder).ok()?;
        Some(Self {
            place: (facts.dev(), facts.ino()),
            changed: (facts.ctime(), facts.ctime_nsec()),
            written: (facts.mtime(), facts.mtime_nsec()),
        })
    }

    /// True if a change from now on gives another stamp.
    fn is_settled(&self, now: SystemTime) -> bool {
        let (seconds, nanoseconds) = self.changed;
        let step = if nanoseconds == 0 { COARSE_STEP } else { FINE_STEP };
        let (Ok(seconds), Ok(nanoseconds)) = (u64::try_from(seconds), u32::try_from(nanoseconds))
        else {
            return false;
        };
        let changed = SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds);
        now.duration_since(changed).is_ok_and(|age| age > step)
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::symlink, thread::sleep};

    use super::*;

    type Change<'a> = dyn Fn(&Path) -> std::io::Result<()> + 'a;

    fn settled_folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("below")).unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        sleep(FINE_STEP * 2);
        folder
    }

    #[test]
    fn folder_stamps_detect_every_change_of_names() {
        let changes: [&Change<'_>; 6] = [
            &|root| fs::write(root.join("new"), ""),
            &|root| fs::remove_file(root.join("file")),
            &|root| fs::remove_dir(root.join("below")),
            &|root| symlink("below", root.join("link")),
            &|root| fs::rename(root.join("file"), root.join("other")),
            &|root| {
                fs::rename(root, root.with_extension("away"))?;
                fs::create_dir(root)
            },
        ];
        for (number, change) in changes.iter().enumerate() {
            let folder = settled_folder();
            let mut stamps = Stamps::default();
            stamps.record_folder(folder.path());
            assert!(stamps.are_unchanged(), "{number}");
            change(folder.path()).unwrap();
            assert!(!stamps.are_unchanged(), "{number}");
            fs::remove_dir_all(folder.path().with_extension("away")).ok();
        }
    }

    #[test]
    fn folder_stamps_of_recently_changed_or_missing_folders_are_not_trusted() {
        let folder = settled_folder();
        fs::write(folder.path().join("new"), "").unwrap();
        let mut stamps = Stamps::default();
        stamps.record_folder(folder.path());
        assert!(!stamps.are_unchanged());
        let mut stamps = Stamps::default();
        stamps.record_folder(&folder.path().join("none"));
        assert!(!stamps.are_unchanged());
    }
}
