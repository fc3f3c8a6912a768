//! What was read from a file, and the bounds of one import.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Component, Path},
};

use gnoma_core::store::{Entry, ResultId, StoreError, StoreErrorKind};

/// Most entries of one import.
pub(super) const MAX_ENTRIES: usize = 500_000;

/// The session that was read from a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportedTranscript {
    /// The title it had.
    pub title: Option<String>,
    /// The folder it was about.
    pub project: Option<String>,
    /// The name of the session at its origin: nothing with the same name is imported twice.
    pub origin: Option<String>,
    /// A linear path, oldest first. Ids are the file's own and only tie entries to each other.
    pub entries: Vec<Entry>,
    /// Large results that entries speak of by these handles.
    pub results: Vec<(ResultId, String)>,
    /// The number of things that have no place here, by kind.
    pub skipped: BTreeMap<String, u64>,
}

impl ImportedTranscript {
    /// Counts something of this kind that has no place here.
    pub(super) fn count_skipped(&mut self, kind: &str) {
        *self.skipped.entry(kind.to_owned()).or_default() += 1;
    }

    /// Reports whether the session was about the folder `project` or one below; true if the transcript does not
    /// say.
    #[must_use]
    pub fn is_about(&self, project: &Path) -> bool {
        let is_plain = |path: &Path| !path.components().any(|part| part == Component::ParentDir);
        self.project
            .as_deref()
            .map(Path::new)
            .is_none_or(|path| is_plain(path) && path.starts_with(project))
    }

    /// Describes what was left out, in one sentence; `None` when everything was mapped.
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

/// The error of an import that stores nothing.
pub(super) fn import_error(why: fmt::Arguments<'_>) -> StoreError {
    StoreError::new(StoreErrorKind::Io, format!("nothing was imported: {why}"))
}
