//! Finds changes by earlier commands on trial that later commands see: other links, other settings of repositories.
//!
//! The caller knows where the layer keeps the files of a path.

use std::{
    collections::VecDeque,
    fs,
    path::{Component, Path, PathBuf},
};

use gnoma_core::places::makes_repository;

/// Links that are followed for one path.
const MAX_LINKS: usize = 40;
/// The names in a repository's own folder that decide what git runs.
const SETTINGS: [&str; 5] = ["config", "config.worktree", "commondir", "hooks", "modules"];
/// The names that make a folder a repository.
const MARKS: [&str; 3] = ["HEAD", "objects", "refs"];

/// A function that returns where the layer has what is seen at a path.
pub(super) type LayerLookup<'a> = &'a dyn Fn(&Path) -> Option<PathBuf>;

/// Follows the links of an absolute path, as far as it exists.
pub(super) fn resolve_links(path: &Path, left_at: LayerLookup<'_>) -> PathBuf {
    let mut waiting: VecDeque<_> = path.components().map(component_path).collect();
    let (mut at, mut links) = (PathBuf::from("/"), 0);
    while let Some(part) = waiting.pop_front() {
        match part.components().next() {
            Some(Component::ParentDir) => drop(at.pop()),
            Some(Component::Normal(name)) => {
                let next = at.join(name);
                let target = fs::read_link(left_at(&next).unwrap_or_else(|| next.clone()));
                match target.ok().filter(|_| links < MAX_LINKS) {
                    Some(target) => {
                        links += 1;
                        for part in target.components().rev() {
                            waiting.push_front(component_path(part));
                        }
                    }
                    None => at = next,
                }
            }
            Some(Component::RootDir) => at = PathBuf::from("/"),
            Some(Component::CurDir | Component::Prefix(_)) | None => {}
        }
    }
    at
}

fn component_path(part: Component<'_>) -> PathBuf {
    PathBuf::from(part.as_os_str())
}

/// Reports whether a folder that has a repository, or is one, has another one or other settings in the layer.
pub(super) fn is_otherwise(folder: &Path, left_at: LayerLookup<'_>) -> bool {
    let is_left = |name: &str| left_at(&folder.join(name)).is_some();
    let git = folder.join(".git");
    if let Some(left) = left_at(&git) {
        let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|facts| facts.is_dir());
        let changed = || SETTINGS.iter().any(|name| left_at(&git.join(name)).is_some());
        if !is_folder(&left) || !is_folder(&git) || changed() {
            return true;
        }
    }
    let is_there = |name: &str| is_left(name) || folder.join(name).exists();
    makes_repository(is_there) && SETTINGS.iter().chain(&MARKS).any(|name| is_left(name))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder, and what a layer has of it.
    fn layered(real: &[&str], left: &[&str]) -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (at, upper) = (root.join("at"), root.join("upper"));
        for (base, names) in [(&at, real), (&upper, left)] {
            fs::create_dir(base).unwrap();
            for name in names {
                let path = base.join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
        }
        (folder, at, upper)
    }

    fn left_in(at: &Path, upper: &Path) -> impl Fn(&Path) -> Option<PathBuf> {
        move |path| {
            let place = upper.join(path.strip_prefix(at).ok()?);
            place.symlink_metadata().is_ok().then_some(place)
        }
    }

    #[test]
    fn trial_layer_symlinks_take_precedence_when_resolving_paths() {
        let (_folder, at, upper) = layered(&["d/x"], &[]);
        symlink("/etc", upper.join("d")).unwrap();
        symlink("d/passwd", upper.join("e")).unwrap();
        symlink("loop", upper.join("loop")).unwrap();
        let left = left_in(&at, &upper);
        for (path, leads) in [
            ("d/x", "/etc/x"),
            ("e", "/etc/passwd"),
            ("d/../x", "/x"),
            ("n/../y", "y"),
            ("loop/z", "loop/z"),
        ] {
            assert_eq!(resolve_links(&at.join(path), &left), at.join(leads), "{path}");
        }
    }

    #[test]
    fn trial_layer_that_changes_git_settings_is_detected() {
        for (real, left, is_otherwise_there) in [
            (&[".git/config"][..], &[".git/index"][..], false),
            (&[".git/config"], &[".git/config"], true),
            (&[".git/config"], &[".git/hooks/x"], true),
            (&[".git/config"], &["src/config"], false),
            (&[".git"], &[".git"], true),
            (&[], &[".git/HEAD"], true),
            (&["objects/x", "refs/x"], &["HEAD"], true),
            (&["HEAD", "objects/x", "refs/x"], &["config"], true),
            (&["HEAD", "objects/x", "refs/x"], &["other"], false),
            (&["HEAD"], &["commondir"], true),
            (&["refs/x"], &["config"], false),
        ] {
            let (_folder, at, upper) = layered(real, left);
            let found = is_otherwise(&at, &left_in(&at, &upper));
            assert_eq!(found, is_otherwise_there, "{real:?} {left:?}");
        }
    }
}
