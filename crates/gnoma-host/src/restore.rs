//! Restores files from a checkpoint, and records it in the session.

use std::path::PathBuf;

use anyhow::Context as _;
use gnoma_core::store::{
    Durability, Entry, EntryId, NewEntry, Parent, Record, SessionId, SessionStore as _,
};
use gnoma_store::checkpoint::{
    Conflict, Error, RestoreReport, SnapshotId, UnrestoredPath, UnrestoredReason, Workspace,
};

use crate::{
    HostError, Project, Result, project_history::ProjectHistory, text::one_line, timeline,
};

/// Paths that are named of each kind.
const MAX_NAMED: usize = 20;
/// The place that a rewind goes back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RewindTarget {
    /// The place that many turns back.
    Turns(usize),
    /// The checkpoint whose id begins so.
    Checkpoint(String),
}

/// The part of a session that a rewind changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RewindPart {
    /// The conversation, and the files where such are kept.
    #[default]
    All,
    /// Both; where files are not kept, that is an error.
    Both,
    /// Only the files are rewound.
    Files,
    /// Only the conversation is rewound.
    Conversation,
}

/// A request to rewind a session: how far, and which part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewind {
    /// The session, by a beginning of its id; the newest by default.
    pub session: Option<String>,
    /// The place to go back to.
    pub to: RewindTarget,
    /// The part of the session to rewind.
    pub part: RewindPart,
    /// `true` if nothing is done and the outcome says what would be done.
    pub dry_run: bool,
    /// `true` if later changes by the user or another program are overwritten. They are saved in any case.
    pub overwrite: bool,
    /// `true` if the outcome is shown in the session itself and not in a shell, from which other commands continue.
    pub in_session: bool,
}

impl Rewind {
    /// The command that undoes it, as it is shown.
    pub(crate) fn redo_command(&self) -> &'static str {
        if self.in_session { "/redo" } else { "gnoma redo" }
    }
}

/// The result of a rewind or redo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RewindOutcome {
    /// The rewind or redo is done. Contains lines for people.
    Done(String),
    /// No files were restored: the user or another program changed these files, and they were not to be
    /// overwritten.
    Conflict(Vec<PathBuf>),
}

/// Holds a session; says who has it if it is already held.
pub(crate) async fn lock_session(past: &ProjectHistory, session: &SessionId) -> Result<()> {
    let taken = past.store.hold_session(session.clone(), past.clock.now_ms()).await;
    Ok(taken.map(drop).with_context(|| format!("cannot change `{session}`"))?)
}

/// The files as the session kept them.
pub(crate) fn open_session_workspace(project: &Project, session: &SessionId) -> Result<Workspace> {
    let workspace = project.places.open(&project.keeping.checkpoints)?;
    workspace.set_session(Some(session.as_str()));
    Ok(workspace)
}

/// The checkpoint whose id begins so: on the path, else any that was taken for the session.
pub(crate) fn find_checkpoint(
    beginning: &str,
    path: &[Entry],
    workspace: Option<&Workspace>,
) -> Result<SnapshotId> {
    let begins = |id: &SnapshotId| id.as_str().starts_with(beginning);
    let own = timeline::all_checkpoints(path).into_iter().map(|(_, id)| id);
    let mut found: Vec<_> = own.filter(begins).collect();
    if let (Some(workspace), true) = (workspace, found.is_empty()) {
        found.extend(workspace.own_snapshots()?.into_iter().filter(begins));
    }
    let text = match (found.pop(), found.len()) {
        (Some(id), 0) => return Ok(id),
        (None, _) => format!("no checkpoint `{beginning}`"),
        (Some(_), more) => format!("`{beginning}` matches {} checkpoints", more + 1),
    };
    Err(HostError::usage(format!("{text}; `gnoma changes --list` lists them")))
}

/// Files on their way back.
#[derive(Clone, Copy)]
pub(crate) struct FileRestore<'a> {
    pub workspace: &'a Workspace,
    /// The checkpoint that is restored.
    pub target: &'a SnapshotId,
    /// The checkpoints that the turns on the way began with.
    pub starts: &'a [SnapshotId],
}

/// The result of restoring files.
pub(crate) enum FileRestoreOutcome {
    /// There was nothing to do.
    AsItWas,
    /// The files were not restored because the user or another program changed these.
    Conflict(Vec<PathBuf>),
    /// The files were restored; see [`RestoreReport`].
    Restored(RestoreReport),
}

impl FileRestore<'_> {
    /// Brings the files back. What the person or another program changed is overwritten only with
    /// `overwrite`; it is kept anyway.
    pub(crate) fn restore(&self, overwrite: bool) -> Result<FileRestoreOutcome> {
        if self.workspace.is_at(self.target)? {
            return Ok(FileRestoreOutcome::AsItWas);
        }
        let conflict = if overwrite { Conflict::KeepTheirs } else { Conflict::Refuse };
        match self.workspace.restore_turns(self.target, self.starts, conflict) {
            Err(Error::Conflict { paths }) => Ok(FileRestoreOutcome::Conflict(paths)),
            restored => Ok(FileRestoreOutcome::Restored(restored?)),
        }
    }
}

/// Writes down that the session was taken back, and which files that left behind.
pub(crate) async fn record_rewind(
    past: &ProjectHistory,
    session: &SessionId,
    to: Option<EntryId>,
    path: &[Entry],
    before: Option<&SnapshotId>,
) -> Result<()> {
    let Some(from) = path.last().map(|last| last.id) else { return Ok(()) };
    let new = |parent, record| NewEntry {
        session: session.clone(),
        parent,
        at_ms: past.clock.now_ms(),
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

/// Describes what a restore did. `undo` is the command that restores what it overwrote.
pub(crate) fn describe_restore(restored: &RestoreReport, undo: &str) -> String {
    let RestoreReport { before, written, removed, theirs, left, .. } = restored;
    let mut text = format!("files: {written} written, {removed} removed\n");
    if !theirs.is_empty() {
        text.push_str(&format!(
            "you or another program had changed these files. Their previous content is saved as\n\
             checkpoint {before}; restore it with `{undo}`:\n{}",
            render_paths(theirs)
        ));
    }
    for UnrestoredPath { path, why } in left.iter().take(MAX_NAMED) {
        let why = match why {
            UnrestoredReason::NotKept => "it has no checkpoint",
            UnrestoredReason::Changed => "it changed meanwhile",
            UnrestoredReason::NotEmpty => "it contains files without a checkpoint",
            UnrestoredReason::Damaged => "its checkpoint is damaged",
            UnrestoredReason::Refused(why) => why,
        };
        text.push_str(&format!("unchanged: {}: {why}\n", one_line(&path.to_string_lossy())));
    }
    if left.len() > MAX_NAMED {
        text.push_str(&format!("unchanged: {} more\n", left.len() - MAX_NAMED));
    }
    text
}

/// Paths, a line each; of many, the first ones.
#[must_use]
pub fn render_paths(paths: &[PathBuf]) -> String {
    let line = |path: &PathBuf| format!("  {}\n", one_line(&path.to_string_lossy()));
    let mut text: String = paths.iter().take(MAX_NAMED).map(line).collect();
    if paths.len() > MAX_NAMED {
        text.push_str(&format!("  and {} more\n", paths.len() - MAX_NAMED));
    }
    text
}
