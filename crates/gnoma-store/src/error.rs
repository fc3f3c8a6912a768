//! What the database says, in words for people and kinds for branching.

use std::{io, path::Path};

use gnoma_core::store::{SessionId, StoreError, StoreErrorKind};
use rusqlite::ErrorCode;

pub(crate) type Result<T> = std::result::Result<T, StoreError>;

/// Turns SQLite's complaint into the port's error.
pub(crate) fn from_sqlite(error: &rusqlite::Error) -> StoreError {
    let kind = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreErrorKind::Full,
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            StoreErrorKind::ReadOnly
        }
        Some(
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::FileLockingProtocolFailed,
        ) => StoreErrorKind::Busy,
        // Our statements are sound: when they fail as such, or a value is not of its column's kind,
        // the tables are not what they should be.
        Some(
            ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase
            | ErrorCode::ConstraintViolation
            | ErrorCode::TypeMismatch
            | ErrorCode::Unknown,
        )
        | None => StoreErrorKind::Damaged,
        Some(_) => StoreErrorKind::Io,
    };
    let cause = match error {
        rusqlite::Error::SqliteFailure(_, Some(words)) => words.clone(),
        other => other.to_string(),
    };
    StoreError::new(kind.clone(), error_sentence(&kind, &cause))
}

/// Turns a file operation's failure into the port's error.
pub(crate) fn from_io(what: &str, path: &Path, error: &io::Error) -> StoreError {
    let kind = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreErrorKind::Full,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            StoreErrorKind::ReadOnly
        }
        _ => StoreErrorKind::Io,
    };
    let cause = format!("{what} `{}`: {error}", path.display());
    StoreError::new(kind.clone(), error_sentence(&kind, &cause))
}

/// Returns the error for something that could not be read as what it should be.
pub(crate) fn damaged_error(cause: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Damaged, error_sentence(&StoreErrorKind::Damaged, cause))
}

/// A session that is there already.
pub(crate) fn session_exists_error(id: &SessionId) -> StoreError {
    StoreError::new(
        StoreErrorKind::Exists,
        format!("session `{id}` already exists; choose another id"),
    )
}

/// A text that is no session's id.
pub(crate) fn invalid_id(id: &SessionId) -> StoreError {
    StoreError::new(
        StoreErrorKind::InvalidId,
        format!(
            "`{}` is not a session id: use `YYYYMMDD-HHMMSS-` and six characters of 0-9 and a-f, or \
             a UUID in lower case",
            id.as_str().escape_debug()
        ),
    )
}

/// Returns the error for something that is not there.
pub(crate) fn not_found(what: impl std::fmt::Display) -> StoreError {
    StoreError::new(StoreErrorKind::NotFound, format!("no {what} found"))
}

fn error_sentence(kind: &StoreErrorKind, cause: &str) -> String {
    match kind {
        StoreErrorKind::Full => {
            format!("the disk is full, so the session cannot be saved; free some space ({cause})")
        }
        StoreErrorKind::ReadOnly => {
            format!("sessions cannot be saved here; check the folder's permissions ({cause})")
        }
        StoreErrorKind::Damaged => format!(
            "the session database is damaged ({cause}); restart gnoma to recover what is readable"
        ),
        StoreErrorKind::Busy => {
            "the session database is busy with other gnoma processes; retry in a moment".to_owned()
        }
        StoreErrorKind::Held { .. }
        | StoreErrorKind::NotFound
        | StoreErrorKind::Exists
        | StoreErrorKind::InvalidId
        | StoreErrorKind::TooNew
        | StoreErrorKind::Foreign
        | StoreErrorKind::Io => format!("the session database cannot be used ({cause})"),
    }
}

/// Shortens `.map_err(|error| from_sqlite(&error))`.
pub(crate) trait SqliteResultExt<T> {
    /// The port's error in place of SQLite's.
    fn map_sqlite_error(self) -> Result<T>;
}

impl<T> SqliteResultExt<T> for rusqlite::Result<T> {
    fn map_sqlite_error(self) -> Result<T> {
        self.map_err(|error| from_sqlite(&error))
    }
}
