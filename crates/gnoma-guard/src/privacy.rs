//! Incognito and local-only: what of a session may be saved, and which models may see it.
//!
//! One value decides for everything that persists, so that a new store has one place to ask.

use crate::firewall::ProviderFacts;

/// The privacy of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Privacy {
    /// Everything is kept that the settings say.
    #[default]
    Normal,
    /// An incognito session: nothing of its content outlives it.
    Incognito {
        /// Only models on this machine may be asked.
        local_only: bool,
    },
}

/// A kind of data that outlives a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PersistentData {
    /// The conversation, to be resumed.
    Session,
    /// The text that the user typed, to be recalled later.
    History,
    /// Content in logs; events without content may always be logged.
    Logs,
    /// The facts learnt about models or the project.
    Learning,
    /// Long tool results in files of their own.
    ToolResultFiles,
    /// Caches on disk that contain content.
    Caches,
    /// Answers to questions of permission and trust.
    Trust,
}

/// A provider on another machine, which an incognito session with local models only may not call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{name}` is not on this machine, and this incognito session uses local models only; choose a local model or leave incognito"
)]
pub struct RemoteProvider {
    /// The name of the provider.
    pub name: String,
}

impl Privacy {
    /// Reports whether this kind of data may be written to disk.
    #[must_use]
    pub fn can_save(self, keep: PersistentData) -> bool {
        match (self, keep) {
            (Self::Normal, _) => true,
            (
                Self::Incognito { .. },
                PersistentData::Session
                | PersistentData::History
                | PersistentData::Logs
                | PersistentData::Learning
                | PersistentData::ToolResultFiles
                | PersistentData::Caches
                | PersistentData::Trust,
            ) => false,
        }
    }

    /// Checks whether this provider may be called.
    ///
    /// # Errors
    /// The provider is not on this machine, and the session uses local models only.
    pub fn check_provider(self, provider: &ProviderFacts) -> Result<(), RemoteProvider> {
        match self {
            Self::Incognito { local_only: true } if !provider.local => {
                Err(RemoteProvider { name: provider.name.clone() })
            }
            Self::Normal | Self::Incognito { .. } => Ok(()),
        }
    }
}
