//! Records the content of each file when the model last read or wrote it, to detect stale edits.
//!
//! Content is remembered as a hash, not as a time: a time stamp changes without the content (a
//! checkout, a formatter with nothing to do) and, within one clock tick, the content without the stamp.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Files remembered; the longest unseen is forgotten first and then counts as never read.
const MAX_FILES: usize = 4096;

/// The relation between the model's idea of a file and the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Familiarity {
    /// Never read or written through the tools.
    Unseen,
    /// As it was last read or written.
    Current,
    /// Changed by somebody else since.
    Changed,
}

/// The content hash of each file the model has seen.
#[derive(Default)]
pub(super) struct Ledger {
    hasher: RandomState,
    seen: Mutex<SeenFiles>,
}

#[derive(Default)]
struct SeenFiles {
    files: HashMap<PathBuf, SeenVersion>,
    count: u64,
}

struct SeenVersion {
    hash: u64,
    order: u64,
}

impl Ledger {
    /// The model has been shown `content`, or wrote it.
    pub(super) fn record_seen(&self, path: &Path, content: &[u8]) {
        let hash = self.hasher.hash_one(content);
        let mut seen = self.lock_seen();
        seen.count += 1;
        let order = seen.count;
        seen.files.insert(path.to_owned(), SeenVersion { hash, order });
        if seen.files.len() > MAX_FILES {
            seen.forget_oldest();
        }
    }

    /// Reports whether the model knows that the file at `path` holds `content`.
    pub(super) fn familiarity_of(&self, path: &Path, content: &[u8]) -> Familiarity {
        match self.lock_seen().files.get(path) {
            None => Familiarity::Unseen,
            Some(sight) if sight.hash == self.hasher.hash_one(content) => Familiarity::Current,
            Some(_) => Familiarity::Changed,
        }
    }

    fn lock_seen(&self) -> MutexGuard<'_, SeenFiles> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SeenFiles {
    fn forget_oldest(&mut self) {
        if let Some(oldest) = self.files.values().map(|sight| sight.order).min() {
            self.files.retain(|_, sight| sight.order != oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_files_are_compared_by_content_not_by_modification_time() {
        let path = Path::new("/folder/a");
        let ledger = Ledger::default();
        assert_eq!(ledger.familiarity_of(path, b"one"), Familiarity::Unseen);
        ledger.record_seen(path, b"one");
        assert_eq!(ledger.familiarity_of(path, b"one"), Familiarity::Current);
        assert_eq!(ledger.familiarity_of(path, b"two"), Familiarity::Changed);
    }

    #[test]
    fn oldest_read_file_record_is_evicted_first() {
        let ledger = Ledger::default();
        for n in 0..=MAX_FILES {
            ledger.record_seen(Path::new(&format!("/nowhere/{n}")), b"x");
        }
        let knows = |n: usize| ledger.familiarity_of(Path::new(&format!("/nowhere/{n}")), b"x");
        assert_eq!(knows(0), Familiarity::Unseen);
        assert_eq!(knows(1), Familiarity::Current);
        assert_eq!(knows(MAX_FILES), Familiarity::Current);
    }
}
