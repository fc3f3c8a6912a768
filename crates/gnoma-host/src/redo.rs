//! Bringing back what was taken back last, files and conversation.

use gnoma_core::store::{EntryId, SessionId, SessionStore as _};

use crate::{
    HostError, Project, Result,
    past::{Past, refuse_in_incognito},
    restore::{Done, Going, Outcome, note, summary, take, workspace},
    timeline::{self, Back},
    unkept,
};

/// Brings back what was taken back last in a session, by a beginning of its id; in the newest by
/// default. `overwrite`: also where the person or another program changed the files meanwhile.
///
/// # Errors
/// There is nothing to bring back, the session is open elsewhere, or files cannot be written.
pub async fn redo(project: &Project, session: Option<&str>, overwrite: bool) -> Result<Outcome> {
    refuse_in_incognito(project, "redo")?;
    if unkept::is_meant(project, session) {
        return unkept::redo(project).map(Outcome::Done);
    }
    let past = Past::open(project)?;
    let session = past.session(session).await?.id;
    take(&past, &session).await?;
    let path = past.path(&session, None).await?;
    let back = last_back(&past, &session, timeline::candidates(&path)).await?;
    let back = back.ok_or_else(|| nothing(&session))?;
    let mut text = format!("session {session}: rewind undone\n");
    if let Some(files) = &back.files {
        let workspace = &workspace(project, &session)?;
        match (Going { workspace, target: files, starts: &[] }).restore(overwrite)? {
            Done::AsItWas => text.push_str("files: unchanged\n"),
            Done::Restored(restored) => text.push_str(&summary(&restored, &undo(&restored.before))),
            Done::Conflict(paths) => {
                past.store.release(session).await?;
                return Ok(Outcome::Conflict(paths));
            }
        }
    }
    if back.spoken {
        text.push_str("conversation: restored\n");
    }
    note(&past, &session, Some(back.from), &path, None).await?;
    past.store.release(session).await?;
    Ok(Outcome::Done(text))
}

/// Checks that there is something to redo. Changes nothing.
///
/// # Errors
/// There is not, or what is kept cannot be read.
pub(crate) async fn check(project: &Project, session: &str) -> Result<()> {
    refuse_in_incognito(project, "redo")?;
    let past = Past::open(project)?;
    let session = past.session(Some(session)).await?.id;
    let path = past.path(&session, None).await?;
    let back = last_back(&past, &session, timeline::candidates(&path)).await?;
    back.map(drop).ok_or_else(|| nothing(&session))
}

fn nothing(session: &SessionId) -> HostError {
    HostError::usage(format!("nothing to redo in `{session}`: no rewind since the last turn"))
}

fn undo(before: impl std::fmt::Display) -> String {
    format!("gnoma rewind --files {before}")
}

/// The latest going back that was not taken back itself.
async fn last_back(
    past: &Past,
    session: &SessionId,
    candidates: Vec<(Back, Option<EntryId>)>,
) -> Result<Option<Back>> {
    for (back, parent) in candidates {
        if back.files.is_some() {
            return Ok(Some(back));
        }
        let path = past.path(session, Some(back.from)).await?;
        if back.spoken && timeline::is_back(&path, parent) {
            return Ok(Some(back));
        }
    }
    Ok(None)
}
