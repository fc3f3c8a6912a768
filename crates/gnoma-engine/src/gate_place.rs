//! The place in which a session's calls are judged.

use std::{
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
};

use gnoma_guard::{git::Repositories, permission::JudgementContext};

/// Lists the names in a folder; `None` where they cannot be told or are too many.
pub type FolderLister = dyn Fn(&Path) -> Option<Vec<OsString>> + Send + Sync;

/// The facts that the guard knows about the place where a session works.
pub struct GatePlace {
    /// Folder that commands start in, links resolved.
    pub cwd: PathBuf,
    /// Folders in which the tools may work, with links resolved; the first contains `cwd`.
    pub roots: Vec<PathBuf>,
    /// The home folder of the user.
    pub home: Option<PathBuf>,
    /// Folders of gnoma's own configuration and state.
    pub config_dirs: Vec<PathBuf>,
    /// Folders in which programs are searched for.
    pub programs: Vec<PathBuf>,
    /// Folders that stand for others, each with the other one: a file of a copy is judged as that of the original.
    pub copies: Vec<(PathBuf, PathBuf)>,
    /// The user trusts the project's settings.
    pub trusted: bool,
    /// Commands run behind walls.
    pub sandboxed: bool,
    /// The sandbox gives the network to a command that was granted it.
    pub network_on_grant: bool,
    /// Reports whether the sandbox keeps a command off the network if network access was not granted. Called only
    /// when a command is about to receive a secret.
    pub network_is_walled: Box<dyn Fn() -> bool + Send + Sync>,
    /// Reports whether trial runs work here: a command runs first in a view of the workspace where its changes have
    /// no effect yet. Called only for a command that would run on trial.
    pub can_try: Box<dyn Fn() -> bool + Send + Sync>,
    /// Follows the links of a path, as far as it exists.
    pub resolve: Box<dyn Fn(&Path) -> PathBuf + Send + Sync>,
    /// The names in a folder; `None` where they cannot be told or are too many. A folder that is not there has none.
    pub list: Box<FolderLister>,
    /// Looks at repositories of git.
    pub repositories: Box<dyn Repositories + Send + Sync>,
}

impl GatePlace {
    /// Returns everything that a judgement in this place depends on besides rules and mode.
    #[must_use]
    pub fn judgement_context(&self) -> JudgementContext<'_> {
        JudgementContext {
            cwd: &self.cwd,
            home: self.home.as_deref(),
            roots: &self.roots,
            config_dirs: &self.config_dirs,
            programs: &self.programs,
            copies: &self.copies,
            trusted: self.trusted,
            sandboxed: self.sandboxed,
            network_on_grant: self.network_on_grant,
            resolve: &*self.resolve,
            list: &*self.list,
            repositories: &*self.repositories,
        }
    }

    /// A trusted folder without a sandbox, a home or links.
    #[must_use]
    pub fn from_folder(folder: &Path) -> Self {
        Self {
            cwd: folder.to_owned(),
            roots: vec![folder.to_owned()],
            home: None,
            config_dirs: Vec::new(),
            programs: Vec::new(),
            copies: Vec::new(),
            trusted: true,
            sandboxed: false,
            network_on_grant: true,
            network_is_walled: Box::new(|| true),
            can_try: Box::new(|| false),
            resolve: Box::new(Path::to_path_buf),
            list: Box::new(|_| None),
            repositories: Box::new(gnoma_guard::git::NoRepositories),
        }
    }
}

impl fmt::Debug for GatePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatePlace").field("roots", &self.roots).finish_non_exhaustive()
    }
}
