//! Commands are tried where the system has layers, which is not here.

use std::path::PathBuf;

/// Tries the commands of a session, where that can be done.
#[derive(Debug)]
pub struct Trials;

impl Trials {
    /// For commands that work in `roots`.
    #[must_use]
    pub fn new(_launcher: PathBuf, _roots: Vec<PathBuf>, _folders: Vec<PathBuf>) -> Self {
        Self
    }

    /// Why commands cannot be tried in this workspace, for people.
    #[must_use]
    pub fn hindrance(&self) -> Option<&str> {
        Some("only Linux has the layers that trials need")
    }

    /// Nothing is ever left half kept.
    #[must_use]
    pub fn recover(&self) -> Vec<String> {
        Vec::new()
    }
}
