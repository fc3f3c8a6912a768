//! Redo: restores the files and the conversation that the last rewind removed.

use gnoma_core::store::{EntryId, SessionId, SessionStore as _};

use crate::{
    HostError, Project, Result, files_only_rewind,
    project_history::{ProjectHistory, refuse_in_incognito},
    restore::{
        FileRestore, FileRestoreOutcome, RewindOutcome, describe_restore, lock_session,
        open_session_workspace, record_rewind,
    },
    timeline::{self, LatestRewind},
};

/// Undoes the last rewind of a session, given by a beginning of its id; of the newest by default. `overwrite`: also
/// files that the person or another program changed since are replaced.
///
/// # Errors
/// There is nothing to bring back, the session is open elsewhere, or files cannot be written.
pub async fn redo_rewind(
    project: &Project,
    session: Option<&str>,
    overwrite: bool,
) -> Result<RewindOutcome> {
    refuse_in_incognito(project, "redo")?;
    if files_only_rewind::applies(project, session) {
        return files_only_rewind::redo_files(project).map(RewindOutcome::Done);
    }
    let past = ProjectHistory::open(project)?;
    let session = past.find_session(session).await?.id;
    lock_session(&past, &session).await?;
    let path = past.load_path(&session, None).await?;
    let back = last_back(&past, &session, timeline::redo_candidates(&path)).await?;
    let back = back.ok_or_else(|| nothing_to_redo(&session))?;
    let mut text = format!("session {session}: rewind undone\n");
    if let Some(files) = &back.files {
        let workspace = &open_session_workspace(project, &session)?;
        match (FileRestore { workspace, target: files, starts: &[] }).restore(overwrite)? {
            FileRestoreOutcome::AsItWas => text.push_str("files: unchanged\n"),
            FileRestoreOutcome::Restored(restored) => {
                text.push_str(&describe_restore(&restored, &undo_command(&restored.before)));
            }
            FileRestoreOutcome::Conflict(paths) => {
                past.store.release_session(session).await?;
                return Ok(RewindOutcome::Conflict(paths));
            }
        }
    }
    if back.spoken {
        text.push_str("conversation: restored\n");
    }
    record_rewind(&past, &session, Some(back.from), &path, None).await?;
    past.store.release_session(session).await?;
    Ok(RewindOutcome::Done(text))
}

/// Checks that there is something to redo. Changes nothing.
///
/// # Errors
/// There is not, or what is kept cannot be read.
pub(crate) async fn check_redo(project: &Project, session: &str) -> Result<()> {
    refuse_in_incognito(project, "redo")?;
    let past = ProjectHistory::open(project)?;
    let session = past.find_session(Some(session)).await?.id;
    let path = past.load_path(&session, None).await?;
    let back = last_back(&past, &session, timeline::redo_candidates(&path)).await?;
    back.map(drop).ok_or_else(|| nothing_to_redo(&session))
}

fn nothing_to_redo(session: &SessionId) -> HostError {
    HostError::usage(format!("nothing to redo in `{session}`: no rewind since the last turn"))
}

fn undo_command(before: impl std::fmt::Display) -> String {
    format!("gnoma rewind --files {before}")
}

/// The latest going back that was not taken back itself.
async fn last_back(
    past: &ProjectHistory,
    session: &SessionId,
    candidates: Vec<(LatestRewind, Option<EntryId>)>,
) -> Result<Option<LatestRewind>> {
    for (back, parent) in candidates {
        if back.files.is_some() {
            return Ok(Some(back));
        }
        let path = past.load_path(session, Some(back.from)).await?;
        if back.spoken && timeline::is_back(&path, parent) {
            return Ok(Some(back));
        }
    }
    Ok(None)
}
