//! The effects that the machines of a session want: its turn, the calls of the turn to models, and compaction.
//! The driver performs them in order, and answers with an input of the machine that wants them.

use std::time::Duration;

use gnoma_core::{Event, ProviderError, ToolCall, Usage, message::CallId, session::Outcome};

use crate::{context::Strategy, routing::verify::Finding};

pub(crate) type Effects = Vec<Effect>;

/// An effect that a machine wants.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    /// Prepare the message; answered by `Input::Prepared`.
    Prepare(String),
    /// Ask whether the turn may end; `FinishInput::MayStop`.
    BeforeStop {
        /// The model was already asked to continue in this turn.
        is_again: bool,
        /// The last words of the model.
        last_words: String,
    },
    /// Compare the ways to go; `FinishInput::Conferred`.
    Confer,
    /// Say how the work of the turn is checked, which would end like this; `FinishInput::Found`,
    /// `FinishInput::Prove` or `FinishInput::Checked`.
    Check(Outcome),
    /// Ask a reviewer; `FinishInput::Found`.
    Review,
    /// Draw the conclusion; `FinishInput::Checked`.
    Conclude {
        /// The finding of the check.
        finding: Finding,
        /// The turn has rounds left, so that another arm may continue it.
        may_continue: bool,
    },
    /// Do something for the call to a model.
    Call(CallEffect),
    /// Ask for a summary; answered by the inputs of compaction.
    Summarize(CompactionRequest),
    /// Stop waiting for an arm, room, a summary, a comparison or a review.
    StopWaiting,
    /// Judge a call; `Input::Judged`.
    Judge(ToolCall),
    /// A person answered for later calls, too: by the rule that was shown, or by their own.
    Remember {
        /// The call that was asked about.
        call: CallId,
        /// The person's own rule.
        rule: Option<String>,
    },
    /// The call may run outside the sandbox from now on.
    LetOutside(CallId),
    /// Run a call of the model; `Input::ToolEnded`.
    RunTool(ToolCall),
    /// Run one of the project's checks; `Input::ToolEnded`.
    RunCheck(ToolCall),
    /// Judge no more and ask running calls to stop.
    StopTools,
    /// Stop what still runs, at once.
    AbortTools,
    /// Report the end of the wait after this long; `None`: not any more.
    SetTimer(Option<(Timer, Duration)>),
    /// Tell the front ends.
    Emit(Event),
}

/// An effect that a call to a model wants.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallEffect {
    /// Choose an arm for the turn; answered by `CallInput::Chosen`.
    Choose,
    /// Make room for the call; `CallInput::Reserved`.
    Reserve {
        /// The conversation may be compacted first if it fills the window.
        may_compact: bool,
    },
    /// Call the model with the current history; answered by `CallInput::Stream`.
    OpenStream {
        /// Number of the round, from 1.
        round: u32,
        /// Number of the attempt, from 1.
        attempt: u32,
    },
    /// Close the model stream.
    CloseStream,
    /// Settle what [`CallEffect::OpenStream`] has begun, with the usage that the provider has reported. Each attempt is
    /// settled once.
    Settle(Option<Usage>),
    /// Find another arm after a failure; `CallInput::Moved` or `CallInput::Stayed`.
    FailOver {
        /// The error of the failed call.
        error: ProviderError,
        /// Number of the attempt that failed.
        attempt: u32,
        /// Part of the answer had come.
        has_content: bool,
        /// The arm was called; else there was no room for the call.
        was_called: bool,
    },
}

impl From<CallEffect> for Effect {
    fn from(effect: CallEffect) -> Self {
        Self::Call(effect)
    }
}

/// The parameters of a requested compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompactionRequest {
    /// The topic that the summary should dwell on.
    pub(crate) focus: String,
    /// Also where little is won by it.
    pub(crate) whatever_it_wins: bool,
    /// The way to make room.
    pub(crate) strategy: Strategy,
    /// A person wants it.
    pub(crate) is_asked: bool,
}

/// The purpose of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// A failed call is made again after it.
    Backoff,
    /// Calls that still run are aborted after it.
    Grace,
}
