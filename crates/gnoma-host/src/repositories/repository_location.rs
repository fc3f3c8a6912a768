//! Finds the repository of a folder as git does.

use std::path::{Path, PathBuf};

use gnoma_core::places::makes_repository;
use gnoma_guard::git;

use super::read::read_text;

/// A repository that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundRepository {
    /// The repository's own folder; in a linked work tree, that one's.
    pub(super) git: PathBuf,
    /// The folder with what all its work trees share.
    pub(super) common: PathBuf,
    /// The folder of the repository's files; its own folder if there are none.
    pub(super) work_tree: PathBuf,
}

impl FoundRepository {
    /// The repository that a command in `folder` would use.
    pub(super) fn find_around(folder: &Path) -> Option<Self> {
        // Commands look upwards over file systems as well: their environment says so.
        folder
            .ancestors()
            .find_map(|folder| Self::from_work_tree(folder).or_else(|| Self::from_bare(folder)))
    }

    /// The repository whose work tree begins here.
    pub(super) fn from_work_tree(work_tree: &Path) -> Option<Self> {
        let mark = work_tree.join(".git");
        let facts = mark.metadata().ok()?;
        let git = if facts.is_dir() {
            mark
        } else {
            let text = read_text(&mark)?;
            work_tree.join(text.strip_prefix("gitdir:")?.trim())
        };
        let common = read_text(&git.join("commondir"));
        let common = common.map_or_else(|| git.clone(), |folder| git.join(folder.trim()));
        Some(Self { git, common, work_tree: work_tree.to_owned() })
    }

    fn from_bare(folder: &Path) -> Option<Self> {
        let has = |name: &str| folder.join(name).exists();
        // Of what several share git takes only the folder that has a `HEAD`.
        if !has("HEAD") || !makes_repository(has) {
            return None;
        }
        let common = read_text(&folder.join("commondir"));
        let common = common.map_or_else(|| folder.to_owned(), |common| folder.join(common.trim()));
        Some(Self { git: folder.to_owned(), common, work_tree: folder.to_owned() })
    }

    /// A path in it, as it is shown.
    pub(super) fn display_path(&self, path: &Path) -> String {
        path.strip_prefix(&self.work_tree).unwrap_or(path).display().to_string()
    }

    /// The folder with its hooks.
    pub(super) fn hooks_folder(&self) -> PathBuf {
        self.setting("core.hookspath")
            .map_or_else(|| self.common.join("hooks"), |folder| self.work_tree.join(folder))
    }

    /// Files and folders whose content git runs or takes settings from because the repository's own settings name them.
    pub(super) fn named_by_settings(&self) -> impl Iterator<Item = PathBuf> {
        let settings = read_text(&self.common.join("config")).unwrap_or_default();
        let included = git::included_files(&settings);
        let included = included.iter().map(|file| self.common.join(file));
        let hooks = git::find_setting(&settings, "core.hookspath");
        let hooks = hooks.map(|folder| self.work_tree.join(folder));
        let all: Vec<PathBuf> = included.chain(hooks).collect();
        all.into_iter()
    }

    /// The last value of one of its own settings.
    pub(super) fn setting(&self, name: &str) -> Option<String> {
        git::find_setting(&read_text(&self.common.join("config"))?, name)
    }
}
