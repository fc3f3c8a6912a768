//! `gnoma redo`: takes the last `gnoma rewind` back, files and conversation as it took them.

use anyhow::Result;
use gnoma_core::store::{EntryId, SessionId, SessionStore as _};

use super::{
    Ground,
    rewind::{note, restore, take, told, workspace},
    show, unkept,
};
use crate::{
    args::{TurnArgs, WhichSession},
    past::Past,
    report::{Exit, Misuse},
    surroundings::Surroundings,
    timeline::{self, Back},
};

pub(super) async fn run(
    which: &WhichSession,
    args: &TurnArgs,
    around: &Surroundings,
) -> Result<Exit> {
    let ground = Ground::of(args, around)?;
    if unkept::is_meant(&ground, which.session.as_deref()) {
        return unkept::redo(&ground);
    }
    let past = ground.past()?;
    let session = past.session(which.session.as_deref()).await?.id;
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
        let restored = restore(&workspace(&ground, &session)?, files)?;
        let told = restored.map(|restored| told(&restored, &undo(&restored.before)));
        text.push_str(&told.unwrap_or_else(|| "files: they are as they were\n".to_owned()));
    }
    if back.spoken {
        text.push_str("conversation: it goes on from its later end\n");
    }
    note(&past, &session, Some(back.from), &path, None).await?;
    past.store.release(session).await?;
    show(&text)
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
