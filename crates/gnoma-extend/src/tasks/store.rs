//! Records of runs: one small file each, replaced as a whole before and after every step.

use std::{
    fmt,
    fs::{self, File},
    io,
    path::PathBuf,
};

use gnoma_core::{bounded_file, private_file};

use super::record::RunRecord;
use crate::lock_file::try_lock_file;

/// Most runs of a project that are kept; the oldest are deleted.
const MAX_RUNS: usize = 200;
/// Most files of the folder that are looked at.
const MAX_ENTRIES: usize = 2_000;
/// Most bytes of a record that are read.
const MAX_BYTES: u64 = 4 << 20;
/// The ending of a record's name.
const RECORD: &str = "json";
/// The ending of the name of the file that says who runs a run.
const LOCK: &str = "lock";

/// The reason why a run cannot be recorded or read.
#[derive(Debug)]
pub enum StoreError {
    /// Reading or writing a file fails.
    Io(PathBuf, io::Error),
    /// Another process runs it.
    Busy,
    /// There is no such run.
    Missing,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => {
                write!(f, "cannot record the run in {}: {error}", path.display())
            }
            Self::Busy => f.write_str("the run goes on in another process"),
            Self::Missing => f.write_str("there is no such run"),
        }
    }
}

impl std::error::Error for StoreError {}

/// The recorded runs of one project.
#[derive(Clone, Debug)]
pub struct RunStore {
    folder: PathBuf,
}

/// The right to run a run. No other process has it until this is dropped.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
}

impl RunStore {
    /// The runs in this folder, which need not exist.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Replaces the record of a run, whole or not at all, and waits until it is on the disk.
    ///
    /// # Errors
    /// The record cannot be written; the earlier record is as it was.
    pub fn save(&self, run: &RunRecord) -> Result<(), StoreError> {
        let path = self.path(&run.id, RECORD);
        let is_new = !path.exists();
        let text = serde_json::to_vec(run).map_err(io::Error::from);
        let written = text.and_then(|text| private_file::replace(&path, &text));
        written.map_err(|error| StoreError::Io(path, error))?;
        if is_new {
            self.delete_oldest(&run.id);
        }
        Ok(())
    }

    /// Takes the right to run a run.
    ///
    /// # Errors
    /// Another process has it, or the file cannot be made.
    pub fn lock_run(&self, id: &str) -> Result<RunLock, StoreError> {
        let path = self.path(id, LOCK);
        let failed = |error| StoreError::Io(path.clone(), error);
        private_file::create_folder(&self.folder).map_err(failed)?;
        let file = try_lock_file(&path).map_err(failed)?.ok_or(StoreError::Busy)?;
        Ok(RunLock { _file: file })
    }

    /// Returns the recorded runs, the newest first; of one task if it is named. Unreadable records are left out.
    #[must_use]
    pub fn runs(&self, task: Option<&str>) -> Vec<RunRecord> {
        let ids = self.ids().into_iter().take(MAX_RUNS);
        let runs = ids.filter_map(|id| self.read(&id));
        runs.filter(|run| task.is_none_or(|task| run.task == task)).collect()
    }

    /// Returns the names of the tasks that have begun a run since this time, in milliseconds since 1970.
    #[must_use]
    pub fn tasks_since(&self, since_ms: i64) -> Vec<String> {
        // Ids begin with the time of the run's begin.
        let since = format!("{:013}", since_ms.max(0));
        let ids = self.ids().into_iter().take_while(|id| *id >= since);
        let mut names: Vec<String> = Vec::new();
        for run in ids.take(MAX_RUNS).filter_map(|id| self.read(&id)) {
            if !names.contains(&run.task) {
                names.push(run.task);
            }
        }
        names
    }

    /// Reads the record of one run.
    ///
    /// # Errors
    /// There is none of that id that this version reads.
    pub fn load_run(&self, id: &str) -> Result<RunRecord, StoreError> {
        // An id never names a file elsewhere.
        let is_id = id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        Some(id).filter(|_| is_id).and_then(|id| self.read(id)).ok_or(StoreError::Missing)
    }

