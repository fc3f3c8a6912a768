//! The files of a folder that belong to the project.
//!
//! Hidden files and what `.gitignore` and `.ignore` name are left out, in a git work tree or not. The
//! user's global ignore file is not read: results depend on the folder alone. Links are not followed.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use ignore::{DirEntry, WalkBuilder};

/// Most names that are listed at once, and how long that may take.
const MAX_NAMES: usize = 20_000;
const MAX_LISTING: Duration = Duration::from_secs(2);

/// The names of the files below a folder, at most `max`, a line each, relative to it. Names that a line cannot hold are
/// left out, and so is what is not found within two seconds.
#[must_use]
pub fn file_names(root: &Path, max: usize) -> String {
    let until = Instant::now() + MAX_LISTING;
    let mut names = String::new();
    let listed = walk_files(root).take_while(|_| Instant::now() < until).filter_map(|entry| {
        let name = entry.path().strip_prefix(root).ok()?.to_str()?.to_owned();
        (!name.is_empty() && !name.contains(char::is_control)).then_some(name)
    });
    for name in listed.take(max.min(MAX_NAMES)) {
        names.push_str(&name);
        names.push('\n');
    }
    names
}

/// Regular files below `root` (or `root` itself), in the order of their names.
pub(super) fn walk_files(root: &Path) -> impl Iterator<Item = DirEntry> {
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
