//! Commands are tried where the system has layers, which is not here.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use gnoma_sandbox::{MemoryFolder, Overlay};

/// The reason why no command of a session can run on trial.
#[derive(thiserror::Error)]
#[error("only Linux has the layers that trials need")]
pub struct TrialsError;

gnoma_core::debug_as_display!(TrialsError);

/// Runs the commands of a session on trial, where that is possible.
#[derive(Debug)]
pub struct Trials;

impl Trials {
    /// For commands that work in `roots`.
    #[must_use]
    pub fn new(_launcher: PathBuf, _roots: Vec<PathBuf>, _folders: Vec<PathBuf>) -> Self {
        Self
    }

    /// Does nothing: without trials, there are no layers.
    #[must_use]
    pub fn in_memory(self, _memory: Arc<MemoryFolder>) -> Self {
        self
    }

    /// Does nothing: without trials, none updates a folder.
    #[must_use]
    pub fn with_updated_folders(self, _folders: Vec<String>) -> Self {
        self
    }

    /// Returns no overlays, since trials left nothing.
    pub(crate) fn workspace_views(&self) -> Vec<Overlay> {
        Vec::new()
    }

    /// Returns `false`, since trials left nothing.
    #[must_use]
    pub fn is_seen(&self) -> bool {
        false
    }

    /// Returns `false`, since trials left nothing.
    #[must_use]
    pub fn have_left(&self) -> bool {
        false
    }

    /// Temporary files are the machine's.
    #[must_use]
    pub fn with_scratch(self, _base: crate::ScratchPlace) -> Self {
        self
    }

    /// Temporary files are the machine's.
    pub(crate) fn scratch_folder(&self) -> Option<&Path> {
        None
    }

    /// Temporary files are the machine's.
    #[must_use]
    pub fn replaces_temporary(&self) -> bool {
        false
    }

    /// Temporary files are the machine's.
    pub(crate) fn temporary_place(&self, _path: &Path) -> Option<PathBuf> {
        None
    }

    /// Temporary files are the machine's.
    #[must_use]
    pub fn is_own_temporary(&self, _path: &Path) -> bool {
        false
    }

    /// Returns `None`, since trials left nothing.
    #[must_use]
    pub fn left_at(&self, _path: &Path) -> Option<PathBuf> {
        None
    }

    /// Returns the reason why commands cannot be tried in this workspace.
    #[must_use]
    pub fn unavailable_reason(&self) -> Option<&TrialsError> {
        Some(&TrialsError)
    }

    /// Returns nothing to report, since changes are never left half saved.
    #[must_use]
    pub fn recover(&self) -> Vec<String> {
        Vec::new()
    }
}
