//! The reasons why another program's agent cannot work.

use std::{fmt, time::Duration};

use gnoma_acp::client::ConversationError;
use gnoma_core::duration;
use gnoma_extend::mcp::ProgramStartError;

/// An agent whose program is not where the settings say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the program `{command}` is not installed, or not on `PATH`; install it, or set another `command` under \
     `[[cli_agents]]`"
)]
pub struct AgentProgramError {
    /// The command of the agent, as the settings have it.
    pub command: String,
}

/// The reason why an agent could not be started, or the conversation with it ended. Its text follows the agent's name.
#[derive(thiserror::Error)]
pub(super) enum AgentError {
    #[error("cannot be started: {0}")]
    NotInstalled(#[from] AgentProgramError),
    #[error(transparent)]
    NotStarted(#[from] ProgramStartError),
    #[error("did not answer within {}{last_output}", duration::format_duration(*patience))]
    NoAnswer { patience: Duration, last_output: LastOutput },
    #[error("did not open a session: {words}. If it needs you to log in, run it once on its own")]
    NoSession { words: String },
    #[error(transparent)]
    Conversation(#[from] ConversationError),
    #[error("no longer accepts messages{last_output}")]
    InputClosed { last_output: LastOutput },
    #[error("ended unexpectedly{last_output}")]
    Ended { last_output: LastOutput },
}

gnoma_core::debug_as_display!(AgentError);

/// The last lines that an agent wrote to its standard error.
#[derive(Debug)]
pub(super) struct LastOutput(pub(super) String);

/// Writes nothing if there are none; otherwise begins with a semicolon.
impl fmt::Display for LastOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "; its last output: {}", self.0) }
    }
}
