//! Lists the changes of files since a checkpoint, whichever program made them.

use gnoma_core::{protocol::ChangesSince, store::Entry};
use gnoma_store::checkpoint::{
    Point, Side, SkippedPath, SnapshotId, Workspace, without_filled_folders,
};

use crate::{
    HostError, Project, Result, clock, files_only_rewind,
    last_commit::LastCommit,
    project_history::{ProjectHistory, refuse_in_incognito},
    restore::{find_checkpoint, open_session_workspace},
    text::one_line,
    timeline::{self, TimelineFiles},
};

/// Most bytes of a diff in a reply.
const MAX_DIFF_BYTES: usize = 4 << 20;

/// Checkpoints that are compared with the files as they are.
const MAX_LOOKED_AT: usize = 100;
/// Things left out that are named.
const MAX_NAMED: usize = 20;

/// The differences between a checkpoint and the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Lines about it, such as since when.
    pub about: Vec<String>,
    /// A unified diff, or a line for each file; empty where nothing is different.
    pub text: String,
}

/// A checkpoint, for a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointRow {
    /// The id of the checkpoint.
    pub id: String,
    /// The entry of the session that it belongs to, such as `#7`; empty where no session is kept.
    pub entry: String,
    /// The time when the checkpoint was taken, for people.
    pub taken: String,
    /// A label that says what the checkpoint was taken before.
    pub label: String,
}

/// Returns the differences since a checkpoint of a session; both may be given by a prefix of their id. Without a
/// checkpoint, compares with the last turn that changed files; without a session, with the newest checkpoint.
/// `with_lines` gives a unified diff, otherwise there is a line for each file.
///
/// # Errors
/// There is no such session or checkpoint, or the files of then are no longer kept.
pub async fn changes_since_checkpoint(
    project: &Project,
    session: Option<&str>,
    since: Option<&str>,
    with_lines: bool,
) -> Result<Changes> {
    let (path, workspace) = looked_at(project, session).await?;
    let is_last_turn = since.is_none() && !path.is_empty();
    let since = match since {
        Some(id) => Some(find_checkpoint(id, &path, Some(&workspace))?),
        None if path.is_empty() => last_other(&workspace)?,
        None => last_changed(&path)?,
    };
    let Some(since) = since else {
        let about = vec!["the session changed no files".to_owned()];
        return Ok(Changes { about, text: String::new() });
    };
    let which =
        if is_last_turn { "the last turn that changed files, checkpoint" } else { "checkpoint" };
    let mut about = vec![format!("since {which} {since} ({}):", checkpoint_age(&since))];
    let text = render_changes(&workspace, &since, with_lines)?;
    if text.is_empty() {
        about.push("nothing has changed".to_owned());
    }
    Ok(Changes { about, text })
}

/// Returns the differences since the first turn of a session that changed files, as a unified diff.
///
/// # Errors
/// There is no such session, or the files of then are no longer kept.
async fn session_changes(project: &Project, session: &str) -> Result<Changes> {
    let (path, workspace) = looked_at(project, Some(session)).await?;
    let Some(since) = timeline::turn_start_checkpoints(&path).into_iter().next() else {
        let about = vec!["the session changed no files".to_owned()];
        return Ok(Changes { about, text: String::new() });
    };
    let about = vec![format!(
        "since the session's first change, checkpoint {since} ({}):",
        checkpoint_age(&since)
    )];
    let text = render_changes(&workspace, &since, true)?;
    Ok(Changes { about, text })
}

/// Returns what is different since an earlier state, as a unified diff.
///
/// # Errors
/// There is no such session or commit, the files of then are no longer kept, or git would run a program.
pub(crate) async fn changes_since(
    project: &Project,
    session: &str,
    since: ChangesSince,
) -> Result<Changes> {
    match since {
        ChangesSince::Turn => changes_since_checkpoint(project, Some(session), None, true).await,
        ChangesSince::Start => session_changes(project, session).await,
        ChangesSince::Commit => commit_changes(project, session).await,
    }
}

/// Returns the differences between the workspace and the last commit.
async fn commit_changes(project: &Project, session: &str) -> Result<Changes> {
    let (_, workspace) = looked_at(project, Some(session)).await?;
    let commit = LastCommit::open(project)?;
    let (files, more) = commit.changed_files()?;
    let mut about = vec!["since the last commit:".to_owned()];
    if more > 0 {
        about.push(format!("{more} more files are not shown"));
    }
    let mut text = String::new();
    for change in workspace.changes_from(&files)? {
        text.push_str(&workspace.render_diff(&change)?);
    }
    Ok(Changes { about, text })
}

