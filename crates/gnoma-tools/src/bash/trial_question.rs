//! The question about what a command on trial changed: what runs later, what leads elsewhere and what is secret comes
//! first and by name, then what is lost, then the rest.

use std::{
    fs::{self, File},
    io::Read,
    path::{Component, Path, PathBuf},
};

use gnoma_core::{
    names::escape_path,
    places::{self, LocalPlaces},
    session::NotableChange,
};
use gnoma_sandbox::layer::{ChangeKind, Changes, Layer, LayerChange, NodeKind};

use super::trial_facts::{MAX_NAMES, one_line, path_below_roots};
use crate::fs::diff::Diff;

/// Changes that a person must see by name, of which a question names each.
const MAX_NOTABLE: usize = 200;
/// Of those the ones that stand in the question's line as well.
const MAX_NOTABLE_IN_LINE: usize = 12;
/// Largest file whose change is shown line by line.
const MAX_SHOWN_BYTES: u64 = 256 << 10;
/// Bytes of a preview.
const MAX_PREVIEW_BYTES: usize = 64 << 10;
/// Links that are followed from one to the next.
const MAX_LINKS: usize = 8;
/// Changes that are looked at one by one for a question.
const MAX_LISTED: usize = 2_000;

/// The importance of a change, from most to least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ChangeRank {
    /// The change decides over later runs, and would always need approval.
    Guarded,
    /// The changed entry leads out of the workspace.
    LeadsElsewhere,
    /// The changed entry holds a secret.
    Secret,
    /// The changed entry can be run from now on.
    Runs,
    /// The earlier state of the entry cannot be restored.
    Lost,
    Deleted,
    Changed,
    Mode,
    Created,
    Touched,
}

impl ChangeRank {
    /// Reports whether approving all changes includes this one only if it was named.
    fn needs_naming(self) -> bool {
        matches!(self, Self::Guarded | Self::LeadsElsewhere | Self::Secret)
    }

    fn is_notable(self) -> bool {
        self.needs_naming() || self == Self::Runs
    }

    fn is_danger(self) -> bool {
        self.is_notable() || matches!(self, Self::Lost | Self::Deleted)
    }
}

/// The facts from which a question is made.
pub(super) struct ChangeFacts<'a> {
    pub(super) layer: &'a Layer,
    pub(super) changes: &'a Changes,
    pub(super) roots: &'a [PathBuf],
    pub(super) local: &'a LocalPlaces,
    pub(super) is_ignored: &'a dyn Fn(&Path) -> bool,
    /// Secret files of the workspace, as the trial found them.
    pub(super) secrets: &'a [PathBuf],
}

/// A change with what there is to say about it.
struct WeighedChange<'a> {
    change: &'a LayerChange,
    rank: ChangeRank,
    /// A description of the change and its importance; empty if the name says it.
    note: String,
}

/// The question about the changes of a command.
pub(super) struct ChangeQuestion {
    /// In one line: the worst of what happens to the files.
    pub(super) text: String,
    /// The same without the command; empty where nothing happens to files.
    pub(super) deeds: String,
    /// The lines that change.
    pub(super) preview: String,
    /// The changes that a person must see by name.
    pub(super) notable: Vec<NotableChange>,
    /// `true` if something is lost or deleted, or a change must be seen by name.
    pub(super) is_danger: bool,
    /// `true` if none of the changes would always need approval.
    pub(super) may_be_always: bool,
    /// The paths that would need to be named and are too many for that: approving all changes saves none of them.
    pub(super) unnamed: Vec<PathBuf>,
    /// The paths of all that can be named, the most important first.
    pub(super) order: Vec<PathBuf>,
}

