//! The repository of git that a folder of the workspace belongs to, as far as it is outside of the workspace: commands
//! need it, because git looks for it upwards and through `.git` files.

use std::{
    fmt,
    path::{Path, PathBuf},
};

/// The places of a repository that a folder of the workspace belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkspaceRepository {
    /// Folders of git's own outside of the workspace, which git commands read and write.
    pub git_folders: Vec<PathBuf>,
    /// The work tree, where it begins outside of the workspace.
    pub work_tree: Option<PathBuf>,
    /// The paths in git's folders that decide about later runs.
    pub guarded: Vec<PathBuf>,
    /// The `.git` files of its linked work trees outside of the workspace, without which git says that these are gone.
    pub work_tree_marks: Vec<PathBuf>,
    /// The repository has no work tree: the workspace is in git's own folder.
    pub is_bare: bool,
}

impl WorkspaceRepository {
    /// Returns all its places outside of the workspace.
    pub fn places(&self) -> impl Iterator<Item = &PathBuf> {
        self.git_folders.iter().chain(&self.work_tree)
    }
}

/// Finds the repositories of the workspace. It names only places that say themselves that they belong to it: what
/// a `.git` file of the workspace says is not believed.
pub trait RepositoryFinder: Send + Sync {
    /// Returns the repositories of these folders, links resolved.
    fn find_repositories(&self, roots: &[PathBuf]) -> Vec<WorkspaceRepository>;

    /// Returns the names of the hooks of the repository around a folder that git would run.
    fn hook_names(&self, _folder: &Path) -> Vec<String> {
        Vec::new()
    }
}

impl fmt::Debug for dyn RepositoryFinder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RepositoryFinder")
    }
}

/// A finder that finds no repository.
#[derive(Clone, Copy, Debug)]
pub struct NoRepositoryFinder;

impl RepositoryFinder for NoRepositoryFinder {
    fn find_repositories(&self, _roots: &[PathBuf]) -> Vec<WorkspaceRepository> {
        Vec::new()
    }
}
