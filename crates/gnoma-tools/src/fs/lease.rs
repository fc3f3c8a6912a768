//! Leases: which of a session and its elfs may change a file, so that two of them do not work on the same file at
//! once.
//!
//! A writer holds a file for a while, or until the writer ends. Another one waits briefly and then learns who holds
//! it. An elf may take the files of those above it, because it works for them. Whether a file is still as it was
//! read is checked all the same.

use std::{
    collections::HashMap,
    fmt,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;

use super::Refusal;

/// The time for which a file stays with its writer after it was written.
const HELD: Duration = Duration::from_secs(60);
/// The time that another writer waits for a file.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time between two checks of whether the call was stopped.
const LOOK: Duration = Duration::from_millis(100);
/// Files that are held at once; if there are more, the oldest are let go.
const MAX_HELD: usize = 1_000;

/// The files that a session and its elfs are changing.
#[derive(Default)]
struct LeaseTable {
    held: Mutex<HashMap<PathBuf, Lease>>,
    /// The signal that a file was released.
    freed: Condvar,
    last: AtomicU64,
}

struct Lease {
    by: u64,
    shown: String,
    /// `None`: it is being written.
    since: Option<Instant>,
}

impl LeaseTable {
    fn lock_leases(&self) -> MutexGuard<'_, HashMap<PathBuf, Lease>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of a session and its elfs, as a holder of files.
#[derive(Clone)]
pub struct FileHolder {
    table: Arc<LeaseTable>,
    own: u64,
    above: Vec<u64>,
    shown: String,
    patience: Duration,
}

impl fmt::Debug for FileHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileHolder").field("own", &self.own).finish_non_exhaustive()
    }
}

impl Default for FileHolder {
    /// A session that nobody has started.
    fn default() -> Self {
        let shown = "the agent that started the elfs".to_owned();
        Self { table: Arc::default(), own: 0, above: Vec::new(), shown, patience: PATIENCE }
    }
}

impl FileHolder {
    /// An elf of this one.
    #[must_use]
    pub fn for_elf(&self, name: &str) -> Self {
        let own = self.table.last.fetch_add(1, Ordering::Relaxed) + 1;
        let above = self.above.iter().copied().chain([self.own]).collect();
        let (table, shown) = (Arc::clone(&self.table), format!("elf `{name}`"));
        Self { table, own, above, shown, patience: self.patience }
    }

    /// Takes a file to write it, as soon as nobody else has it. Blocks.
    pub(super) fn acquire_lease(
        &self,
        path: &Path,
        name: &str,
        stop: &CancellationToken,
    ) -> Result<WriteLease<'_>, Refusal> {
        let until = Instant::now() + self.patience;
        let mut held = self.table.lock_leases();
        while let Some(holder) = held.get(path).and_then(|lease| self.blocking_holder(lease)) {
            if stop.is_cancelled() {
                return Err(Refusal::Stopped("nothing was written".to_owned()));
            }
            if Instant::now() >= until {
                return Err(Refusal::Failed(format!(
                    "{holder} is changing `{name}` right now; nothing was written. Do something \
                     else first and read the file again before you change it, or leave it to the \
                     other one"
                )));
            }
            let freed = self.table.freed.wait_timeout(held, LOOK.min(self.patience));
            held = freed.unwrap_or_else(PoisonError::into_inner).0;
        }
        if held.len() >= MAX_HELD {
            held.retain(|_, lease| lease.since.is_none_or(|since| since.elapsed() < HELD));
        }
        if held.len() < MAX_HELD || held.contains_key(path) {
            let lease = Lease { by: self.own, shown: self.shown.clone(), since: None };
            held.insert(path.to_owned(), lease);
        }
        Ok(WriteLease { holder: self, path: path.to_owned() })
    }

    /// Returns the holder that keeps this one from writing, if there is one.
    fn blocking_holder(&self, lease: &Lease) -> Option<String> {
        let is_over = lease.since.is_some_and(|since| since.elapsed() >= HELD);
        let is_above = lease.since.is_some() && self.above.contains(&lease.by);
        (lease.by != self.own && !is_over && !is_above).then(|| lease.shown.clone())
    }

    /// Releases all files of this holder.
    pub(super) fn release_leases(&self) {
        self.table.lock_leases().retain(|_, lease| lease.by != self.own);
        self.table.freed.notify_all();
    }
}

/// A file that is being written.
pub(super) struct WriteLease<'a> {
    holder: &'a FileHolder,
    path: PathBuf,
}

impl Drop for WriteLease<'_> {
    fn drop(&mut self) {
        let mut held = self.holder.table.lock_leases();
        let own = held.get_mut(&self.path).filter(|lease| lease.by == self.holder.own);
        if let Some(lease) = own {
            lease.since = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn family() -> (FileHolder, FileHolder, FileHolder) {
        let parent = FileHolder { patience: Duration::from_millis(300), ..FileHolder::default() };
        let (one, two) = (parent.for_elf("one"), parent.for_elf("two"));
        (parent, one, two)
    }

    fn try_take(holder: &FileHolder) -> Result<(), Refusal> {
        holder.acquire_lease(Path::new("/w/a"), "a", &CancellationToken::new()).map(drop)
    }

    #[test]
    fn write_lease_conflict_names_the_elf_that_holds_the_file() {
        let (parent, one, two) = family();
        try_take(&one).unwrap();
        try_take(&one).unwrap();
        for other in [&two, &parent] {
            let Err(Refusal::Failed(why)) = try_take(other) else { panic!() };
            assert!(why.starts_with("elf `one` is changing `a` right now"), "{why}");
        }
        one.release_leases();
        try_take(&two).unwrap();
    }

    #[test]
    fn write_lease_waits_for_a_short_conflict() {
        let (_, one, two) = family();
        try_take(&one).unwrap();
        let waiting = thread::spawn(move || try_take(&two));
        thread::sleep(Duration::from_millis(50));
        one.release_leases();
        waiting.join().unwrap().unwrap();
    }

    #[test]
    fn elf_takes_over_a_write_lease_of_its_parent_unless_the_parent_is_writing() {
        let (parent, one, _) = family();
        let stop = CancellationToken::new();
        let writing = parent.acquire_lease(Path::new("/w/a"), "a", &stop).unwrap();
        assert!(try_take(&one).is_err());
        drop(writing);
        try_take(&one.for_elf("below")).unwrap();
        stop.cancel();
        let stopped = one.acquire_lease(Path::new("/w/a"), "a", &stop).map(drop);
        assert_eq!(stopped, Err(Refusal::Stopped("nothing was written".to_owned())));
    }
}
