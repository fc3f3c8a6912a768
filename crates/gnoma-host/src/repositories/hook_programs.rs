//! The programs that git runs as hooks.

use std::path::{Path, PathBuf};

use gnoma_config::pin::git_hooks;

use super::repository_location::FoundRepository;

/// The hooks that git runs in the repository that a folder is in, in the order of their names.
#[must_use]
pub(crate) fn find_hook_programs(folder: &Path) -> Vec<PathBuf> {
    FoundRepository::find_around(folder).map_or_else(Vec::new, |found| git_hooks(&found.work_tree))
}
