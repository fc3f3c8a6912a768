//! Other names of a file (hard links), which a file that takes its place does not have.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use gnoma_core::{ToolCx, places};
use ignore::DirEntry;
use rustix::fs::{Stat, lstat};

use super::{shared::FileTools, walk::walk_files};

/// Longest search for the names of one file.
const MAX_SEARCH: Duration = Duration::from_secs(2);

/// Reports whether all names of a file are known and belong to ordinary files of the project. The verdict was about one name; another one may be in the cache of a package manager, or be a file that a
/// program obeys.
pub(super) fn can_change_all_names(shared: &FileTools, cx: &ToolCx, file: &Stat) -> bool {
    let until = Instant::now() + MAX_SEARCH;
    let all = cx.roots.iter().flat_map(|root| walk_files(root));
    let in_time = all.take_while(|_| Instant::now() < until && !cx.stop.is_cancelled());
    let names: HashSet<PathBuf> = in_time
        .filter(|entry| is_name_of(entry, file) && is_ordinary(shared, entry.path()))
        .map(DirEntry::into_path)
        .collect();
    usize::try_from(file.st_nlink).is_ok_and(|links| names.len() >= links)
}

fn is_name_of(entry: &DirEntry, file: &Stat) -> bool {
    // The number comes with the name, other facts cost a look at each file.
    entry.ino() == Some(file.st_ino)
        && lstat(entry.path()).is_ok_and(|facts| facts.st_dev == file.st_dev)
}

fn is_ordinary(shared: &FileTools, path: &Path) -> bool {
    shared.restricted_kind(path).is_none()
        && places::guard_reason(path, shared.home.as_slice()).is_none()
}
