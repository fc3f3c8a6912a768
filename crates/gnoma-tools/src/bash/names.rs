//! Formats paths as a person knows them.

use std::path::{Path, PathBuf};

/// The path below its root.
pub(super) fn display_path(path: &Path, roots: &[PathBuf]) -> String {
    let below = roots.iter().find_map(|root| path.strip_prefix(root).ok());
    below.unwrap_or(path).display().to_string()
}
