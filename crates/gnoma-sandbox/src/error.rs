//! The reasons why a launcher holds no namespaces or hands over no folder.

use std::io;

/// The reason why a launcher handed over no descriptor.
#[derive(thiserror::Error)]
pub enum DescriptorError {
    /// The launcher could not be started or heard.
    #[error("could not {step}: {error}")]
    Io {
        /// The step that failed: "open a view".
        step: &'static str,
        /// The error of the system.
        #[source]
        error: io::Error,
    },
    /// The launcher ended without handing over a descriptor.
    #[error("could not {step}: {message}")]
    Refused {
        /// The step that failed: "open a view".
        step: &'static str,
        /// The launcher's own message.
        message: String,
    },
}

/// The reason why there is no folder in memory.
#[derive(thiserror::Error)]
pub enum MemoryFolderError {
    /// The machine does not permit namespaces, without which a launcher cannot mount the folder.
    #[error("there are no namespaces")]
    NoNamespaces,
    /// The launcher did not hand over the folder.
    #[error(transparent)]
    Descriptor(#[from] DescriptorError),
    /// The system is not Linux.
    #[error("only Linux has folders in memory")]
    OtherSystem,
}

gnoma_core::debug_as_display!(DescriptorError, MemoryFolderError);

/// The reason why no process holds the session's namespaces.
#[cfg(target_os = "linux")]
#[derive(Debug, thiserror::Error)]
pub(crate) enum HolderError {
    #[error("the process that holds the namespaces is killed repeatedly")]
    KilledRepeatedly,
    #[error("could not make namespaces: {0}")]
    Io(#[source] io::Error),
    /// The process started and could not make them; its own message.
    #[error("namespaces: {0}")]
    Refused(String),
}
