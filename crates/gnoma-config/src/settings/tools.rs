//! Limits of tools, and of tool results that models receive.

use std::time::Duration;

use crate::layer::MergedLayers;

/// The way in which gnoma makes room in a full context window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compaction {
    /// Large results are set aside, then the oldest messages are summarized; where no model can, they are
    /// left out.
    #[default]
    Full,
    /// The oldest messages are summarized, or nothing changes.
    Summarize,
    /// The oldest messages are left out.
    Truncate,
}

impl Compaction {
    fn from_name(name: Option<&str>) -> Self {
        match name {
            Some("summarize") => Self::Summarize,
            Some("truncate") => Self::Truncate,
            _ => Self::Full,
        }
    }
}

/// The limits of tools.
#[derive(Clone, Debug)]
pub struct Tools {
    /// Longest run of a shell command.
    pub bash_timeout: Duration,
    /// Largest file that is read, in bytes.
    pub max_file_size: u64,
    /// Most model calls in a turn.
    pub max_rounds: u32,
    /// The way in which gnoma makes room in a full context window.
    pub compaction: Compaction,
    /// Program that runs shell commands; `None` leaves it to the tool.
    pub shell: Option<String>,
}

impl Tools {
    pub(super) fn from_layers(layers: &MergedLayers) -> Self {
        Self {
            bash_timeout: layers.duration_at("tools.bash_timeout"),
            max_file_size: layers.bytes_at("tools.max_file_size"),
            max_rounds: layers.count_at("tools.max_rounds"),
            compaction: Compaction::from_name(layers.text_at("tools.compaction").as_deref()),
            shell: layers.text_at("tools.shell"),
        }
    }
}
