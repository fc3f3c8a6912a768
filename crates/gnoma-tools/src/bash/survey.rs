//! A look over the workspace before a command runs behind walls: which repositories lie in it, whose
//! hooks and settings must stay as they are, and which files hold secrets.
//!
//! Bounded, so that no workspace holds a command up: nearest folders first, none that programs fill, and
//! what lies beyond the limits is kept by judging the command alone. Links are not followed.

use std::{
    collections::VecDeque,
    fs::{self, DirEntry},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use gnoma_core::places::{self, SecretVisibility, WriteProtection};

/// How deep below a folder of the workspace is looked; its own entries are at depth one.
const MAX_DEPTH: usize = 4;
/// Folders that are looked at.
const MAX_FOLDERS: usize = 250;
/// Entries that are looked at.
const MAX_ENTRIES: usize = 4_000;
/// Time that is spent. Only slow disks come near it: what is held should not depend on a clock, or on what
/// else the machine does.
const MAX_TIME: Duration = Duration::from_millis(500);
/// Repositories and secrets that are kept, each.
const MAX_FOUND: usize = 64;

/// Folders that programs fill with what they build or fetch: large, and nobody works in them.
const FILLED_BY_PROGRAMS: [&str; 4] = ["node_modules", "target", "__pycache__", ".venv"];

/// Where git keeps what is its own, and what is in it that a repository without a work tree has too.
const GIT_FOLDER: &str = ".git";
const MARKS_OF_REPOSITORY: [&str; 3] = ["HEAD", "objects", "refs"];

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Survey {
    /// What decides over later runs of git in nested repositories, where it exists.
    pub(super) held: Vec<PathBuf>,
    /// Files and folders that hold secrets.
    pub(super) secrets: Vec<PathBuf>,
}

/// What is held in a folder of the workspace.
pub(super) fn held_below(root: &Path) -> impl Iterator<Item = PathBuf> {
    let present =
        places::held(WriteProtection::AtHome).chain(places::held(WriteProtection::Present));
    let present = present.map(|name| root.join(name)).filter(|path| exists(path));
    places::held(WriteProtection::Always).map(|name| root.join(name)).chain(present)
}

/// A folder that is still to be looked at.
struct PendingFolder {
    folder: PathBuf,
    /// Its path, relative to the folder of the workspace it lies in.
    below: PathBuf,
}

impl Survey {
    /// Looks over the folders of the workspace, now.
    pub(super) fn of(roots: &[PathBuf]) -> Self {
        Self::until(Instant::now() + MAX_TIME, roots)
    }

    fn until(until: Instant, roots: &[PathBuf]) -> Self {
        let mut survey = Self::default();
        let start = |root: &PathBuf| PendingFolder { folder: root.clone(), below: PathBuf::new() };
        let mut waiting: VecDeque<_> = roots.iter().map(start).collect();
        let mut entries_left = MAX_ENTRIES;
        for _ in 0..MAX_FOLDERS {
            let Some(PendingFolder { folder, below }) = waiting.pop_front() else { break };
            if Instant::now() > until {
                break;
            }
            let entries = fs::read_dir(&folder).into_iter().flatten().take(entries_left);
            let entries: Vec<_> = entries.filter_map(Result::ok).collect();
            entries_left -= entries.len();
            let depth = below.components().count() + 1;
            if depth > 1 {
                survey.keep_repository(&folder, &entries);
            }
            for entry in entries.iter().filter(|entry| entry.file_name() != GIT_FOLDER) {
                let path = entry.path();
                let below = below.join(entry.file_name());
                let is_secret = survey.keep_secret(&path, &below);
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                let is_filled = FILLED_BY_PROGRAMS.iter().any(|name| entry.file_name() == *name);
                if is_folder && !is_filled && !is_secret && depth < MAX_DEPTH {
                    waiting.push_back(PendingFolder { folder: path, below });
                }
            }
        }
        survey
    }

    /// Keeps what git obeys, when `folder` is a nested repository.
    fn keep_repository(&mut self, folder: &Path, entries: &[DirEntry]) {
        let has = |name: &str| entries.iter().any(|entry| entry.file_name() == name);
        let repository = if has(GIT_FOLDER) {
            folder.join(GIT_FOLDER)
        } else if MARKS_OF_REPOSITORY.into_iter().all(has) {
            folder.to_owned()
        } else {
            return;
        };
        if self.held.len() >= MAX_FOUND {
            return;
        }
        if !repository.is_dir() {
            // It says where the repository is.
            self.held.push(repository);
            return;
        }
        let prefix = Path::new(GIT_FOLDER);
        let parts = places::held(WriteProtection::Always)
            .filter_map(|name| Path::new(name).strip_prefix(prefix).ok());
        self.held.extend(parts.map(|part| repository.join(part)).filter(|path| exists(path)));
    }

    /// Keeps a file or a folder that holds secrets; returns whether it does. Only its names `below` the
    /// workspace tell: what the workspace itself lies in is no reason.
    fn keep_secret(&mut self, path: &Path, below: &Path) -> bool {
        let is_hidden =
            places::secret(below).is_some_and(|secret| secret.sight != SecretVisibility::Seen);
        if is_hidden && self.secrets.len() < MAX_FOUND {
            self.secrets.push(path.to_owned());
        }
        is_hidden
    }
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        folder
    }

    fn survey(folder: &tempfile::TempDir) -> Survey {
        const PATIENCE: Duration = Duration::from_secs(60);
        Survey::until(Instant::now() + PATIENCE, &[folder.path().to_owned()])
    }

    fn below(folder: &tempfile::TempDir, mut paths: Vec<PathBuf>) -> Vec<String> {
        paths.sort();
        let name = |path: &PathBuf| path.strip_prefix(folder.path()).unwrap().display().to_string();
        paths.iter().map(name).collect()
    }

    #[test]
    fn repositories_below_the_workspace_are_found() {
        let folder = workspace(&[
            ".git/hooks/x",
            ".git/config",
            "vendor/a/.git/hooks/x",
            "vendor/a/.git/config",
            "vendor/a/.git/modules/m/hooks/x",
            "vendor/sub/.git",
            "fixtures/bare/HEAD",
            "fixtures/bare/objects/x",
            "fixtures/bare/refs/x",
            "fixtures/bare/config",
            "src/config",
        ]);
        let survey = survey(&folder);
        let expected = [
            "fixtures/bare/config",
            "vendor/a/.git/config",
            "vendor/a/.git/hooks",
            "vendor/a/.git/modules",
            "vendor/sub/.git",
        ];
        assert_eq!(below(&folder, survey.held), expected);
    }

    #[test]
    fn secrets_below_the_workspace_are_found_with_their_folders() {
        let folder = workspace(&[
            ".env",
            "api/.env.local",
            "api/.env.example",
            "deploy/.kube/config",
            "certs/server.key",
            "src/main.rs",
            ".git/config",
        ]);
        let survey = survey(&folder);
        let expected = [".env", "api/.env.local", "certs/server.key", "deploy/.kube"];
        assert_eq!(below(&folder, survey.secrets), expected);
    }

    #[test]
    fn what_lies_deeper_than_is_looked_is_left() {
        let deep = "a/".repeat(MAX_DEPTH) + ".env";
        let folder = workspace(&[&deep, &deep["a/".len()..]]);
        let found = survey(&folder).secrets;
        assert_eq!(below(&folder, found), [&deep["a/".len()..]]);
    }
}
