//! The reasons why commands cannot run on trial.

use std::sync::Arc;

use gnoma_sandbox::{
    MemoryFolderError, Strength,
    layer::{LayerError, SiteError},
};

/// The reason why no command of a session can run on trial.
#[derive(thiserror::Error)]
pub enum TrialsError {
    /// The sandbox of this machine is not complete.
    #[error("{0}")]
    Sandbox(Strength),
    /// The session has no workspace.
    #[error("there is no workspace")]
    NoWorkspace,
    /// There is no folder in memory for the layers.
    #[error(transparent)]
    Memory(#[from] Arc<MemoryFolderError>),
    /// No folder can hold the layers.
    #[error(transparent)]
    Site(#[from] SiteError),
    /// Layers of earlier processes could not be recovered.
    #[error(transparent)]
    Recovery(#[from] LayerError),
}

/// The reason why a command cannot begin in the layer over the workspace.
#[derive(thiserror::Error)]
pub(crate) enum LayerStartError {
    #[error(transparent)]
    Unavailable(Arc<TrialsError>),
    #[error(transparent)]
    Layer(#[from] LayerError),
    #[error("only {} MB are free for trial runs", .free_bytes >> 20)]
    LittleSpace { free_bytes: u64 },
}

gnoma_core::debug_as_display!(TrialsError, LayerStartError);
