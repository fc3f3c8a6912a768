//! What a command on trial changed: what happens to it, and what the model is told. Decides; reads only names.

use std::{
    collections::HashSet,
    ffi::OsStr,
    path::{Component, Path, PathBuf},
};

use gnoma_core::{
    names::escape_path,
    places::{self, LocalPlaces},
    tool::Trial,
};
use gnoma_sandbox::layer::{ChangeKind, Changes, Difference, LayerChange, NodeKind};

use super::databases;
pub(super) use super::reading_commands::one_line;

/// Names that a sentence holds.
pub(super) const MAX_NAMES: usize = 5;
/// The folder in which git keeps its own files, and the file in it that looking refreshes.
const GIT_FOLDER: &str = ".git";
const GIT_INDEX: &str = ".git/index";

/// The decision about the changes of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChangeDecision {
    /// The command changed nothing.
    Nothing,
    /// Dropped, without a question.
    Dropped,
    /// Kept, without a question.
    Kept,
    /// A person decides about the changes.
    Asked,
    /// A trial does not show what it does; a person decides whether it runs in place. Why that is.
    InPlace(String),
}

/// Leaves out what looking at a repository writes: git's note of when it last saw each file.
pub(super) fn without_stat_cache(changes: &mut Changes, roots: &[PathBuf]) {
    let is_cache = |path: &Path| {
        roots
            .iter()
            .any(|root| path.strip_prefix(root).is_ok_and(|below| below == Path::new(GIT_INDEX)))
    };
    let only_cache = changes.list.iter().filter(|change| is_git(change.path())).count() == 1;
    changes.list.retain(|change| !(only_cache && is_cache(change.path())));
}

/// Decides about the changes by the rules of the mode.
pub(super) fn decide_fate(
    trial: Trial,
    changes: &Changes,
    told: Option<Difference>,
    roots: &[PathBuf],
    local: &LocalPlaces,
) -> ChangeDecision {
    let difference = told.or_else(|| changes.differences.first().cloned());
    let why = difference.map(|difference| difference.to_string()).or_else(|| {
        let git = changes.list.iter().find(|change| is_git(change.path()));
        let git =
            git.map(|change| format!("it changes `{}`", path_below_roots(change.path(), roots)));
        let theirs = changes.conflicts.first();
        let theirs = || {
            theirs.map(|path| {
                format!("another program changed `{}` while it ran", path_below_roots(path, roots))
            })
        };
        let open = || {
            let open = databases::in_use(changes).filter(|_| trial != Trial::Discard);
            open.map(|path| {
                format!("another program has `{}` open", path_below_roots(&path, roots))
            })
        };
        git.or_else(theirs).or_else(open)
    });
    match (trial, why) {
        (Trial::Discard, _) | (_, None) if changes.is_empty() => ChangeDecision::Nothing,
        (Trial::Discard, _) => ChangeDecision::Dropped,
        (Trial::Ask | Trial::KeepEdits, Some(why)) => ChangeDecision::InPlace(why),
        (Trial::KeepEdits, None)
            if changes.list.iter().all(|change| is_edit(change, roots, local))
                && !touches_repository(changes) =>
        {
            ChangeDecision::Kept
        }
        (Trial::Ask | Trial::KeepEdits, None) => ChangeDecision::Asked,
    }
}

fn is_git(path: &Path) -> bool {
    path.components().any(|part| part == Component::Normal(OsStr::new(GIT_FOLDER)))
}

/// Reports whether a change is in a repository without a work tree: its settings name programs.
fn touches_repository(changes: &Changes) -> bool {
    let is_there = |path: &Path| {
        changes.list.iter().any(|change| change.path() == path) || path.symlink_metadata().is_ok()
    };
    let folders = changes.list.iter().flat_map(|change| change.path().ancestors().skip(1));
    let folders: HashSet<&Path> = folders.collect();
    folders.iter().any(|folder| places::makes_repository(|name| is_there(&folder.join(name))))
}

/// Reports whether an edit could have made this change without approval, and a checkpoint can rewind it.
fn is_edit(change: &LayerChange, roots: &[PathBuf], local: &LocalPlaces) -> bool {
    let (ran_before, runs) = change.is_executable();
    let is_made = match (change.kind(), change.node()) {
        (ChangeKind::Created, NodeKind::Folder | NodeKind::File)
        | (ChangeKind::Changed, NodeKind::File)
        | (ChangeKind::Touched, _) => true,
        (ChangeKind::Created | ChangeKind::Changed, NodeKind::Link | NodeKind::Pipe)
        | (ChangeKind::Changed, NodeKind::Folder)
        | (ChangeKind::Deleted | ChangeKind::Mode, _) => false,
    };
    is_made && (ran_before || !runs) && !is_special(change.path(), roots, local)
}

/// Reports whether a path decides over later runs of programs, holds secrets, or is filled by tools.
fn is_special(path: &Path, roots: &[PathBuf], local: &LocalPlaces) -> bool {
    let Some(below) = roots.iter().find_map(|root| path.strip_prefix(root).ok()) else {
        return true;
    };
    let is_filled =
        |part: Component<'_>| places::REBUILT_FOLDERS.iter().any(|name| part.as_os_str() == *name);
    is_git(path)
        || local.guard_reason(path).is_some()
        || places::find_secret(path).is_some()
        || below.components().any(is_filled)
}

/// The path as a person knows it: below its root, in one line.
pub(super) fn path_below_roots(path: &Path, roots: &[PathBuf]) -> String {
    let below = roots.iter().find_map(|root| path.strip_prefix(root).ok());
    escape_path(below.unwrap_or(path))
}

/// Tells the model about build output that stays in the layer; empty if there is nothing new.
pub(super) fn describe_built(paths: &[PathBuf], roots: &[PathBuf]) -> String {
    let mut names: Vec<_> = paths.iter().map(|path| path_below_roots(path, roots)).collect();
    let more = names.len().saturating_sub(MAX_NAMES);
    names.truncate(MAX_NAMES);
    if more > 0 {
        names.push(format!("{more} more"));
    }
    match &names[..] {
        [] => String::new(),
        names => format!(
            "[what it built ({}) is not in the workspace: later commands on trial find it, and those that only read]",
            names.join(", ")
        ),
    }
}

/// Describes changes to the model in one sentence.
pub(super) fn describe_changes(what: &str, changes: &Changes, roots: &[PathBuf]) -> String {
    let files = changes.list.iter().filter(|change| change.node() != NodeKind::Folder);
    let mut names: Vec<_> = files.map(|change| path_below_roots(change.path(), roots)).collect();
    if names.is_empty() {
        names = changes.list.iter().map(|change| path_below_roots(change.path(), roots)).collect();
    }
    let count = names.len();
    names.truncate(MAX_NAMES);
    let more = if count > names.len() { ", …" } else { "" };
    let files = if count == 1 { "1 changed file was" } else { "changed files were" };
    let files = if count == 1 { files.to_owned() } else { format!("{count} {files}") };
    format!("[ran on trial; {files} {what} ({}{more})]", names.join(", "))
}
