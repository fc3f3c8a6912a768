//! What lies beside the workspace and the folders above it, which a command on trial finds and cannot open. What such a
//! command reads is only known when it runs: with nothing in these folders it would say that what is there is not.
//!
//! Names that begin with a dot are left out: programs look for their settings there by themselves.

use std::{
    fs::{self, DirEntry, FileType},
    path::{Path, PathBuf},
};

use gnoma_sandbox::{Policy, TEMPORARY};

/// Most names that are listed, those of the nearest folders first: each takes a mount.
const MAX_NAMES: usize = 128;

/// Lists what lies in the folders above these roots and is neither shown nor hidden by the policy: folders, and with
/// `has_files` also files. Programs that are not of the shell look for files of theirs in all folders above.
pub(super) fn list_outside_names(
    roots: &[PathBuf],
    policy: &Policy,
    has_files: bool,
) -> Vec<PathBuf> {
    let shown = policy.readable.shown_paths().unwrap_or_default();
    let hidden = policy.readable.hidden_paths();
    let is_outside = |path: &Path| {
        let mut found = shown.iter().chain(&policy.writable);
        !found.any(|place| path.starts_with(place) || place.starts_with(path))
            && !hidden.iter().any(|place| path.starts_with(place))
    };
    let is_unseen = |folder: &Path| {
        let is_temporary = TEMPORARY.iter().any(|place| folder.starts_with(place));
        let is_shown = shown.iter().any(|place| folder.starts_with(place));
        folder.parent().is_some() && !is_temporary && !is_shown
    };
    let above = roots.iter().flat_map(|root| root.ancestors().skip(1));
    let mut names: Vec<PathBuf> = Vec::new();
    for folder in above.filter(|folder| is_unseen(folder)) {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let entries = entries.filter(|entry| is_meant(entry, has_files)).map(|it| it.path());
        let is_new = |path: &PathBuf| is_outside(path) && !names.contains(path);
        let mut entries: Vec<_> = entries.filter(is_new).collect();
        gnoma_core::sort::sort_items(&mut entries);
        names.extend(entries);
    }
    names.truncate(MAX_NAMES);
    names
}

/// Reports whether an entry is a folder, or a file if these count, under a name that does not begin with a dot. What a
/// link leads to may be anywhere.
fn is_meant(entry: &DirEntry, has_files: bool) -> bool {
    let is_plain = !entry.file_name().as_encoded_bytes().starts_with(b".");
    let is_kind = |kind: FileType| kind.is_dir() || (has_files && kind.is_file());
    is_plain && entry.file_type().is_ok_and(is_kind)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use gnoma_sandbox::ReadScope;

    use super::*;

    #[test]
    fn names_above_the_workspace_are_listed_but_links_settings_and_what_is_shown_or_hidden() {
        // Temporary files are the session's own, so no names of theirs are listed.
        let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
            return gnoma_testkit::skip_test("`/dev/shm` cannot be written");
        };
        let at = |name: &str| folder.path().join(name);
        for name in ["work/src", "other", ".config", "tools", "keys"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        fs::write(at("notes"), "").unwrap();
        symlink(at("other"), at("link")).unwrap();
        let (shown, hidden) = (vec![at("work"), at("tools/bin")], vec![at("keys")]);
        let readable = ReadScope::Only { shown, hidden };
        let policy = Policy { readable, ..Policy::default() };
        let names = |has_files| {
            let mut names = list_outside_names(&[at("work")], &policy, has_files);
            names.retain(|path| path.starts_with(folder.path()));
            names
        };
        assert_eq!(names(false), [at("other")]);
        let writable = vec![at("other/cache")];
        let caching = Policy { writable, ..policy.clone() };
        assert!(!list_outside_names(&[at("work")], &caching, false).contains(&at("other")));
        assert_eq!(names(true), [at("notes"), at("other")]);
        let temporary = tempfile::tempdir_in("/tmp").unwrap();
        fs::create_dir(temporary.path().join("beside")).unwrap();
        let root = temporary.path().join("work");
        assert!(list_outside_names(&[root], &Policy::default(), true).is_empty());
    }
}
