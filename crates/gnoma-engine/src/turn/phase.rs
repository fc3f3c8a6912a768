//! The phase of a turn.

use gnoma_core::{ProviderError, session::Outcome};

use super::{
    answer::AnswerDraft, batch::Batch, project_checks::ProjectCheckRun,
    prompt_state::PromptPreparation,
};
use crate::compact::SummarizedRange;

#[derive(Debug, Default)]
pub(super) enum Phase {
    #[default]
    Idle,
    /// The message is being prepared.
    Preparing(Box<PromptPreparation>),
    /// An arm is chosen.
    Routing,
    /// Room is made for a call.
    Reserving { attempt: u32 },
    /// The model is being called and answers.
    Calling { attempt: u32, answer: AnswerDraft },
    /// A call failed; whether another arm continues is being decided. Without an answer no model was called.
    FailingOver { attempt: u32, answer: Option<AnswerDraft> },
    /// A call failed and is made again after a wait.
    Backoff { attempt: u32 },
    /// The conversation is being compacted; there is a cut once a summary was requested.
    Compacting { cause: Cause, cut: Option<SummarizedRange> },
    /// Calls of the last message are judged, approved, run and settled.
    Tools(Batch),
    /// The ways to go are compared.
    Conferring,
    /// The work is being checked; the turn ends with this outcome unless a check fails.
    Checking(Outcome),
    /// The project's checks run.
    Proving(Outcome, ProjectCheckRun),
    /// The extensions are asked whether the turn may end with this outcome.
    AskingStop(Outcome),
    /// The turn is cancelled; running calls are given time to stop.
    Stopping(Batch),
}

/// The reason why the conversation is compacted.
#[derive(Debug)]
pub(super) enum Cause {
    /// A person asked for it, between turns.
    Asked,
    /// The window is about to be full, before this attempt at a call.
    Filled { attempt: u32 },
    /// The provider has refused the conversation for its length, at this attempt.
    Refused { attempt: u32, error: ProviderError },
}
