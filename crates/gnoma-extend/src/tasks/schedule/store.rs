//! Schedules in files: one each, replaced as a whole. Locks hold between processes, and end with their process.

use std::{
    fmt,
    fs::{self, File},
    io,
    path::PathBuf,
};

use gnoma_core::{bounded_file, private_file};

use super::{due::NextRun, record::ScheduleRecord};
use crate::lock_file::{lock_file, try_lock_file};

/// Most schedules of a person.
const MAX_SCHEDULES: usize = 100;
/// Most files of the folder that are looked at.
const MAX_ENTRIES: usize = 1_000;
/// Most bytes of a schedule that are read.
const MAX_BYTES: u64 = 256 << 10;
/// The ending of a schedule's name.
const RECORD: &str = "json";
/// The ending of the name of the file that says who runs it.
const LEASE: &str = "lock";
/// The file that is locked while a schedule changes.
const EDIT: &str = "edit";
/// The file with the highest number that a schedule has had. A number is never used again, because a server may still run
/// the schedule that had it, and would leave out what is due of the new one.
const LAST_ID: &str = "last";
/// Most bytes of that file.
const MAX_ID_BYTES: u64 = 16;
/// The file with the schedule that was deleted last, if a run of it was due: one that is made again runs it.
const DELETED: &str = "deleted";
/// The time, in milliseconds, within which a schedule that is made again runs what was due when it was deleted.
const REMAKE_MS: i64 = 60 * 60 * 1_000;

/// The reason why a schedule cannot be read or changed.
#[derive(Debug)]
pub enum ScheduleStoreError {
    /// Reading or writing a file fails.
    Io(PathBuf, io::Error),
    /// There is no such schedule.
    Missing(u32),
    /// There are as many as there may be.
    Full,
}

impl fmt::Display for ScheduleStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => {
                write!(f, "cannot save schedules in {}: {error}", path.display())
            }
            Self::Missing(id) => write!(f, "there is no schedule {id}"),
            Self::Full => {
                write!(f, "there are {MAX_SCHEDULES} schedules already, the maximum")
            }
        }
    }
}

impl std::error::Error for ScheduleStoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(_, error) => Some(error),
            Self::Missing(_) | Self::Full => None,
        }
    }
}

/// The schedules of a person.
#[derive(Clone, Debug)]
pub struct ScheduleStore {
    folder: PathBuf,
}

/// The right to run a schedule. No other process has it until this is dropped.
#[derive(Debug)]
pub struct RunLease {
    _file: File,
}

impl ScheduleStore {
    /// The schedules in this folder, which need not exist.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Returns the schedules, the oldest first. Unreadable files are left out.
    #[must_use]
    pub fn list_schedules(&self) -> Vec<ScheduleRecord> {
        self.ids().into_iter().filter_map(|id| self.read(id)).collect()
    }

    /// Saves a new schedule under the next free number. `now_ms`: schedules that are over by then make room.
    ///
    /// # Errors
    /// There are too many, or the disk refuses.
    pub fn insert(
        &self,
        mut record: ScheduleRecord,
        now_ms: i64,
    ) -> Result<ScheduleRecord, ScheduleStoreError> {
        let _edit = self.edit_lock()?;
        let ids = self.ids();
        if ids.len() >= MAX_SCHEDULES {
            let over = self.list_schedules().into_iter().find(|record| record.is_over(now_ms));
            self.delete_files(over.ok_or(ScheduleStoreError::Full)?.id)?;
        }
        let last = self.last_id().max(ids.last().copied().unwrap_or(0));
        record.id = last.saturating_add(1);
        let path = self.folder.join(LAST_ID);
        private_file::replace(&path, record.id.to_string().as_bytes())
            .map_err(|error| ScheduleStoreError::Io(path, error))?;
        if let Some(deleted) = self.take_deleted(&record, now_ms)
            && matches!(deleted.peek_next_run(now_ms), Some(NextRun::Due { .. }))
        {
            (record.progress, record.made_ms) = (deleted.progress, deleted.made_ms);
        }
        self.write(&record)?;
        Ok(record)
    }

