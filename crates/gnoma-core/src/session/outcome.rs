//! Outcomes of turns: completed, cancelled, failed, out of rounds.

use serde::{Deserialize, Serialize};

use crate::{error::ProviderError, stream::StopReason};

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The model finished.
    Complete {
        /// Why it stopped.
        stop: StopReason,
    },
    /// Somebody cancelled it.
    Cancelled,
    /// The limit of rounds was reached.
    RoundLimit {
        /// The limit.
        rounds: u32,
    },
    /// One thing happened over and over and the model could not be turned from it.
    Stuck {
        /// What was repeated.
        what: String,
    },
    /// No answer had the form that it must have.
    Unfit {
        /// What was wrong with the last one; a line for each fault.
        why: String,
        /// How many did not fit.
        answers: u32,
    },
    /// The provider failed for good.
    Failed {
        /// The failure.
        error: ProviderError,
        /// Part of the answer had arrived and is kept in the history.
        kept_partial: bool,
    },
}

impl Outcome {
    /// Returns the name of the kind of outcome, for statistics.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Complete { .. } => "complete",
            Self::Cancelled => "cancelled",
            Self::RoundLimit { .. } => "round_limit",
            Self::Stuck { .. } => "stuck",
            Self::Unfit { .. } => "unfit",
            Self::Failed { .. } => "failed",
        }
    }
}