impl ChangeFacts<'_> {
    pub(super) fn build_question(&self, command: &str) -> ChangeQuestion {
        let all = self.weigh_all();
        let named = all.iter().filter(|one| one.rank.is_notable());
        let notable =
            named.clone().take(MAX_NOTABLE).map(|one| self.describe_notable(one)).collect();
        let beyond = named.skip(MAX_NOTABLE).filter(|one| one.rank.needs_naming());
        let unnamed: Vec<_> = beyond.map(|one| one.change.path().to_owned()).collect();
        let deeds = self.describe_deeds(&all, unnamed.len());
        ChangeQuestion {
            text: format!("`{}` {deeds}", one_line(command)),
            deeds,
            preview: self.preview_of(&all),
            notable,
            is_danger: all.iter().any(|one| one.rank.is_danger()),
            may_be_always: !all.iter().any(|one| one.rank.needs_naming()),
            unnamed,
            order: all.iter().map(|one| one.change.path().to_owned()).collect(),
        }
    }

    /// Returns the changes that an approval would make, as a unified diff as far as there are lines to show.
    pub(super) fn preview(&self) -> String {
        self.preview_of(&self.weigh_all())
    }

    fn describe_notable(&self, one: &WeighedChange<'_>) -> NotableChange {
        let name = path_below_roots(one.change.path(), self.roots);
        let what = match (change_verb(one.change.kind()), one.note.as_str()) {
            (verb, "") => verb.to_owned(),
            (verb, note) => format!("{verb}: {note}"),
        };
        NotableChange { name, what }
    }

    /// The worst of what happens to the files.
    fn describe_deeds(&self, all: &[WeighedChange<'_>], unnamed: usize) -> String {
        let notable = all.iter().take_while(|one| one.rank.is_notable()).count();
        let in_line = notable.clamp(MAX_NAMES, MAX_NOTABLE_IN_LINE);
        let mut deeds: Vec<(&str, Vec<String>)> = Vec::new();
        for one in all.iter().take(in_line) {
            let note = if one.note.is_empty() { String::new() } else { format!(" ({})", one.note) };
            let name = format!("`{}`{note}", path_below_roots(one.change.path(), self.roots));
            let deed = change_verb(one.change.kind());
            match deeds.last_mut().filter(|(last, _)| *last == deed) {
                Some((_, names)) => names.push(name),
                None => deeds.push((deed, vec![name])),
            }
        }
        let deeds: Vec<_> =
            deeds.iter().map(|(verb, names)| format!("{verb} {}", join_with_and(names))).collect();
        let more = all.len().saturating_sub(in_line);
        let more = if more > 0 { format!("; {more} more files change too") } else { String::new() };
        let left = match unnamed {
            0 => String::new(),
            count => format!(
                "; {count} more that always need approval are too many to name, and are discarded unless you name them"
            ),
        };
        format!("{}{more}{left}", join_with_and(&deeds))
    }

    /// All that changed but folders that merely hold something, the most important first.
    fn weigh_all(&self) -> Vec<WeighedChange<'_>> {
        let list = &self.changes.list;
        let few = list.len() <= MAX_LISTED;
        let has_below = |change: &LayerChange| {
            let path = change.path();
            let mut others = list.iter().map(LayerChange::path);
            change.node() == NodeKind::Folder
                && change.kind() != ChangeKind::Mode
                && others.any(|other| other != path && other.starts_with(path))
        };
        // Folders stand for what is in them only where nothing else does.
        let listed = list.iter().filter(|change| !few || !has_below(change));
        let mut all: Vec<_> = listed.map(|change| self.weigh_change(change, few)).collect();
        gnoma_core::sort::by_key(&mut all, |one| one.rank);
        all
    }

    fn weigh_change<'c>(&self, change: &'c LayerChange, few: bool) -> WeighedChange<'c> {
        let path = change.path();
        let below = self.roots.iter().find_map(|root| path.strip_prefix(root).ok()).unwrap_or(path);
        let target = self.layer.link_target(change);
        let end = target.as_deref().map(|target| self.link_end(path, target));
        let is_outside =
            end.as_ref().is_some_and(|end| !self.roots.iter().any(|root| end.starts_with(root)));
        let leads_to_secret = end.as_ref().is_some_and(|end| self.is_secret(end));
        let (ran_before, runs) = change.is_executable();
        let becomes_program = runs && !ran_before;
        let mut notes = describe_entry(change, target.as_deref(), becomes_program);
        let is_lost = || {
            let loses = matches!(change.kind(), ChangeKind::Deleted | ChangeKind::Changed);
            few && loses && (self.is_ignored)(path)
        };
        let secret = places::find_secret(path).or_else(|| places::find_secret(below));
        let rank = if let Some(kind) = self.local.guard_reason(path) {
            notes.push(kind.to_owned());
            ChangeRank::Guarded
        } else if is_outside {
            notes.push("which is outside the workspace".to_owned());
            ChangeRank::LeadsElsewhere
        } else if leads_to_secret {
            notes.push("which leads to a secret".to_owned());
            ChangeRank::Secret
        } else if let Some(secret) = secret {
            notes.push(secret.kind.to_owned());
            ChangeRank::Secret
        } else if becomes_program {
            ChangeRank::Runs
        } else if is_lost() {
            notes.push("which git ignores and cannot restore".to_owned());
            ChangeRank::Lost
        } else {
            plain_rank(change.kind())
        };
        WeighedChange { change, rank, note: notes.join(", ") }
    }

    /// Returns the path where a link ends, also by way of other links that the command made.
    fn link_end(&self, path: &Path, target: &Path) -> PathBuf {
        let mut end = link_end(path, target);
        for _ in 0..MAX_LINKS {
            let next = self.changes.list.iter().find(|change| change.path() == end);
            let Some(target) = next.and_then(|change| self.layer.link_target(change)) else {
                break;
            };
            end = link_end(&end, &target);
        }
        end
    }

    /// Reports whether a secret of the workspace is at a path, also by existing links.
    fn is_secret(&self, end: &Path) -> bool {
        let real = fs::canonicalize(end).ok();
        [Some(end), real.as_deref()].into_iter().flatten().any(|end| {
            let below = self.roots.iter().find_map(|root| end.strip_prefix(root).ok());
            places::find_secret(below.unwrap_or(end)).is_some()
                || self.secrets.iter().any(|secret| end.starts_with(secret))
        })
    }

    fn preview_of(&self, all: &[WeighedChange<'_>]) -> String {
        let mut text = String::new();
        for WeighedChange { change, note, .. } in all {
            if text.len() > MAX_PREVIEW_BYTES {
                text.push_str("… and more\n");
                break;
            }
            let name = path_below_roots(change.path(), self.roots);
            match line_diff(self.layer, change, &name) {
                Some(diff) => text.push_str(&diff),
                None => text.push_str(&format!("it {} {name}\n", change_verb(change.kind()))),
            }
            if !note.is_empty() {
                text.push_str(&format!("it is {note}\n"));
            }
            if let Some(from) = change.moved_from() {
                text.push_str(&format!("it was {}\n", path_below_roots(from, self.roots)));
            }
        }
        text
    }
}

