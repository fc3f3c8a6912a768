//! `gnoma rewind`: files and conversation as they were before the last turns.
//!
//! Files come first: a program killed in between leaves files taken back and a conversation that can
//! be taken back by the same command again.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use gnoma_core::store::{
    Durability, Entry, EntryId, NewEntry, Parent, Record, SessionId, SessionStore as _,
};
use gnoma_store::checkpoint::{
    Change, ChangeKind, Conflict, Left, LeftWhy, Point, Restored, SnapshotId, Workspace,
};

use super::{Ground, show, unkept};
use crate::{
    args::{RewindArgs, TurnArgs},
    clock,
    past::Past,
    report::{Exit, Misuse},
    screen,
    surroundings::Surroundings,
    timeline,
};

/// Paths that are named of each kind.
const MAX_NAMED: usize = 20;
/// Columns of the words that stand for a turn.
const MAX_WORDS_COLUMNS: usize = 50;

pub(super) async fn run(how: &RewindArgs, args: &TurnArgs, around: &Surroundings) -> Result<Exit> {
    let ground = Ground::of(args, around)?;
    if unkept::is_meant(&ground, how.which.session.as_deref()) {
        return unkept::rewind(&ground, how);
    }
    let past = ground.past()?;
    let session = past.session(how.which.session.as_deref()).await?.id;
    // Where no files are kept, only who asks for them is told.
    let has_files = ground.places.workspace.is_some() || how.files || how.both;
    let (files, conversation) = (!how.conversation && has_files, !how.files);
    if !how.dry_run {
        take(&past, &session).await?;
    }
    let path = past.path(&session, None).await?;
    let workspace = if files { Some(workspace(&ground, &session)?) } else { None };
    let goal = Goal::of(how, &path, workspace.as_ref())?;
    let files = workspace.as_ref().zip(goal.files.as_ref());
    if how.dry_run {
        return show(&plan(&session, &goal, files, conversation)?);
    }
    let restored = match files {
        Some((workspace, target)) => restore(workspace, target)?,
        None => None,
    };
    let mut text = format!("session {session}: back before {}\n", goal.what);
    match &restored {
        Some(restored) => text.push_str(&told(restored, "gnoma redo")),
        None if workspace.is_none() => (),
        None => text.push_str("files: there was nothing to take back\n"),
    }
    if conversation || restored.is_some() {
        let to = if conversation { goal.before } else { path.last().map(|last| last.id) };
        let before = restored.as_ref().map(|restored| &restored.before);
        note(&past, &session, to, &path, before).await?;
    }
    if conversation {
        text.push_str("conversation: it goes on from there with `gnoma --continue`\n");
    }
    past.store.release(session).await?;
    show(&format!("{text}`gnoma redo` brings back what was taken back\n"))
}

/// Takes a session in hand; says who has it where somebody does.
pub(super) async fn take(past: &Past, session: &SessionId) -> Result<()> {
    let taken = past.store.hold(session.clone(), clock::now_ms()).await;
    taken.map(drop).with_context(|| format!("cannot change `{session}`"))
}

/// The files as the session kept them.
pub(super) fn workspace(ground: &Ground<'_>, session: &SessionId) -> Result<Workspace> {
    let workspace = ground.places.open(&ground.loaded.settings)?;
    workspace.set_session(Some(session.as_str()));
    Ok(workspace)
}

/// Where to go back to.
struct Goal {
    /// The entry the conversation goes on from; `None` is its start.
    before: Option<EntryId>,
    /// The files then; `None` where nothing has changed any since.
    files: Option<SnapshotId>,
    /// In words.
    what: String,
}

impl Goal {
    fn of(how: &RewindArgs, path: &[Entry], workspace: Option<&Workspace>) -> Result<Self> {
        match how.count() {
            Some(count) => Self::turns(count, path),
            None => Self::checkpoint(&how.to, path, workspace),
        }
    }

    fn turns(count: usize, path: &[Entry]) -> Result<Self> {
        let turns = timeline::turns(path);
        let turn = turns.len().checked_sub(count).and_then(|at| turns.get(at));
        let Some(turn) = turn else {
            let there = turns.len();
            let text = format!("cannot go back {count} turns: the session has {there}");
            return Err(Misuse(text).into());
        };
        let words = screen::fit(&turn.words, MAX_WORDS_COLUMNS);
        Ok(Self {
            before: turn.before,
            files: timeline::files_after(path, turn.said),
            what: format!("“{words}”"),
        })
    }

    fn checkpoint(to: &str, path: &[Entry], workspace: Option<&Workspace>) -> Result<Self> {
        let files = find(to, path, workspace)?;
        let at = timeline::checkpoints(path).into_iter().find(|(_, id)| *id == files);
        let before = match at {
            Some((entry, _)) => timeline::before_checkpoint(path, entry.id),
            // Kept by a going back, or in another session: the conversation stays where it is.
            None => path.last().map(|last| last.id),
        };
        Ok(Self { before, what: format!("checkpoint {files}"), files: Some(files) })
    }
}

