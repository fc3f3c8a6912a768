//! Surveys the workspace before a command runs in the sandbox: which repositories it contains, whose hooks and
//! settings must not change, and which files contain secrets.
//!
//! It looks at everything, nearest folders first, and remembers what it saw: the next look is one at each folder and at
//! each small file whose content decides. Links are not followed; other names of the same file are found.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    ffi::OsString,
    fs::{self, DirEntry},
    os::unix::fs::{DirEntryExt, MetadataExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use gnoma_core::places::{self, RuledPaths, WriteProtection};

use super::secret_files::{self, FileStamp, Suspicion};

/// The limits of a survey. Everything beyond them is sealed as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct SurveyLimits {
    folders: usize,
    time: Duration,
}

impl SurveyLimits {
    /// Of the workspace: all of it, unless the disk is slow.
    pub(super) const WORKSPACE: Self = Self { folders: 1_000_000, time: Duration::from_secs(20) };
    /// Of places of the machine that a command names. Nobody should wait for a look over `/var`.
    pub(super) const MACHINE: Self = Self { folders: 5_000, time: Duration::from_millis(500) };
}

/// Longest step of a file system that tells parts of a second, and of one that tells seconds.
const FINE_STEP: Duration = Duration::from_millis(20);
const COARSE_STEP: Duration = Duration::from_secs(3);
/// The most entries of nested repositories that are held.
const MAX_HELD: usize = 1_024;
/// Secret files of one folder that are sealed one by one. With more of them the folder is.
const MAX_SECRETS_OF_FOLDER: usize = 256;

/// The folder in which git keeps its own files.
const GIT_FOLDER: &str = ".git";

/// The result of a survey.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Survey {
    /// The paths that decide over later runs of git in nested repositories, where they exist.
    pub(super) held: Vec<PathBuf>,
    /// Files and folders that hold secrets.
    pub(super) secrets: Vec<PathBuf>,
}

/// Reports whether a place that is surveyed is itself a secret file.
fn is_secret_file(path: &Path) -> bool {
    places::find_secret(path).is_some() && path.is_file()
}

/// Returns the paths in a folder of the workspace that are protected from writing.
pub(super) fn held_below(root: &Path) -> impl Iterator<Item = PathBuf> {
    let present = places::write_protected_names(WriteProtection::AtHome)
        .chain(places::write_protected_names(WriteProtection::Present));
    let present = present.map(|name| root.join(name)).filter(|path| path_exists(path));
    places::write_protected_names(WriteProtection::Always)
        .map(|name| root.join(name))
        .chain(present)
}

/// A folder that is still to be looked at.
struct PendingFolder {
    folder: PathBuf,
    /// The path of the folder, relative to the folder of the workspace it is in.
    below: PathBuf,
}

/// The contents of folders when they were last looked at, so that one look at each tells whether they have to be
/// read again: a name that appears, vanishes or comes to mean something else changes the time of its folder.
#[derive(Debug, Default)]
pub(super) struct SurveyMemory {
    notes: HashMap<PathBuf, FolderNote>,
    /// The rules on reading; a file that they keep from being read is treated like a secret.
    rules: Option<Arc<dyn RuledPaths>>,
}

impl SurveyMemory {
    pub(super) fn with_rules(rules: Option<Arc<dyn RuledPaths>>) -> Self {
        Self { rules, ..Self::default() }
    }
}

/// The facts that matter about the entries of a folder.
#[derive(Debug)]
struct FolderNote {
    stamp: Option<FolderStamp>,
    /// Folders worth a look, and what holds secrets by its name.
    folders: Vec<OsString>,
    secrets: Vec<OsString>,
    /// Files whose content decides.
    doubtful: Vec<DoubtfulFile>,
    /// The numbers of all files.
    files: Vec<u64>,
    /// The repository that this folder is or has.
    repository: Option<PathBuf>,
}

