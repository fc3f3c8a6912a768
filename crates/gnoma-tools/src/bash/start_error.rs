//! The reasons why a command was not started.

use std::{
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use gnoma_sandbox::Strength;

/// The reason why a command was not started, for the model.
#[derive(thiserror::Error)]
pub(super) enum CommandStartError {
    /// A granted place is no longer the one that was judged.
    #[error(
        "the command was not run: `{}` has come to lead elsewhere by a link since the command was judged",
        .0.display()
    )]
    LedAway(PathBuf),
    /// The sandbox is required and not complete.
    #[error(
        "the command was not run: {0}, and `sandbox.mode` is `required`; `gnoma doctor` says what is missing"
    )]
    WeakSandbox(Strength),
    /// The command may only run on trial.
    #[error("the command was not run: it needs a trial run, and there is no sandbox")]
    NoSandbox,
    #[error("the folder `{}` is gone, so nothing was run; create it again first", .0.display())]
    FolderGone(PathBuf),
    #[error("the command is too long to be started; write it to a file and run that")]
    TooLong,
    #[error("the command could not be started in `{}`: {error}", .folder.display())]
    Io {
        folder: PathBuf,
        #[source]
        error: io::Error,
    },
}

gnoma_core::debug_as_display!(CommandStartError);

impl CommandStartError {
    /// Finds the reason why a shell did not start in a folder.
    pub(super) fn from_io(error: io::Error, folder: &Path) -> Self {
        if !folder.is_dir() {
            return Self::FolderGone(folder.to_owned());
        }
        match error.kind() {
            ErrorKind::ArgumentListTooLong => Self::TooLong,
            _ => Self::Io { folder: folder.to_owned(), error },
        }
    }
}
