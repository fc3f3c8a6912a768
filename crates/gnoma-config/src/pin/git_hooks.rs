//! The programs that git runs as hooks in a repository.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use gnoma_core::bounded_file;

/// Most bytes that are read of a file of git's.
const MAX_BYTES: u64 = 1 << 20;
/// Most hooks; git knows some thirty.
const MAX_HOOKS: usize = 200;
/// The folder of Husky's own scripts, which run the hooks in the folder above it.
const HUSKY_SCRIPTS: &str = "_";

/// Returns the hooks of the repository whose work tree is `root`, in the order of their names: executable files in its
/// `hooks`, or in the folder that its `core.hooksPath` names. See githooks(5) and gitrepository-layout(5).
#[must_use]
pub fn git_hooks(root: &Path) -> Vec<PathBuf> {
    let mark = root.join(".git");
    let git = if mark.is_dir() {
        mark
    } else {
        let Some(place) = read_hook_file(&mark).and_then(|text| line_behind(&text, "gitdir:"))
        else {
            return Vec::new();
        };
        root.join(place)
    };
    let common = read_hook_file(&git.join("commondir")).map(|place| git.join(place.trim()));
    let common = common.unwrap_or(git);
    let named = read_hook_file(&common.join("config")).and_then(|text| hooks_path(&text));
    let mut folders = vec![named.map_or_else(|| common.join("hooks"), |place| root.join(place))];
    let husky = folders.first().filter(|folder| folder.ends_with(HUSKY_SCRIPTS));
    folders.extend(husky.and_then(|folder| folder.parent()).map(Path::to_path_buf));
    let entries = folders.iter().flat_map(fs::read_dir).flatten().flatten();
    let mut all: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| is_program(path)).take(MAX_HOOKS).collect();
    gnoma_core::sort::sort_items(&mut all);
    all
}

fn is_program(path: &Path) -> bool {
    let is_sample = path.extension().is_some_and(|ending| ending == "sample");
    let runs = |it: fs::Metadata| it.is_file() && it.permissions().mode() & 0o111 != 0;
    !is_sample && path.metadata().is_ok_and(runs)
}

/// The value of `core.hooksPath`, the last one.
fn hooks_path(config: &str) -> Option<String> {
    let lines = config.lines().rev().filter_map(|line| line.split_once('='));
    let mut values = lines.filter(|(key, _)| key.trim().eq_ignore_ascii_case("hookspath"));
    values.next().map(|(_, value)| value.trim().trim_matches('"').to_owned())
}

fn line_behind(text: &str, mark: &str) -> Option<String> {
    text.lines().find_map(|line| line.strip_prefix(mark)).map(|rest| rest.trim().to_owned())
}

fn read_hook_file(path: &Path) -> Option<String> {
    String::from_utf8(bounded_file::read_start(path, MAX_BYTES).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_hooks_are_found_where_git_runs_them() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let hook = |name: &str, mode: u32| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        };
        assert!(git_hooks(root).is_empty());
        hook("r/.git/hooks/pre-commit", 0o755);
        hook("r/.git/hooks/pre-push.sample", 0o755);
        hook("r/.git/hooks/notes.txt", 0o644);
        assert_eq!(git_hooks(&root.join("r")), [root.join("r/.git/hooks/pre-commit")]);
        fs::create_dir_all(root.join("r/.git/worktrees/w")).unwrap();
        fs::write(root.join("r/.git/worktrees/w/commondir"), "../..\n").unwrap();
        fs::create_dir(root.join("w")).unwrap();
        let mark = format!("gitdir: {}\n", root.join("r/.git/worktrees/w").display());
        fs::write(root.join("w/.git"), mark).unwrap();
        assert_eq!(git_hooks(&root.join("w")).len(), 1);
        fs::write(root.join("r/.git/config"), "[core]\n\thooksPath = .husky/_\n").unwrap();
        hook("r/.husky/_/pre-commit", 0o755);
        hook("r/.husky/pre-commit", 0o755);
        assert_eq!(
            git_hooks(&root.join("r")),
            [root.join("r/.husky/_/pre-commit"), root.join("r/.husky/pre-commit")]
        );
    }
}
