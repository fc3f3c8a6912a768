//! What a command on trial changed: what happens to it, and its description. Decides; reads only names and the
//! files that are shown.

use std::{
    collections::HashSet,
    ffi::OsStr,
    fs::File,
    io::Read,
    path::{Component, Path, PathBuf},
};

use gnoma_core::{places, tool::Trial};
use gnoma_sandbox::layer::{ChangeKind, Changes, Difference, Layer, LayerChange, NodeKind};

use super::databases;
use crate::fs::diff::Diff;

/// Names that a sentence holds.
const MAX_NAMES: usize = 5;
/// Largest file whose change is shown line by line.
const MAX_SHOWN_BYTES: u64 = 256 << 10;
/// Bytes of a preview.
const MAX_PREVIEW_BYTES: usize = 64 << 10;
/// Where git keeps what is its own, and the file in it that looking refreshes.
const GIT_FOLDER: &str = ".git";
const GIT_INDEX: &str = ".git/index";

/// What becomes of what a command changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It changed nothing.
    Nothing,
    /// Dropped, without a question.
    Dropped,
    /// Kept, without a question.
    Kept,
    /// A person decides.
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

/// What becomes of the changes by the rules of the mode.
pub(super) fn fate(
    trial: Trial,
    changes: &Changes,
    told: Option<Difference>,
    roots: &[PathBuf],
) -> Fate {
    let difference = told.or_else(|| changes.differences.first().cloned());
    let why = difference.map(|difference| difference.to_string()).or_else(|| {
        let git = changes.list.iter().find(|change| is_git(change.path()));
        let git = git.map(|change| format!("it changes `{}`", shown(change.path(), roots)));
        let theirs = changes.conflicts.first();
        let theirs = || {
            theirs.map(|path| {
                format!("another program changed `{}` while it ran", shown(path, roots))
            })
        };
        let open = || {
            let open = databases::in_use(changes).filter(|_| trial != Trial::Discard);
            open.map(|path| format!("another program has `{}` open", shown(&path, roots)))
        };
        git.or_else(theirs).or_else(open)
    });
    match (trial, why) {
        (Trial::Discard, _) | (_, None) if changes.is_empty() => Fate::Nothing,
        (Trial::Discard, _) => Fate::Dropped,
        (Trial::Ask | Trial::KeepEdits, Some(why)) => Fate::InPlace(why),
        (Trial::KeepEdits, None)
            if changes.list.iter().all(|change| is_edit(change, roots))
                && !touches_repository(changes) =>
        {
            Fate::Kept
        }
        (Trial::Ask | Trial::KeepEdits, None) => Fate::Asked,
    }
}

fn is_git(path: &Path) -> bool {
    path.components().any(|part| part == Component::Normal(OsStr::new(GIT_FOLDER)))
}

/// Whether something is in a repository without a work tree: its settings name programs.
fn touches_repository(changes: &Changes) -> bool {
    let is_there = |path: &Path| {
        changes.list.iter().any(|change| change.path() == path) || path.symlink_metadata().is_ok()
    };
    let folders = changes.list.iter().flat_map(|change| change.path().ancestors().skip(1));
    let folders: HashSet<&Path> = folders.collect();
    folders.iter().any(|folder| places::makes_repository(|name| is_there(&folder.join(name))))
}

/// Whether an edit could have made this change unasked, and a checkpoint can take it back.
fn is_edit(change: &LayerChange, roots: &[PathBuf]) -> bool {
    let (ran_before, runs) = change.is_executable();
    let is_made = match (change.kind(), change.node()) {
        (ChangeKind::Created, NodeKind::Folder | NodeKind::File)
        | (ChangeKind::Changed, NodeKind::File)
        | (ChangeKind::Touched, _) => true,
        (ChangeKind::Created | ChangeKind::Changed, NodeKind::Link | NodeKind::Pipe)
        | (ChangeKind::Changed, NodeKind::Folder)
        | (ChangeKind::Deleted | ChangeKind::Mode, _) => false,
    };
    is_made && (ran_before || !runs) && !is_special(change.path(), roots)
}

/// Whether a path decides over later runs of programs, holds secrets, or is filled by tools.
fn is_special(path: &Path, roots: &[PathBuf]) -> bool {
    let Some(below) = roots.iter().find_map(|root| path.strip_prefix(root).ok()) else {
        return true;
    };
    let is_filled =
        |part: Component<'_>| places::REBUILT_FOLDERS.iter().any(|name| part.as_os_str() == *name);
    is_git(path)
        || places::guarded(below).is_some()
        || places::secret(below).is_some()
        || below.components().any(is_filled)
}

/// The path as a person knows it: below its root.
pub(super) fn shown(path: &Path, roots: &[PathBuf]) -> String {
    let below = roots.iter().find_map(|root| path.strip_prefix(root).ok());
    below.unwrap_or(path).display().to_string()
}

/// Deletions and overwrites first, for they lose something.
fn rank(change: &LayerChange) -> u8 {
    match change.kind() {
        ChangeKind::Deleted => 0,
        ChangeKind::Changed => 1,
        ChangeKind::Mode => 2,
        ChangeKind::Created => 3,
        ChangeKind::Touched => 4,
    }
}

fn verb(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Deleted => "deletes",
        ChangeKind::Changed => "changes",
        ChangeKind::Mode => "changes the permissions of",
        ChangeKind::Created => "creates",
        ChangeKind::Touched => "touches",
    }
}

