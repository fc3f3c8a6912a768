//! The programs that git runs as hooks.

use std::{
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use super::found::FoundRepository;

/// The hooks that git runs in the repository that a folder is in, in the order of their names.
#[must_use]
pub fn find_hook_programs(folder: &Path) -> Vec<PathBuf> {
    let hooks = FoundRepository::around(folder).map(|found| found.hooks().read_dir());
    let entries = hooks.into_iter().flatten().flatten().flatten();
    let is_program = |path: &PathBuf| {
        let is_sample = path.extension().is_some_and(|ending| ending == "sample");
        let runs =
            path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0);
        runs && !is_sample
    };
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_program).collect();
    gnoma_core::sort::sort(&mut all);
    all
}
