//! Folders that environment variables name.

use std::path::{Path, PathBuf};

use gnoma_core::{
    home, private_file::FileReplacement, protocol::Environment, system_error::without_numbers,
};

/// The folders that these variables define.
pub trait Folders {
    /// Folder of the settings: `gnoma` in `XDG_CONFIG_HOME`, by default in `~/.config`.
    fn config_dir(&self) -> PathBuf;
    /// Folder of what is kept: `gnoma` in `XDG_STATE_HOME`, by default in `~/.local/state`.
    fn state_dir(&self) -> PathBuf;
    /// Folder of what can be made again: `gnoma` in `XDG_CACHE_HOME`, by default in `~/.cache`.
    fn cache_dir(&self) -> PathBuf;
    /// Folder of a person's plugins: `gnoma/plugins` in `XDG_DATA_HOME`, by default in `~/.local/share`. Not
    /// among the settings, which commands cannot see: what hooks run must be readable to them.
    fn plugins_dir(&self) -> PathBuf;
    /// The person's own list of what git ignores, where git looks for it unless told otherwise.
    fn git_excludes(&self) -> PathBuf;
    /// The person's home: where `HOME` says, else by the system's list of users.
    fn home(&self) -> Option<PathBuf>;
    /// Returns the reason why nothing can be saved in the home, or in the folder that is named in place of one there, in
    /// a sentence that says what to do; `None` if it can, or if nothing is to be saved there.
    fn home_trouble(&self) -> Option<String>;

    /// Reports whether nothing can be saved in the home, as [`home_trouble`](Self::home_trouble) says.
    fn cannot_save(&self) -> bool;
    /// A folder with `~` for the home.
    fn shorten_home(&self, folder: &Path) -> String;
}

impl Folders for Environment {
    fn config_dir(&self) -> PathBuf {
        xdg_dir(self, "XDG_CONFIG_HOME", ".config").join("gnoma")
    }

    fn state_dir(&self) -> PathBuf {
        xdg_dir(self, "XDG_STATE_HOME", ".local/state").join("gnoma")
    }

    fn cache_dir(&self) -> PathBuf {
        xdg_dir(self, "XDG_CACHE_HOME", ".cache").join("gnoma")
    }

    fn plugins_dir(&self) -> PathBuf {
        xdg_dir(self, "XDG_DATA_HOME", ".local/share").join("gnoma/plugins")
    }

    fn git_excludes(&self) -> PathBuf {
        xdg_dir(self, "XDG_CONFIG_HOME", ".config").join("git/ignore")
    }

    fn home(&self) -> Option<PathBuf> {
        let named = self.get("HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        named.or_else(|| home_of(rustix::process::getuid().as_raw(), "/etc/passwd"))
    }

    fn home_trouble(&self) -> Option<String> {
        let is_relative = |name: &&str| {
            let folder = self.get(name).unwrap_or_default();
            !folder.is_empty() && !Path::new(folder).is_absolute()
        };
        if let Some(name) = OWN_FOLDERS.into_iter().find(is_relative) {
            return Some(format!("{name} is not an absolute path, so gnoma does not use it"));
        }
        if has_own_folders(self) {
            return None;
        }
        let remedy = "Set HOME to your home folder, or set both XDG_CONFIG_HOME and \
                      XDG_STATE_HOME.";
        let Some(home) = self.home() else {
            return Some(format!("HOME is not set, so nothing can be saved. {remedy}"));
        };
        let why = match self.variables().get("HOME") {
            Some(named) if !Path::new(named).is_absolute() => {
                let used = home.display();
                let what = if named.is_empty() {
                    "empty".to_owned()
                } else {
                    format!("`{named}`, which is not an absolute path")
                };
                return Some(format!("HOME is {what}, so gnoma uses {used}. {remedy}"));
            }
            Some(_) | None => unusable_reason(&home, &self.state_dir())?,
        };
        let settings = unusable_reason(&home, &self.config_dir()).map_or("", |_| "settings, ");
        let lost = format!("{settings}sessions, checkpoints and spending are not saved");
        if let Some(named) = own_folder(self, "XDG_STATE_HOME") {
            return Some(format!(
                "XDG_STATE_HOME is `{named}`, which {why}, so {lost}. Set it to a folder that can be \
                 written, or unset it."
            ));
        }
        if unusable_reason(&home, &home).is_none() {
            return Some(format!(
                "the folder of sessions {} {why}, so {lost}. Rename what is in its place or make it \
                 writable, or set XDG_STATE_HOME to another folder.",
                self.state_dir().display()
            ));
        }
        Some(format!("the home folder {} {why}, so {lost}. {remedy}", home.display()))
    }

    fn cannot_save(&self) -> bool {
        let is_unusable = |home: PathBuf| unusable_reason(&home, &self.state_dir()).is_some();
        !has_own_folders(self) && self.home().is_none_or(is_unusable)
    }

    fn shorten_home(&self, folder: &Path) -> String {
        home::shorten(folder, self.home().as_deref()).display().to_string()
    }
}

/// The variables that name the folders of settings and sessions.
const OWN_FOLDERS: [&str; 2] = ["XDG_CONFIG_HOME", "XDG_STATE_HOME"];

/// Reports whether settings and sessions have folders that do not depend on the home.
fn has_own_folders(environment: &Environment) -> bool {
    OWN_FOLDERS.iter().all(|name| own_folder(environment, name).is_some())
}

/// The folder that a variable names in place of one in the home. One that is not absolute is ignored, as the
/// specification says.
pub(crate) fn own_folder<'e>(environment: &'e Environment, variable: &str) -> Option<&'e str> {
    environment.get(variable).filter(|folder| Path::new(folder).is_absolute())
}