/// A file whose content decides whether it is secret.
#[derive(Debug)]
struct DoubtfulFile {
    name: OsString,
    suspicion: Suspicion,
    stamp: Option<FileStamp>,
    is_secret: bool,
}

impl DoubtfulFile {
    /// Looks again where the file has changed since.
    fn recheck_file(&mut self, folder: &Path) {
        let path = folder.join(&self.name);
        let Some(facts) = secret_files::facts_of_file(&path) else { return };
        let stamp = Some(FileStamp::from_metadata(&facts));
        if stamp != self.stamp {
            self.is_secret = secret_files::holds_secret(&path, &facts, self.suspicion);
            self.stamp = stamp;
        }
    }
}

/// The times of a folder.
#[derive(Debug, PartialEq, Eq)]
struct FolderStamp {
    place: (u64, u64),
    written: (i64, i64),
    changed: (i64, i64),
}

impl FolderStamp {
    fn from_folder(folder: &Path) -> Option<Self> {
        let facts = fs::symlink_metadata(folder).ok()?;
        Some(Self {
            place: (facts.dev(), facts.ino()),
            written: (facts.mtime(), facts.mtime_nsec()),
            changed: (facts.ctime(), facts.ctime_nsec()),
        })
    }

    /// Reports whether a change from now on gives another stamp: file systems tell times in steps.
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
    fn read_folder(folder: &Path, below: &Path, rules: Option<&dyn RuledPaths>) -> Self {
        let stamp = FolderStamp::from_folder(folder).filter(FolderStamp::is_settled);
        let entries: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().collect();
        let has = |name: &str| entries.iter().any(|entry| entry.file_name() == name);
        let repository = if has(GIT_FOLDER) {
            Some(folder.join(GIT_FOLDER))
        } else {
            places::makes_repository(has).then(|| folder.to_owned())
        };
        let mut note = Self {
            stamp,
            folders: Vec::new(),
            secrets: Vec::new(),
            doubtful: Vec::new(),
            files: Vec::new(),
            repository,
        };
        let is_dependency = secret_files::is_of_dependencies(below);
        for entry in entries {
            match rules.is_some_and(|rules| rules.limits_reading(&entry.path())) {
                true => note.secrets.push(entry.file_name()),
                false => note.add_entry(&entry, below, is_dependency),
            }
        }
        note
    }

    fn add_entry(&mut self, entry: &DirEntry, below: &Path, is_dependency: bool) {
        let name = entry.file_name();
        // Only its names below the workspace tell: what the workspace itself is in is no reason.
        let path = below.join(&name);
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if name == GIT_FOLDER {
                return;
            }
            let list = if !is_dependency && places::is_secret_folder(&path) {
                &mut self.secrets
            } else {
                &mut self.folders
            };
            return list.push(name);
        }
        self.files.push(entry.ino());
        match secret_files::assess_path(&path, is_dependency) {
            Suspicion::Secret => self.secrets.push(name),
            suspicion @ (Suspicion::IfKey | Suspicion::IfSecretValues) => {
                let (stamp, is_secret) = (None, false);
                self.doubtful.push(DoubtfulFile { name, suspicion, stamp, is_secret });
            }
            Suspicion::None => {}
        }
    }

    fn is_current(&self, folder: &Path) -> bool {
        self.stamp.is_some() && FolderStamp::from_folder(folder) == self.stamp
    }

    /// The secret files and folders in it, by what their contents are now.
    fn secret_paths(&mut self, folder: &Path) -> Vec<PathBuf> {
        for file in &mut self.doubtful {
            file.recheck_file(folder);
        }
        let by_content = self.doubtful.iter().filter(|file| file.is_secret).map(|file| &file.name);
        self.secrets.iter().chain(by_content).map(|name| folder.join(name)).collect()
    }
}

