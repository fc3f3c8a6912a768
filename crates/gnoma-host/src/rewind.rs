//! Taking turns back: files and conversation as they were before the last turns.
//!
//! Files come first: a program killed in between leaves files taken back and a conversation that can
//! be taken back by the same command again.

use std::path::PathBuf;

use anyhow::Context as _;
use gnoma_core::store::{
    Durability, Entry, EntryId, NewEntry, Parent, Record, SessionId, SessionStore as _,
};
use gnoma_store::checkpoint::{
    Change, ChangeKind, Conflict, Error, Left, LeftWhy, Point, Restored, Side, SnapshotId,
    Workspace,
};

use crate::{
    HostError, Project, Result, clock,
    past::{Past, refuse_in_incognito},
    routing,
    text::{fit, one_line},
    timeline::{self, Files},
    unkept,
};

/// Paths that are named of each kind.
const MAX_NAMED: usize = 20;
/// Columns of the words that stand for a turn.
const MAX_WORDS_COLUMNS: usize = 50;

/// Where to go back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// So many turns.
    Turns(usize),
    /// The checkpoint whose id begins so.
    Checkpoint(String),
}

/// What is taken back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// The conversation, and the files where such are kept.
    #[default]
    All,
    /// Both; where files are not kept, that is an error.
    Both,
    /// Only the files.
    Files,
    /// Only the conversation.
    Conversation,
}

/// How far back, and what of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewind {
    /// The session, by a beginning of its id; the newest by default.
    pub session: Option<String>,
    /// Where to.
    pub to: Target,
    /// What of it.
    pub part: Part,
    /// Nothing is done: the outcome says what would be.
    pub dry_run: bool,
    /// What the person or another program changed meanwhile is overwritten. It is kept anyway.
    pub overwrite: bool,
}

/// What became of a going back, or of bringing back what was taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done. Lines for people.
    Done(String),
    /// Nothing was done: the person or another program changed these files, and they were not to be
    /// overwritten.
    Conflict(Vec<PathBuf>),
}

/// Takes turns back, or says what that would do.
///
/// # Errors
/// There is no such place to go back to, the session is open elsewhere, or files cannot be written.
pub async fn rewind(project: &Project, how: &Rewind) -> Result<Outcome> {
    refuse_in_incognito(&project.loaded.settings, "rewind")?;
    if unkept::is_meant(project, how.session.as_deref()) {
        return unkept::rewind(project, how).map(Outcome::Done);
    }
    let past = project.past()?;
    let session = past.session(how.session.as_deref()).await?.id;
    // Where no files are kept, only who asks for them is told.
    let has_files =
        project.places.workspace.is_some() || matches!(how.part, Part::Files | Part::Both);
    let files = how.part != Part::Conversation && has_files;
    let conversation = how.part != Part::Files;
    if !how.dry_run {
        take(&past, &session).await?;
    }
    let path = past.path(&session, None).await?;
    let workspace = if files { Some(workspace(project, &session)?) } else { None };
    let goal = Goal::of(&how.to, &path, workspace.as_ref())?;
    let starts = timeline::starts(&path);
    let target = match &workspace {
        Some(workspace) => goal.files(workspace)?,
        None => None,
    };
    let files = workspace.as_ref().zip(target).map(|(workspace, target)| Going {
        workspace,
        target,
        starts: &starts,
    });
    if how.dry_run {
        return plan(&session, &goal, files, conversation).map(Outcome::Done);
    }
    let restored = match files {
        Some(going) => going.restore(how.overwrite)?,
        None => Done::AsItWas,
    };
    let restored = match restored {
        Done::Conflict(paths) => {
            past.store.release(session).await?;
            return Ok(Outcome::Conflict(paths));
        }
        Done::AsItWas => None,
        Done::Restored(restored) => Some(restored),
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
    routing::undone(project, &session, path.last().map_or(0, |last| last.at_ms));
    past.store.release(session).await?;
    Ok(Outcome::Done(format!("{text}`gnoma redo` brings back what was taken back\n")))
}

/// Takes a session in hand; says who has it where somebody does.
pub(crate) async fn take(past: &Past, session: &SessionId) -> Result<()> {
    let taken = past.store.hold(session.clone(), clock::now_ms()).await;
    Ok(taken.map(drop).with_context(|| format!("cannot change `{session}`"))?)
}

/// The files as the session kept them.
pub(crate) fn workspace(project: &Project, session: &SessionId) -> Result<Workspace> {
    let workspace = project.places.open(&project.loaded.settings)?;
    workspace.set_session(Some(session.as_str()));
    Ok(workspace)
}

/// Where to go back to.
struct Goal {
    /// The entry the conversation goes on from; `None` is its start.
    before: Option<EntryId>,
    /// The files then.
    files: Files,
    /// In words.
    what: String,
}

impl Goal {
    fn of(to: &Target, path: &[Entry], workspace: Option<&Workspace>) -> Result<Self> {
        match to {
            Target::Turns(count) => Self::turns(*count, path),
            Target::Checkpoint(id) => Self::checkpoint(id, path, workspace),
        }
    }

    fn turns(count: usize, path: &[Entry]) -> Result<Self> {
        let turns = timeline::turns(path);
        let turn = turns.len().checked_sub(count).and_then(|at| turns.get(at));
        let Some(turn) = turn else {
            let there = turns.len();
            let text = format!("cannot go back {count} turns: the session has {there}");
            return Err(HostError::usage(text));
        };
        let words = fit(&turn.words, MAX_WORDS_COLUMNS);
        Ok(Self {
            before: turn.before,
            files: timeline::files_at(path, turn.said),
            what: format!("“{words}”"),
        })
    }

    fn checkpoint(to: &str, path: &[Entry], workspace: Option<&Workspace>) -> Result<Self> {
        let files = find(to, path, workspace)?;
        let at = timeline::checkpoints(path).into_iter().find(|(_, id)| *id == files);
        let before = match at {
            Some((entry, _)) => timeline::before_checkpoint(path, entry.id),
            // Kept by a going back: the conversation stays where it is.
            None => path.last().map(|last| last.id),
        };
        Ok(Self { before, what: format!("checkpoint {files}"), files: Files::Kept(files) })
    }

    /// The checkpoint to bring back; `None` where nothing has changed any file since.
    fn files(&self, workspace: &Workspace) -> Result<Option<&SnapshotId>> {
        let why = match &self.files {
            Files::Unchanged => return Ok(None),
            Files::Unknown => "could not be kept then".to_owned(),
            Files::Kept(id) => match workspace.get(id) {
                Err(Error::Unknown(_)) => format!("are no longer kept (checkpoint {id})"),
                known => return known.map(|_| Some(id)).map_err(Into::into),
            },
        };
        let text = format!(
            "the files as they were before {} {why}; --conversation takes back only what was said",
            self.what
        );
        Err(HostError::usage(text))
    }
}

/// The checkpoint whose id begins so: on the path, else any that was taken for the session.
pub(crate) fn find(
    beginning: &str,
    path: &[Entry],
    workspace: Option<&Workspace>,
) -> Result<SnapshotId> {
    let begins = |id: &SnapshotId| id.as_str().starts_with(beginning);
    let own = timeline::checkpoints(path).into_iter().map(|(_, id)| id);
    let mut found: Vec<_> = own.filter(begins).collect();
    if let (Some(workspace), true) = (workspace, found.is_empty()) {
        found.extend(workspace.own_snapshots()?.into_iter().filter(begins));
    }
    let text = match (found.pop(), found.len()) {
        (Some(id), 0) => return Ok(id),
        (None, _) => format!("there is no checkpoint `{beginning}`"),
        (Some(_), more) => format!("`{beginning}` begins {} checkpoints", more + 1),
    };
    Err(HostError::usage(format!("{text}; `gnoma changes --list` shows which there are")))
}

/// Files on their way back.
#[derive(Clone, Copy)]
pub(crate) struct Going<'a> {
    pub workspace: &'a Workspace,
    /// What is brought back.
    pub target: &'a SnapshotId,
    /// What the turns on the way began with.
    pub starts: &'a [SnapshotId],
}

