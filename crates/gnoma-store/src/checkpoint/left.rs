//! What a restore leaves as it is.

use std::path::PathBuf;

/// Why a path was left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftWhy {
    /// The existing file was never saved.
    NotKept,
    /// It changed while files were restored.
    Changed,
    /// Things that were never kept are in the folder.
    NotEmpty,
    /// What was kept is damaged.
    Damaged,
    /// The system refused; its words.
    Refused(String),
}

/// A path that was left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Where, relative to the workspace.
    pub path: PathBuf,
    /// Why.
    pub why: LeftWhy,
}
