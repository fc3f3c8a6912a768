//! Real paths of many places at once: a command's policy names some hundred, most of them in the
//! same few folders, and each is resolved with one look of its own.

use std::{
    collections::HashMap,
    fs, io,
    path::{Component, Path, PathBuf},
};

/// What has been resolved so far. Holds for the moment in which a command is prepared.
#[derive(Debug, Default)]
pub(super) struct RealPaths(HashMap<PathBuf, Option<PathBuf>>);

impl RealPaths {
    /// The path without links; `None` when nothing is there or it cannot be reached.
    pub(super) fn of(&mut self, path: &Path) -> Option<PathBuf> {
        if let Some(known) = self.0.get(path) {
            return known.clone();
        }
        let real = self.look(path);
        self.0.insert(path.to_owned(), real.clone());
        real
    }

    fn look(&mut self, path: &Path) -> Option<PathBuf> {
        let is_plain =
            |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
        if path == Path::new("/") {
            return Some(path.to_owned());
        }
        if !path.is_absolute() || !path.components().all(is_plain) {
            return fs::canonicalize(path).ok();
        }
        let here = self.of(path.parent()?)?.join(path.file_name()?);
        match fs::read_link(&here) {
            Ok(_) => fs::canonicalize(path).ok(),
            // Neither a link nor absent.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Some(here),
            Err(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn it_finds_what_the_system_finds() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/file"), "").unwrap();
        symlink("a", root.join("relative")).unwrap();
        symlink(root.join("relative/b"), root.join("absolute")).unwrap();
        symlink("nowhere", root.join("dangling")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let names = [
            "",
            "a",
            "a/b/",
            "a/b/file",
            "a/b/file/x",
            "a/none",
            "relative/b",
            "absolute/file",
            "absolute/../b",
            "./a",
            "dangling",
            "dangling/x",
            "loop",
            "loop/x",
        ];
        let mut real = RealPaths::default();
        for path in names.map(|name| root.join(name)).iter().chain([&PathBuf::from("/")]) {
            assert_eq!(real.of(path), fs::canonicalize(path).ok(), "{}", path.display());
            assert_eq!(real.of(path), fs::canonicalize(path).ok(), "{} again", path.display());
        }
    }
}
