//! Sessions from files: gnoma's own JSON lines, and transcripts of other programs in their public formats.
//!
//! All input is hostile: sizes, numbers and depth are limited, links are not followed, and no name in a file
//! becomes a path before it proves to be a plain name. What cannot be mapped is counted by kind and reported.
//! Branches that another program abandoned are not distinguished from the rest. Nothing here writes.

mod bounded;
mod builder;
mod claude;
mod codex;
mod gnoma_go;
mod imported;
mod lines;
mod opencode;
mod wire;

use std::{fmt, path::Path};

pub use self::imported::ImportedTranscript;
use self::imported::import_error;
use crate::error::Result;

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// [`Format::Lines`](crate::export::Format::Lines) of this program: one file.
    Lines,
    /// `.gnoma/sessions/<id>/` of the Go gnoma: the folder.
    GnomaGo,
    /// `~/.claude/projects/*/<id>.jsonl` of Claude Code: one file.
    ClaudeCode,
    /// `~/.codex/sessions/**/rollout-*.jsonl` of Codex: one file.
    Codex,
    /// opencode: the file `opencode export <id>` writes, or of older versions
    /// `storage/session/<project>/<id>.json`, with `storage/message` and `storage/part` beside.
    Opencode,
}

/// Reads `path` as a session of `source`.
///
/// # Errors
/// It cannot be read, is too large, or contains no message.
pub fn read_session(source: Source, path: &Path) -> Result<ImportedTranscript> {
    let mut imported = match source {
        Source::Lines => lines::read_json_lines(path),
        Source::GnomaGo => gnoma_go::read_folder(path),
        Source::ClaudeCode => claude::read_transcript(path),
        Source::Codex => codex::read_rollout(path),
        Source::Opencode => opencode::read_session(path),
    }?;
    if imported.entries.is_empty() {
        return Err(import_error(format_args!(
            "`{}` holds no message of {source}",
            path.display()
        )));
    }
    // Ids are unique within one program only.
    let id = imported.origin.take().filter(|id| !id.is_empty());
    imported.origin = id.map(|id| format!("{id} of {source}"));
    Ok(imported)
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lines => "a gnoma export",
            Self::GnomaGo => "the Go gnoma",
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::Opencode => "opencode",
        })
    }
}
