//! Rewinds the merged changes of one elf, and nothing else.

use gnoma_core::store::SessionStore as _;
use gnoma_store::checkpoint::{Error, MergeRevert, SnapshotId, Workspace};

use crate::{
    HostError, Project, Result, files_only_rewind, isolation,
    project_history::{ProjectHistory, refuse_in_incognito},
    restore::{
        FileRestore, FileRestoreOutcome, RewindOutcome, describe_restore, lock_session,
        open_session_workspace, record_rewind, render_paths,
    },
};

/// Takes back the newest merge of the elf `name` in a session, by a beginning of its id; in the newest by
/// default.
///
/// # Errors
/// Nothing of such an elf was merged, its files were changed again since, or files cannot be written.
pub async fn rewind_elf(
    project: &Project,
    session: Option<&str>,
    name: &str,
) -> Result<RewindOutcome> {
    refuse_in_incognito(project, "rewind")?;
    if files_only_rewind::applies(project, session) {
        let workspace = files_only_rewind::open_workspace(project)?;
        return Ok(RewindOutcome::Done(
            taken_back(&workspace, name, &state_without_elf(&workspace, name)?)?.0,
        ));
    }
    let past = ProjectHistory::open(project)?;
    let session = past.find_session(session).await?.id;
    lock_session(&past, &session).await?;
    let path = past.load_path(&session, None).await?;
    let workspace = open_session_workspace(project, &session)?;
    let done = state_without_elf(&workspace, name)
        .and_then(|target| taken_back(&workspace, name, &target));
    if let Ok((_, Some(before))) = &done {
        let last = path.last().map(|last| last.id);
        record_rewind(&past, &session, last, &path, Some(before)).await?;
    }
    past.store.release_session(session).await?;
    Ok(RewindOutcome::Done(done?.0))
}

/// Checks that an elf's changes can be rewound, as far as that is known in advance. Changes no files.
///
/// # Errors
/// As [`rewind_elf`]'s.
pub(crate) async fn check_rewind(project: &Project, session: &str, name: &str) -> Result<()> {
    refuse_in_incognito(project, "rewind")?;
    let past = ProjectHistory::open(project)?;
    let session = past.find_session(Some(session)).await?.id;
    state_without_elf(&open_session_workspace(project, &session)?, name).map(drop)
}

/// The state of the files without the elf's changes.
fn state_without_elf(workspace: &Workspace, name: &str) -> Result<SnapshotId> {
    let Some(merged) = workspace.find_merge(&isolation::merge_label(name))? else {
        let text = format!("no changes of an elf `{name}` were merged in this session");
        return Err(HostError::usage(text));
    };
    match workspace.state_without_merge(&merged) {
        Ok(MergeRevert::Target(target)) => Ok(target),
        Ok(MergeRevert::Changed(paths)) => Err(HostError::usage(format!(
            "the changes of elf `{name}` cannot be rewound alone: these files changed again \
             since, or were already rewound:\n{}",
            render_paths(&paths)
        ))),
        Err(Error::Unknown(_)) => Err(HostError::usage(format!(
            "the checkpoint from before the changes of elf `{name}` was deleted"
        ))),
        Err(error) => Err(error.into()),
    }
}

fn taken_back(
    workspace: &Workspace,
    name: &str,
    target: &SnapshotId,
) -> Result<(String, Option<SnapshotId>)> {
    let text = format!("rewound the changes of elf `{name}`\n");
    match (FileRestore { workspace, target, starts: &[] }).restore(true)? {
        FileRestoreOutcome::Restored(restored) => {
            let done = describe_restore(&restored, "gnoma redo");
            Ok((format!("{text}{done}undo this with `gnoma redo`\n"), Some(restored.before)))
        }
        FileRestoreOutcome::AsItWas => Ok((text, None)),
        FileRestoreOutcome::Conflict(paths) => Err(HostError::usage(render_paths(&paths))),
    }
}
