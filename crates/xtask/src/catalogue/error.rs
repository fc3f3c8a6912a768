//! Errors of making the list of models.

use std::{io, path::PathBuf, process::ExitStatus};

/// A list of models that was not written. The old list stays.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// A program that gets the packages cannot be started.
    #[error("{what}: {cause}")]
    NotStarted {
        /// The step that failed.
        what: &'static str,
        /// The error of the system.
        #[source]
        cause: io::Error,
    },
    /// A program that gets the packages failed.
    #[error("{what}: {status}")]
    Failed {
        /// The step that failed.
        what: &'static str,
        /// The status with which the program ended.
        status: ExitStatus,
    },
    /// The data of a package cannot be read.
    #[error("`{name}`: {cause}")]
    Unreadable {
        /// The name of the data.
        name: &'static str,
        /// The error of the system.
        #[source]
        cause: io::Error,
    },
    /// The data of a package is not JSON.
    #[error("`{name}`: {cause}")]
    NoJson {
        /// The name of the data.
        name: &'static str,
        /// The fault of the JSON.
        #[source]
        cause: serde_json::Error,
    },
    /// A file or folder cannot be written.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        #[source]
        cause: io::Error,
    },
    /// The list is too long.
    #[error("it would take {bytes} bytes, more than {most}")]
    TooLong {
        /// The length of the list.
        bytes: usize,
        /// The length that it may have.
        most: usize,
    },
}
