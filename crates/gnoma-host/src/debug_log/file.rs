//! The file of a debug log: for its owner alone, and of limited size.
//!
//! A person names the file, perhaps by mistake one with something else in it. So every part begins with a line by which
//! it is recognized, and only such files are appended to, renamed or replaced. Links are not followed.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use gnoma_core::{private_file, sync::Mutex};
use rustix::fs::OFlags;

/// A log has at most two parts of this size: the one that is written, and the one before it.
pub const MAX_PART_BYTES: u64 = 5 << 20;

/// The first line of every part.
pub(super) const HEADER: &str = "# debug log of gnoma\n";

/// Files in the log folder after the oldest were removed; with both parts of the new log at most 50 MB together.
const MAX_KEPT_FILES: usize = 8;

/// Entries of the log folder that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// A log file that is made when it begins.
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

    /// Fails if one of the files that the log would append to or replace is none of its own. Creates nothing.
    pub(super) fn check_ownership(&self) -> io::Result<()> {
        open_existing(&self.path)?;
        open_existing(&self.previous_part()).map(|_| ())
    }

    /// Makes the file with its first line, if there is none.
    pub(super) fn begin(&self) -> io::Result<()> {
        self.append("")
    }

    /// Appends a line. Once a part is full, it replaces the one before it, as `FILE.1`.
    pub(super) fn append(&self, line: &str) -> io::Result<()> {
        let mut open = self.open.lock();
        let size = line.len() as u64;
        if let Some(part) = open.as_ref()
            && part.bytes.saturating_add(size) > MAX_PART_BYTES
        {
            self.rotate(part)?;
            *open = None;
        }
        let part = match open.as_mut() {
            Some(part) => part,
            None => open.insert(self.open_part()?),
        };
        part.bytes = part.bytes.saturating_add(size);
        part.file.write_all(line.as_bytes())
    }

    /// Renames the open part, unless another process has done so or the name means another file now.
    fn rotate(&self, part: &LogPart) -> io::Result<()> {
        let previous = self.previous_part();
        open_existing(&previous)?;
        let opened = part.file.metadata()?;
        let is_open =
            |named: fs::Metadata| (named.dev(), named.ino()) == (opened.dev(), opened.ino());
        if fs::symlink_metadata(&self.path).is_ok_and(is_open) {
            fs::rename(&self.path, previous)?;
        }
        Ok(())
    }

    fn previous_part(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".1");
        name.into()
    }

    fn open_part(&self) -> io::Result<LogPart> {
        if let Some(folder) = self.path.parent() {
            private_file::create_folder(folder)?;
        }
        let mut file = match open_existing(&self.path)? {
            Some(file) => file,
            None => log_options().create_new(true).mode(0o600).open(&self.path)?,
        };
        // A log that was there may be open to others.
        file.set_permissions(Permissions::from_mode(0o600))?;
        let mut bytes = file.metadata()?.len();
        if bytes == 0 {
            file.write_all(HEADER.as_bytes())?;
            bytes = HEADER.len() as u64;
        }
        Ok(LogPart { file, bytes })
    }
}

/// The options of every file of a log. Without NONBLOCK, opening a named pipe could wait for its other end.
fn log_options() -> OpenOptions {
    let flags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits().cast_signed();
    let mut options = OpenOptions::new();
    options.read(true).append(true).custom_flags(flags);
    options
}

