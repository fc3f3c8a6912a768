//! Checkpoints in a vault that is still being opened.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use gnoma_core::store::{Checkpoints, SessionId, Stored};
use gnoma_store::checkpoint::{Keeper, Options, Vault};

use super::{begun::Begun, late::Late};

/// The files of a workspace.
pub(super) struct Files {
    keeper: Late<Keeper>,
    /// Somebody wants everything read in the background.
    wanted: Arc<AtomicBool>,
    begun: Begun,
}

impl Files {
    /// Begins to open the vault in `folder` for the files below `root`.
    pub(super) fn opening(folder: PathBuf, options: Options, root: PathBuf, begun: Begun) -> Self {
        let wanted = Arc::new(AtomicBool::new(false));
        let is_wanted = Arc::clone(&wanted);
        let keeper = Late::opening(move || {
            let workspace = Vault::open(&folder, options.clone())?.workspace(&root)?;
            let keeper = Keeper::start(Arc::new(workspace))?;
            if is_wanted.load(Ordering::SeqCst) {
                keeper.prepare();
            }
            Ok(keeper)
        });
        Self { keeper, wanted, begun }
    }

    /// What was opened, if it was.
    pub(super) fn now(&self) -> Option<Arc<Keeper>> {
        self.keeper.now()
    }
}

impl Checkpoints for Files {
    fn prepare(&self) {
        self.wanted.store(true, Ordering::SeqCst);
        if let Some(keeper) = self.keeper.now() {
            keeper.prepare();
        }
    }

    fn keep(&self, label: String) -> Stored<'_, String> {
        Box::pin(async move {
            let keeper = self.keeper.get().await?;
            keeper.workspace().set_session(self.begun.get().map(SessionId::as_str));
            keeper.keep(label).await
        })
    }
}
