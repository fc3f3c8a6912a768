//! What lies beside the workspace and the folders above it, which a command on trial finds and cannot open, and these
//! folders, which it cannot list. What such a command reads is only known when it runs: with nothing in these folders it
//! would say that what is there is not.
//!
//! Names that begin with a dot are left out: programs look for their settings there by themselves.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs::{self, DirEntry, FileType},
    path::{Path, PathBuf},
};

use gnoma_sandbox::{Policy, TEMPORARY};

use super::policy::{MOUNT_PLACE, MOUNTS};

/// Most names that are listed, those of the nearest folders first: each takes a mount.
const MAX_NAMES: usize = 128;
/// Most entries of one folder that are looked at.
const MAX_ENTRIES: usize = 4096;
/// A folder of libraries that programs look for in all folders above theirs.
const SEARCHED_ABOVE: &str = "node_modules";

/// Lists the folders above these roots that are neither shown nor hidden by the policy, and what lies in them: folders,
/// and with `has_files` also files and folders of libraries. Programs that are not of the shell look for these in all
/// folders above. Names that lead to a path in `variables` are left out, because programs look there by themselves, as the
/// sandbox looks for caches in the home, and so are places of mounts, because a server that does not answer would hold up
/// each command.
pub(super) fn list_outside_names(
    roots: &[PathBuf],
    policy: &Policy,
    variables: &[(OsString, OsString)],
    has_files: bool,
) -> Vec<PathBuf> {
    let shown = policy.readable.shown_paths().unwrap_or_default();
    let hidden = policy.readable.hidden_paths();
    let mounts = fs::read_to_string(MOUNTS).unwrap_or_default();
    let mounted = mounts.lines().filter_map(|line| line.split(' ').nth(MOUNT_PLACE)).map(Path::new);
    let found = shown.iter().chain(&policy.writable);
    let absent = AbsentPlaces {
        themselves: mounted.chain(hidden.iter().map(PathBuf::as_path)).collect(),
        with_folders: searched_places(variables)
            .chain(found.clone().map(PathBuf::as_path))
            .collect(),
    };
    let is_unseen = |folder: &Path| {
        let is_temporary = TEMPORARY.iter().any(|place| folder.starts_with(place));
        let is_found = found.clone().chain(hidden).any(|place| folder.starts_with(place));
        folder.parent().is_some() && !is_temporary && !is_found
    };
    let mut folders: Vec<&Path> = Vec::new();
    for folder in roots.iter().flat_map(|root| root.ancestors().skip(1)) {
        if is_unseen(folder) && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    let names = folders.iter().flat_map(|folder| absent.list_others(folder, has_files));
    let names = names.take(MAX_NAMES);
    folders.iter().map(|folder| folder.to_path_buf()).chain(names).collect()
}

/// Places that are not listed.
struct AbsentPlaces<'a> {
    /// Each by its own name.
    themselves: Vec<&'a Path>,
    /// Each with the folders that lead to it.
    with_folders: Vec<&'a Path>,
}

impl AbsentPlaces<'_> {
    /// Lists the other names in a folder, in their order.
    fn list_others(&self, folder: &Path, has_files: bool) -> Vec<PathBuf> {
        let here = self.themselves.iter().filter(|place| place.parent() == Some(folder));
        let below = self.with_folders.iter().filter_map(|place| place.strip_prefix(folder).ok());
        let absent = here.filter_map(|place| place.file_name());
        let absent: BTreeSet<&OsStr> =
            gnoma_core::sort::to_set(absent.chain(below.filter_map(|rest| rest.iter().next())));
        let entries = fs::read_dir(folder).into_iter().flatten().take(MAX_ENTRIES).flatten();
        let entries = entries.filter(|entry| is_meant(entry, has_files));
        let names = entries.map(|entry| entry.file_name());
        let mut names: Vec<OsString> =
            names.filter(|name| !absent.contains(name.as_os_str())).collect();
        gnoma_core::sort::sort_items(&mut names);
        names.into_iter().map(|name| folder.join(name)).collect()
    }
}

/// Returns the paths that the values of variables have, each value a list of them with colons.
fn searched_places(variables: &[(OsString, OsString)]) -> impl Iterator<Item = &Path> {
    let values = variables.iter().filter_map(|(_, value)| value.to_str());
    let paths = values.flat_map(|value| value.split(':')).map(Path::new);
    paths.filter(|path| path.is_absolute())
}

/// Reports whether an entry is a folder, or a file if these count, under a name that does not begin with a dot. What a
/// link leads to may be anywhere.
fn is_meant(entry: &DirEntry, has_files: bool) -> bool {
    let name = entry.file_name();
    let is_searched = !has_files && name == *SEARCHED_ABOVE;
    let is_kind = |kind: FileType| kind.is_dir() || (has_files && kind.is_file());
    !name.as_encoded_bytes().starts_with(b".")
        && !is_searched
        && entry.file_type().is_ok_and(is_kind)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use gnoma_sandbox::ReadScope;

    use super::*;

    #[test]
    fn outside_names_omit_symlinks_dotfiles_and_shown_or_hidden_paths() {
        // Temporary files are the session's own, so no names of theirs are listed.
        let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
            return gnoma_testkit::skip_test("`/dev/shm` cannot be written");
        };
        let at = |name: &str| folder.path().join(name);
        for name in
            ["work/src", "other", ".config", "tools", "keys", "sdk/lib", "node_modules", "home/me"]
        {
            fs::create_dir_all(at(name)).unwrap();
        }
        fs::write(at("notes"), "").unwrap();
        symlink(at("other"), at("link")).unwrap();
        let shown = vec![at("work"), at("tools/bin")];
        let readable = ReadScope::Only { shown, hidden: vec![at("keys"), at("other/key")] };
        let policy = Policy { readable, ..Policy::default() };
        let variables =
            [("LD_LIBRARY_PATH", "sdk/lib"), ("HOME", "home/me")].map(|(name, path)| {
                (name.into(), OsString::from_iter(["/x:".into(), at(path).into_os_string()]))
            });
        let names = |has_files| {
            let mut names = list_outside_names(&[at("work")], &policy, &variables, has_files);
            names.retain(|path| path.starts_with(folder.path()));
            names
        };
        assert_eq!(names(false), [folder.path().to_owned(), at("other")]);
        let writable = vec![at("other/cache")];
        let caching = Policy { writable, ..policy.clone() };
        assert!(!list_outside_names(&[at("work")], &caching, &[], false).contains(&at("other")));
        assert_eq!(names(true).split_off(1), [at("node_modules"), at("notes"), at("other")]);
        let temporary = tempfile::tempdir_in("/tmp").unwrap();
        fs::create_dir(temporary.path().join("beside")).unwrap();
        let root = temporary.path().join("work");
        assert!(list_outside_names(&[root], &Policy::default(), &[], true).is_empty());
    }
}
