//! Checkpoints in a vault that is still being opened.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use gnoma_core::store::{Checkpoints, StoreError, StoreErrorKind, StoreFuture};
use gnoma_store::checkpoint::Checkpointer;

use super::{begun_session::BegunSessionId, late_opening::LateOpening};
use crate::{Project, debug_log::LoggedStep, isolation, shared::WorkspaceKey};

/// The checkpoints of a folder that is too broad for them. Each attempt fails with the reason, so that the session
/// tells the person before the first change.
pub(super) struct NoCheckpoints {
    pub(super) why: String,
}

impl Checkpoints for NoCheckpoints {
    fn preload_workspace(&self) {}

    fn save_checkpoint(&self, _label: String) -> StoreFuture<'_, String> {
        let error = StoreError::new(StoreErrorKind::NotFound, self.why.clone());
        Box::pin(async move { Err(error) })
    }
}

/// The files of a workspace.
pub(super) struct LateCheckpoints {
    checkpointer: LateOpening<Checkpointer>,
    /// `true` if everything is to be read in the background.
    wanted: Arc<AtomicBool>,
    begun: BegunSessionId,
}

impl LateCheckpoints {
    /// Begins to open the vault for the files below a folder, unless another session has it open.
    pub(super) fn begin_opening(
        project: &Project,
        of: WorkspaceKey,
        begun: BegunSessionId,
    ) -> Self {
        let wanted = Arc::new(AtomicBool::new(false));
        let is_wanted = Arc::clone(&wanted);
        let (shared, notices) = (project.shared.clone(), project.notices.clone());
        let environment = project.environment().clone();
        let checkpointer = LateOpening::begin_opening(move || {
            let checkpointer = shared.open_checkpointer(&of)?;
            let workspace = checkpointer.workspace();
            match workspace.recover_merge() {
                Ok(None) => {}
                Ok(Some(label)) => notices.warning(format!(
                    "gnoma was stopped while the changes of {label} were merged; the merge is finished now"
                )),
                Err(error) => notices.warning(format!(
                    "gnoma was stopped while an elf's changes were merged, and the merge cannot be \
                     finished: {error}; `gnoma changes` shows what is different"
                )),
            }
            isolation::remove_orphans(&environment, workspace);
            if is_wanted.load(Ordering::SeqCst) {
                checkpointer.preload_workspace();
            }
            Ok(checkpointer)
        });
        Self { checkpointer, wanted, begun }
    }

    /// Returns the checkpointer, if it was opened.
    pub(super) fn opened_checkpointer(&self) -> Option<Arc<Checkpointer>> {
        self.checkpointer.opened_value()
    }
}

impl Checkpoints for LateCheckpoints {
    fn preload_workspace(&self) {
        self.wanted.store(true, Ordering::SeqCst);
        if let Some(checkpointer) = self.checkpointer.opened_value() {
            checkpointer.preload_workspace();
        }
    }

    fn save_checkpoint(&self, label: String) -> StoreFuture<'_, String> {
        Box::pin(async move {
            let session = self.begun.get().map(ToString::to_string);
            let step = LoggedStep::begin(session.as_deref().unwrap_or_default());
            let checkpointer = self.checkpointer.get().await?;
            let saved = checkpointer.keep_for(session, label).await;
            if let Some(step) = step {
                let id = saved.as_deref().unwrap_or_default();
                step.end("checkpoint", ("id", &id), saved.as_ref().err());
            }
            saved
        })
    }
}
