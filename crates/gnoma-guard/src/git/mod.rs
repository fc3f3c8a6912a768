//! Effects of git commands that only look: programs that a repository's settings would run, and secrets that they
//! would show.
//!
//! [`Repositories`] reads the facts from disk; they are interpreted here.

mod contents;
mod settings;
mod tree;

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::Arc,
};

pub(crate) use contents::{GitInspection, parse_look};
pub use settings::{find_setting, included_files, program_setting};
pub(crate) use tree::{takes_lock, writes_settings, writes_tree};

/// The parts of a repository that are outside of the workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutsidePlaces {
    /// The repository's places that commands do not find, because nothing says that they belong to the workspace.
    pub foreign: Vec<PathBuf>,
    /// The work tree that the workspace is a part of.
    pub work_tree: Option<PathBuf>,
    /// git's own folder, in which it makes its locks, is outside of the workspace.
    pub has_git_folder: bool,
}

/// The facts about repositories, found out when a command looks at one, and about the workspace as commands see it.
pub trait Repositories {
    /// The setting by which a look at the repository around `folder` would run a program that its user did
    /// not choose, with where it is; `None` if there is none.
    fn find_program_setting(&self, folder: &Path) -> Option<String>;

    /// The files in the history of the repository around `folder` whose names say that they hold secrets;
    /// absolute, where they are or would be in its work tree.
    fn secret_files(&self, folder: &Path) -> Arc<[PathBuf]>;

    /// The file by which the project around `folder` has `cargo` and `rustc` be programs of its own.
    fn own_compiler(&self, folder: &Path) -> Option<PathBuf>;

    /// Returns the parts of the repository around `folder` that are outside of the workspace and not below
    /// `folder`.
    fn outside_places(&self, _folder: &Path) -> OutsidePlaces {
        OutsidePlaces::default()
    }

    /// The files with the settings of the repository around `folder`, links resolved; one of them may not be there.
    fn settings_files(&self, _folder: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Reports whether git runs hooks in the repository around `folder`.
    fn has_hooks(&self, _folder: &Path) -> bool {
        false
    }

    /// Reports whether git takes `folder` for a repository of its own, by whatever name, as soon as it has an entry
    /// `and`.
    fn is_git_folder(&self, _folder: &Path, _and: &OsStr) -> bool {
        false
    }

    /// Reports whether commands and file tools find temporary files of the session in place of the machine's.
    fn replaces_temporary(&self) -> bool {
        false
    }

    /// Reports whether a path among temporary files means one of the session's own.
    fn is_own_temporary(&self, _path: &Path) -> bool {
        false
    }

    /// Reports whether this program is installed and the service that it asks is there, so that it could answer
    /// outside the sandbox.
    fn can_answer(&self, _program: &str) -> bool {
        true
    }

    /// An absolute path with its links followed as the session's commands find them, where earlier commands on trial
    /// have left something; `None` where they see the disk as it is.
    fn seen_by_commands(&self, _path: &Path) -> Option<PathBuf> {
        None
    }
}

/// Repositories of which nothing is known, as if each were harmless.
#[derive(Clone, Copy, Debug)]
pub struct NoRepositories;

impl Repositories for NoRepositories {
    fn find_program_setting(&self, _: &Path) -> Option<String> {
        None
    }

    fn secret_files(&self, _: &Path) -> Arc<[PathBuf]> {
        Arc::default()
    }

    fn own_compiler(&self, _: &Path) -> Option<PathBuf> {
        None
    }
}
