//! Reverting one file, or one hunk of it, to what it was before: through a checkpoint and a restore, as a rewind.

use std::path::Path;

use gnoma_core::{
    protocol::ChangesSince,
    store::{Entry, SessionStore as _},
};
use gnoma_store::checkpoint::{Error, Revert, RevertBase, SnapshotId, Workspace};

use crate::{
    HostError, Project, Result,
    changes::last_changed,
    guard_setup::local_places,
    last_commit::LastCommit,
    project_history::{ProjectHistory, refuse_in_incognito},
    restore::{
        FileRestore, FileRestoreOutcome, RewindOutcome, describe_restore, lock_session,
        open_session_workspace, record_rewind, render_paths,
    },
    text::one_line,
    timeline,
};

/// The change of a file that is to be reverted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileRevert<'a> {
    pub(crate) since: ChangesSince,
    /// As its diff names it.
    pub(crate) path: &'a str,
    /// `None` for all of it.
    pub(crate) hunk: Option<&'a str>,
}

impl FileRevert<'_> {
    /// Reverts it in a session. What is there is saved first.
    ///
    /// # Errors
    /// The file does not contain the change any more, it needs a person to be changed, the session is open elsewhere,
    /// or files cannot be written.
    pub(crate) async fn revert(self, project: &Project, session: &str) -> Result<RewindOutcome> {
        let past = self.open(project)?;
        let session = past.find_session(Some(session)).await?.id;
        lock_session(&past, &session).await?;
        let path = past.load_path(&session, None).await?;
        let workspace = open_session_workspace(project, &session)?;
        let target = self.target(project, &workspace, &path);
        let done = target.and_then(|target| self.restore(&workspace, &target));
        if let Ok((_, Some(before))) = &done {
            let last = path.last().map(|last| last.id);
            record_rewind(&past, &session, last, &path, Some(before)).await?;
        }
        past.store.release_session(session).await?;
        Ok(RewindOutcome::Done(done?.0))
    }

    /// Checks whether it can be reverted, as far as that is known before. Changes no files.
    ///
    /// # Errors
    /// As [`revert`](Self::revert)'s.
    pub(crate) async fn check(self, project: &Project, session: &str) -> Result<()> {
        let past = self.open(project)?;
        let session = past.find_session(Some(session)).await?.id;
        let path = past.load_path(&session, None).await?;
        let workspace = open_session_workspace(project, &session)?;
        let hindrance = self.with_base(project, &path, |base| {
            workspace.revert_hindrance(self.path, base, self.hunk)
        })?;
        hindrance.map_or(Ok(()), |why| Err(self.refusal(Some(&why))))
    }

    fn open(self, project: &Project) -> Result<ProjectHistory> {
        refuse_in_incognito(project, "revert")?;
        let root = project.places.workspace.as_deref().unwrap_or(&project.spec.folder);
        let local = local_places(&project.places, &project.spec, Vec::new(), None);
        if let Some(what) = local.guard_reason(&root.join(Path::new(self.path))) {
            let cause = format!("`{}` is not reverted from here: it is {what}", self.name());
            let remedy = "Change it at the machine itself, or rewind the turn.";
            return Err(HostError { remedy: Some(remedy.to_owned()), ..HostError::usage(cause) });
        }
        ProjectHistory::open(project)
    }

    fn name(self) -> String {
        one_line(self.path)
    }

    /// The state of the files without the change.
    fn target(
        self,
        project: &Project,
        workspace: &Workspace,
        path: &[Entry],
    ) -> Result<SnapshotId> {
        let found = self.with_base(project, path, |base| {
            workspace.revert(self.path, base, self.hunk).map(Some)
        })?;
        match found {
            Some(Revert::Target(target)) => Ok(target),
            why_not => Err(self.refusal(why_not.as_ref())),
        }
    }

    /// Looks at the earlier state, where there is one.
    fn with_base(
        self,
        project: &Project,
        path: &[Entry],
        look: impl FnOnce(RevertBase<'_>) -> Result<Option<Revert>, Error>,
    ) -> Result<Option<Revert>> {
        let unchanged = || Ok(Some(Revert::Unchanged));
        let found = match self.since {
            ChangesSince::Commit => match LastCommit::open(project)?.changed_file(self.path)? {
                Some(file) => look(RevertBase::Commit(&file)),
                None => unchanged(),
            },
            ChangesSince::Turn => match last_changed(path)? {
                Some(base) => look(RevertBase::Snapshot(&base)),
                None => unchanged(),
            },
            ChangesSince::Start => match timeline::turn_start_checkpoints(path).first() {
                Some(base) => look(RevertBase::Snapshot(base)),
                None => unchanged(),
            },
        };
        match found {
            Err(Error::Unknown(_)) => Err(HostError::usage(format!(
                "the checkpoint from before the changes of `{}` was deleted",
                self.name()
            ))),
            found => Ok(found?),
        }
    }

    fn refusal(self, why: Option<&Revert>) -> HostError {
        let name = self.name();
        HostError::usage(match why {
            Some(Revert::Moved) => format!("`{name}` does not contain this change any more"),
            Some(Revert::Unsuitable) => {
                format!("`{name}` cannot be reverted alone: it is no text, or was not saved")
            }
            Some(Revert::Unchanged | Revert::Target(_)) | None => {
                format!("`{name}` has no changes to revert")
            }
        })
    }

    fn restore(
        self,
        workspace: &Workspace,
        target: &SnapshotId,
    ) -> Result<(String, Option<SnapshotId>)> {
        let what = if self.hunk.is_some() { "one change in" } else { "all changes of" };
        let text = format!("reverted {what} `{}`\n", self.name());
        // All was saved just now: files that differ since were changed by another program.
        match (FileRestore { workspace, target, starts: &[] }).restore(false)? {
            FileRestoreOutcome::Restored(restored) => {
                let done = describe_restore(&restored, "/redo");
                Ok((format!("{text}{done}undo this with `/redo`\n"), Some(restored.before)))
            }
            FileRestoreOutcome::AsItWas => Ok((text, None)),
            FileRestoreOutcome::Conflict(paths) => Err(HostError::usage(format!(
                "these files are being changed by another program; nothing was reverted:\n{}",
                render_paths(&paths)
            ))),
        }
    }
}
