//! How a vault works, and how much it keeps.

use std::{path::PathBuf, time::Duration};

/// The limits on what is kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Largest file that is kept.
    pub file_bytes: u64,
    /// Largest file that is kept although version control ignores it.
    pub ignored_file_bytes: u64,
    /// Size of the vault above which the oldest snapshots go.
    pub store_bytes: u64,
    /// Most snapshots of one workspace.
    pub snapshots: usize,
    /// Age above which snapshots go.
    pub age: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file_bytes: 512 << 20,
            ignored_file_bytes: 1 << 20,
            store_bytes: 4 << 30,
            snapshots: 2_000,
            age: Duration::from_secs(60 * 60 * 24 * 30),
        }
    }
}

/// The options for how a vault works.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// The limits on what is kept.
    pub limits: Limits,
    /// Listen for changes where the system can, instead of looking for them.
    pub watch: bool,
    /// Wait for the disk before a snapshot counts as taken: survives a power failure.
    pub durable: bool,
    /// Younger objects are not deleted, needed or not.
    pub grace: Duration,
    /// The person's own list of what git ignores (`core.excludesFile`).
    pub excludes: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            watch: true,
            durable: true,
            grace: Duration::from_secs(60 * 60),
            excludes: None,
        }
    }
}
