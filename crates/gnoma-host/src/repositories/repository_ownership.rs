//! Finds repositories outside of the workspace that belong to a folder of it.
//!
//! A `.git` file can name any folder, and an attacker may have written it. So the named folder must say
//! itself that the work tree is its own, as git has it say: a linked work tree by its `gitdir` file, a submodule by
//! `core.worktree`. Only who can write there can say that.

use std::{
    fs,
    path::{Path, PathBuf},
};

use gnoma_core::places::{self, WriteProtection, makes_repository};
use gnoma_guard::git;
use gnoma_tools::{RepositoryFinder, WorkspaceRepository};

use super::{
    hook_programs::find_hook_programs, read::read_text, repository_location::FoundRepository,
};
use crate::places::is_too_wide;

/// Git's own folder of a work tree, or the file that names it.
const MARK: &str = ".git";
/// Most linked work trees of a repository that are looked for.
const MAX_WORK_TREES: usize = 64;
/// The files that decide about later runs in the folder of a linked work tree.
const GUARDED_OF_WORK_TREE: [&str; 3] = ["config.worktree", "commondir", "gitdir"];

/// Finds repositories around the workspace that are no wider than a project.
#[derive(Clone, Debug, Default)]
pub(crate) struct BelongingRepositories {
    home: Option<PathBuf>,
}

impl BelongingRepositories {
    pub(crate) fn new(home: Option<PathBuf>) -> Self {
        Self { home: home.map(|home| fs::canonicalize(&home).unwrap_or(home)) }
    }

    /// The repository around a folder of the workspace, unless it is too wide or does not say that the folder is its
    /// own.
    fn repository_around(&self, folder: &Path, roots: &[PathBuf]) -> Option<WorkspaceRepository> {
        let found = FoundRepository::find_around(folder)?;
        let repository = RealRepository::from_found(&found)?;
        let is_outside = |path: &&PathBuf| !roots.iter().any(|root| path.starts_with(root));
        let is_narrow = |path: &PathBuf| !is_too_wide(path, self.home.as_deref());
        let all = [&repository.git, &repository.common, &repository.work_tree];
        if !repository.knows_work_tree() || !all.into_iter().filter(is_outside).all(is_narrow) {
            return None;
        }
        let mut git_folders: Vec<PathBuf> =
            [&repository.common, &repository.git].into_iter().filter(is_outside).cloned().collect();
        git_folders.dedup();
        let is_plain = roots.contains(&repository.work_tree) && repository.is_plain();
        Some(WorkspaceRepository {
            git_folders,
            work_tree: Some(&repository.work_tree).filter(is_outside).cloned(),
            // The folders of the workspace are guarded anyway.
            guarded: if is_plain { Vec::new() } else { repository.guarded_paths().collect() },
            work_tree_marks: repository.work_tree_marks().filter(|it| is_outside(&it)).collect(),
            is_bare: repository.is_bare(),
        })
    }
}

impl RepositoryFinder for BelongingRepositories {
    fn find_repositories(&self, roots: &[PathBuf]) -> Vec<WorkspaceRepository> {
        let mut all: Vec<WorkspaceRepository> = Vec::new();
        for found in roots.iter().filter_map(|root| self.repository_around(root, roots)) {
            if !all.contains(&found) {
                all.push(found);
            }
        }
        all
    }

    fn hook_names(&self, folder: &Path) -> Vec<String> {
        let programs = find_hook_programs(folder);
        let names = programs.iter().filter_map(|path| path.file_name());
        names.map(|name| name.to_string_lossy().into_owned()).collect()
    }
}

/// A repository whose folders are there, links resolved.
pub(super) struct RealRepository {
    pub(super) git: PathBuf,
    pub(super) common: PathBuf,
    pub(super) work_tree: PathBuf,
    /// The path, without links, of what the work tree has at `.git`.
    mark: Option<PathBuf>,
}

impl RealRepository {
    pub(super) fn from_found(found: &FoundRepository) -> Option<Self> {
        let real = |path: &Path| fs::canonicalize(path).ok();
        let mark = found.work_tree.join(MARK);
        let is_link = mark.symlink_metadata().is_ok_and(|facts| facts.is_symlink());
        Some(Self {
            git: real(&found.git)?,
            common: real(&found.common)?,
            work_tree: real(&found.work_tree)?,
            mark: if is_link { None } else { real(&mark) },
        })
    }

