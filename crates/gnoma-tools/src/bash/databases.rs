//! Databases among what a command changed: a file with its logs beside it is one thing, and one that another
//! program has open must not be replaced under its hands.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use gnoma_sandbox::layer::{Changes, LayerChange};

/// The endings of the files that a database keeps beside its own.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];
/// Most open files that are looked at.
const MAX_OPEN: usize = 200_000;

/// The file that a path belongs to: a database for its logs, else itself.
pub(super) fn owning_file(path: &Path) -> PathBuf {
    let text = path.to_string_lossy();
    let main = BESIDE.iter().find_map(|end| text.strip_suffix(end));
    main.map_or_else(|| path.to_owned(), PathBuf::from)
}

/// A changed database that another program has open.
pub(super) fn in_use(changes: &Changes) -> Option<PathBuf> {
    let has_logs = |file: &Path| {
        BESIDE.iter().any(|end| {
            let mut log = file.as_os_str().to_owned();
            log.push(end);
            fs::symlink_metadata(log).is_ok()
        })
    };
    let changed: BTreeSet<PathBuf> =
        gnoma_core::sort::to_set(changes.list.iter().map(LayerChange::path).map(owning_file));
    let databases: BTreeSet<PathBuf> =
        gnoma_core::sort::to_set(changed.into_iter().filter(|file| has_logs(file)));
    if databases.is_empty() {
        return None;
    }
    open_files().take(MAX_OPEN).map(|file| owning_file(&file)).find(|file| databases.contains(file))
}

/// The files that processes have open, as far as they may be seen.
fn open_files() -> impl Iterator<Item = PathBuf> {
    let is_number = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = processes.filter(move |one| one.file_name().to_str().is_some_and(is_number));
    let files = processes.flat_map(|one| fs::read_dir(one.path().join("fd")).into_iter().flatten());
    files.flatten().filter_map(|file| fs::read_link(file.path()).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlite_wal_shm_and_journal_files_belong_to_their_database() {
        for name in ["dev.sqlite3", "dev.sqlite3-wal", "dev.sqlite3-shm", "dev.sqlite3-journal"] {
            assert_eq!(owning_file(Path::new(name)), Path::new("dev.sqlite3"));
        }
        assert_eq!(owning_file(Path::new("other")), Path::new("other"));
    }

    #[test]
    fn open_files_of_this_process_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("file");
        let file = fs::File::create(&path).unwrap();
        assert!(open_files().any(|open| open == path));
        drop(file);
        assert!(!open_files().any(|open| open == path));
    }
}