/// Opens a log that exists; `None` if nothing has this name. An empty file counts as a log.
///
/// # Errors
/// The file is not a log of gnoma, or it cannot be opened.
fn open_existing(path: &Path) -> io::Result<Option<File>> {
    match fs::symlink_metadata(path) {
        Ok(facts) if facts.is_file() => (),
        Ok(_) => return Err(not_a_log(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let file = log_options().open(path)?;
    let facts = file.metadata()?;
    let mut begin = [0; HEADER.len()];
    let is_log = facts.is_file()
        && (facts.len() == 0
            || file.read_exact_at(&mut begin, 0).is_ok() && begin == *HEADER.as_bytes());
    if is_log { Ok(Some(file)) } else { Err(not_a_log(path)) }
}

fn not_a_log(path: &Path) -> io::Error {
    let text = format!(
        "`{}` is not a debug log of gnoma and is left as it is; name a file that does not exist",
        path.display()
    );
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

/// Removes the oldest logs of a folder, so that all together stay within their limit. The names begin with their time.
pub(super) fn remove_oldest(folder: &Path) {
    let logs = list_logs(folder);
    let surplus = logs.len().saturating_sub(MAX_KEPT_FILES);
    for log in logs.iter().take(surplus) {
        drop(fs::remove_file(log));
    }
}

/// Returns the logs of a folder, the oldest first. Their names begin with their time.
fn list_logs(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let is_log = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(|c: char| c.is_ascii_digit())
            && (name.ends_with(".log") || name.ends_with(".log.1"))
    };
    let mut logs: Vec<PathBuf> =
        entries.take(MAX_ENTRIES).flatten().map(|entry| entry.path()).filter(is_log).collect();
    gnoma_core::sort::sort_items(&mut logs);
    logs
}

/// Returns the last whole lines, in at most `max_bytes`, of the newest log of a folder.
pub(super) fn read_last(folder: &Path, max_bytes: u64) -> Option<String> {
    let mut logs = list_logs(folder).into_iter().rev();
    let newest = logs.find(|path| path.extension().is_some_and(|ending| ending == "log"))?;
    let file = open_existing(&newest).ok()??;
    let skipped = file.metadata().ok()?.len().saturating_sub(max_bytes);
    let mut bytes = vec![0; usize::try_from(max_bytes).ok()?];
    let read = file.read_at(&mut bytes, skipped).ok()?;
    bytes.truncate(read);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if skipped == 0 {
        return Some(text);
    }
    text.split_once('\n').map(|(_cut_off, lines)| lines.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_log_rotates_into_two_private_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/a.log");
        let log = LogFile::new(path.clone());
        assert!(!path.exists(), "a log that has not begun makes no file");
        log.begin().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), HEADER);
        let line = format!("{}\n", "x".repeat(1 << 20));
        for _ in 0..20 {
            log.append(&line).unwrap();
        }
        let sizes = [path.clone(), log.previous_part()].map(|path| path.metadata().unwrap().len());
        assert!(sizes.iter().all(|size| (1..=MAX_PART_BYTES).contains(size)), "{sizes:?}");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path().join("logs")).unwrap().count(), 2);
    }

    #[test]
    fn debug_log_does_not_follow_a_symlink() {
        let folder = tempfile::tempdir().unwrap();
        let (target, path) = (folder.path().join("target"), folder.path().join("a.log"));
        for content in ["mine", HEADER] {
            fs::write(&target, content).unwrap();
            std::os::unix::fs::symlink(&target, &path).unwrap();
            let log = LogFile::new(path.clone());
            assert!(log.check_ownership().is_err() && log.append("line\n").is_err());
            fs::remove_file(&path).unwrap();
            std::os::unix::fs::symlink(&target, log.previous_part()).unwrap();
            assert!(log.check_ownership().is_err());
            fs::remove_file(log.previous_part()).unwrap();
            assert_eq!(fs::read_to_string(&target).unwrap(), content);
        }
    }

    #[test]
    fn debug_log_does_not_append_to_a_foreign_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        fs::write(&path, "my notes, longer than the first line of a log\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let log = LogFile::new(path.clone());
        let error = log.check_ownership().unwrap_err().to_string();
        assert!(error.contains("is not a debug log of gnoma"), "{error}");
        assert!(log.append("line\n").is_err());
        assert!(fs::read_to_string(&path).unwrap().starts_with("my notes"));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o644);
        assert!(LogFile::new(folder.path().to_owned()).check_ownership().is_err(), "a folder");
    }

    #[test]
    fn debug_log_appends_to_its_own_or_an_empty_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        fs::write(&path, "").unwrap();
        for line in ["one\n", "two\n"] {
            let log = LogFile::new(path.clone());
            log.check_ownership().unwrap();
            log.append(line).unwrap();
        }
        assert_eq!(fs::read_to_string(path).unwrap(), format!("{HEADER}one\ntwo\n"));
    }

    #[test]
    fn debug_log_rotation_overwrites_no_foreign_file() {
        let folder = tempfile::tempdir().unwrap();
        let log = LogFile::new(folder.path().join("a.log"));
        let line = format!("{}\n", "x".repeat(1 << 20));
        log.append(&line).unwrap();
        fs::write(log.previous_part(), "mine").unwrap();
        let written = (0..20).take_while(|_| log.append(&line).is_ok()).count();
        assert_eq!(written, 3);
        assert!(log.append(&line).is_err());
        assert_eq!(fs::read_to_string(log.previous_part()).unwrap(), "mine");
        assert!(log.path().metadata().unwrap().len() <= MAX_PART_BYTES);
    }

    #[test]
    fn tail_of_the_newest_debug_log_is_read() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read_last(folder.path(), 100), None);
        for (name, line) in [("1-1.log", "old"), ("2-1.log", "new"), ("2-1.log.1", "part")] {
            LogFile::new(folder.path().join(name)).append(&format!("{line}\nmore\n")).unwrap();
        }
        let whole = format!("{HEADER}new\nmore\n");
        assert_eq!(read_last(folder.path(), 100), Some(whole));
        assert_eq!(read_last(folder.path(), 7).as_deref(), Some("more\n"));
        fs::write(folder.path().join("3-1.log"), "no log, and as long as one begins").unwrap();
        assert_eq!(read_last(folder.path(), 100), None);
    }

    #[test]
    fn debug_log_cleanup_removes_only_the_oldest_logs() {
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
