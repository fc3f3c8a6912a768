//! The ledger's failures, in words for people and kinds for branching.

use gnoma_core::store::{StoreError, StoreErrorKind};

use crate::error::{self, Result};

/// The beginning of every sentence of the ledger.
const SUBJECT: &str = "the spending ledger";

/// Shortens `.map_err(|error| from_sqlite(&error))`.
pub(super) trait LedgerResultExt<T> {
    /// The port's error in place of SQLite's.
    fn or_ledger_error(self) -> Result<T>;
}

impl<T> LedgerResultExt<T> for rusqlite::Result<T> {
    fn or_ledger_error(self) -> Result<T> {
        self.map_err(|error| {
            let cause = match &error {
                rusqlite::Error::SqliteFailure(_, Some(words)) => words.clone(),
                other => other.to_string(),
            };
            ledger_error(error::from_sqlite(&error).kind, &cause)
        })
    }
}

/// An error of `kind` with its cause.
pub(super) fn ledger_error(kind: StoreErrorKind, cause: &str) -> StoreError {
    let sentence = match kind {
        StoreErrorKind::Full => {
            format!("{SUBJECT} cannot be written: the disk is full; free some space ({cause})")
        }
        StoreErrorKind::ReadOnly => {
            format!("{SUBJECT} cannot be written; check the folder's permissions ({cause})")
        }
        StoreErrorKind::Damaged => format!(
            "{SUBJECT} is damaged ({cause}); the next start sets it aside and recovers what it can"
        ),
        StoreErrorKind::Busy => {
            format!("{SUBJECT} is busy with other gnoma processes; retry in a moment")
        }
        StoreErrorKind::Held { .. }
        | StoreErrorKind::NotFound
        | StoreErrorKind::Exists
        | StoreErrorKind::InvalidId
        | StoreErrorKind::TooNew
        | StoreErrorKind::Foreign
        | StoreErrorKind::Io => format!("{SUBJECT} cannot be used ({cause})"),
    };
    StoreError::new(kind, sentence)
}

/// Rewords an error of the parts shared with the session database, which is worded for sessions.
pub(super) fn reword_error(error: StoreError, cause: &str) -> StoreError {
    if error.sentence.starts_with(SUBJECT) { error } else { ledger_error(error.kind, cause) }
}
