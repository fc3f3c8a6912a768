//! Which of a command's changes a person wants to keep, by names as people write them.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use gnoma_sandbox::layer::{Changes, Difference, LayerChange, NodeKind};

use super::{databases::owning_file, trial_facts::path_below_roots};

/// Most names that a question offers.
const MAX_NAMES: usize = 2_000;

/// Returns the names that a question can offer, in this order: files, links, and folders that hold nothing that
/// changed.
pub(super) fn nameable_changes(
    order: &[PathBuf],
    changes: &Changes,
    roots: &[PathBuf],
) -> Vec<String> {
    let folders = changes.list.iter().filter(|change| change.node() == NodeKind::Folder);
    let folders: BTreeSet<&Path> = gnoma_core::sort::to_set(folders.map(LayerChange::path));
    let above =
        |path: &PathBuf| path.ancestors().skip(1).map(Path::to_path_buf).collect::<Vec<_>>();
    let holding: BTreeSet<PathBuf> = gnoma_core::sort::to_set(
        changes.list.iter().flat_map(|change| above(&change.path().to_owned())),
    );
    let is_named = |path: &&PathBuf| !folders.contains(path.as_path()) || !holding.contains(*path);
    order
        .iter()
        .filter(is_named)
        .take(MAX_NAMES)
        .map(|path| path_below_roots(path, roots))
        .collect()
}

/// The paths of the changes that the names mean: those of that name, those below a folder of that name, and
/// those that a pattern with `*` fits. What belongs together comes together.
pub(super) fn select_paths(
    changes: &Changes,
    names: &[String],
    roots: &[PathBuf],
) -> BTreeSet<PathBuf> {
    let is_meant = |path: &Path| {
        let shown = path_below_roots(path, roots);
        names.iter().map(|name| name.trim_end_matches('/')).any(|name| {
            let below = shown.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
            shown == name || below || (name.contains('*') && matches_pattern(name, &shown))
        })
    };
    let paths = || changes.list.iter().map(LayerChange::path);
    let units: BTreeSet<PathBuf> =
        gnoma_core::sort::to_set(paths().filter(|path| is_meant(path)).map(owning_file));
    paths().filter(|path| units.contains(&owning_file(path))).map(Path::to_path_buf).collect()
}

/// The changes that are wanted, and the others.
pub(super) fn split_changes(
    mut changes: Changes,
    wanted: Option<&BTreeSet<PathBuf>>,
) -> (Changes, Changes) {
    let is_wanted =
        |change: &LayerChange| wanted.is_none_or(|wanted| wanted.contains(change.path()));
    let (kept, rest) = changes.list.drain(..).partition(|change| is_wanted(change));
    let rest = Changes { list: rest, ..Changes::default() };
    (Changes { list: kept, ..changes }, rest)
}

/// The changes of these folders and below them, and the others.
pub(super) fn split_below(mut changes: Changes, folders: &[PathBuf]) -> (Changes, Changes) {
    let is_below = |path: &Path| folders.iter().any(|folder| path.starts_with(folder));
    let (inside, outside) = changes.list.drain(..).partition(|change| is_below(change.path()));
    // Other names of build output show the old one until the next build.
    changes
        .differences
        .retain(|difference| !matches!(difference, Difference::HardLink(path) if is_below(path)));
    let (theirs, conflicts) = changes.conflicts.drain(..).partition(|path| is_below(path));
    let inside = Changes { list: inside, conflicts: theirs, ..Changes::default() };
    (inside, Changes { list: outside, conflicts, ..changes })
}

/// All of them again, in the order of their paths.
pub(super) fn merge_changes(mut changes: Changes, rest: Changes) -> Changes {
    changes.list.extend(rest.list);
    changes.conflicts.extend(rest.conflicts);
    gnoma_core::sort::sort_by(&mut changes.list, |one, other| one.path().cmp(other.path()));
    changes
}

/// Reports whether a pattern in which `*` stands for anything fits a text.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        if let Some(before) = last.replace(part) {
            let Some(at) = rest.find(before) else { return false };
            rest = rest.get(at + before.len()..).unwrap_or_default();
        }
    }
    last.is_none_or(|end| rest.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcard_in_a_change_pattern_matches_any_path_text() {
        for (pattern, text) in [
            ("src/*", "src/a/b"),
            ("*.rs", "src/a.rs"),
            ("src/*.r*", "src/a.rs"),
            ("*", ""),
            ("a*b*c", "abc"),
            ("a*bc", "abcbc"),
        ] {
            assert!(matches_pattern(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in
            [("src/*", "a/src/b"), ("*.rs", "a.rsx"), ("a*b*c", "acb"), ("a*a", "a")]
        {
            assert!(!matches_pattern(pattern, text), "{pattern} {text}");
        }
    }
}
