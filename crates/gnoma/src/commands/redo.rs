//! `gnoma redo`: takes the last `gnoma rewind` back, files and conversation as it took them.

use std::fs::File;

use anyhow::Result;
use gnoma_core::store::{EntryId, SessionId, SessionStore as _};

use super::{
    Ground,
    rewind::{Done, Going, note, take, told, workspace},
    show, unkept,
};
use crate::{
    args::{TurnArgs, WhichSession},
    past::{Past, refuse_in_incognito},
    report::{Exit, Misuse},
    surroundings::Surroundings,
    terminal,
    timeline::{self, Back},
};

pub(super) async fn run(
    which: &WhichSession,
    args: &TurnArgs,
    around: &Surroundings,
) -> Result<Exit> {
    let ground = Ground::of(args, around)?;
    refuse_in_incognito(&ground.loaded.settings, "redo")?;
    if unkept::is_meant(&ground, which.session.as_deref()) {
        return unkept::redo(&ground);
    }
    show(&go(&ground, which.session.as_deref(), terminal::open(around).as_ref()).await?)
}

/// Does it; gives what is to be told. `terminal` is where to ask.
async fn go(ground: &Ground<'_>, session: Option<&str>, terminal: Option<&File>) -> Result<String> {
    let past = ground.past()?;
    let session = past.session(session).await?.id;
    take(&past, &session).await?;
    let path = past.path(&session, None).await?;
    let Some(back) = last_back(&past, &session, timeline::candidates(&path)).await? else {
        let text = format!(
            "there is nothing to bring back in `{session}`: nothing was taken back since the last turn"
        );
        return Err(Misuse(text).into());
    };
    let mut text = format!("session {session}: what was taken back is there again\n");
    if let Some(files) = &back.files {
        let workspace = &workspace(ground, &session)?;
        match (Going { workspace, target: files, starts: &[] }).restore(terminal)? {
            Done::AsItWas => text.push_str("files: they are as they were\n"),
            Done::Restored(restored) => text.push_str(&told(&restored, &undo(&restored.before))),
            Done::Refused => {
                past.store.release(session).await?;
                return Ok("nothing was brought back\n".to_owned());
            }
        }
    }
    if back.spoken {
        text.push_str("conversation: it goes on from its later end\n");
    }
    note(&past, &session, Some(back.from), &path, None).await?;
    past.store.release(session).await?;
    Ok(text)
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