/// Describes what a change makes of an entry: a link, another mode, a program.
fn describe_entry(
    change: &LayerChange,
    target: Option<&Path>,
    becomes_program: bool,
) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(target) = target {
        notes.push(format!("a link to `{}`", escape_path(target)));
    }
    if let (Some(before), Some(after)) = change.modes()
        && before != after
    {
        notes.push(format!("mode {before:o} to {after:o}"));
    }
    if becomes_program {
        notes.push("a program".to_owned());
    }
    notes
}

/// Deletions and overwrites first, for they lose something.
fn plain_rank(kind: ChangeKind) -> ChangeRank {
    match kind {
        ChangeKind::Deleted => ChangeRank::Deleted,
        ChangeKind::Changed => ChangeRank::Changed,
        ChangeKind::Mode => ChangeRank::Mode,
        ChangeKind::Created => ChangeRank::Created,
        ChangeKind::Touched => ChangeRank::Touched,
    }
}

fn change_verb(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Deleted => "deletes",
        ChangeKind::Changed => "changes",
        ChangeKind::Mode => "changes the permissions of",
        ChangeKind::Created => "creates",
        ChangeKind::Touched => "touches",
    }
}

/// Returns the path to which a link at `path` leads, by its text alone.
fn link_end(path: &Path, target: &Path) -> PathBuf {
    let mut end = path.parent().unwrap_or(path).to_owned();
    for part in target.components() {
        match part {
            Component::RootDir => end = PathBuf::from("/"),
            Component::ParentDir => drop(end.pop()),
            Component::Normal(name) => end.push(name),
            Component::CurDir | Component::Prefix(_) => {}
        }
    }
    end
}

/// "a", "a and b", "a, b and c".
fn join_with_and(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [before @ .., last] => format!("{} and {last}", before.join(", ")),
    }
}

fn line_diff(layer: &Layer, change: &LayerChange, name: &str) -> Option<String> {
    if change.node() != NodeKind::File || change.moved_from().is_some() {
        return None;
    }
    let read = |file: Option<File>| {
        let mut bytes = Vec::new();
        let length = file?.take(MAX_SHOWN_BYTES + 1).read_to_end(&mut bytes).ok()?;
        (length as u64 <= MAX_SHOWN_BYTES).then_some(bytes)
    };
    match change.kind() {
        ChangeKind::Created => {
            Diff::from_contents(name, None, &read(layer.open_after(change))?).for_people()
        }
        ChangeKind::Changed => {
            let (old, new) = (read(layer.open_before(change))?, read(layer.open_after(change))?);
            Diff::from_contents(name, Some(&old), &new).for_people()
        }
        ChangeKind::Deleted => {
            Diff::from_deletion(name, &read(layer.open_before(change))?).for_people()
        }
        ChangeKind::Mode | ChangeKind::Touched => None,
    }
}
