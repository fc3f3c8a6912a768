//! Surveys the workspace before a command runs in the sandbox: which repositories it contains, whose hooks and
//! settings must not change, and which files contain secrets.
//!
//! It has limits, so that no workspace delays a command: nearest folders first, and none that programs fill. Beyond
//! the limits, only the judgement of the command protects. Links are not followed.

use std::{
    collections::{HashMap, VecDeque},
    ffi::OsString,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use gnoma_core::places::{self, SecretVisibility, WriteProtection};

/// How deep below a folder of the workspace is looked; its own entries are at depth one.
const MAX_DEPTH: usize = 16;
/// Folders that are looked at.
const MAX_FOLDERS: usize = 250;
/// Entries that are looked at.
const MAX_ENTRIES: usize = 4_000;
/// Time that is spent. Only slow disks come near it: what is held should not depend on a clock, or on what
/// else the machine does.
const MAX_TIME: Duration = Duration::from_millis(500);
/// Longest step of a file system that tells parts of a second, and of one that tells seconds.
const FINE_STEP: Duration = Duration::from_millis(20);
const COARSE_STEP: Duration = Duration::from_secs(3);
/// Repositories and secrets that are kept, each.
const MAX_FOUND: usize = 64;

/// Folders that programs fill with what they build or fetch: large, and nobody works in them.
const FILLED_BY_PROGRAMS: [&str; 4] = ["node_modules", "target", "__pycache__", ".venv"];

/// Where git keeps what is its own.
const GIT_FOLDER: &str = ".git";

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
    /// Its path, relative to the folder of the workspace it is in.
    below: PathBuf,
}

/// What was seen in folders when they were last looked at, so that one look at each tells whether they have to be
/// read again: a name that appears, vanishes or comes to mean something else changes the time of its folder.
#[derive(Debug, Default)]
pub(super) struct SurveyMemory(HashMap<PathBuf, FolderNote>);

/// What of a folder's entries matters.
#[derive(Debug)]
struct FolderNote {
    stamp: Option<FolderStamp>,
    entries: usize,
    /// Folders worth a look, and what holds secrets.
    folders: Vec<OsString>,
    secrets: Vec<OsString>,
    /// Where the repository is that this folder is or has.
    repository: Option<PathBuf>,
}

/// The times of a folder.
#[derive(Debug, PartialEq, Eq)]
struct FolderStamp {
    place: (u64, u64),
    written: (i64, i64),
    changed: (i64, i64),
}

impl FolderStamp {
    fn of(folder: &Path) -> Option<Self> {
        let facts = fs::symlink_metadata(folder).ok()?;
        Some(Self {
            place: (facts.dev(), facts.ino()),
            written: (facts.mtime(), facts.mtime_nsec()),
            changed: (facts.ctime(), facts.ctime_nsec()),
        })
    }

    /// Whether a change from now on gives another stamp: file systems tell times in steps.
    fn is_settled(&self) -> bool {
        let (seconds, nanoseconds) = self.changed;
        let (Ok(whole), Ok(part)) = (u64::try_from(seconds), u32::try_from(nanoseconds)) else {
            return false;
        };
        let step = if part == 0 { COARSE_STEP } else { FINE_STEP };
        let changed = SystemTime::UNIX_EPOCH + Duration::new(whole, part);
        SystemTime::now().duration_since(changed).is_ok_and(|age| age > step)
    }
}

impl FolderNote {
    /// Reads a folder, `limit` entries of it at most.
    fn read(folder: &Path, below: &Path, limit: usize) -> Self {
        let stamp = FolderStamp::of(folder).filter(FolderStamp::is_settled);
        let entries = fs::read_dir(folder).into_iter().flatten().take(limit);
        let entries: Vec<_> = entries.filter_map(Result::ok).collect();
        let has = |name: &str| entries.iter().any(|entry| entry.file_name() == name);
        let repository = if has(GIT_FOLDER) {
            Some(folder.join(GIT_FOLDER))
        } else {
            places::makes_repository(has).then(|| folder.to_owned())
        };
        let mut note = Self {
            stamp: stamp.filter(|_| entries.len() < limit),
            entries: entries.len(),
            folders: Vec::new(),
            secrets: Vec::new(),
            repository,
        };
        for entry in entries {
            let name = entry.file_name();
            let is_filled = || FILLED_BY_PROGRAMS.iter().any(|filled| name == *filled);
            if name == GIT_FOLDER {
                continue;
            }
            // Only its names below the workspace tell: what the workspace itself is in is no reason.
            if is_secret(&below.join(&name)) {
                note.secrets.push(name);
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) && !is_filled() {
                note.folders.push(name);
            }
        }
        note
    }

