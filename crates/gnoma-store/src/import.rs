//! Sessions from files: our own JSON lines, and transcripts of other programs as their public
//! formats go.
//!
//! Whatever is read is hostile: sizes, numbers and depth are bounded, links are not followed, and
//! no name in a file becomes a path before it was seen to be a plain name. What cannot be mapped is
//! counted by kind and told. Branches that another program abandoned are not told apart from the
//! rest. Nothing here writes.

mod bounded;
mod builder;
mod claude;
mod codex;
mod gnoma_go;
mod lines;
mod opencode;
mod wire;

use std::{
    collections::BTreeMap,
    fmt,
    path::{Component, Path},
};

use gnoma_core::store::{Entry, ResultId, StoreError, StoreErrorKind};

use crate::error::Result;

/// Most entries of one import.
const MAX_ENTRIES: usize = 500_000;

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

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// The title it had.
    pub title: Option<String>,
    /// The folder it was about.
    pub project: Option<String>,
    /// What it is called where it comes from: nothing of the same name is added twice.
    pub origin: Option<String>,
    /// A linear path, oldest first. Ids are the file's own and only tie entries to each other.
    pub entries: Vec<Entry>,
    /// Large results that entries speak of by these handles.
    pub results: Vec<(ResultId, String)>,
    /// What has no place here, by kind.
    pub skipped: BTreeMap<String, u64>,
}

impl Imported {
    fn skip(&mut self, kind: &str) {
        *self.skipped.entry(kind.to_owned()).or_default() += 1;
    }

    /// Whether it was about the folder `project` or one below; what does not tell may be.
    #[must_use]
    pub fn is_about(&self, project: &Path) -> bool {
        let is_plain = |path: &Path| !path.components().any(|part| part == Component::ParentDir);
        self.project
            .as_deref()
            .map(Path::new)
            .is_none_or(|path| is_plain(path) && path.starts_with(project))
    }

    /// What was left out, in one sentence; `None` when everything was mapped.
    #[must_use]
    pub fn left_out(&self) -> Option<String> {
        if self.skipped.is_empty() {
            return None;
        }
        let kinds: Vec<_> =
            self.skipped.iter().map(|(kind, count)| format!("{kind}: {count}")).collect();
        Some(format!("left out of the import: {}", kinds.join(", ")))
    }
}

/// Reads `path` as a session of `source`.
///
/// # Errors
/// When it cannot be read, is larger than an import may be, or holds no message.
pub fn read(source: Source, path: &Path) -> Result<Imported> {
    let mut imported = match source {
        Source::Lines => lines::read(path),
        Source::GnomaGo => gnoma_go::read(path),
        Source::ClaudeCode => claude::read(path),
        Source::Codex => codex::read(path),
        Source::Opencode => opencode::read(path),
    }?;
    if imported.entries.is_empty() {
        return Err(refused(format_args!("`{}` holds no message of {source}", path.display())));
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

fn refused(why: fmt::Arguments<'_>) -> StoreError {
    StoreError::new(StoreErrorKind::Io, format!("nothing was imported: {why}"))
}
