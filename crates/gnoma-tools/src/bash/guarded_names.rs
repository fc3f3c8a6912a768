//! Names in the workspace that decide over later runs of programs and are absent when a background job starts. Nothing
//! holds these against it, so that no placeholder stands in the workspace; what appears is reported instead.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use gnoma_core::names::escape_path;
use gnoma_sandbox::STAND_IN_MODE;

use super::survey;

/// Guarded names that were absent, with the folders that they are in.
#[derive(Debug, Default)]
pub(super) struct AbsentNames(Vec<(PathBuf, PathBuf)>);

impl AbsentNames {
    /// Those of these folders that are absent now.
    pub(super) fn find_absent(roots: &[PathBuf]) -> Self {
        let names = roots
            .iter()
            .flat_map(|root| survey::held_below(root).map(move |path| (root.clone(), path)));
        Self(names.filter(|(_, path)| !really_exists(path)).collect())
    }

    /// A line that names what has appeared since the last call; empty where nothing has.
    pub(super) fn note_of_new(&mut self) -> String {
        let (new, absent) =
            std::mem::take(&mut self.0).into_iter().partition(|(_, path)| really_exists(path));
        self.0 = absent;
        let new: Vec<(PathBuf, PathBuf)> = new;
        let shown = |(root, path): &(PathBuf, PathBuf)| {
            format!("`{}`", escape_path(path.strip_prefix(root).unwrap_or(path)))
        };
        let names: Vec<_> = new.iter().map(shown).collect();
        if names.is_empty() {
            return String::new();
        }
        format!(
            "[since the job started, {} appeared in the workspace; programs may run what is in there, so read it first]",
            names.join(", ")
        )
    }
}

/// Reports whether an entry exists that is not a stand-in which the sandbox has put there for another command.
pub(super) fn really_exists(path: &Path) -> bool {
    // A command can give its own folder this mode, but not make it of use while it is empty.
    let is_empty = || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    let is_stand_in = |facts: &fs::Metadata| {
        facts.is_dir() && facts.mode() & 0o7777 == STAND_IN_MODE && is_empty()
    };
    path.symlink_metadata().is_ok_and(|facts| !is_stand_in(&facts))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn new_guarded_files_are_reported_once() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(".mcp.json"), "{}").unwrap();
        let mut absent = AbsentNames::find_absent(&[folder.path().to_owned()]);
        fs::create_dir(folder.path().join("src")).unwrap();
        assert_eq!(absent.note_of_new(), "");
        fs::create_dir(folder.path().join(".vscode")).unwrap();
        let note = absent.note_of_new();
        assert!(
            note.contains("`.vscode`") && !note.contains("mcp") && !note.contains("src"),
            "{note}"
        );
        assert_eq!(absent.note_of_new(), "");
    }

    #[test]
    fn nonempty_folder_is_no_sandbox_placeholder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".vscode");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(STAND_IN_MODE)).unwrap();
        assert!(!really_exists(&path));
        fs::write(path.join("tasks.json"), "{}").unwrap();
        assert!(really_exists(&path));
    }
}
