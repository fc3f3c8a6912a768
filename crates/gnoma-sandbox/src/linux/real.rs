//! Real paths of many places at once: a command's policy names some hundred, most of them in the
//! same few folders, and each is resolved with one look of its own.

use std::{
    collections::HashMap,
    ffi::{OsStr, OsString},
    fs, io,
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2},
    io::Errno,
};

use super::stamps::Stamps;

/// The paths that have been resolved so far. They hold for the moment in which a command is prepared; to keep them
/// longer, call [`still_true`](Self::still_true).
#[derive(Debug, Default)]
pub(super) struct RealPaths {
    /// By the path as it was asked for, whose bytes are compared faster than its parts.
    known: HashMap<OsString, Option<PathBuf>>,
    /// Folders that were looked into.
    folders: Stamps,
    /// Paths that other folders may have had a say in.
    through_links: Vec<PathBuf>,
}

impl RealPaths {
    /// The path without links; `None` when nothing is there or it cannot be reached.
    pub(super) fn resolve_path(&mut self, path: &Path) -> Option<PathBuf> {
        if let Some(known) = self.known.get(path.as_os_str()) {
            return known.clone();
        }
        let real = self.resolve_uncached(path);
        self.known.insert(path.into(), real.clone());
        real
    }

    /// Returns the paths that are still known after a while in which no mount has changed: all except those that
    /// lead through links, or none at all.
    pub(super) fn still_true(mut self) -> Self {
        if !self.folders.are_unchanged() {
            return Self::default();
        }
        let links = std::mem::take(&mut self.through_links);
        // This forgets what merely begins alike as well.
        let leads = |path: &OsStr, link: &PathBuf| {
            path.as_encoded_bytes().starts_with(link.as_os_str().as_encoded_bytes())
        };
        self.known.retain(|path, _| !links.iter().any(|link| leads(path, link)));
        self
    }

    fn resolve_uncached(&mut self, path: &Path) -> Option<PathBuf> {
        let is_plain =
            |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
        if path == Path::new("/") {
            return Some(path.to_owned());
        }
        if !path.is_absolute() || !path.components().all(is_plain) {
            return self.through_links(path);
        }
        let folder = self.resolve_path(path.parent()?)?;
        self.folders.record_folder(&folder);
        let here = folder.join(path.file_name()?);
        match fs::read_link(&here) {
            Ok(_) => self.through_links(path),
            // Neither a link nor absent.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Some(here),
            Err(_) => None,
        }
    }

    fn through_links(&mut self, path: &Path) -> Option<PathBuf> {
        self.through_links.push(path.to_owned());
        fs::canonicalize(path).ok()
    }
}

/// Opens what is at a real path to name it, following no link.
pub(super) fn open_real(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // A container that refuses the call.
        Err(Errno::NOSYS | Errno::PERM) => open_step_by_step(path, flags),
        opened => Ok(opened?),
    }
}

fn open_step_by_step(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut here = openat(CWD, "/", folder, Mode::empty())?;
    let mut rest = path.components().filter(|part| *part != Component::RootDir).peekable();
    while let Some(part) = rest.next() {
        let flags = if rest.peek().is_some() { folder } else { flags | OFlags::NOFOLLOW };
        here = openat(&here, part.as_os_str(), flags, Mode::empty())?;
    }
    if FileType::from_raw_mode(fstat(&here)?.st_mode) == FileType::Symlink {
        return Err(Errno::LOOP.into());
    }
    Ok(here)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn real_path_resolution_agrees_with_canonicalize() {
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
            assert_eq!(real.resolve_path(path), fs::canonicalize(path).ok(), "{}", path.display());
            assert_eq!(
                real.resolve_path(path),
                fs::canonicalize(path).ok(),
                "{} again",
                path.display()
            );
        }
    }

    #[test]
    fn open_real_refuses_paths_through_symlinks() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir(root.join("a")).unwrap();
        fs::write(root.join("a/file"), "").unwrap();
        symlink("a", root.join("folder")).unwrap();
        symlink("a/file", root.join("file")).unwrap();
        for open in [open_real, open_step_by_step] {
            let opens = |name: &str| open(&root.join(name), OFlags::PATH).is_ok();
            assert!(opens("a/file") && opens("a"));
            assert!(!opens("folder/file") && !opens("folder") && !opens("file"));
        }
    }

    #[test]
    fn real_path_cache_is_invalidated_when_a_folder_or_symlink_changes() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::create_dir_all(root.join("c")).unwrap();
        symlink("a", root.join("link")).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        let mut real = RealPaths::default();
        assert_eq!(real.resolve_path(&root.join("link/b")), Some(root.join("a/b")));
        assert_eq!(real.resolve_path(&root.join("c/none")), None);
        fs::rename(root.join("c"), root.join("d")).unwrap();
        symlink("a", root.join("c")).unwrap();
        fs::write(root.join("a/none"), "").unwrap();
        let mut real = real.still_true();
        assert_eq!(real.resolve_path(&root.join("c/none")), Some(root.join("a/none")));
        assert_eq!(real.resolve_path(&root.join("link/b")), Some(root.join("a/b")));
    }
}