/// The checkpoint whose id begins so: of the session, else of the workspace.
pub(super) fn find(
    beginning: &str,
    path: &[Entry],
    workspace: Option<&Workspace>,
) -> Result<SnapshotId> {
    let begins = |id: &SnapshotId| id.as_str().starts_with(beginning);
    let own = timeline::checkpoints(path).into_iter().map(|(_, id)| id);
    let mut found: Vec<_> = own.filter(begins).collect();
    if let (Some(workspace), true) = (workspace, found.is_empty()) {
        found.extend(workspace.snapshots()?.into_iter().filter(begins));
    }
    let text = match (found.pop(), found.len()) {
        (Some(id), 0) => return Ok(id),
        (None, _) => format!("there is no checkpoint `{beginning}`"),
        (Some(_), more) => format!("`{beginning}` begins {} checkpoints", more + 1),
    };
    Err(Misuse(format!("{text}; `gnoma changes --list` shows which there are")).into())
}

/// Brings the files back; `None` where they are so already.
pub(super) fn restore(workspace: &Workspace, target: &SnapshotId) -> Result<Option<Restored>> {
    if workspace.changes(target, Point::Now)?.is_empty() {
        return Ok(None);
    }
    Ok(Some(workspace.restore(target, Conflict::KeepTheirs)?))
}

/// Writes down that the session was taken back, and which files that left behind.
pub(super) async fn note(
    past: &Past,
    session: &SessionId,
    to: Option<EntryId>,
    path: &[Entry],
    before: Option<&SnapshotId>,
) -> Result<()> {
    let Some(from) = path.last().map(|last| last.id) else { return Ok(()) };
    let new = |parent, record| NewEntry {
        session: session.clone(),
        parent,
        at_ms: clock::now_ms(),
        record,
        durability: Durability::Disk,
    };
    let parent = to.map_or(Parent::Start, Parent::After);
    past.store.append(new(parent, Record::Rewound { from })).await?;
    if let Some(before) = before {
        let kept = Record::Checkpoint { id: before.to_string() };
        past.store.append(new(Parent::Tip, kept)).await?;
    }
    Ok(())
}

/// What a restore did. `undo` is the command that brings back what it overwrote.
pub(super) fn told(restored: &Restored, undo: &str) -> String {
    let Restored { before, written, removed, theirs, left, .. } = restored;
    let mut text = format!("files: {written} written, {removed} removed\n");
    if !theirs.is_empty() {
        text.push_str(&format!(
            "these had been changed since the last turn, by you or another program. What was there\n\
             is kept as checkpoint {before}; `{undo}` brings it back:\n{}",
            named(theirs)
        ));
    }
    for Left { path, why } in left.iter().take(MAX_NAMED) {
        let why = match why {
            LeftWhy::NotKept => "it was never kept",
            LeftWhy::Changed => "it changed meanwhile",
            LeftWhy::NotEmpty => "files that were never kept are in it",
            LeftWhy::Damaged => "what was kept of it is damaged",
            LeftWhy::Refused(why) => why,
        };
        text.push_str(&format!("left as it is: {}: {why}\n", one_line(&path.to_string_lossy())));
    }
    if left.len() > MAX_NAMED {
        text.push_str(&format!("left as they are: {} more\n", left.len() - MAX_NAMED));
    }
    text
}

/// What a rewind would do.
fn plan(
    session: &SessionId,
    goal: &Goal,
    files: Option<(&Workspace, &SnapshotId)>,
    conversation: bool,
) -> Result<String> {
    let mut text = format!("session {session} would go back before {}\n", goal.what);
    let changes = match files {
        Some((workspace, target)) => workspace.changes(target, Point::Now)?,
        None => Vec::new(),
    };
    if changes.is_empty() {
        text.push_str("files: none would change\n");
    }
    let theirs = match files {
        Some((workspace, _)) if !changes.is_empty() => since_last(workspace, session)?,
        Some(_) | None => Vec::new(),
    };
    for Change { path, kind, .. } in &changes {
        let would = match kind {
            ChangeKind::Added => "remove ",
            ChangeKind::Removed => "restore",
            ChangeKind::Edited | ChangeKind::Mode | ChangeKind::Kind => "replace",
        };
        let whose = if theirs.contains(path) { "  (changed since the last turn)" } else { "" };
        text.push_str(&format!("  {would} {}{whose}\n", one_line(&path.to_string_lossy())));
    }
    if conversation {
        text.push_str("conversation: it would go on from there\n");
    }
    Ok(text)
}

/// What is not as the session left it.
fn since_last(workspace: &Workspace, session: &SessionId) -> Result<Vec<PathBuf>> {
    let own = |id: &SnapshotId| {
        workspace
            .get(id)
            .is_ok_and(|snapshot| snapshot.session.as_deref() == Some(session.as_str()))
    };
    let Some(last) = workspace.snapshots()?.into_iter().rev().find(own) else {
        return Ok(Vec::new());
    };
    let changes = workspace.changes(&last, Point::Now)?;
    Ok(changes.into_iter().map(|change| change.path).collect())
}

fn named(paths: &[PathBuf]) -> String {
    let line = |path: &PathBuf| format!("  {}\n", one_line(&path.to_string_lossy()));
    let mut text: String = paths.iter().take(MAX_NAMED).map(line).collect();
    if paths.len() > MAX_NAMED {
        text.push_str(&format!("  and {} more\n", paths.len() - MAX_NAMED));
    }
    text
}

/// Names may hold anything, also line breaks.
pub(super) fn one_line(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}