impl Survey {
    /// Looks over the folders of the workspace, now.
    pub(super) fn from_roots(roots: &[PathBuf], memory: &mut SurveyMemory) -> Self {
        Self::with_limits(SurveyLimits::WORKSPACE, roots, memory)
    }

    /// The same within other limits.
    pub(super) fn with_limits(
        limits: SurveyLimits,
        roots: &[PathBuf],
        memory: &mut SurveyMemory,
    ) -> Self {
        let until = Instant::now() + limits.time;
        let mut survey = Self::default();
        let start = |root: &PathBuf| PendingFolder { folder: root.clone(), below: PathBuf::new() };
        let mut waiting: VecDeque<_> = roots.iter().map(start).collect();
        let mut seen = HashMap::new();
        while let Some(PendingFolder { folder, below }) = waiting.pop_front() {
            if seen.len() >= limits.folders || Instant::now() > until {
                survey.seal_folder(folder, &below);
                continue;
            }
            if below.as_os_str().is_empty() && is_secret_file(&folder) {
                survey.secrets.push(folder);
                continue;
            }
            let known = memory.notes.remove(&folder).filter(|note| note.is_current(&folder));
            let mut note = known.unwrap_or_else(|| {
                FolderNote::read_folder(&folder, &below, memory.rules.as_deref())
            });
            let is_root = below.as_os_str().is_empty();
            if let Some(repository) = note.repository.as_ref().filter(|_| !is_root) {
                survey.keep_repository(repository, &folder);
            }
            let secrets = note.secret_paths(&folder);
            if secrets.len() > MAX_SECRETS_OF_FOLDER && !is_root {
                survey.secrets.push(folder.clone());
            } else {
                survey.secrets.extend(secrets);
                waiting.extend(note.folders.iter().map(|name| PendingFolder {
                    folder: folder.join(name),
                    below: below.join(name),
                }));
            }
            seen.insert(folder, note);
        }
        memory.notes = seen;
        survey.add_other_names(memory);
        survey
    }

    /// Seals what was not looked at: the folder of the root that it is in, so that a list stays short.
    fn seal_folder(&mut self, folder: PathBuf, below: &Path) {
        let deeper = below.components().count().saturating_sub(1);
        let top = folder.ancestors().nth(deeper).map(Path::to_path_buf).unwrap_or(folder);
        if !self.secrets.contains(&top) {
            self.secrets.push(top);
        }
    }

    /// Adds other names of the same secret files.
    fn add_other_names(&mut self, memory: &SurveyMemory) {
        let linked = |path: &PathBuf| {
            let facts = secret_files::facts_of_file(path)?;
            (facts.nlink() > 1).then(|| (facts.dev(), facts.ino()))
        };
        let linked: HashSet<_> = self.secrets.iter().filter_map(linked).collect();
        if linked.is_empty() {
            return;
        }
        let known: HashSet<PathBuf> = self.secrets.iter().cloned().collect();
        let has_one = |note: &FolderNote| {
            note.files.iter().any(|number| linked.iter().any(|(_, linked)| linked == number))
        };
        for (folder, _) in memory.notes.iter().filter(|(_, note)| has_one(note)) {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let names = entries.map(|entry| entry.path()).filter(|path| !known.contains(path));
            self.secrets.extend(names.filter(|path| {
                let facts = secret_files::facts_of_file(path);
                facts.is_some_and(|facts| linked.contains(&(facts.dev(), facts.ino())))
            }));
        }
    }

    /// Keeps what git obeys in a nested repository.
    fn keep_repository(&mut self, repository: &Path, folder: &Path) {
        if self.held.len() >= MAX_HELD {
            return;
        }
        if repository != folder && !repository.is_dir() {
            // It says where the repository is.
            self.held.push(repository.to_owned());
            return;
        }
        let prefix = Path::new(GIT_FOLDER);
        let parts = places::write_protected_names(WriteProtection::Always)
            .filter_map(|name| Path::new(name).strip_prefix(prefix).ok());
        self.held.extend(parts.map(|part| repository.join(part)).filter(|path| path_exists(path)));
    }
}

