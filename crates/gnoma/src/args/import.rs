//! Arguments about taking over other assistants' settings.

use clap::ValueEnum;
use gnoma_host::import::Assistant;

/// Whose settings are taken over.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ImportFrom {
    /// Claude Code: `~/.claude`, `~/.claude.json`.
    Claude,
    /// Codex: `~/.codex`.
    Codex,
    /// opencode: `~/.config/opencode`.
    Opencode,
}

impl From<ImportFrom> for Assistant {
    fn from(from: ImportFrom) -> Self {
        match from {
            ImportFrom::Claude => Self::Claude,
            ImportFrom::Codex => Self::Codex,
            ImportFrom::Opencode => Self::OpenCode,
        }
    }
}