/// All that changed but folders that merely hold something, worst first: what is ignored by version
/// control is in no checkout that could bring it back.
fn worst_first<'a>(
    changes: &'a Changes,
    is_ignored: &dyn Fn(&Path) -> bool,
) -> Vec<(&'a LayerChange, bool)> {
    let has_below = |change: &LayerChange| {
        let path = change.path();
        let mut others = changes.list.iter().map(LayerChange::path);
        change.node() == NodeKind::Folder
            && change.kind() != ChangeKind::Mode
            && others.any(|other| other != path && other.starts_with(path))
    };
    let is_lost = |change: &LayerChange| {
        matches!(change.kind(), ChangeKind::Deleted | ChangeKind::Changed)
            && is_ignored(change.path())
    };
    // Folders stand for what is in them only where nothing else does.
    let few = changes.list.len() <= MAX_LISTED;
    let listed = changes.list.iter().filter(|change| !few || !has_below(change));
    let mut listed: Vec<_> = listed.map(|change| (change, few && is_lost(change))).collect();
    gnoma_core::sort::by_key(&mut listed, |(change, lost)| (!lost, rank(change)));
    listed
}

/// Changes that are looked at one by one for a question.
const MAX_LISTED: usize = 2_000;

/// The question about changes, in one line: how many files, and the worst of what happens to them.
pub(super) fn question(
    command: &str,
    changes: &Changes,
    roots: &[PathBuf],
    is_ignored: &dyn Fn(&Path) -> bool,
) -> String {
    let all = worst_first(changes, is_ignored);
    let mut deeds: Vec<(&str, Vec<String>)> = Vec::new();
    for (change, lost) in all.iter().take(MAX_NAMES) {
        let note = if *lost { " (which git ignores and cannot restore)" } else { "" };
        let name = format!("`{}`{note}", shown(change.path(), roots));
        match deeds.last_mut().filter(|(last, _)| *last == verb(change.kind())) {
            Some((_, names)) => names.push(name),
            None => deeds.push((verb(change.kind()), vec![name])),
        }
    }
    let deeds: Vec<_> =
        deeds.iter().map(|(verb, names)| format!("{verb} {}", listed(names))).collect();
    let more = all.len().saturating_sub(MAX_NAMES);
    let more = if more > 0 { format!("; {more} more files change too") } else { String::new() };
    format!("`{}` {}{more}", one_line(command), listed(&deeds))
}

/// A command in one line.
pub(super) fn one_line(command: &str) -> String {
    command.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// "a", "a and b", "a, b and c".
fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [before @ .., last] => format!("{} and {last}", before.join(", ")),
    }
}

/// What a yes would change, as a unified diff as far as there are lines to show.
pub(super) fn preview(
    layer: &Layer,
    changes: &Changes,
    roots: &[PathBuf],
    is_ignored: &dyn Fn(&Path) -> bool,
) -> String {
    let mut text = String::new();
    for (change, _) in worst_first(changes, is_ignored) {
        if text.len() > MAX_PREVIEW_BYTES {
            text.push_str("… and more\n");
            break;
        }
        let name = shown(change.path(), roots);
        match lines(layer, change, &name) {
            Some(diff) => text.push_str(&diff),
            None => text.push_str(&format!("it {} {name}\n", verb(change.kind()))),
        }
        if let Some(from) = change.moved_from() {
            text.push_str(&format!("it was {}\n", shown(from, roots)));
        }
    }
    text
}

fn lines(layer: &Layer, change: &LayerChange, name: &str) -> Option<String> {
    if change.node() != NodeKind::File || change.moved_from().is_some() {
        return None;
    }
    let read = |file: Option<File>| {
        let mut bytes = Vec::new();
        let length = file?.take(MAX_SHOWN_BYTES + 1).read_to_end(&mut bytes).ok()?;
        (length as u64 <= MAX_SHOWN_BYTES).then_some(bytes)
    };
    match change.kind() {
        ChangeKind::Created => Diff::between(name, None, &read(layer.after(change))?).for_people(),
        ChangeKind::Changed => {
            let (old, new) = (read(layer.before(change))?, read(layer.after(change))?);
            Diff::between(name, Some(&old), &new).for_people()
        }
        ChangeKind::Deleted => Diff::deletion(name, &read(layer.before(change))?).for_people(),
        ChangeKind::Mode | ChangeKind::Touched => None,
    }
}

/// What the model is told of what was built and stays in the layer; empty where that is nothing new.
pub(super) fn built(paths: &[PathBuf], roots: &[PathBuf]) -> String {
    let mut names: Vec<_> = paths.iter().map(|path| shown(path, roots)).collect();
    let more = names.len().saturating_sub(MAX_NAMES);
    names.truncate(MAX_NAMES);
    if more > 0 {
        names.push(format!("{more} more"));
    }
    match &names[..] {
        [] => String::new(),
        names => format!(
            "[what it built ({}) is there for later commands, and not in the workspace]",
            names.join(", ")
        ),
    }
}

/// What the model is told of changes, in one sentence.
pub(super) fn sentence(what: &str, changes: &Changes, roots: &[PathBuf]) -> String {
    let files = changes.list.iter().filter(|change| change.node() != NodeKind::Folder);
    let mut names: Vec<_> = files.map(|change| shown(change.path(), roots)).collect();
    if names.is_empty() {
        names = changes.list.iter().map(|change| shown(change.path(), roots)).collect();
    }
    let count = names.len();
    names.truncate(MAX_NAMES);
    let more = if count > names.len() { ", …" } else { "" };
    let files = if count == 1 { "1 changed file was" } else { "changed files were" };
    let files = if count == 1 { files.to_owned() } else { format!("{count} {files}") };
    format!("[ran on trial; {files} {what} ({}{more})]", names.join(", "))
}