    fn holds(&self, folder: &Path) -> bool {
        self.stamp.is_some() && FolderStamp::of(folder) == self.stamp
    }
}

fn is_secret(below: &Path) -> bool {
    places::secret(below).is_some_and(|secret| secret.sight != SecretVisibility::Seen)
}

impl Survey {
    /// Looks over the folders of the workspace, now.
    pub(super) fn of(roots: &[PathBuf], memory: &mut SurveyMemory) -> Self {
        Self::until(Instant::now() + MAX_TIME, roots, memory)
    }

    fn until(until: Instant, roots: &[PathBuf], memory: &mut SurveyMemory) -> Self {
        let mut survey = Self::default();
        let start = |root: &PathBuf| PendingFolder { folder: root.clone(), below: PathBuf::new() };
        let mut waiting: VecDeque<_> = roots.iter().map(start).collect();
        let mut entries_left = MAX_ENTRIES;
        let mut seen = HashMap::new();
        for _ in 0..MAX_FOLDERS {
            let Some(PendingFolder { folder, below }) = waiting.pop_front() else { break };
            if Instant::now() > until {
                break;
            }
            let known = memory.0.remove(&folder);
            let known = known.filter(|note| note.entries <= entries_left && note.holds(&folder));
            let note = known.unwrap_or_else(|| FolderNote::read(&folder, &below, entries_left));
            entries_left -= note.entries;
            let depth = below.components().count() + 1;
            if let Some(repository) = note.repository.as_ref().filter(|_| depth > 1) {
                survey.keep_repository(repository, &folder);
            }
            let room = MAX_FOUND - survey.secrets.len();
            survey.secrets.extend(note.secrets.iter().take(room).map(|name| folder.join(name)));
            if depth < MAX_DEPTH {
                waiting.extend(note.folders.iter().map(|name| PendingFolder {
                    folder: folder.join(name),
                    below: below.join(name),
                }));
            }
            seen.insert(folder, note);
        }
        memory.0 = seen;
        survey
    }

    /// Keeps what git obeys in a nested repository.
    fn keep_repository(&mut self, repository: &Path, folder: &Path) {
        if self.held.len() >= MAX_FOUND {
            return;
        }
        if repository != folder && !repository.is_dir() {
            // It says where the repository is.
            self.held.push(repository.to_owned());
            return;
        }
        let prefix = Path::new(GIT_FOLDER);
        let parts = places::held(WriteProtection::Always)
            .filter_map(|name| Path::new(name).strip_prefix(prefix).ok());
        self.held.extend(parts.map(|part| repository.join(part)).filter(|path| exists(path)));
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
        let mut memory = SurveyMemory::default();
        Survey::until(Instant::now() + PATIENCE, &[folder.path().to_owned()], &mut memory)
    }

    #[test]
    fn what_is_remembered_is_what_would_be_found() {
        let folder = workspace(&["src/main.rs", "deep/er/file", "vendor/a/.git/config"]);
        std::thread::sleep(FINE_STEP * 2);
        let roots = [folder.path().to_owned()];
        let mut memory = SurveyMemory::default();
        let at = |name: &str| folder.path().join(name);
        let changes: [&dyn Fn(); 7] = [
            &|| {},
            &|| fs::write(at("src/.env"), "").unwrap(),
            &|| fs::rename(at("src"), at("deep/er/src")).unwrap(),
            &|| fs::create_dir_all(at("deep/sub/.git/hooks")).unwrap(),
            &|| fs::remove_file(at("deep/er/src/.env")).unwrap(),
            &|| fs::remove_dir_all(at("vendor")).unwrap(),
            &|| {
                fs::write(at("vendor"), "").unwrap();
                fs::create_dir(at("certs")).unwrap();
                fs::write(at("certs/server.key"), "").unwrap();
            },
        ];
        for (number, change) in changes.iter().enumerate() {
            change();
            for _ in 0..2 {
                let until = Instant::now() + Duration::from_secs(60);
                let found = Survey::until(until, &roots, &mut memory);
                assert_eq!(found, survey(&folder), "{number}");
                std::thread::sleep(FINE_STEP * 2);
            }
        }
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
            "fixtures/shared/objects/x",
            "fixtures/shared/refs/x",
            "fixtures/shared/config",
            "src/config",
        ]);
        let survey = survey(&folder);
        let expected = [
            "fixtures/bare/config",
            "fixtures/shared/config",
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
