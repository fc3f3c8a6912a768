//! What a restore leaves as it is.

use std::path::PathBuf;

/// The reason why a path was left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnrestoredReason {
    /// The existing file was never saved.
    NotKept,
    /// The path changed while files were restored.
    Changed,
    /// Things that were never kept are in the folder.
    NotEmpty,
    /// The copy that was kept is damaged.
    Damaged,
    /// The system refused; its words.
    Refused(String),
}

/// A path that was left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnrestoredPath {
    /// The path, relative to the workspace.
    pub path: PathBuf,
    /// The reason why the path was left.
    pub why: UnrestoredReason,
}
