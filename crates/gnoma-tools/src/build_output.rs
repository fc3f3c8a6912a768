//! Names that tell what a build has made.

use std::{
    fs::{self, File, Metadata},
    io::Read,
    os::unix::fs::PermissionsExt,
    path::Path,
    time::SystemTime,
};

/// The first bytes of a linked program on Linux.
const PROGRAM_MARK: [u8; 4] = *b"\x7fELF";
/// The number of levels at which a rebuilt folder is checked for builds by others.
const STAMP_DEPTH: usize = 2;
/// Folders that are looked at for that.
const MAX_STAMPED: usize = 64;

/// Names that no folder but a rebuilt one has.
pub(crate) const UNMISTAKABLE: [&str; 4] =
    ["__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"];
/// Ends of names that only compilers and checkers give, and whole names, where version control ignores them.
pub(crate) const COMPILED: [&str; 20] = [
    ".o",
    ".obj",
    ".lo",
    ".la",
    ".a",
    ".so",
    ".dylib",
    ".d",
    ".gch",
    ".pyc",
    ".pyo",
    ".class",
    ".rlib",
    ".rmeta",
    ".hi",
    ".cmi",
    ".cmo",
    ".cmx",
    ".beam",
    ".tsbuildinfo",
];

/// Reports whether the path is that of a linked program.
pub(crate) fn is_program(path: &Path) -> bool {
    let runs = |facts: &Metadata| facts.is_file() && facts.permissions().mode() & 0o111 != 0;
    if !path.symlink_metadata().is_ok_and(|facts| runs(&facts)) {
        return false;
    }
    let mut begins = [0; PROGRAM_MARK.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut begins));
    read.is_ok() && begins == PROGRAM_MARK
}

/// Returns the times at which the folder and those in it last got or lost an entry.
pub(crate) fn folder_stamps(folder: &Path) -> Vec<SystemTime> {
    let mut stamps = Vec::new();
    let mut level = vec![folder.to_owned()];
    for _ in 0..=STAMP_DEPTH {
        let mut next = Vec::new();
        for folder in level {
            if stamps.len() >= MAX_STAMPED {
                return stamps;
            }
            stamps.extend(folder.symlink_metadata().and_then(|facts| facts.modified()).ok());
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            next.extend(folders.map(|entry| entry.path()));
        }
        gnoma_core::sort::sort_items(&mut next);
        level = next;
    }
    stamps
}
