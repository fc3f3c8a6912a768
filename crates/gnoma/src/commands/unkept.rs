//! Rewind, redo and changes where sessions are not kept: along all checkpoints of the workspace, for
//! files only.

use anyhow::Result;
use gnoma_store::checkpoint::{Conflict, Workspace};

use super::{
    Ground,
    rewind::{find, told},
    show,
};
use crate::{
    args::RewindArgs,
    report::{Exit, Misuse},
};

/// Whether this is so, and no kept session is named.
pub(super) fn is_meant(ground: &Ground<'_>, session: Option<&str>) -> bool {
    session.is_none() && !ground.loaded.settings.session.keep
}

pub(super) fn rewind(ground: &Ground<'_>, how: &RewindArgs) -> Result<Exit> {
    if how.conversation || how.dry_run {
        let text = "sessions are not kept here: only files can be taken back, with no rehearsal; \
                    `gnoma changes` shows what is different";
        return Err(Misuse(text.to_owned()).into());
    }
    let workspace = workspace(ground)?;
    let restored = match how.count() {
        Some(count) => workspace.rewind(count, Conflict::KeepTheirs)?,
        None => {
            let target = find(&how.to, &[], Some(&workspace))?;
            workspace.restore(&target, Conflict::KeepTheirs)?
        }
    };
    show(&told(&restored, "gnoma redo"))
}

pub(super) fn redo(ground: &Ground<'_>) -> Result<Exit> {
    let restored = workspace(ground)?.redo(1, Conflict::KeepTheirs)?;
    show(&told(&restored, &format!("gnoma rewind {}", restored.before)))
}

pub(super) fn workspace(ground: &Ground<'_>) -> Result<Workspace> {
    ground.places.open(&ground.loaded.settings)
}
