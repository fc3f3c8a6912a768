//! Looks at repositories of git before a command of git does: which programs their settings would have it run,
//! and which secret files their history holds.
//!
//! Nothing of a repository is obeyed here but where it says that it lies.

mod found;
mod history;
mod index;
mod read;

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use gnoma_guard::git::{Repositories, program_setting};

use found::FoundRepository;
use read::text;

/// Repositories within repositories that are looked at for one command.
const MAX_NESTED: usize = 64;
/// The hook that git runs when it has written down what it saw.
const HOOK: &str = "post-index-change";
/// Where rustup looks for what a project chooses.
const TOOL_CHAIN_FILES: [&str; 2] = ["rust-toolchain", "rust-toolchain.toml"];
/// What in a repository changes when its history does.
const MARKS: [&str; 7] =
    ["HEAD", "index", "packed-refs", "logs/HEAD", "refs/heads", "refs/stash", "FETCH_HEAD"];

/// Repositories as they lie on the disk. What takes long is remembered until they change.
#[derive(Debug, Default)]
pub(crate) struct RepositoriesOnDisk {
    /// Where programs are looked for.
    path: String,
    secrets: Mutex<KnownSecrets>,
}

/// The secret files of each history, and how it stood when they were looked for.
type KnownSecrets = HashMap<PathBuf, (HistoryStamp, Arc<[PathBuf]>)>;

/// When [`MARKS`] were last changed.
type HistoryStamp = Vec<Option<SystemTime>>;

impl RepositoriesOnDisk {
    /// With the folders in which programs are looked for.
    pub(crate) fn new(path: String) -> Self {
        Self { path, secrets: Mutex::default() }
    }
}

impl Repositories for RepositoriesOnDisk {
    fn program(&self, folder: &Path) -> Option<String> {
        // What an earlier command left in a layer, or in temporary files of the session, is not seen from here.
        if folder.symlink_metadata().is_err() {
            return Some("of a folder that only commands see".to_owned());
        }
        let mut waiting = vec![FoundRepository::around(folder)?];
        let mut seen = 0;
        while let Some(found) = waiting.pop() {
            seen += 1;
            if seen > MAX_NESTED {
                return Some("more repositories within it than are looked at".to_owned());
            }
            if let Some(program) = program_of(&found) {
                return Some(program);
            }
            let nested = index::entries(&found).into_iter().filter(|entry| entry.is_repository);
            waiting.extend(
                nested.filter_map(|entry| FoundRepository::at(&found.work_tree.join(entry.path))),
            );
        }
        None
    }

    fn secrets(&self, folder: &Path) -> Arc<[PathBuf]> {
        let Some(found) = FoundRepository::around(folder) else { return Arc::default() };
        let stamp = stamp(&found);
        let known = |secrets: &KnownSecrets| {
            let (then, secrets) = secrets.get(&found.git)?;
            (*then == stamp).then(|| Arc::clone(secrets))
        };
        let lock = || self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(secrets) = known(&lock()) {
            return secrets;
        }
        let secrets: Arc<[PathBuf]> = history::secrets(&found, &self.path).into();
        lock().insert(found.git, (stamp, Arc::clone(&secrets)));
        secrets
    }

    fn own_compiler(&self, folder: &Path) -> Option<PathBuf> {
        let files =
            folder.ancestors().flat_map(|folder| TOOL_CHAIN_FILES.map(|name| folder.join(name)));
        // A file that is there and cannot be read may say anything.
        let names_folder = |file: &PathBuf| {
            file.symlink_metadata().is_ok()
                && text(file).is_none_or(|text| text.contains("path") || text.contains('\\'))
        };
        files.into_iter().find(names_folder)
    }
}

/// What looking at this repository, not those within it, would run.
fn program_of(found: &FoundRepository) -> Option<String> {
    for file in [found.common.join("config"), found.git.join("config.worktree")] {
        if let Some(setting) = text(&file).as_deref().and_then(program_setting) {
            return Some(format!("`{setting}` in `{}`", found.shown(&file)));
        }
    }
    let hooks = found
        .setting("core.hookspath")
        .map_or_else(|| found.common.join("hooks"), |folder| found.work_tree.join(folder));
    hooks.join(HOOK).exists().then(|| format!("the hook `{HOOK}`"))
}

fn stamp(found: &FoundRepository) -> HistoryStamp {
    let time = |path: PathBuf| fs::metadata(path).and_then(|facts| facts.modified()).ok();
    let places = [&found.git, &found.common].into_iter();
    places.flat_map(|place| MARKS.map(|mark| time(place.join(mark)))).collect()
}