    fn is_bare(&self) -> bool {
        self.work_tree == self.git
    }

    /// Reports whether the repository is the folder `.git` of its work tree and nothing else.
    fn is_plain(&self) -> bool {
        self.mark.as_ref() == Some(&self.git) && self.common == self.git
    }

    /// Reports whether the repository says itself that the work tree is its own.
    pub(super) fn knows_work_tree(&self) -> bool {
        if !self.has_right_common() {
            return false;
        }
        let is_own = self.is_bare() || self.is_plain();
        is_own || self.names_mark() || self.names_work_tree()
    }

    /// Reports whether the folder that the repository shares with others is where git puts it: around
    /// `worktrees/NAME`.
    fn has_right_common(&self) -> bool {
        let has = |name: &str| self.common.join(name).exists();
        let is_repository = has("HEAD") && makes_repository(has);
        let around = self.git.parent().filter(|folder| folder.ends_with("worktrees"));
        let is_around = around.and_then(Path::parent) == Some(&*self.common);
        is_repository && (self.common == self.git || is_around)
    }

    /// As a linked work tree: its `gitdir` file names the `.git` file.
    fn names_mark(&self) -> bool {
        let named = read_text(&self.git.join("gitdir")).map(|text| self.git.join(text.trim_end()));
        let named = named.and_then(|path| fs::canonicalize(path).ok());
        self.common != self.git && named.is_some() && named == self.mark
    }

    /// As a submodule: its settings name the work tree.
    fn names_work_tree(&self) -> bool {
        let files = ["config.worktree", "config"].map(|name| self.git.join(name));
        let named =
            files.iter().find_map(|file| git::find_setting(&read_text(file)?, "core.worktree"));
        let named = named.and_then(|path| fs::canonicalize(self.git.join(path)).ok());
        self.common == self.git && named.as_ref() == Some(&self.work_tree)
    }

    /// Returns the `.git` files of the linked work trees. Each names in return the folder that names it.
    fn work_tree_marks(&self) -> impl Iterator<Item = PathBuf> {
        let folders = fs::read_dir(self.common.join("worktrees")).into_iter().flatten().flatten();
        folders.take(MAX_WORK_TREES).filter_map(|folder| named_mark(&folder.path()))
    }

    /// Returns the paths that decide about later runs.
    fn guarded_paths(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let below = |name: &'static str| name.strip_prefix(MARK)?.strip_prefix('/');
        let of_all = places::write_protected_names(WriteProtection::Always).filter_map(below);
        let of_all = of_all.map(|name| self.common.join(name));
        let of_one = GUARDED_OF_WORK_TREE.iter().filter(|_| self.git != self.common);
        of_all.chain(of_one.map(|name| self.git.join(name)).filter(|path| path.exists()))
    }
}

