//! Rewind (undo): restores files and conversation to the state before the last turns.
//!
//! Files come first: a program killed in between leaves files taken back and a conversation that can
//! be taken back by the same command again.

use gnoma_core::store::{Entry, EntryId, SessionId, SessionStore as _};
use gnoma_store::checkpoint::{Change, ChangeKind, Error, Point, Side, SnapshotId, Workspace};

pub use crate::restore::{Rewind, RewindOutcome, RewindPart, RewindTarget, render_paths};
use crate::{
    HostError, Project, Result, files_only_rewind,
    project_history::{ProjectHistory, refuse_in_incognito},
    restore::{
        FileRestore, FileRestoreOutcome, describe_restore, find_checkpoint, lock_session,
        open_session_workspace, record_rewind,
    },
    routing,
    text::{fit_line, one_line},
    timeline::{self, TimelineFiles},
};

/// Columns of the text that represents a turn.
const MAX_WORDS_COLUMNS: usize = 50;

/// Rewinds a session, or describes what that would do.
///
/// # Errors
/// There is no such place to go back to, the session is open elsewhere, or files cannot be written.
pub async fn rewind_session(project: &Project, how: &Rewind) -> Result<RewindOutcome> {
    refuse_in_incognito(project, "rewind")?;
    if files_only_rewind::applies(project, how.session.as_deref()) {
        return files_only_rewind::rewind_unsaved_session(project, how).map(RewindOutcome::Done);
    }
    let past = ProjectHistory::open(project)?;
    let session = past.find_session(how.session.as_deref()).await?.id;
    let conversation = how.part != RewindPart::Files;
    if !how.dry_run {
        lock_session(&past, &session).await?;
    }
    // Without checkpoints, a rewind of the conversation is done, and one of the files is refused.
    let wants_files = how.part != RewindPart::Conversation
        && (project.places.workspace.is_some() || names_files(how.part));
    let plan = RewindPlan::prepare(project, &past, &session, &how.to, wants_files).await?;
    let files = plan.file_restore()?;
    let no_files = describe_missing_checkpoint(project, how, files.is_some())?;
    if how.dry_run {
        return describe_rewind(&session, &plan.goal, files, conversation, &no_files)
            .map(RewindOutcome::Done);
    }
    let restored = match files.map(|files| files.restore(how.overwrite)).transpose()? {
        Some(FileRestoreOutcome::Conflict(paths)) => {
            past.store.release_session(session).await?;
            return Ok(RewindOutcome::Conflict(paths));
        }
        Some(FileRestoreOutcome::Restored(restored)) => Some(restored),
        Some(FileRestoreOutcome::AsItWas) | None => None,
    };
    let files_text = match &restored {
        Some(restored) => describe_restore(restored, how.redo_command()),
        None if files.is_some() => "files: nothing to restore\n".to_owned(),
        None => no_files,
    };
    let text = describe_done(how, &session, &plan.goal.what, &files_text);
    let last = plan.path.last();
    if conversation || restored.is_some() {
        let to = if conversation { plan.goal.before } else { last.map(|last| last.id) };
        let before = restored.as_ref().map(|restored| &restored.before);
        record_rewind(&past, &session, to, &plan.path, before).await?;
    }
    routing::record_rewind(project, &session, last.map_or(0, |last| last.at_ms));
    past.store.release_session(session).await?;
    Ok(RewindOutcome::Done(text))
}

/// Reports whether a rewind of that part fails if the files cannot be rewound.
fn names_files(part: RewindPart) -> bool {
    matches!(part, RewindPart::Files | RewindPart::Both)
}

/// Returns the line about the files where there is no checkpoint to restore. `has_target`: there is one.
///
/// # Errors
/// The files must be rewound, and cannot be.
fn describe_missing_checkpoint(
    project: &Project,
    how: &Rewind,
    has_target: bool,
) -> Result<String> {
    let hindrance = project.places.checkpoint_hindrance(&project.keeping.checkpoints);
    Ok(match hindrance {
        Some(why) if names_files(how.part) && !has_target => {
            return Err(HostError::usage(format!("the files cannot be rewound: {why}")));
        }
        _ if how.part == RewindPart::Conversation => String::new(),
        Some(why) => format!("files: not restored: {why}\n"),
        None if how.dry_run => "files: no changes\n".to_owned(),
        None => "files: nothing to restore\n".to_owned(),
    })
}

/// Describes a rewind that was done. `what` is the place that it went back to, `files` the lines about the files.
fn describe_done(how: &Rewind, session: &SessionId, what: &str, files: &str) -> String {
    let mut text = if how.in_session { String::new() } else { format!("session {session}: ") };
    text.push_str(&format!("rewound to before {what}\n{files}"));
    if how.part != RewindPart::Files {
        let next = if how.in_session { "" } else { "; continue with `gnoma --continue`" };
        text.push_str(&format!("conversation: rewound{next}\n"));
    }
    text.push_str(&format!("undo this with `{}`\n", how.redo_command()));
    text
}

/// Checks that the place to rewind to exists and that its files are available. Changes nothing.
///
/// # Errors
/// As [`rewind_session`]'s, as far as they are known before.
pub(crate) async fn check_rewind(project: &Project, how: &Rewind) -> Result<()> {
    refuse_in_incognito(project, "rewind")?;
    if files_only_rewind::applies(project, how.session.as_deref()) {
        return Ok(());
    }
    let past = ProjectHistory::open(project)?;
    let session = past.find_session(how.session.as_deref()).await?.id;
    let wants_files = how.part != RewindPart::Conversation && project.places.workspace.is_some();
    let plan = RewindPlan::prepare(project, &past, &session, &how.to, wants_files).await?;
    plan.file_restore().map(drop)
}