    /// Takes the schedule of the same order that was deleted last and whose run was due, unless that is long ago.
    fn take_deleted(&self, order: &ScheduleRecord, now_ms: i64) -> Option<ScheduleRecord> {
        let path = self.folder.join(DELETED);
        let text = bounded_file::read(&path, MAX_BYTES).ok()??;
        let (at_ms, record): (i64, ScheduleRecord) = gnoma_core::json::from_bytes(&text).ok()?;
        let is_recent = (0..REMAKE_MS).contains(&now_ms.saturating_sub(at_ms));
        if is_recent && !record.is_same_order(order) {
            return None;
        }
        fs::remove_file(path).ok()?;
        is_recent.then_some(record)
    }

    /// The highest number that a schedule has had, as far as it was noted.
    fn last_id(&self) -> u32 {
        let text = bounded_file::read(&self.folder.join(LAST_ID), MAX_ID_BYTES).ok().flatten();
        let text = text.and_then(|text| String::from_utf8(text).ok());
        text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }

    /// Changes a schedule and saves it, unless `change` gives `false`. No other process changes it meanwhile.
    ///
    /// # Errors
    /// There is none of that number, or the disk refuses.
    pub fn edit(
        &self,
        id: u32,
        change: impl FnOnce(&mut ScheduleRecord) -> bool,
    ) -> Result<ScheduleRecord, ScheduleStoreError> {
        let _edit = self.edit_lock()?;
        let mut record = self.read(id).ok_or(ScheduleStoreError::Missing(id))?;
        if change(&mut record) {
            self.write(&record)?;
        }
        Ok(record)
    }

    /// Deletes a schedule. A run that goes on continues.
    ///
    /// # Errors
    /// There is none of that number, or the disk refuses.
    pub fn delete(&self, id: u32, now_ms: i64) -> Result<(), ScheduleStoreError> {
        let _edit = self.edit_lock()?;
        if !self.ids().contains(&id) {
            return Err(ScheduleStoreError::Missing(id));
        }
        let is_due =
            |it: &ScheduleRecord| matches!(it.peek_next_run(now_ms), Some(NextRun::Due { .. }));
        if let Some(record) = self.read(id).filter(is_due)
            && let Ok(text) = serde_json::to_vec(&(now_ms, record))
        {
            let path = self.folder.join(DELETED);
            // Without the note, a schedule that is made again waits for its next time.
            let _unnoted = private_file::replace(&path, &text);
        }
        self.delete_files(id)
    }

