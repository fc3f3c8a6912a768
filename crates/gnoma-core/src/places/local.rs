//! The table of files on this machine that need approval before they change, and what depends on the person and the
//! environment.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{guard_reason, is_home_setting};

/// Files that the rules of a session keep from being read or changed unasked, by absolute paths.
pub trait RuledPaths: Send + Sync {
    /// True if a rule denies reading the file or a folder around it, or asks about it.
    fn limits_reading(&self, path: &Path) -> bool;

    /// True if a rule denies changing the file or a folder around it, or asks about it.
    fn limits_changing(&self, path: &Path) -> bool;
}

impl fmt::Debug for dyn RuledPaths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RuledPaths")
    }
}

/// Places that the tables cannot name, all by absolute paths.
#[derive(Clone, Debug, Default)]
pub struct LocalPlaces {
    /// The person's home, as it is written and with links followed.
    pub homes: Vec<PathBuf>,
    /// Folders of gnoma's own settings and state.
    pub own: Vec<PathBuf>,
    /// Folders in which programs are searched for.
    pub programs: Vec<PathBuf>,
    /// Folders that stand for others, each with the other one: a file of a copy is judged as that of the original.
    pub copies: Vec<(PathBuf, PathBuf)>,
    /// The session works in the home itself, so that its settings are among the files it changes.
    pub works_at_home: bool,
    /// The paths that the rules of the session restrict; `None` if no rule is about files.
    pub rules: Option<Arc<dyn RuledPaths>>,
}

impl LocalPlaces {
    /// Returns what a change of the absolute path decides about, as the end of a sentence, if the change therefore
    /// needs a person's approval.
    #[must_use]
    pub fn guard_reason(&self, path: &Path) -> Option<&'static str> {
        let is_ruled = self.rules.as_ref().is_some_and(|rules| rules.limits_changing(path));
        let original = original_path(path, &self.copies);
        [Some(path), original.as_deref()].into_iter().flatten().find_map(|path| {
            guard_reason(path, &self.homes)
                .or_else(|| self.own.iter().any(|own| path.starts_with(own)).then_some(OWN_FILES))
                .or_else(|| is_program(path, &self.programs).then_some(PROGRAM_FOLDER))
                .or_else(|| self.is_home_setting(path).then_some(HOME_SETTINGS))
                .or_else(|| is_ruled.then_some(RULED))
        })
    }

    /// True if programs may read the path when they start. A copy is never one of the places they read, wherever it
    /// lies.
    fn is_home_setting(&self, path: &Path) -> bool {
        let is_copy = self.copies.iter().any(|(copy, _)| path.starts_with(copy));
        self.works_at_home && !is_copy && is_home_setting(path, &self.homes)
    }
}

/// The description of gnoma's own files, as the end of a sentence.
pub const OWN_FILES: &str = "gnoma's own files";
/// The description of a file that a rule keeps from being changed without approval, as the end of a sentence.
const RULED: &str = "which a rule denies or asks about";
/// The description of a setting of the home, as the end of a sentence.
pub const HOME_SETTINGS: &str = "where your programs look for their settings";
/// The description of a folder of programs, as the end of a sentence.
pub const PROGRAM_FOLDER: &str = "which decides what your programs are";

/// True if a path is one of these folders of programs, or lies directly in one.
#[must_use]
pub fn is_program(path: &Path, folders: &[PathBuf]) -> bool {
    folders.iter().any(|folder| path == folder || path.parent() == Some(folder))
}

/// The path that one in a copy stands for.
#[must_use]
pub fn original_path(path: &Path, copies: &[(PathBuf, PathBuf)]) -> Option<PathBuf> {
    copies.iter().find_map(|(copy, of)| Some(of.join(path.strip_prefix(copy).ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guarded_paths_stay_guarded_in_a_copy_of_their_folder() {
        let local = LocalPlaces {
            homes: vec!["/home/ada".into()],
            own: vec!["/home/ada/.config/gnoma".into()],
            programs: vec!["/srv/tools".into()],
            copies: vec![
                ("/state/copy".into(), "/home/ada/.local".into()),
                ("/home/ada/.cache/copy".into(), "/home/ada".into()),
            ],
            works_at_home: true,
            rules: None,
        };
        for path in [
            "/home/ada/.local/bin/tool",
            "/state/copy/bin/tool",
            "/home/ada/.config/gnoma/config.toml",
            "/srv/tools",
            "/srv/tools/run",
            "/home/ada/.config/fish/config.fish",
            "/home/ada/.config/x",
            "/home/ada/.psqlrc",
            "/home/ada/.cache/copy/.psqlrc",
        ] {
            assert!(local.guard_reason(Path::new(path)).is_some(), "{path}");
        }
        for path in [
            "/state/copy/share/x",
            "/home/ada/.cache/copy/work/x",
            "/srv/tools/data/x",
            "/srv",
            "/home/ada/work/.psqlrc",
        ] {
            assert_eq!(local.guard_reason(Path::new(path)), None, "{path}");
        }
    }
}
