//! What goes wrong with layers.

use std::{error, fmt, io, path::PathBuf};

use super::differences::Difference;

/// The reason why a layer could not be made, read or removed.
#[derive(Debug)]
pub enum LayerError {
    /// The system refused a step.
    Io {
        /// The step that failed: "read `src`".
        step: String,
        /// The error of the system.
        error: io::Error,
    },
    /// The changes are more than anybody could look through.
    TooMany {
        /// The number of changes that are listed.
        limit: usize,
    },
    /// Folders lie too deep in each other.
    TooDeep(PathBuf),
}

impl LayerError {
    /// True if the error is about a file that the user has no permission to read.
    pub(super) fn is_denied(&self) -> bool {
        match self {
            Self::Io { error, .. } => error.kind() == io::ErrorKind::PermissionDenied,
            Self::TooMany { .. } | Self::TooDeep(_) => false,
        }
    }
}

impl fmt::Display for LayerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { step, error } => write!(f, "could not {step}: {error}"),
            Self::TooMany { limit } => write!(f, "more than {limit} files changed"),
            Self::TooDeep(path) => write!(f, "`{}` is nested too deeply", path.display()),
        }
    }
}

impl error::Error for LayerError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            Self::TooMany { .. } | Self::TooDeep(_) => None,
        }
    }
}

/// The reason why a layer does not work over a folder.
#[derive(thiserror::Error)]
pub enum LayerAttemptError {
    /// The layer could not be made.
    #[error(transparent)]
    Layer(#[from] LayerError),
    /// The file system of the layer has no attributes, in which the kernel notes what was replaced.
    #[error("files there cannot have attributes: {0}")]
    Attributes(#[source] io::Error),
    /// The command that tries the layer could not be started.
    #[error(transparent)]
    Start(io::Error),
    /// The command that tries the layer failed; the first line that it wrote.
    #[error("{0}")]
    Command(String),
}

/// The reason why no folder can hold the layers of a workspace.
#[derive(thiserror::Error)]
pub enum SiteError {
    /// Another file system is mounted in the workspace.
    #[error("{0}, and would look empty")]
    Mounted(Difference),
    /// There is no folder to try.
    #[error("there is no folder for it")]
    NoFolder,
    /// A layer works in none of these folders.
    #[error("{}", join_reasons(.0))]
    Unusable(Vec<(PathBuf, LayerAttemptError)>),
}

gnoma_core::debug_as_display!(LayerAttemptError, SiteError);

/// Joins the folders and the reasons why a layer does not work there.
fn join_reasons(reasons: &[(PathBuf, LayerAttemptError)]) -> String {
    let reasons = reasons.iter().map(|(folder, why)| format!("in `{}`: {why}", folder.display()));
    reasons.collect::<Vec<_>>().join("; ")
}

/// The reason why changes were not kept.
#[derive(Debug)]
pub enum KeepError {
    /// Somebody else changed these meanwhile. Nothing was kept.
    Conflict(Vec<PathBuf>),
    /// A step failed. Nothing was kept.
    Failed(LayerError),
    /// A step failed, and these could not be brought back to what they were.
    Torn {
        /// The error that came first.
        error: LayerError,
        /// The paths that are neither in their old state nor in the new one.
        paths: Vec<PathBuf>,
    },
}

impl fmt::Display for KeepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |paths: &[PathBuf]| {
            let names: Vec<_> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
            names.join(", ")
        };
        match self {
            Self::Conflict(paths) => {
                write!(
                    f,
                    "changed by another program in the meantime: {}; nothing was saved",
                    list(paths)
                )
            }
            Self::Failed(error) => write!(f, "{error}; nothing was saved"),
            Self::Torn { error, paths } => {
                write!(f, "{error}; these could not be restored: {}", list(paths))
            }
        }
    }
}

impl error::Error for KeepError {}

impl From<LayerError> for KeepError {
    fn from(error: LayerError) -> Self {
        Self::Failed(error)
    }
}

/// Names the step that an error belongs to.
pub(super) trait LayerStep<T> {
    /// Adds the step, told as what was to be done: "read `src`".
    fn with_step(self, step: impl FnOnce() -> String) -> Result<T, LayerError>;
}

impl<T, E: Into<io::Error>> LayerStep<T> for Result<T, E> {
    fn with_step(self, step: impl FnOnce() -> String) -> Result<T, LayerError> {
        self.map_err(|error| LayerError::Io { step: step(), error: error.into() })
    }
}
