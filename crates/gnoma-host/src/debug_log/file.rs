//! The file of a debug log: for its owner alone, and of limited size.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// A log has at most two parts of this size: the one that is written, and the one before it.
pub const MAX_PART_BYTES: u64 = 5 << 20;

/// Files in the log folder after the oldest were removed; with both parts of the new log at most 50 MB together.
const MAX_KEPT_FILES: usize = 8;

/// Entries of the log folder that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// A log file that is made with its first line.
pub(super) struct LogFile {
    path: PathBuf,
    open: Mutex<Option<LogPart>>,
}

struct LogPart {
    file: File,
    bytes: u64,
}

impl LogFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, open: Mutex::new(None) }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line. Once a part is full, it replaces the one before it, as `FILE.1`.
    pub(super) fn append(&self, line: &str) -> io::Result<()> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let size = line.len() as u64;
        if open.as_ref().is_some_and(|part| part.bytes.saturating_add(size) > MAX_PART_BYTES) {
            *open = None;
            fs::rename(&self.path, self.previous())?;
        }
        let part = match open.as_mut() {
            Some(part) => part,
            None => open.insert(self.open_part()?),
        };
        part.bytes = part.bytes.saturating_add(size);
        part.file.write_all(line.as_bytes())
    }

    fn previous(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".1");
        name.into()
    }

    fn open_part(&self) -> io::Result<LogPart> {
        if let Some(folder) = self.path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        if fs::symlink_metadata(&self.path).is_ok_and(|facts| !facts.is_file()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a plain file"));
        }
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
        // A file that was there may be open to others.
        file.set_permissions(Permissions::from_mode(0o600))?;
        let bytes = file.metadata()?.len();
        Ok(LogPart { file, bytes })
    }
}

/// Removes the oldest logs of a folder, so that all together stay within their limit. The names begin with their time.
pub(super) fn remove_oldest(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let is_log = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(|c: char| c.is_ascii_digit())
            && (name.ends_with(".log") || name.ends_with(".log.1"))
    };
    let mut logs: Vec<PathBuf> =
        entries.take(MAX_ENTRIES).flatten().map(|entry| entry.path()).filter(is_log).collect();
    gnoma_core::sort::sort(&mut logs);
    let surplus = logs.len().saturating_sub(MAX_KEPT_FILES);
    for log in logs.iter().take(surplus) {
        drop(fs::remove_file(log));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_two_parts_that_only_its_owner_reads() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/a.log");
        let log = LogFile::new(path.clone());
        assert!(!path.exists(), "a log without lines makes no file");
        let line = format!("{}\n", "x".repeat(1 << 20));
        for _ in 0..20 {
            log.append(&line).unwrap();
        }
        let sizes = [path.clone(), log.previous()].map(|path| path.metadata().unwrap().len());
        assert!(sizes.iter().all(|size| (1..=MAX_PART_BYTES).contains(size)), "{sizes:?}");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path().join("logs")).unwrap().count(), 2);
    }

    #[test]
    fn a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (target, path) = (folder.path().join("target"), folder.path().join("a.log"));
        fs::write(&target, "mine").unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        assert!(LogFile::new(path).append("line\n").is_err());
        assert_eq!(fs::read_to_string(target).unwrap(), "mine");
    }

    #[test]
    fn the_oldest_logs_are_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        for number in 10..30 {
            fs::write(folder.path().join(format!("{number}-1.log")), "").unwrap();
        }
        fs::write(folder.path().join("notes.log"), "").unwrap();
        remove_oldest(folder.path());
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, MAX_KEPT_FILES + 1);
        assert!(
            folder.path().join("29-1.log").exists() && folder.path().join("notes.log").exists()
        );
    }
}