/// Returns the `.git` file that the folder of a linked work tree names, if it is no link and names that folder.
fn named_mark(folder: &Path) -> Option<PathBuf> {
    let written = PathBuf::from(read_text(&folder.join("gitdir"))?.trim_end());
    // Git names work trees relatively if it is told to.
    let is_relative = written.is_relative();
    let mark = if is_relative { fs::canonicalize(folder.join(written)).ok()? } else { written };
    let is_real = mark.ends_with(MARK) && fs::canonicalize(&mark).is_ok_and(|real| real == mark);
    let named = read_text(&mark).filter(|_| is_real)?;
    let named = mark.parent()?.join(named.strip_prefix("gitdir:")?.trim());
    fs::canonicalize(named).is_ok_and(|named| named == folder).then_some(mark)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// A folder in which a script of git's has run.
    fn made(script: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let own = "set -e; export HOME=/nonexistent GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a \
            GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org; \
            make() { git init -q -b main $1; mkdir $1/sub; touch $1/sub/s; git -C $1 add -A; git -C $1 commit -qm one; }; ";
        let status = Command::new("bash")
            .args(["-c", &format!("{own}{script}")])
            .current_dir(&root)
            .status();
        assert!(status.unwrap().success(), "{script}");
        (folder, root)
    }

    /// The places outside of the workspace that belong to it.
    fn found(root: &Path, at: &str, home: &str) -> Vec<String> {
        let belonging = BelongingRepositories::new(Some(root.join(home)));
        let found = belonging.find_repositories(&[root.join(at)]);
        let places = found.iter().flat_map(WorkspaceRepository::places);
        places.map(|path| path.strip_prefix(root).unwrap().display().to_string()).collect()
    }

    #[test]
    fn git_repository_belongs_to_a_worktree_only_if_it_names_it() {
        const TREE: &str = "make r; git -C r worktree add -q ../w -b w";
        let submodule = "make l; make s; cd s; \
            git -c protocol.file.allow=always submodule --quiet add ../l m";
        let belongs: [(&str, &str, &[&str]); 7] = [
            ("make r", "r", &[]),
            ("make r", "r/sub", &["r/.git", "r"]),
            (TREE, "w", &["r/.git", "r/.git/worktrees/w"]),
            (TREE, "w/sub", &["r/.git", "r/.git/worktrees/w", "w"]),
            (submodule, "s/m", &["s/.git/modules/m"]),
            (submodule, "s/sub", &["s/.git", "s"]),
            ("mkdir p; git init -q --bare p/.b; echo 'gitdir: ./.b' > p/.git", "p/.b", &[]),
        ];
        for (script, at, expected) in belongs {
            let (_folder, root) = made(script);
            assert_eq!(found(&root, at, "home"), expected, "{script} {at}");
        }
        for script in [
            "make o; mkdir w; echo \"gitdir: $PWD/o/.git\" > w/.git",
            "make o; mkdir w; ln -s ../o/.git w/.git",
            "make o; make w; echo ../../o/.git > w/.git/commondir",
            "make o; git init -q --separate-git-dir g w",
            "make o; git -C o worktree add -q ../real -b x; mkdir w; cp real/.git w/.git",
            "make o; git -C o worktree add -q ../real -b x; mkdir w; ln -s ../real/.git w/.git",
            "mkdir -p w keys; touch keys/id_rsa; echo \"gitdir: $PWD/keys\" > w/.git",
            "mkdir w; echo 'gitdir: /etc' > w/.git",
        ] {
            let (_folder, root) = made(script);
            assert_eq!(found(&root, "w", "home"), [""; 0], "{script}");
        }
    }

    #[test]
    fn linked_git_worktree_marks_must_name_the_repository_in_return() {
        const TREE: &str = "make r; git -C r worktree add -q ../w -b w; ";
        let rows: [(&str, &str, &[&str]); 7] = [
            ("", "r", &["w/.git"]),
            ("echo ../../../../w/.git > r/.git/worktrees/w/gitdir", "r", &["w/.git"]),
            ("", "r/sub", &["w/.git"]),
            ("", "w", &[]),
            ("make o; echo \"$PWD/o/.git/config\" > r/.git/worktrees/w/gitdir", "r", &[]),
            (
                "mkdir o; echo secret > o/.git; echo \"$PWD/o/.git\" > r/.git/worktrees/w/gitdir",
                "r",
                &[],
            ),
            ("mv w v; ln -s v w", "r", &[]),
        ];
        for (script, at, expected) in rows {
            let (_folder, root) = made(&format!("{TREE}{script}"));
            let found = BelongingRepositories::new(None).find_repositories(&[root.join(at)]);
            let marks: Vec<_> = found.into_iter().flat_map(|it| it.work_tree_marks).collect();
            let expected: Vec<_> = expected.iter().map(|name| root.join(name)).collect();
            assert_eq!(marks, expected, "{script}");
        }
    }

    #[test]
    fn git_repository_around_the_home_is_ignored() {
        let (_folder, root) = made("make r; mkdir -p r/home/project");
        assert_eq!(found(&root, "r/home/project", "r/home"), [""; 0]);
        assert_eq!(found(&root, "r/home/project", "elsewhere"), ["r/.git", "r"]);
    }
}
