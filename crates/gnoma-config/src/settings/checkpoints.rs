//! Settings of checkpoints: how files are saved so that a rewind can restore them.

use std::time::Duration;

use crate::layer::MergedLayers;

/// Keeping of files, so that they can be brought back.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    /// `true` if checkpoints are saved.
    pub enabled: bool,
    /// Most bytes of all checkpoints.
    pub max_size: u64,
    /// The age above which checkpoints are removed.
    pub max_age: Duration,
    /// Largest file that is kept, in bytes.
    pub max_file: u64,
    /// Largest file that version control ignores and that is kept all the same, in bytes.
    pub ignored_max_file: u64,
}

impl Checkpoints {
    pub(super) fn from_layers(layers: &MergedLayers) -> Self {
        Self {
            enabled: layers.is_on("checkpoints.enabled"),
            max_size: layers.bytes_at("checkpoints.max_size"),
            max_age: layers.duration_at("checkpoints.max_age"),
            max_file: layers.bytes_at("checkpoints.max_file"),
            ignored_max_file: layers.bytes_at("checkpoints.ignored_max_file"),
        }
    }
}
