//! The files of a folder that belong to the project.
//!
//! Hidden files and what `.gitignore` and `.ignore` name are left out, in a git work tree or not. The
//! user's global ignore file is not read: results depend on the folder alone. Links are not followed.

use std::path::Path;

use ignore::{DirEntry, WalkBuilder};

/// Regular files below `root` (or `root` itself), in the order of their names.
pub(super) fn files(root: &Path) -> impl Iterator<Item = DirEntry> {
    WalkBuilder::new(root)
        .require_git(false)
        .git_global(false)
        .sort_by_file_name(std::ffi::OsStr::cmp)
        .build()
        // What cannot be entered is skipped: a search is of what can be read.
        .filter_map(Result::ok)
        .filter(is_file)
}

/// A link that was named by the call itself counts as what it leads to.
fn is_file(entry: &DirEntry) -> bool {
    match entry.file_type() {
        Some(kind) if kind.is_symlink() && entry.depth() == 0 => entry.path().is_file(),
        Some(kind) => kind.is_file(),
        None => false,
    }
}
