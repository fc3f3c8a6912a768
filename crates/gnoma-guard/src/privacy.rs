//! What may be kept of a session, and which models may see it.
//!
//! One value decides for everything that persists, so that a new store has one place to ask.

use crate::firewall::ProviderFacts;

/// How private a session is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Privacy {
    /// Everything is kept that the settings say.
    #[default]
    Normal,
    /// Nothing of the session's content outlives it.
    Incognito {
        /// Only models on this machine may be asked.
        local_only: bool,
    },
}

/// Something that outlives a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Keep {
    /// The conversation, to be resumed.
    Session,
    /// What was typed, to be recalled.
    History,
    /// Content in logs; events without content may always be logged.
    Logs,
    /// What was learnt about models or the project.
    Learning,
    /// Long tool results in files of their own.
    ToolResultFiles,
    /// Caches that hold content, on disk.
    Caches,
    /// Answers to questions of permission and trust.
    Trust,
}

impl Privacy {
    /// Whether this may be written to disk.
    #[must_use]
    pub fn may(self, keep: Keep) -> bool {
        match (self, keep) {
            (Self::Normal, _) => true,
            (
                Self::Incognito { .. },
                Keep::Session
                | Keep::History
                | Keep::Logs
                | Keep::Learning
                | Keep::ToolResultFiles
                | Keep::Caches
                | Keep::Trust,
            ) => false,
        }
    }

    /// Whether this provider may be asked.
    ///
    /// # Errors
    /// One sentence for a person when it may not.
    pub fn admits(self, provider: &ProviderFacts) -> Result<(), String> {
        match self {
            Self::Incognito { local_only: true } if !provider.local => Err(format!(
                "`{}` is not on this machine, and this incognito session uses local models only; \
                 choose a local model or leave incognito",
                provider.name
            )),
            Self::Normal | Self::Incognito { .. } => Ok(()),
        }
    }
}
