//! Options of a store: folder, project, and what may be written.

use std::{
    borrow::Cow,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::rescue_report::RescueReport;

/// The time to wait for other processes before giving up.
const PATIENCE: Duration = Duration::from_secs(10);

/// Longest readable part of a project key.
const KEY_NAME_CHARS: usize = 40;

/// The kind of string that is about to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenString {
    /// A text that people or models say, or a value inside it.
    Words,
    /// A token or file that is of use only unchanged: a vendor's signature, a picture's bytes.
    Opaque,
}

/// Receives every string before it is written and returns what may be saved of it.
pub type RedactHook = dyn for<'t> Fn(WrittenString, &'t str) -> Cow<'t, str> + Send + Sync;

/// The way in which changes are kept safe until they are in the main file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Journal {
    /// A write-ahead log where the file system can share memory, else a rollback journal.
    #[default]
    Auto,
    /// A rollback journal: slower, but sound on network file systems.
    Rollback,
}

/// Hears what a recovery brought.
pub type RecoveryCallback = dyn Fn(RescueReport) + Send + Sync;

/// The options of a store: where it is and what it keeps.
#[derive(Clone)]
pub struct Options {
    /// Folder of the databases; made with mode 0700 when missing. Profiles have folders of their
    /// own.
    pub folder: PathBuf,
    /// File name without its ending: [`project_key`], without what may not be written.
    pub key: String,
    /// The project's folder as people know it; written into every session.
    pub project: String,
    /// Decides what may be written.
    pub redact: Arc<RedactHook>,
    /// Told what became of a database in which damage was met while it was in use.
    pub recovered: Arc<RecoveryCallback>,
    /// The time to wait for other processes.
    pub patience: Duration,
    /// The way to keep changes safe.
    pub journal: Journal,
    /// Returns the current time in milliseconds since 1970: for a request without a time, it decides which holds
    /// are too old to count.
    pub clock: fn() -> i64,
}

impl Options {
    /// Options for the project at `project`, with the usual patience.
    pub fn new(
        folder: impl Into<PathBuf>,
        project: impl Into<String>,
        redact: Arc<RedactHook>,
    ) -> Self {
        let project: String = project.into();
        let key = readable_project_key(&redact(WrittenString::Words, &project), &project);
        Self {
            folder: folder.into(),
            key,
            project,
            redact,
            recovered: Arc::new(|_| {}),
            patience: PATIENCE,
            journal: Journal::default(),
            clock: system_clock,
        }
    }

    /// Returns the path of the database's file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.join(format!("{}.db", self.key))
    }
}

/// The file name for a project: its last folder's name, for people, and a hash of the whole path.
#[must_use]
pub fn project_key(project: &str) -> String {
    readable_project_key(project, project)
}

/// The key of `project`, with what people may read of it out of `shown`.
fn readable_project_key(shown: &str, project: &str) -> String {
    let last = shown.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let name: String = last
        .chars()
        .take(KEY_NAME_CHARS)
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' })
        .collect();
    let hash = blake3::hash(project.as_bytes()).to_hex();
    let short: String = hash.chars().take(16).collect();
    if name.is_empty() { short } else { format!("{name}-{short}") }
}

fn system_clock() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn project_keys_are_safe_file_names_and_distinct() {
        for path in ["/", "", "/home/me/my app", "/x/../../etc", "/a\0b", "/ünïcode/…"] {
            let key = project_key(path);
            assert!(key.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)), "{key}");
        }
        assert_ne!(project_key("/a/app"), project_key("/b/app"));
    }
}
