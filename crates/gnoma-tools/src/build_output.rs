//! Names that tell what a build has made.

use std::{
    collections::VecDeque,
    ffi::OsString,
    fs::{self, DirEntry, File, Metadata},
    io::Read,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
    time::SystemTime,
};

use gnoma_sandbox::layer::Layer;

/// The first bytes of a linked program on Linux.
const PROGRAM_MARK: [u8; 4] = *b"\x7fELF";
/// The number of levels at which a rebuilt folder is checked for builds by others.
const STAMP_DEPTH: usize = 2;
/// Folders that are looked at for that.
const MAX_FOLDERS: usize = 64;
/// Most entries of a build whose state is remembered, the upper levels first.
const MAX_STAMPED: usize = 4_000;

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

/// The state of a real entry: when it last changed, its size and its number on the disk; `None` if there is none.
pub(crate) type EntryStamp = Option<(SystemTime, u64, u64)>;

/// Returns the state of the real entries that a layer's copy of build output hides, and of the real folders of the
/// upper levels: a change means that somebody else has built there.
pub(crate) fn hidden_output_stamps(layer: &Layer, real: &Path) -> Vec<EntryStamp> {
    let mut stamps = folder_stamps(real);
    let copy = layer.place_of(real).map(|over| (over, real.to_owned()));
    let mut pending = VecDeque::from_iter(copy);
    while let Some((over, real)) = pending.pop_front() {
        if stamps.len() >= MAX_STAMPED {
            break;
        }
        let facts = real.symlink_metadata().ok();
        stamps.push(facts.as_ref().and_then(entry_stamp));
        // Below what is not there, nothing is hidden.
        if facts.is_some_and(|facts| facts.is_dir()) {
            let names = names_in(&over);
            pending.extend(names.into_iter().map(|name| (over.join(&name), real.join(&name))));
        }
    }
    stamps
}

fn folder_stamps(folder: &Path) -> Vec<EntryStamp> {
    let mut stamps = Vec::new();
    let mut level = vec![folder.to_owned()];
    for depth in 0..=STAMP_DEPTH {
        let mut next = Vec::new();
        for folder in level {
            if stamps.len() >= MAX_FOLDERS {
                return stamps;
            }
            stamps.push(folder.symlink_metadata().ok().as_ref().and_then(entry_stamp));
            if depth < STAMP_DEPTH {
                let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
                let is_folder = |entry: &DirEntry| entry.file_type().is_ok_and(|it| it.is_dir());
                next.extend(entries.filter(is_folder).map(|entry| entry.path()));
            }
        }
        gnoma_core::sort::sort_items(&mut next);
        level = next;
    }
    stamps
}

fn entry_stamp(facts: &Metadata) -> EntryStamp {
    Some((facts.modified().ok()?, facts.len(), facts.ino()))
}

/// The names in a folder in their order; none for anything else.
fn names_in(folder: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
    gnoma_core::sort::sort_items(&mut names);
    names
}