/// The checkpoints of a session, the newest first, and lines about what the newest leaves out.
///
/// # Errors
/// There is no such session, or files are not kept.
pub async fn list_checkpoints(
    project: &Project,
    session: Option<&str>,
) -> Result<(Vec<CheckpointRow>, String)> {
    let (path, workspace) = looked_at(project, session).await?;
    let mut checkpoints: Vec<_> = timeline::all_checkpoints(&path)
        .into_iter()
        .map(|(entry, id)| (format!("#{}", entry.id), id))
        .collect();
    if path.is_empty() {
        checkpoints.extend(workspace.past_snapshots()?.into_iter().map(|id| (String::new(), id)));
    }
    let row = |(entry, id): &(String, SnapshotId)| {
        let label = match workspace.get(id) {
            Ok(snapshot) => snapshot.label,
            Err(_) => "(no longer saved)".to_owned(),
        };
        CheckpointRow { id: id.to_string(), entry: entry.clone(), taken: checkpoint_age(id), label }
    };
    let rows = checkpoints.iter().rev().map(row).collect();
    let left_out = checkpoints.last().map(|(_, newest)| not_kept(&workspace, newest));
    Ok((rows, left_out.unwrap_or_default()))
}

/// The path of the session, empty where none is kept: then all checkpoints of the workspace count.
async fn looked_at(project: &Project, session: Option<&str>) -> Result<(Vec<Entry>, Workspace)> {
    refuse_in_incognito(project, "changes")?;
    if files_only_rewind::applies(project, session) {
        return Ok((Vec::new(), files_only_rewind::open_workspace(project)?));
    }
    let past = ProjectHistory::open(project)?;
    let session = past.find_session(session).await?.id;
    Ok((past.load_path(&session, None).await?, open_session_workspace(project, &session)?))
}

/// The files before the last turn that changed some.
pub(crate) fn last_changed(path: &[Entry]) -> Result<Option<SnapshotId>> {
    let turns = timeline::list_turns(path).into_iter().rev();
    let mut states = turns.map(|turn| turn.files);
    match states.find(|files| *files != TimelineFiles::Unchanged).unwrap_or_default() {
        TimelineFiles::Unchanged => Ok(None),
        TimelineFiles::Kept(id) => Ok(Some(id)),
        TimelineFiles::Unknown => {
            let text = "there is no checkpoint from before the last turn that changed files; `gnoma changes --list` lists the others";
            Err(HostError::usage(text))
        }
    }
}

/// The latest kept state that is not the one of now.
fn last_other(workspace: &Workspace) -> Result<Option<SnapshotId>> {
    for id in workspace.past_snapshots()?.iter().rev().take(MAX_LOOKED_AT) {
        if !workspace.list_changes(id, Point::Now)?.is_empty() {
            return Ok(Some(id.clone()));
        }
    }
    Ok(None)
}

fn checkpoint_age(id: &SnapshotId) -> String {
    let since = id.taken_at().elapsed().unwrap_or_default().as_millis();
    let now_ms = clock::now_ms();
    clock::describe_age(now_ms.saturating_sub(i64::try_from(since).unwrap_or(i64::MAX)), now_ms)
}

fn render_changes(workspace: &Workspace, since: &SnapshotId, with_lines: bool) -> Result<String> {
    let changes = without_filled_folders(workspace.list_changes(since, Point::Now)?);
    let mut text = String::new();
    for change in changes {
        if with_lines {
            text.push_str(&workspace.render_diff(&change)?);
        } else {
            let path = one_line(&change.path.to_string_lossy());
            let is_lost = change.before == Some(Side::NotKept);
            let note = if is_lost { "  (no checkpoint; cannot be restored)" } else { "" };
            text.push_str(&format!("{} {path}{note}\n", change.kind.status_letter()));
        }
    }
    Ok(text)
}

/// Describes the files that the newest checkpoint leaves out.
fn not_kept(workspace: &Workspace, newest: &SnapshotId) -> String {
    let Ok(snapshot) = workspace.get(newest) else { return String::new() };
    let mut text = String::new();
    if snapshot.skipped_count > 0 {
        text.push_str("\nno checkpoint, so not restored:\n");
    }
    for SkippedPath { path, why } in snapshot.skipped.iter().take(MAX_NAMED) {
        text.push_str(&format!("  {} {why}\n", one_line(&path.to_string_lossy())));
    }
    if snapshot.skipped_count > MAX_NAMED {
        text.push_str(&format!("  and {} more\n", snapshot.skipped_count - MAX_NAMED));
    }
    text
}

/// Shortens a diff to a size that people look through; the result says how much more there is.
pub(crate) fn shorten_diff(mut diff: String) -> String {
    let bytes = diff.len();
    if bytes > MAX_DIFF_BYTES {
        let end = diff.floor_char_boundary(MAX_DIFF_BYTES);
        let end = diff.get(..end).and_then(|head| head.rfind('\n')).map_or(end, |line| line + 1);
        diff.truncate(end);
        let more = (bytes - end).div_ceil(1 << 20);
        diff.push_str(&format!(
            "\n… {more} MB more are not shown; `gnoma changes` prints them all\n"
        ));
    }
    diff
}