/// What became of them.
pub(crate) enum Done {
    /// There was nothing to do.
    AsItWas,
    /// Nothing was done: somebody else changed these.
    Conflict(Vec<PathBuf>),
    /// See there.
    Restored(Restored),
}

impl Going<'_> {
    /// Brings the files back. What the person or another program changed is overwritten only with
    /// `overwrite`; it is kept anyway.
    pub(crate) fn restore(&self, overwrite: bool) -> Result<Done> {
        if self.workspace.is_at(self.target)? {
            return Ok(Done::AsItWas);
        }
        let conflict = if overwrite { Conflict::KeepTheirs } else { Conflict::Refuse };
        match self.workspace.restore_turns(self.target, self.starts, conflict) {
            Err(Error::Conflict { paths }) => Ok(Done::Conflict(paths)),
            restored => Ok(Done::Restored(restored?)),
        }
    }
}

/// Writes down that the session was taken back, and which files that left behind.
pub(crate) async fn note(
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
pub(crate) fn told(restored: &Restored, undo: &str) -> String {
    let Restored { before, written, removed, theirs, left, .. } = restored;
    let mut text = format!("files: {written} written, {removed} removed\n");
    if !theirs.is_empty() {
        text.push_str(&format!(
            "these had been changed by you or another program, between the turns or since. What was\n\
             there is kept as checkpoint {before}; `{undo}` brings it back:\n{}",
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
    files: Option<Going<'_>>,
    conversation: bool,
) -> Result<String> {
    let mut text = format!("session {session} would go back before {}\n", goal.what);
    text.push_str(&match files {
        Some(going) if !going.workspace.is_at(going.target)? => planned(going)?,
        Some(_) | None => "files: none would change\n".to_owned(),
    });
    if conversation {
        text.push_str("conversation: it would go on from there\n");
    }
    Ok(text)
}

/// What would become of the files.
fn planned(Going { workspace, target, starts }: Going<'_>) -> Result<String> {
    let changes = workspace.changes(target, Point::Now)?;
    let theirs = workspace.theirs(target, starts)?;
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
            "leave  " => "  (it was not kept)",
            _ if theirs.contains(path) => "  (changed by you or another program)",
            _ => "",
        };
        text.push_str(&format!("  {would} {}{note}\n", one_line(&path.to_string_lossy())));
    }
    Ok(text)
}

/// Paths, a line each; of many, the first ones.
#[must_use]
pub fn named(paths: &[PathBuf]) -> String {
    let line = |path: &PathBuf| format!("  {}\n", one_line(&path.to_string_lossy()));
    let mut text: String = paths.iter().take(MAX_NAMED).map(line).collect();
    if paths.len() > MAX_NAMED {
        text.push_str(&format!("  and {} more\n", paths.len() - MAX_NAMED));
    }
    text
}
