//! What can go wrong with checkpoints, for branching and for people.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Why a checkpoint could not be taken, read or brought back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused.
    #[error("cannot {what} `{}`: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// No checkpoint has this id.
    #[error("there is no checkpoint `{0}` of this folder")]
    Unknown(String),
    /// Something stored is not what was stored.
    #[error("the checkpoint store is damaged: {0}; nothing was written from it")]
    Damaged(String),
    /// The store was written by a newer version.
    #[error("the checkpoint store `{}` was written by a newer version of gnoma", .0.display())]
    Newer(PathBuf),
    /// Files changed since the last checkpoint would be overwritten.
    #[error("{} changed since the last checkpoint and would be overwritten", names(.paths))]
    Conflict {
        /// Which, relative to the workspace.
        paths: Vec<PathBuf>,
    },
    /// The caller asked to stop.
    #[error("stopped before the checkpoint was complete")]
    Cancelled,
    /// Another process is tidying up or restoring.
    #[error("another gnoma is working on these checkpoints; try again in a moment")]
    Busy,
}

/// How many paths a message names.
const NAMED_PATHS: usize = 3;

fn names(paths: &[PathBuf]) -> String {
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
pub(super) trait At<T> {
    /// Names what was tried on `path`.
    fn at(self, what: &'static str, path: &Path) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> At<T> for Result<T, E> {
    fn at(self, what: &'static str, path: &Path) -> Result<T, Error> {
        self.map_err(|source| Error::Io { what, path: path.to_owned(), source: source.into() })
    }
}
