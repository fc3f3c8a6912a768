//! The places where sessions and files are saved: outside every project, unless the settings say otherwise.
//!
//! One folder contains both, so that the files of a checkpoint never include the store itself, even if the
//! workspace is the home that contains the folder.

use std::{
    borrow::Cow,
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use gnoma_config::settings::{Checkpoints, Privacy};
use gnoma_core::{home, protocol::Environment};
use gnoma_guard::firewall::Firewall;
use gnoma_sandbox::{MemoryFolder, launcher};
use gnoma_store::{
    Options, RedactHook, WrittenString,
    checkpoint::{self, Vault, Workspace},
};

use crate::{Folders as _, HostError, Notices, Result, project_settings::StorageSettings};

/// The folder within the state folder.
const FOLDER: &str = "kept";
/// The folder of the databases within that; profiles have folders of their own in it.
const SESSIONS: &str = "sessions";
/// The ending of a database that was rescued by a process that died before it was in place.
const RESCUED: &str = "db.rescued";
/// Most checkpoints of one workspace; their age and size are settings.
const MAX_CHECKPOINTS: usize = 10_000;

/// A folder that contains more than one project, so that no checkpoints of it are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WideFolder {
    /// The whole file system.
    Root,
    /// The folder of all programs' temporary files.
    Temporary(&'static str),
    /// The folder is a home folder.
    Home,
    /// A folder that contains home folders.
    AroundHome,
}

impl fmt::Display for WideFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("`/`"),
            Self::Temporary(folder) => write!(f, "`{folder}`, which all programs use"),
            Self::Home => f.write_str("a home folder"),
            Self::AroundHome => f.write_str("a folder that contains home folders"),
        }
    }
}

/// The places of one project.
#[derive(Clone, Debug)]
pub struct Places {
    /// The project's folder: it names what is kept.
    pub project: PathBuf,
    /// The folder of the session databases.
    pub sessions: PathBuf,
    /// The folder of the checkpoints of all projects, which also contains that of the databases, and nothing else:
    /// it is invisible to commands.
    pub vault: PathBuf,
    /// The folder whose files are saved; `None` if it would be too broad.
    pub workspace: Option<PathBuf>,
    /// The reason why the folder would be too broad.
    wide: Option<WideFolder>,
    /// The project that has come to be around this one since sessions of this one are kept.
    pub around: Option<PathBuf>,
    /// Takes the place of the state folder for what commands leave, where nothing may be saved.
    pub memory: Option<Arc<MemoryFolder>>,
    excludes: PathBuf,
}

/// The folder in memory of a session that must not save anything; `None` for others.
#[must_use]
fn memory_folder(privacy: Privacy) -> Option<Arc<MemoryFolder>> {
    privacy.incognito.then(|| Arc::new(MemoryFolder::new(launcher::ITSELF.into())))
}

impl Places {
    /// The places for work in `cwd`.
    pub fn for_folder(keeping: &StorageSettings, environment: &Environment, cwd: &Path) -> Self {
        let root = gnoma_config::project_root(cwd, &environment.config_dir());
        let root = root.unwrap_or_else(|| cwd.to_owned());
        // A repository that is made around a folder later must not hide what was saved of the folder.
        let own = (root != cwd).then(|| Self::in_project(cwd, cwd, keeping, environment));
        match own {
            Some(own) if own.has_sessions() => Self { around: Some(root), ..own },
            Some(_) | None => Self::in_project(&root, cwd, keeping, environment),
        }
    }

    fn in_project(
        project: &Path,
        cwd: &Path,
        keeping: &StorageSettings,
        environment: &Environment,
    ) -> Self {
        let home = environment.home();
        let vault = match &keeping.session.folder {
            Some(folder) => configured_folder(folder, project, home.as_deref()),
            None => environment.state_dir().join(FOLDER),
        };
        let mut sessions = vault.join(SESSIONS);
        sessions.extend(&keeping.profile);
        let narrow = |folder: &&Path| !is_too_wide(folder, home.as_deref());
        let workspace = [project, cwd].into_iter().find(narrow).map(Path::to_owned);
        let wide = wide_folder(cwd, home.as_deref());
        let (project, excludes) = (project.to_owned(), environment.git_excludes());
        let memory = memory_folder(keeping.privacy);
        Self { project, sessions, vault, workspace, wide, around: None, memory, excludes }
    }

