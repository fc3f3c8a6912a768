//! Errors of checkpoints, for branching and for people.

use std::{
    io,
    path::{Path, PathBuf},
};

use gnoma_core::store::{StoreError, StoreErrorKind};

/// The reason why a checkpoint could not be taken, read or restored.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused an operation.
    #[error("cannot {what} `{}`: {source}", path.display())]
    Io {
        /// The operation that was tried, as a verb.
        what: &'static str,
        /// The path that was refused.
        path: PathBuf,
        /// The reason that the system gave.
        source: io::Error,
    },
    /// No checkpoint has this id.
    #[error("no checkpoint `{0}` of this folder")]
    Unknown(String),
    /// The store holds something else than what was stored.
    #[error("the checkpoint store is damaged: {0}; nothing was written from it")]
    Damaged(String),
    /// The store was written by a newer version.
    #[error("the checkpoint store `{}` was written by a newer version of gnoma", .0.display())]
    Newer(PathBuf),
    /// A folder of the store is not the person's own.
    #[error(
        "`{}` is a link, belongs to somebody else, or is open to others, so checkpoints are not \
         saved there",
        .0.display()
    )]
    Foreign(PathBuf),
    /// Changes made outside the session would be overwritten.
    #[error("{} changed outside the session and would be overwritten", describe_paths(.paths))]
    Conflict {
        /// The changed paths, relative to the workspace.
        paths: Vec<PathBuf>,
    },
    /// There are not so many states to go back to.
    #[error("cannot rewind that far: {}", describe_checkpoints(*.0, "before the current files"))]
    NothingBefore(usize),
    /// There are fewer rewinds to undo; this is their number.
    #[error("cannot redo that many: {}", describe_checkpoints(*.0, "that was rewound"))]
    NothingAfter(usize),
    /// The caller asked to stop.
    #[error("stopped before the checkpoint was complete")]
    Cancelled,
    /// Another process is tidying up or restoring.
    #[error("another gnoma is using these checkpoints; retry in a moment")]
    Busy,
}

gnoma_core::debug_as_display!(Error);

/// Describes how far the session could have gone.
fn describe_checkpoints(count: usize, which: &str) -> String {
    match count {
        0 => format!("this session has no checkpoint {which}"),
        1 => format!("this session has one checkpoint {which}"),
        _ => format!("this session has {count} checkpoints {which}"),
    }
}

/// The number of paths that a message names.
const NAMED_PATHS: usize = 3;

fn describe_paths(paths: &[PathBuf]) -> String {
    let mut text = paths
        .iter()
        .take(NAMED_PATHS)
        .map(|path| format!("`{}`", path.display()))
        .collect::<Vec<_>>()
        .join(", ");
    if paths.len() > NAMED_PATHS {
        text.push_str(&format!(" and {} more", paths.len() - NAMED_PATHS));
    }
    text
}

/// Puts the place to a system error.
pub(super) trait PathErrorExt<T> {
    /// Names what was tried on `path`.
    fn io_context(self, what: &'static str, path: &Path) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> PathErrorExt<T> for Result<T, E> {
    fn io_context(self, what: &'static str, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::Io { what, path: path.to_owned(), source: source.into() })
    }
}

impl Error {
    fn store_kind(&self) -> StoreErrorKind {
        match self {
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreErrorKind::Full,
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    StoreErrorKind::ReadOnly
                }
                _ => StoreErrorKind::Io,
            },
            Self::Unknown(_) | Self::NothingBefore(_) | Self::NothingAfter(_) => {
                StoreErrorKind::NotFound
            }
            Self::Foreign(_) => StoreErrorKind::ReadOnly,
            Self::Damaged(_) => StoreErrorKind::Damaged,
            Self::Newer(_) => StoreErrorKind::TooNew,
            Self::Busy => StoreErrorKind::Busy,
            Self::Conflict { .. } | Self::Cancelled => StoreErrorKind::Io,
        }
    }
}

/// In the port's terms: what happened, and what to do where there is something.
impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        let kind = error.store_kind();
        let sentence = match &kind {
            StoreErrorKind::Full => format!(
                "the disk is full, so the current files cannot be saved; free some space ({error})"
            ),
            StoreErrorKind::ReadOnly => format!(
                "checkpoints cannot be saved or restored here; check the permissions ({error})"
            ),
            StoreErrorKind::TooNew => format!("{error}; update this one to use it"),
            _ => error.to_string(),
        };
        Self::new(kind, sentence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoint_errors_have_a_kind_and_a_remedy() {
        let io = |kind: io::ErrorKind| {
            let place = Path::new("/vault/packs");
            let failed: Result<(), Error> = Err(io::Error::from(kind)).io_context("write", place);
            StoreError::from(failed.unwrap_err())
        };
        let told = [
            (io(io::ErrorKind::StorageFull), StoreErrorKind::Full, "free some space"),
            (io(io::ErrorKind::QuotaExceeded), StoreErrorKind::Full, "free some space"),
            (io(io::ErrorKind::ReadOnlyFilesystem), StoreErrorKind::ReadOnly, "/vault/packs"),
            (io(io::ErrorKind::PermissionDenied), StoreErrorKind::ReadOnly, "permissions"),
            (io(io::ErrorKind::NotFound), StoreErrorKind::Io, "cannot write `/vault/packs`"),
            (Error::Newer("/vault".into()).into(), StoreErrorKind::TooNew, "update"),
            (Error::Busy.into(), StoreErrorKind::Busy, "retry"),
            (Error::NothingBefore(0).into(), StoreErrorKind::NotFound, "no checkpoint before"),
            (Error::NothingAfter(2).into(), StoreErrorKind::NotFound, "2 checkpoints"),
        ];
        for (error, kind, words) in told {
            assert_eq!(error.kind, kind);
            assert!(error.sentence.contains(words), "{}", error.sentence);
        }
    }
}