fn path_exists(path: &Path) -> bool {
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
        let mut memory = SurveyMemory::default();
        Survey::from_roots(&[folder.path().to_owned()], &mut memory)
    }

    #[test]
    fn workspace_survey_cache_equals_a_fresh_scan() {
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
                let found = Survey::from_roots(&roots, &mut memory);
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
    fn survey_finds_secret_files_in_the_workspace() {
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
    fn survey_finds_secret_files_in_deep_and_large_folders() {
        let deep = "a/".repeat(40) + ".env";
        let decoys: Vec<String> = (0..200).map(|number| format!("decoys/{number}/.env")).collect();
        let others: Vec<String> = (0..5_000).map(|number| format!("many/{number}")).collect();
        let mut files: Vec<&str> = decoys.iter().chain(&others).map(String::as_str).collect();
        files.extend([
            deep.as_str(),
            "many/z/.env",
            "node_modules/a/.env",
            "node_modules/a/test/server.key",
            ".venv/.env",
            "target/release/id_rsa",
            "src/credentials/mod.rs",
        ]);
        let folder = workspace(&files);
        let found = below(&folder, survey(&folder).secrets);
        for name in
            [&deep, "many/z/.env", "node_modules/a/.env", ".venv/.env", "target/release/id_rsa"]
        {
            assert!(found.iter().any(|path| path == name), "{name}");
        }
        assert_eq!(found.len(), decoys.len() + 5);
    }

    #[test]
    fn survey_rechecks_file_content_and_hard_links_for_secrets() {
        let folder = workspace(&[".env", "notes.txt", "sub/auth.json", "sub/plain.json"]);
        let at = |name: &str| folder.path().join(name);
        let mut memory = SurveyMemory::default();
        let roots = [folder.path().to_owned()];
        let mut look = || {
            std::thread::sleep(FINE_STEP * 2);
            below(&folder, Survey::from_roots(&roots, &mut memory).secrets)
        };
        assert_eq!(look(), [".env"]);
        fs::write(at("notes.txt"), ["-----BEGIN ", "PRIVATE KEY-----\nMIIEvQIBADANBg\n"].concat())
            .unwrap();
        fs::write(at("sub/auth.json"), "{\"token\": \"abcdefgh12345678\"}").unwrap();
        fs::write(at("sub/plain.json"), "{\"token\": \"abcdefgh12345678\"}").unwrap();
        assert_eq!(look(), [".env", "notes.txt", "sub/auth.json"]);
        fs::write(at("notes.txt"), "nothing any more, and long enough").unwrap();
        fs::hard_link(at(".env"), at("sub/data.bin")).unwrap();
        assert_eq!(look(), [".env", "sub/auth.json", "sub/data.bin"]);
    }

    #[test]
    fn survey_reports_a_folder_with_very_many_secrets_as_one() {
        let files: Vec<String> =
            (0..=MAX_SECRETS_OF_FOLDER).map(|number| format!("keys/{number}.key")).collect();
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let folder = workspace(&files);
        assert_eq!(below(&folder, survey(&folder).secrets), ["keys"]);
    }

    #[test]
    fn survey_seals_top_level_folders_that_exceed_its_limit() {
        let folder = workspace(&["a/b/c/notes", "d/.env", "d/e/f", "plain"]);
        let roots = [folder.path().to_owned()];
        let limits = SurveyLimits { folders: 3, ..SurveyLimits::MACHINE };
        let found = Survey::with_limits(limits, &roots, &mut SurveyMemory::default());
        assert_eq!(below(&folder, found.secrets), ["a", "d", "d/.env"]);
        let secret = [folder.path().join("d/.env")];
        assert_eq!(Survey::from_roots(&secret, &mut SurveyMemory::default()).secrets, secret);
    }
}
