//! Folders that environment variables name.

use std::path::{Path, PathBuf};

use gnoma_core::protocol::Environment;

/// The folders of whoever has these variables.
pub trait Folders {
    /// Folder of the settings: `gnoma` in `XDG_CONFIG_HOME`, by default in `~/.config`.
    fn config_dir(&self) -> PathBuf;
    /// Folder of what is kept: `gnoma` in `XDG_STATE_HOME`, by default in `~/.local/state`.
    fn state_dir(&self) -> PathBuf;
    /// The person's own list of what git ignores, where git looks for it unless told otherwise.
    fn git_excludes(&self) -> PathBuf;
    /// The person's home: where `HOME` says, else by the system's list of users.
    fn home(&self) -> Option<PathBuf>;
    /// A folder with `~` for the home.
    fn shortened(&self, folder: &Path) -> String;
}

impl Folders for Environment {
    fn config_dir(&self) -> PathBuf {
        xdg(self, "XDG_CONFIG_HOME", ".config").join("gnoma")
    }

    fn state_dir(&self) -> PathBuf {
        xdg(self, "XDG_STATE_HOME", ".local/state").join("gnoma")
    }

    fn git_excludes(&self) -> PathBuf {
        xdg(self, "XDG_CONFIG_HOME", ".config").join("git/ignore")
    }

    fn home(&self) -> Option<PathBuf> {
        let named = self.get("HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        named.or_else(|| home_of(rustix::process::getuid().as_raw(), "/etc/passwd"))
    }

    fn shortened(&self, folder: &Path) -> String {
        match self.home().as_deref().and_then(|home| folder.strip_prefix(home).ok()) {
            Some(below) if below.as_os_str().is_empty() => "~".to_owned(),
            Some(below) => format!("~/{}", below.display()),
            None => folder.display().to_string(),
        }
    }
}

fn xdg(environment: &Environment, variable: &str, under_home: &str) -> PathBuf {
    let base = environment.get(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    base.unwrap_or_else(|| PathBuf::from(environment.get("HOME").unwrap_or("/")).join(under_home))
}

/// The home of the user with that number, by a file of `passwd(5)`.
fn home_of(user: u32, file: &str) -> Option<PathBuf> {
    let users = std::fs::read_to_string(file).ok()?;
    let is_user = |line: &&str| line.split(':').nth(2) == Some(&*user.to_string());
    let home = users.lines().find(is_user)?.split(':').nth(5)?;
    Some(PathBuf::from(home)).filter(|path| path.is_absolute())
}
