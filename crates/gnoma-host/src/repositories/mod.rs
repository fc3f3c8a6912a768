//! Examines git repositories before a git command does: which programs their settings would run, and which secret
//! files their history contains.
//!
//! The only thing that is taken from a repository is where it says it is.

mod git_command;
mod history;
mod hook_programs;
mod index;
mod read;
mod repository_location;
mod repository_ownership;
mod services;
mod trial_leftovers;

use std::{
    collections::HashMap,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use gnoma_core::{
    places::{RuledPaths, makes_repository},
    sync::Mutex,
};
use gnoma_guard::git::{OutsidePlaces, Repositories, program_setting};
use gnoma_tools::{RepositoryFinder as _, Trials, WorkspaceRepository};

pub(crate) use git_command::git_command;
pub(crate) use hook_programs::find_hook_programs;
use read::read_text;
use repository_location::FoundRepository;
pub(crate) use repository_ownership::BelongingRepositories;
use repository_ownership::RealRepository;
pub(crate) use services::ServicePlaces;

/// The settings of a repository that make git run a program.
#[derive(thiserror::Error)]
#[error("git would run {program}")]
pub(crate) struct GitProgramError {
    /// The setting or the hook that names the program.
    program: String,
}

gnoma_core::debug_as_display!(GitProgramError);

/// Returns the folder of git and the work tree of the repository around `folder`, if there is one.
///
/// # Errors
/// The settings of the repository would run a program.
pub(crate) fn harmless_repository(
    folder: &Path,
) -> Result<Option<(PathBuf, PathBuf)>, GitProgramError> {
    let found = FoundRepository::find_around(folder);
    match found.as_ref().and_then(program_of) {
        Some(program) => Err(GitProgramError { program }),
        None => Ok(found.map(|found| (found.git, found.work_tree))),
    }
}

/// Repositories within repositories that are looked at for one command.
const MAX_NESTED: usize = 64;
/// The hook that git runs when it has written down what it saw.
const HOOK: &str = "post-index-change";
/// The files in which rustup looks for what a project chooses.
const TOOL_CHAIN_FILES: [&str; 2] = ["rust-toolchain", "rust-toolchain.toml"];
/// The paths in a repository that change when its history does.
const MARKS: [&str; 7] =
    ["HEAD", "index", "packed-refs", "logs/HEAD", "refs/heads", "refs/stash", "FETCH_HEAD"];

/// Files and folders whose content git runs or takes settings from because the settings of the repository around
/// `folder` name them.
pub(crate) fn named_by_settings(folder: &Path) -> Vec<PathBuf> {
    let found = FoundRepository::find_around(folder);
    found.iter().flat_map(FoundRepository::named_by_settings).collect()
}

/// Repositories as they are on the disk. What takes long is remembered until they change.
#[derive(Debug, Default)]
pub(crate) struct RepositoriesOnDisk {
    services: ServicePlaces,
    /// The trials, which know what commands of the session left for later ones.
    trials: Option<Arc<Trials>>,
    /// The folders of the workspace, and which repositories belong to them.
    roots: Vec<PathBuf>,
    belonging: BelongingRepositories,
    /// The rules that keep paths from being read, in a history as well.
    rules: Option<Arc<dyn RuledPaths>>,
    secrets: Mutex<KnownSecrets>,
}

/// The secret files of each history, and how it stood when they were looked for.
type KnownSecrets = HashMap<PathBuf, (HistoryStamp, Arc<[PathBuf]>)>;

/// The times at which [`MARKS`] were last changed.
type HistoryStamp = Vec<Option<SystemTime>>;

impl RepositoriesOnDisk {
    /// With where programs and services are looked for, and the trials of the session.
    pub(crate) fn new(services: ServicePlaces, trials: Option<Arc<Trials>>) -> Self {
        Self { services, trials, ..Self::default() }
    }

    /// Sets the folders of the workspace, links resolved.
    pub(crate) fn of_workspace(
        self,
        roots: Vec<PathBuf>,
        belonging: BelongingRepositories,
    ) -> Self {
        Self { roots, belonging, ..self }
    }

    /// Sets the rules about files.
    pub(crate) fn with_rules(self, rules: Option<Arc<dyn RuledPaths>>) -> Self {
        Self { rules, ..self }
    }

    /// Returns the place of what commands find at a path instead of what is there.
    fn left_at(&self, path: &Path) -> Option<PathBuf> {
        self.trials.as_ref().and_then(|trials| trials.left_at(path))
    }

    /// Reports whether an earlier command on trial has left other settings in the repository of this folder.
    fn is_left_otherwise(&self, folder: &Path) -> bool {
        trial_leftovers::is_otherwise(folder, &|path| self.left_at(path))
    }
}

/// The text for a setting of a repository that differs in a layer.
const LEFT: &str = "of a repository that an earlier command has changed on trial";

impl Repositories for RepositoriesOnDisk {
    fn find_program_setting(&self, folder: &Path) -> Option<String> {
        // What an earlier command left in a layer, or in temporary files of the session, is not seen from here.
        if folder.symlink_metadata().is_err() {
            return Some("of a folder that only commands see".to_owned());
        }
        if folder.ancestors().any(|folder| self.is_left_otherwise(folder)) {
            return Some(LEFT.to_owned());
        }
        let mut waiting = vec![FoundRepository::find_around(folder)?];
        let mut seen = 0;
        while let Some(found) = waiting.pop() {
            seen += 1;
            if seen > MAX_NESTED {
                return Some("more repositories within it than are looked at".to_owned());
            }
            if let Some(program) = program_of(&found) {
                return Some(program);
            }
            let own = [&found.git, &found.common].into_iter();
            if own.chain([&found.work_tree]).any(|folder| self.is_left_otherwise(folder)) {
                return Some(LEFT.to_owned());
            }
            let left = self.left_at(&found.git.join(index::FILE));
            let left = left.map(|index| index::entries_of(&found, &index)).unwrap_or_default();
            let nested = index::read_entries(&found).into_iter().chain(left);
            for entry in nested.filter(|entry| entry.is_repository) {
                let folder = found.work_tree.join(entry.path);
                if self.is_left_otherwise(&folder) {
                    return Some(LEFT.to_owned());
                }
                waiting.extend(FoundRepository::from_work_tree(&folder));
            }
        }
        None
    }

    fn secret_files(&self, folder: &Path) -> Arc<[PathBuf]> {
        let Some(found) = FoundRepository::find_around(folder) else { return Arc::default() };
        let stamp = history_stamp(&found);
        let known = |secrets: &KnownSecrets| {
            let (then, secrets) = secrets.get(&found.git)?;
            (*then == stamp).then(|| Arc::clone(secrets))
        };
        if let Some(secrets) = known(&self.secrets.lock()) {
            return secrets;
        }
        let secrets: Arc<[PathBuf]> =
            history::secret_files(&found, &self.services.path, self.rules.as_deref()).into();
        self.secrets.lock().insert(found.git, (stamp, Arc::clone(&secrets)));
        secrets
    }

    fn own_compiler(&self, folder: &Path) -> Option<PathBuf> {
        let files =
            folder.ancestors().flat_map(|folder| TOOL_CHAIN_FILES.map(|name| folder.join(name)));
        let files = files.map(|file| self.left_at(&file).unwrap_or(file));
        // A file that is there and cannot be read may say anything.
        let names_folder = |file: &PathBuf| {
            file.symlink_metadata().is_ok()
                && read_text(file).is_none_or(|text| text.contains("path") || text.contains('\\'))
        };
        files.into_iter().find(names_folder)
    }

    fn outside_places(&self, folder: &Path) -> OutsidePlaces {
        let found = FoundRepository::find_around(folder);
        let Some(real) = found.and_then(|found| RealRepository::from_found(&found)) else {
            return OutsidePlaces::default();
        };
        let ours = self.belonging.find_repositories(&self.roots);
        let found_by_commands = |path: &Path| {
            let places = ours.iter().flat_map(WorkspaceRepository::places);
            self.roots.iter().chain(places).any(|place| path.starts_with(place))
        };
        let work_trees = ours.iter().filter_map(|ours| ours.work_tree.as_ref());
        let work_tree = work_trees.into_iter().find(|tree| **tree == real.work_tree).cloned();
        let has_git_folder = !self.roots.iter().any(|root| real.git.starts_with(root));
        let mut foreign = vec![real.work_tree, real.common, real.git];
        foreign.retain(|path| !found_by_commands(path) && !path.starts_with(folder));
        foreign.dedup();
        OutsidePlaces { foreign, work_tree, has_git_folder }
    }

    fn settings_files(&self, folder: &Path) -> Vec<PathBuf> {
        let Some(found) = FoundRepository::find_around(folder) else { return Vec::new() };
        // A link in their place would lead git's own writing elsewhere: it is no such file.
        let in_folder =
            |folder: &Path, name: &str| fs::canonicalize(folder).map(|it| it.join(name));
        let shared = in_folder(&found.common, "config");
        shared.into_iter().chain(in_folder(&found.git, "config.worktree")).collect()
    }

    fn has_hooks(&self, folder: &Path) -> bool {
        !find_hook_programs(folder).is_empty()
    }

    fn is_git_folder(&self, folder: &Path, and: &OsStr) -> bool {
        let is_there = |name: &str| {
            let path = folder.join(name);
            and == name || path.symlink_metadata().is_ok() || self.left_at(&path).is_some()
        };
        makes_repository(is_there)
    }

    fn is_own_temporary(&self, path: &Path) -> bool {
        self.trials.as_ref().is_some_and(|trials| trials.is_own_temporary(path))
    }

    fn replaces_temporary(&self) -> bool {
        self.trials.as_ref().is_some_and(|trials| trials.replaces_temporary())
    }

    fn can_answer(&self, program: &str) -> bool {
        services::can_answer(program, &self.services)
    }

    fn seen_by_commands(&self, path: &Path) -> Option<PathBuf> {
        let trials = self.trials.as_ref().filter(|trials| trials.have_left())?;
        Some(trial_leftovers::resolve_links(path, &|path| trials.left_at(path)))
    }
}

/// Returns the program that looking at this repository, not those within it, would run.
fn program_of(found: &FoundRepository) -> Option<String> {
    for file in [found.common.join("config"), found.git.join("config.worktree")] {
        if let Some(setting) = read_text(&file).as_deref().and_then(program_setting) {
            return Some(format!("`{setting}` in `{}`", found.display_path(&file)));
        }
    }
    found.hooks_folder().join(HOOK).exists().then(|| format!("the hook `{HOOK}`"))
}

fn history_stamp(found: &FoundRepository) -> HistoryStamp {
    let time = |path: PathBuf| fs::metadata(path).and_then(|facts| facts.modified()).ok();
    let places = [&found.git, &found.common].into_iter();
    places.flat_map(|place| MARKS.map(|mark| time(place.join(mark)))).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn git_settings_exclude_symlink_targets() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let git = root.join(".git");
        fs::create_dir_all(git.join("hooks")).unwrap();
        fs::write(root.join("elsewhere"), "").unwrap();
        symlink(root.join("elsewhere"), git.join("config")).unwrap();
        let repositories = RepositoriesOnDisk::default();
        let settings = [git.join("config"), git.join("config.worktree")];
        assert_eq!(repositories.settings_files(&root), settings);
        assert!(!repositories.has_hooks(&root));
        let hook = git.join("hooks/pre-push");
        fs::write(&hook, "").unwrap();
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(repositories.has_hooks(&root));
    }
}
