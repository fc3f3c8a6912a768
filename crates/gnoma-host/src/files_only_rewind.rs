//! Rewind, redo and changes where sessions are not kept: along all checkpoints of the workspace, for
//! files only.

use gnoma_store::checkpoint::{Conflict, Workspace};

use crate::{
    HostError, Project, Result,
    restore::{Rewind, RewindPart, RewindTarget, describe_restore, find_checkpoint},
};

/// Reports whether sessions are not saved and no saved session is named, so that a rewind applies to files only.
pub(crate) fn applies(project: &Project, session: Option<&str>) -> bool {
    session.is_none() && !project.keeping.session.keep
}

pub(crate) fn rewind_unsaved_session(project: &Project, how: &Rewind) -> Result<String> {
    if how.part == RewindPart::Conversation || how.dry_run {
        let text = "sessions are not saved here: only files can be rewound, without a dry run; \
                    `gnoma changes` shows the differences";
        return Err(HostError::usage(text));
    }
    let workspace = open_workspace(project)?;
    let restored = match &how.to {
        RewindTarget::Turns(count) => workspace.rewind(*count, Conflict::KeepTheirs)?,
        RewindTarget::Checkpoint(id) => {
            let target = find_checkpoint(id, &[], Some(&workspace))?;
            workspace.restore(&target, Conflict::KeepTheirs)?
        }
    };
    Ok(describe_restore(&restored, how.redo_command()))
}

pub(crate) fn redo_files(project: &Project) -> Result<String> {
    let restored = open_workspace(project)?.redo(1, Conflict::KeepTheirs)?;
    Ok(describe_restore(&restored, &format!("gnoma rewind {}", restored.before)))
}

pub(crate) fn open_workspace(project: &Project) -> Result<Workspace> {
    project.places.open(&project.keeping.checkpoints)
}