/// The place that a rewind goes back to, and what it restores, before anything changes.
struct RewindPlan {
    /// The entries of the conversation.
    path: Vec<Entry>,
    /// The checkpoints of the session, if files are wanted.
    workspace: Option<Workspace>,
    goal: RewindGoal,
    /// The checkpoints that the turns on the way began with.
    starts: Vec<SnapshotId>,
}

impl RewindPlan {
    async fn prepare(
        project: &Project,
        past: &ProjectHistory,
        session: &SessionId,
        to: &RewindTarget,
        wants_files: bool,
    ) -> Result<Self> {
        let path = past.load_path(session, None).await?;
        let workspace =
            if wants_files { Some(open_session_workspace(project, session)?) } else { None };
        let goal = RewindGoal::from_target(to, &path, workspace.as_ref())?;
        let starts = timeline::turn_start_checkpoints(&path);
        Ok(Self { path, workspace, goal, starts })
    }

    /// Returns the files to restore; `None` if none are wanted, or none have changed.
    fn file_restore(&self) -> Result<Option<FileRestore<'_>>> {
        let Some(workspace) = &self.workspace else { return Ok(None) };
        let target = self.goal.file_checkpoint(workspace)?;
        Ok(target.map(|target| FileRestore { workspace, target, starts: &self.starts }))
    }
}

/// The place that a rewind goes back to.
struct RewindGoal {
    /// The entry the conversation continues from; `None` is its start.
    before: Option<EntryId>,
    /// The files at that place.
    files: TimelineFiles,
    /// The description of the place in words.
    what: String,
}

impl RewindGoal {
    fn from_target(
        to: &RewindTarget,
        path: &[Entry],
        workspace: Option<&Workspace>,
    ) -> Result<Self> {
        match to {
            RewindTarget::Turns(count) => Self::from_turns(*count, path),
            RewindTarget::Checkpoint(id) => Self::from_checkpoint(id, path, workspace),
        }
    }

    fn from_turns(count: usize, path: &[Entry]) -> Result<Self> {
        if count == 0 {
            return Err(HostError::usage("the number of turns must be 1 or more"));
        }
        let turns = timeline::list_turns(path);
        let turn = turns.len().checked_sub(count).and_then(|at| turns.get(at));
        let Some(turn) = turn else {
            let there = turns.len();
            let text = format!("cannot go back {count} turns: the session has {there}");
            return Err(HostError::usage(text));
        };
        let words = fit_line(&turn.words, MAX_WORDS_COLUMNS);
        Ok(Self {
            before: turn.before,
            files: timeline::files_at(path, turn.said),
            what: format!("“{words}”"),
        })
    }

    fn from_checkpoint(to: &str, path: &[Entry], workspace: Option<&Workspace>) -> Result<Self> {
        let files = find_checkpoint(to, path, workspace)?;
        let at = timeline::all_checkpoints(path).into_iter().find(|(_, id)| *id == files);
        let before = match at {
            Some((entry, _)) => timeline::before_checkpoint(path, entry.id),
            // Kept by a going back: the conversation stays where it is.
            None => path.last().map(|last| last.id),
        };
        Ok(Self { before, what: format!("checkpoint {files}"), files: TimelineFiles::Kept(files) })
    }

    /// The checkpoint to bring back; `None` where nothing has changed any file since.
    fn file_checkpoint(&self, workspace: &Workspace) -> Result<Option<&SnapshotId>> {
        let why = match &self.files {
            TimelineFiles::Unchanged => return Ok(None),
            TimelineFiles::Unknown => "were not saved".to_owned(),
            TimelineFiles::Kept(id) => match workspace.get(id) {
                Err(Error::Unknown(_)) => format!("are gone (checkpoint {id} was deleted)"),
                known => return known.map(|_| Some(id)).map_err(Into::into),
            },
        };
        let text = format!(
            "the files from before {} {why}; rewind only the conversation with --conversation",
            self.what
        );
        Err(HostError::usage(text))
    }
}

/// Describes what a rewind would do. `no_files`: what is said where there is no checkpoint to restore.
fn describe_rewind(
    session: &SessionId,
    goal: &RewindGoal,
    files: Option<FileRestore<'_>>,
    conversation: bool,
    no_files: &str,
) -> Result<String> {
    let mut text = format!("session {session} would be rewound to before {}\n", goal.what);
    text.push_str(&match files {
        Some(going) if !going.workspace.is_at(going.target)? => describe_file_changes(going)?,
        Some(_) => "files: no changes\n".to_owned(),
        None => no_files.to_owned(),
    });
    if conversation {
        text.push_str("conversation: would be rewound\n");
    }
    Ok(text)
}

/// Describes what a rewind would do to the files.
fn describe_file_changes(
    FileRestore { workspace, target, starts }: FileRestore<'_>,
) -> Result<String> {
    let changes = workspace.list_changes(target, Point::Now)?;
    let theirs = workspace.external_changes(target, starts)?;
    let mut text = String::new();
    if changes.is_empty() {
        text.push_str("files: only which names share a file would change\n");
    }
    for Change { path, kind, before, after } in &changes {
        let not_kept = Some(&Side::NotKept);
        let would = match kind {
            _ if before.as_ref() == not_kept || after.as_ref() == not_kept => "leave  ",
            ChangeKind::Added => "remove ",
            ChangeKind::Removed => "restore",
            ChangeKind::Edited | ChangeKind::Mode | ChangeKind::Kind => "replace",
        };
        let note = match would {
            "leave  " => "  (it was not saved)",
            _ if theirs.contains(path) => "  (changed by you or another program)",
            _ => "",
        };
        text.push_str(&format!("  {would} {}{note}\n", one_line(&path.to_string_lossy())));
    }
    Ok(text)
}