fn xdg_dir(environment: &Environment, variable: &str, under_home: &str) -> PathBuf {
    own_folder(environment, variable).map_or_else(
        || environment.home().unwrap_or_else(|| PathBuf::from("/")).join(under_home),
        PathBuf::from,
    )
}

/// Returns the reason why no file can be written in a folder, which need not exist; `None` if one can. Writes one and
/// removes it: a permission alone does not tell where files can be made.
#[must_use]
pub fn write_obstacle(folder: &Path) -> Option<String> {
    let there = folder.ancestors().find(|folder| folder.exists())?;
    let error = FileReplacement::prepare(&there.join("probe"), b"", None).err()?.to_string();
    Some(format!("{}: {}", there.display(), without_numbers(&error)))
}

/// Returns the reason why a folder in the home cannot be used: it must exist, or a folder in which it can be created.
fn unusable_reason(home: &Path, folder: &Path) -> Option<String> {
    let there = folder.ancestors().find(|folder| folder.exists())?;
    if !there.is_dir() {
        return Some(if there == home {
            "is not a folder".to_owned()
        } else {
            format!("cannot be used: {} is not a folder", there.display())
        });
    }
    let access = rustix::fs::access(there, rustix::fs::Access::WRITE_OK);
    let is_missing = home.strip_prefix(there).is_ok_and(|rest| !rest.as_os_str().is_empty());
    match access {
        Ok(()) => None,
        Err(_) if is_missing => Some("does not exist and cannot be created".to_owned()),
        Err(error) => {
            let error = error.to_string();
            let words = without_numbers(&error);
            Some(format!("cannot be written ({}: {words})", there.display()))
        }
    }
}

/// The home of the user with that number, by a file of `passwd(5)`.
fn home_of(user: u32, file: &str) -> Option<PathBuf> {
    let users = std::fs::read_to_string(file).ok()?;
    let is_user = |line: &&str| line.split(':').nth(2) == Some(&*user.to_string());
    let home = users.lines().find(is_user)?.split(':').nth(5)?;
    Some(PathBuf::from(home)).filter(|path| path.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble(home: &str) -> Option<String> {
        let variables = [("HOME".to_owned(), home.to_owned())];
        Environment::new(variables.into()).home_trouble()
    }

    #[test]
    fn unusable_xdg_state_home_warning_does_not_blame_home() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().display().to_string();
        let with = |state: &str| {
            let variables = [("HOME", home.as_str()), ("XDG_STATE_HOME", state)];
            let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
            Environment::new(variables.into()).home_trouble()
        };
        let said = with("state").unwrap();
        assert!(said.starts_with("XDG_STATE_HOME is not an absolute path"), "{said}");
        let said = with("/dev/null").unwrap();
        assert!(said.starts_with("XDG_STATE_HOME is `/dev/null`, which cannot be used"), "{said}");
        assert!(!said.contains("settings") && !said.contains("Set HOME"), "{said}");
        std::fs::create_dir_all(folder.path().join(".local/state")).unwrap();
        std::fs::write(folder.path().join(".local/state/gnoma"), "").unwrap();
        let said = with("").unwrap();
        assert!(said.contains("/.local/state/gnoma is not a folder, so sessions,"), "{said}");
        assert!(said.contains("Rename") && !said.contains("Set HOME"), "{said}");
    }

    #[test]
    fn unusable_home_folder_warning_has_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().display().to_string();
        assert_eq!(trouble(&home), None);
        assert_eq!(trouble(&format!("{home}/not/there")), None, "it can be made");
        std::fs::write(folder.path().join("file"), "").unwrap();
        let said = trouble(&format!("{home}/file")).unwrap();
        assert!(said.contains("/file is not a folder") && said.contains("Set HOME"), "{said}");
        assert!(trouble("somewhere").unwrap().contains("not an absolute path"));
        assert!(trouble("").is_some_and(|said| said.starts_with("HOME is ")));
        let variables = ["HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"];
        let variables = variables.map(|name| (name.to_owned(), "/dev/null".to_owned()));
        assert_eq!(Environment::new(variables.into()).home_trouble(), None, "it is not used");
    }
}
