//! Settings of sessions: what is saved, and how long it is retained.

use std::time::Duration;

use crate::layer::MergedLayers;

/// The settings for saving sessions.
#[derive(Clone, Debug)]
pub struct Session {
    /// `true` if sessions are saved.
    pub keep: bool,
    /// Most sessions kept for a project.
    pub max_keep: u32,
    /// Sessions not added to for longer go; `None` sets no limit.
    pub max_age: Option<Duration>,
    /// Most bytes of a project's sessions.
    pub max_size: u64,
    /// Folder that sessions and checkpoints are kept in; `None` is the state folder.
    pub folder: Option<String>,
}

impl Session {
    pub(super) fn from_layers(layers: &MergedLayers) -> Self {
        Self {
            keep: layers.is_on("session.keep"),
            max_keep: layers.count_at("session.max_keep"),
            max_age: Some(layers.duration_at("session.max_age")).filter(|age| !age.is_zero()),
            max_size: layers.bytes_at("session.max_size"),
            folder: layers.text_at("session.folder"),
        }
    }
}