    /// Reports whether there is a database, or a finished rescue of one.
    pub fn has_sessions(&self) -> bool {
        let key = gnoma_store::project_key(&self.project.display().to_string());
        // The part of the name that is for people may be missing: it may have looked like a secret.
        let hash = key.rsplit('-').next().unwrap_or(&key);
        let endings = [format!("{hash}.db"), format!("{hash}.{RESCUED}")];
        let is_own = |name: &str| endings.iter().any(|ending| name.ends_with(ending));
        match fs::read_dir(&self.sessions) {
            Ok(files) => files.flatten().any(|file| file.file_name().to_str().is_some_and(is_own)),
            // Opening the folder later reports why it cannot be read.
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }

    /// Returns the options with which sessions are stored, without secrets. Recovery of data while sessions are in
    /// use is reported.
    pub fn store_options(&self, firewall: &Arc<Firewall>, notices: &Notices) -> Options {
        let project = self.project.display().to_string();
        let notices = notices.clone();
        Options {
            recovered: Arc::new(move |rescued| notices.warning(rescued)),
            ..Options::new(self.sessions.clone(), project, store_redaction(Arc::clone(firewall)))
        }
    }

    /// The database of this project.
    pub fn database_path(&self) -> PathBuf {
        let project = self.project.display().to_string();
        self.sessions.join(format!("{}.db", gnoma_store::project_key(&project)))
    }

    /// The files as they were kept.
    pub fn open(&self, settings: &Checkpoints) -> Result<Workspace> {
        let Some(root) = &self.workspace else {
            let why = self.wide_reason();
            return Err(HostError::usage(format!("{why}; work in a project's folder")));
        };
        let vault = Vault::open(&self.vault, self.checkpoint_options(settings))?;
        Ok(vault.open_workspace(root)?)
    }

    /// Returns the reason why no checkpoints of these files are made, as a clause; `None` if they are made.
    pub fn checkpoint_hindrance(&self, settings: &Checkpoints) -> Option<String> {
        if !settings.enabled {
            return Some("no checkpoints are made (`checkpoints.enabled` is off)".to_owned());
        }
        self.workspace.is_none().then(|| self.wide_reason())
    }

    fn wide_reason(&self) -> String {
        let folder = self.wide.unwrap_or(WideFolder::AroundHome);
        format!("no checkpoints are kept in {folder}")
    }

    /// Returns the options with which the files are saved.
    pub fn checkpoint_options(&self, settings: &Checkpoints) -> checkpoint::Options {
        checkpoint::Options {
            limits: checkpoint_limits(settings),
            excludes: Some(self.excludes.clone()),
            ..checkpoint::Options::default()
        }
    }
}

/// Resolves a path. A path that cannot be resolved stays as it is, because opening it will fail in the same way.
pub(crate) fn resolve_path(path: &Path) -> PathBuf {
    gnoma_tools::resolve_links(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns the limits on the files that are saved.
fn checkpoint_limits(settings: &Checkpoints) -> checkpoint::Limits {
    checkpoint::Limits {
        file_bytes: settings.max_file,
        ignored_file_bytes: settings.ignored_max_file,
        store_bytes: settings.max_size,
        snapshots: MAX_CHECKPOINTS,
        age: settings.max_age,
    }
}

/// A folder as the settings name it: absolute, below the home, or below the project. One that
/// holds more than what is kept gets a folder for it.
fn configured_folder(folder: &str, project: &Path, home: Option<&Path>) -> PathBuf {
    let named = home::expand(folder, home, project);
    let real = resolve_path(&named);
    let is_wide = [&named, &real].iter().any(|folder| is_too_wide(folder, home));
    if is_wide || project.starts_with(&real) { named.join(FOLDER) } else { named }
}

/// Reports whether a folder holds more than any one project: the system, all homes, or a whole home.
pub(crate) fn is_too_wide(folder: &Path, home: Option<&Path>) -> bool {
    wide_folder(folder, home).is_some()
}

fn wide_folder(folder: &Path, home: Option<&Path>) -> Option<WideFolder> {
    if folder.parent().is_none() {
        return Some(WideFolder::Root);
    }
    let temporary = ["/tmp", "/var/tmp"].into_iter().find(|known| folder == Path::new(known));
    if let Some(temporary) = temporary {
        return Some(WideFolder::Temporary(temporary));
    }
    let home = home.filter(|home| home.starts_with(folder))?;
    Some(if home == folder { WideFolder::Home } else { WideFolder::AroundHome })
}

/// Takes secrets out of what people and models say. Signatures and pictures are of use only
/// unchanged, and hold none that was typed.
fn store_redaction(firewall: Arc<Firewall>) -> Arc<RedactHook> {
    Arc::new(move |what, text| match what {
        WrittenString::Words => firewall.redact_text(text),
        WrittenString::Opaque => Cow::Borrowed(text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_or_root_folder_is_too_wide_as_a_workspace() {
        let home = Some(Path::new("/home/me"));
        for wide in ["/", "/home", "/home/me", "/tmp"] {
            assert!(is_too_wide(Path::new(wide), home), "{wide}");
        }
        for narrow in ["/home/me/project", "/home/you", "/tmp/project", "/srv"] {
            assert!(!is_too_wide(Path::new(narrow), home), "{narrow}");
        }
    }

    #[test]
    fn configured_storage_folder_may_be_absolute_home_or_project_relative() {
        let (project, home) = (Path::new("/p"), Some(Path::new("/home/me")));
        let at = |folder| configured_folder(folder, project, home);
        assert_eq!(at("/mnt/kept"), Path::new("/mnt/kept"));
        assert_eq!(at("~/kept"), Path::new("/home/me/kept"));
        assert_eq!(at(".gnoma/kept"), Path::new("/p/.gnoma/kept"));
    }

    #[test]
    fn storage_folder_in_a_wide_place_gets_its_own_subfolder() {
        let (project, home) = (Path::new("/srv/p"), Some(Path::new("/home/me")));
        let at = |folder| configured_folder(folder, project, home);
        for wide in ["/srv", "/srv/p", "/home/me", "/home", "/", "/tmp"] {
            assert_eq!(at(wide), Path::new(wide).join("kept"), "{wide}");
        }
        for narrow in ["/srv/p/.gnoma/kept", "/home/me/kept", "/mnt/disk"] {
            assert_eq!(at(narrow), Path::new(narrow), "{narrow}");
        }
    }
}