    /// Takes the right to run a schedule; `None` if another process has it.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn lease_run(&self, id: u32) -> Result<Option<RunLease>, ScheduleStoreError> {
        let path = self.path(id, LEASE);
        private_file::create_folder(&self.folder).map_err(|error| self.to_store_error(error))?;
        let file = try_lock_file(&path).map_err(|error| ScheduleStoreError::Io(path, error))?;
        Ok(file.map(|file| RunLease { _file: file }))
    }

    fn edit_lock(&self) -> Result<File, ScheduleStoreError> {
        private_file::create_folder(&self.folder).map_err(|error| self.to_store_error(error))?;
        lock_file(&self.folder.join(EDIT)).map_err(|error| self.to_store_error(error))
    }

    fn to_store_error(&self, error: io::Error) -> ScheduleStoreError {
        ScheduleStoreError::Io(self.folder.clone(), error)
    }

    fn read(&self, id: u32) -> Option<ScheduleRecord> {
        let text = bounded_file::read(&self.path(id, RECORD), MAX_BYTES).ok()??;
        let record: ScheduleRecord = gnoma_core::json::from_bytes(&text).ok()?;
        Some(record).filter(|record| record.is_readable() && record.id == id)
    }

    fn write(&self, record: &ScheduleRecord) -> Result<(), ScheduleStoreError> {
        let path = self.path(record.id, RECORD);
        let text = serde_json::to_vec(record).map_err(io::Error::from);
        let written = text.and_then(|text| private_file::replace(&path, &text));
        written.map_err(|error| ScheduleStoreError::Io(path, error))
    }

    fn delete_files(&self, id: u32) -> Result<(), ScheduleStoreError> {
        let path = self.path(id, RECORD);
        fs::remove_file(&path).map_err(|error| ScheduleStoreError::Io(path, error))?;
        // A process that runs it has the file open.
        let _missing = fs::remove_file(self.path(id, LEASE));
        Ok(())
    }

    /// The numbers, the smallest first.
    fn ids(&self) -> Vec<u32> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let id = |path: PathBuf| {
            let is_record = path.extension().is_some_and(|extension| extension == RECORD);
            is_record.then(|| path.file_stem()?.to_str()?.parse().ok())?
        };
        let mut ids: Vec<u32> =
            entries.take(MAX_ENTRIES).filter_map(|entry| id(entry.path())).collect();
        gnoma_core::sort::sort_items(&mut ids);
        ids
    }

    fn path(&self, id: u32, ending: &str) -> PathBuf {
        self.folder.join(format!("{id}.{ending}"))
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::PermissionsExt as _, thread};

    use super::{super::laws::record, *};

    #[test]
    fn schedules_are_saved_changed_and_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let store = ScheduleStore::new(folder.path().join("schedules"));
        assert!(store.list_schedules().is_empty());
        let first = store.insert(record(1_000), 0).unwrap();
        let second = store.insert(record(2_000), 0).unwrap();
        assert_eq!((first.id, second.id), (1, 2));
        let file = folder.path().join("schedules/1.json");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let pause = |record: &mut ScheduleRecord| {
            record.is_paused = true;
            true
        };
        store.edit(1, pause).unwrap();
        assert!(store.list_schedules()[0].is_paused && !store.list_schedules()[1].is_paused);
        store.delete(1, 0).unwrap();
        assert_eq!(store.list_schedules(), [second]);
        assert_eq!(store.delete(1, 0).unwrap_err().to_string(), "there is no schedule 1");
        fs::write(file, "{").unwrap();
        assert_eq!(store.list_schedules().len(), 1);
    }

    #[test]
    fn recreated_schedule_runs_its_due_run_and_gets_a_new_id() {
        let folder = tempfile::tempdir().unwrap();
        let store = ScheduleStore::new(folder.path().to_owned());
        let due = |record: &ScheduleRecord, now_ms| {
            matches!(record.peek_next_run(now_ms), Some(NextRun::Due { .. }))
        };
        // As `create_schedule` makes it: what has passed is not due.
        let passed = |at_ms: i64| {
            let mut record = record(at_ms);
            record.advance_clock(at_ms);
            record
        };
        store.insert(record(1_000), 0).unwrap();
        store.delete(1, 2_000).unwrap();
        let again = store.insert(passed(1_000), 3_000).unwrap();
        assert!(again.id == 2 && due(&again, 3_000), "{again:?}");
        // Another one, and one long after, are new.
        store.delete(2, 3_000).unwrap();
        let other = ScheduleRecord { words: vec!["u".to_owned()], ..passed(1_000) };
        let other = store.insert(other, 4_000).unwrap();
        assert!(other.id == 3 && !due(&other, 4_000));
        store.insert(record(1_000), 0).unwrap();
        store.delete(4, 2_000).unwrap();
        let late = store.insert(passed(1_000), 2_000 + REMAKE_MS).unwrap();
        assert!(late.id == 5 && !due(&late, 2_000 + REMAKE_MS));
    }

    #[test]
    fn finished_schedules_are_removed_at_the_limit_and_others_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let store = ScheduleStore::new(folder.path().to_owned());
        for at in 0..MAX_SCHEDULES {
            store.insert(record(1_000 + i64::try_from(at).unwrap()), 0).unwrap();
        }
        let full = store.insert(record(1), 0).unwrap_err();
        assert!(matches!(full, ScheduleStoreError::Full), "{full}");
        store.edit(3, |record| record.advance_clock(5_000).is_some()).unwrap();
        assert_eq!(store.insert(record(9_000), 5_000).unwrap().id, 101);
        assert!(store.list_schedules().iter().all(|record| record.id != 3));
    }

    #[test]
    fn scheduled_run_is_claimed_by_one_of_many_processes() {
        let folder = tempfile::tempdir().unwrap();
        let store = ScheduleStore::new(folder.path().to_owned());
        store.insert(record(1_000), 0).unwrap();
        let claim = || {
            let mut is_due = false;
            let claimed = store.edit(1, |record| {
                is_due = matches!(record.advance_clock(2_000), Some(NextRun::Due { .. }));
                is_due
            });
            claimed.unwrap();
            is_due
        };
        let claims: usize = thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(claim)).collect();
            all.into_iter().map(|it| usize::from(it.join().unwrap())).sum()
        });
        assert_eq!(claims, 1);
        let held = store.lease_run(1).unwrap();
        assert!(held.is_some() && store.lease_run(1).unwrap().is_none());
        drop(held);
        assert!(store.lease_run(1).unwrap().is_some());
    }
}
