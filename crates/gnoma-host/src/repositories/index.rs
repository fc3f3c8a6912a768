//! The content of a repository's index: names of files, and which of them are separate repositories.
//!
//! Format: <https://git-scm.com/docs/index-format>, versions 2 to 4.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

use gnoma_core::bounded_file;

use super::repository_location::FoundRepository;

/// The name of the index in a repository's own folder.
pub(super) const FILE: &str = "index";
/// Longest index that is read.
const MAX_INDEX_BYTES: u64 = 64 << 20;
/// Bytes of an entry before the name of its object; where in them its mode stands; and after that name.
const FACTS_BYTES: usize = 40;
const MODE_AT: usize = 24;
const FLAGS_BYTES: usize = 2;
/// The mode of an entry that is a repository.
const REPOSITORY: u32 = 0o160_000;
/// The flag of an entry with two more bytes of flags.
const EXTENDED: u8 = 0x40;
/// Entries of versions before the fourth are filled up to a multiple of this.
const PADDING: usize = 8;

/// An entry of the index.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct IndexEntry {
    pub(super) path: PathBuf,
    pub(super) is_repository: bool,
}

/// The entries of the index, and of those that it is split into.
pub(super) fn read_entries(found: &FoundRepository) -> Vec<IndexEntry> {
    let object = object_bytes(found);
    let is_shared = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"sharedindex."))
    };
    let others = fs::read_dir(&found.git).into_iter().flatten().flatten().map(|entry| entry.path());
    let files = std::iter::once(found.git.join(FILE)).chain(others.filter(is_shared));
    files.flat_map(|file| parse_entries(&read_index_file(&file), object)).collect()
}

/// The entries of another index of the same repository.
pub(super) fn entries_of(found: &FoundRepository, index: &Path) -> Vec<IndexEntry> {
    parse_entries(&read_index_file(index), object_bytes(found))
}

fn object_bytes(found: &FoundRepository) -> usize {
    if found.setting("extensions.objectformat").as_deref() == Some("sha256") { 32 } else { 20 }
}

fn read_index_file(file: &Path) -> Vec<u8> {
    // What cannot be read has no entries.
    bounded_file::read_start(file, MAX_INDEX_BYTES).unwrap_or_default()
}

/// The entries of an index, as far as they can be read.
fn parse_entries(bytes: &[u8], object: usize) -> Vec<IndexEntry> {
    let number = |at: usize| {
        let four = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_be_bytes(four))
    };
    let (Some(b"DIRC"), Some(version), Some(count)) = (bytes.get(..4), number(4), number(8)) else {
        return Vec::new();
    };
    let (mut entries, mut at, mut name) = (Vec::new(), 12, Vec::new());
    for _ in 0..count {
        let Some(mode) = number(at + MODE_AT) else { break };
        let flags = at + FACTS_BYTES + object;
        let is_extended = bytes.get(flags).is_some_and(|flags| flags & EXTENDED != 0);
        let mut start = flags + FLAGS_BYTES + if is_extended { 2 } else { 0 };
        if version >= 4 {
            let Some((gone, next)) = parse_offset(bytes, start) else { break };
            name.truncate(name.len().saturating_sub(gone));
            start = next;
        } else {
            name.clear();
        }
        let rest = bytes.get(start..).unwrap_or_default();
        let Some(length) = rest.iter().position(|byte| *byte == 0) else { break };
        name.extend_from_slice(rest.get(..length).unwrap_or_default());
        entries.push(IndexEntry {
            path: OsStr::from_bytes(&name).into(),
            is_repository: mode & 0o170_000 == REPOSITORY,
        });
        let end = start + length;
        at = if version >= 4 { end + 1 } else { at + (end - at + PADDING) / PADDING * PADDING };
    }
    entries
}

/// A number of version four: seven bits a byte, the highest first, and where it ends.
fn parse_offset(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *bytes.get(at)?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        at += 1;
        byte = *bytes.get(at)?;
        value = value.checked_add(1)?.checked_mul(128)? + usize::from(byte & 0x7f);
    }
    Some((value, at + 1))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn git_index_entries_are_read_in_every_version() {
        for (version, format) in [("2", "sha1"), ("3", "sha1"), ("4", "sha1"), ("4", "sha256")] {
            let folder = tempfile::tempdir().unwrap();
            let script = format!(
                "git init -q --object-format={format} . && mkdir -p a/b && touch a/b/one a/b/other .env x && \
                 git init -q --object-format={format} sub && \
                 git -C sub -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m x && \
                 git add a .env x sub 2>/dev/null && git add -N sub/../x && \
                 git update-index --index-version {version}"
            );
            let made = Command::new("sh").args(["-c", &script]).current_dir(folder.path()).status();
            if !made.is_ok_and(|status| status.success()) {
                gnoma_testkit::skip_test(&format!("git cannot make a repository with {format}"));
                continue;
            }
            let found = FoundRepository::from_work_tree(folder.path()).unwrap();
            let read: Vec<_> = read_entries(&found)
                .into_iter()
                .map(|entry| (entry.path, entry.is_repository))
                .collect();
            let expected = [
                (".env", false),
                ("a/b/one", false),
                ("a/b/other", false),
                ("sub", true),
                ("x", false),
            ];
            assert_eq!(
                read,
                expected.map(|(path, is)| (PathBuf::from(path), is)),
                "{version} {format}"
            );
        }
    }

    #[test]
    fn truncated_git_index_gives_the_entries_before_the_damage() {
        assert_eq!(parse_entries(b"", 20), []);
        assert_eq!(parse_entries(b"DIRC\0\0\0\x02\xff\xff\xff\xff", 20), []);
        assert_eq!(parse_entries(b"DIRC\0\0\0\x04\xff\xff\xff\xff\x80\x80", 20), []);
    }
}