    fn read(&self, id: &str) -> Option<RunRecord> {
        let path = self.path(id, RECORD);
        let text = bounded_file::read(&path, MAX_BYTES).ok()??;
        let run: RunRecord = gnoma_core::json::from_bytes(&text).ok()?;
        Some(run).filter(RunRecord::is_readable)
    }

    /// The ids, the newest first.
    fn ids(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let id = |path: PathBuf| {
            let is_record = path.extension().is_some_and(|extension| extension == RECORD);
            is_record.then(|| path.file_stem()?.to_str().map(str::to_owned))?
        };
        let mut ids: Vec<String> =
            entries.take(MAX_ENTRIES).filter_map(|entry| id(entry.path())).collect();
        gnoma_core::sort::sort_items(&mut ids);
        ids.reverse();
        ids
    }

    /// Deletes the oldest records above the limit, but neither the one of `saved` nor those of runs that go on. After the
    /// clock was set back, the newest run can have the smallest id.
    fn delete_oldest(&self, saved: &str) {
        for id in self.ids().into_iter().skip(MAX_RUNS).filter(|id| id != saved) {
            // Held until the files are gone, so that no process begins to run it.
            let Ok(_lock) = self.lock_run(&id) else { continue };
            for ending in [RECORD, LOCK] {
                let _missing = fs::remove_file(self.path(&id, ending));
            }
        }
    }

    fn path(&self, id: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{id}.{ending}"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::{
        super::{parse_task, plan_task},
        *,
    };

    fn run(id: &str) -> RunRecord {
        let tasks = HashMap::from([("t".to_owned(), parse_task("t", "x").unwrap())]);
        let plan = plan_task("t", &[], &tasks).unwrap();
        RunRecord::new(id.to_owned(), &plan, "s".to_owned(), 1)
    }

    #[test]
    fn task_runs_are_saved_listed_limited_and_locked() {
        let folder = tempfile::tempdir().unwrap();
        let store = RunStore::new(folder.path().join("runs"));
        assert!(store.runs(None).is_empty());
        for at in 0..MAX_RUNS + 3 {
            store.save(&run(&format!("{at:05}"))).unwrap();
        }
        let runs = store.runs(Some("t"));
        assert_eq!((runs.len(), &*runs[0].id), (MAX_RUNS, "00202"));
        assert!(store.runs(Some("other")).is_empty());
        assert!(
            store.load_run("00100").is_ok()
                && store.load_run("../x").is_err()
                && store.load_run("0").is_err()
        );
        fs::write(folder.path().join("runs/99999.json"), "{").unwrap();
        assert_eq!(store.runs(None).len(), MAX_RUNS - 1);
        let held = store.lock_run("00100").unwrap();
        assert!(matches!(store.lock_run("00100"), Err(StoreError::Busy)));
        drop(held);
        assert!(store.lock_run("00100").is_ok());
    }

    #[test]
    fn task_run_record_just_saved_or_still_running_is_never_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let store = RunStore::new(folder.path().join("runs"));
        let _running = store.lock_run("00010").unwrap();
        for at in 10..MAX_RUNS + 12 {
            store.save(&run(&format!("{at:05}"))).unwrap();
        }
        assert!(store.load_run("00010").is_ok(), "it goes on");
        assert!(store.load_run("00011").is_err(), "the oldest that does not go on");
        // The clock was set back.
        store.save(&run("00001")).unwrap();
        assert!(store.load_run("00001").is_ok(), "it was just saved");
    }

    #[test]
    fn task_run_record_that_cannot_be_written_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let store = RunStore::new(folder.path().join("file"));
        fs::write(folder.path().join("file"), "").unwrap();
        let error = store.save(&run("1")).unwrap_err().to_string();
        assert!(error.starts_with("cannot record the run in "), "{error}");
    }
}
