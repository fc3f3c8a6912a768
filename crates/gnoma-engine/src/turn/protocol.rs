//! What the machine is told, and what it wishes for.

use std::time::Duration;

use gnoma_core::{
    Event, Message, ModelRef, ProviderError, StreamEvent, ToolCall, ToolOutcome,
    message::CallId,
    session::{Outcome, PermissionAnswer},
};

/// What is to be done with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Allow {
        /// Which rule or mode says so.
        reason: String,
    },
    /// It does not run; the reason goes to the model.
    Deny {
        /// Why not.
        reason: String,
    },
    /// A person decides.
    Ask {
        /// Why they must.
        reason: String,
        /// What the call would change, as a unified diff.
        preview: Option<String>,
        /// The rule that would answer for them from now on.
        always: Option<String>,
    },
}

/// What a check of the turn's work leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checked {
    /// The work is delivered.
    Deliver,
    /// It goes on with what was found, which the model is told.
    Again {
        /// For the model.
        note: String,
    },
}

/// Facts that have happened; only the driver makes them.
#[derive(Clone, Debug)]
pub enum Input {
    /// A person said something.
    Say(Message),
    /// The model stream gave an event or failed.
    Model(Result<StreamEvent, ProviderError>),
    /// The model call failed and another arm takes over.
    Moved {
        /// Who is given up.
        from: ModelRef,
        /// Who goes on.
        to: ModelRef,
        /// Why, in one line.
        why: String,
    },
    /// The work of the turn was checked.
    Checked(Checked),
    /// A call was judged.
    Judged(CallId, Verdict),
    /// A person answered for a call.
    Answered(CallId, PermissionAnswer),
    /// A call is over; the time is how long it ran, in milliseconds.
    ToolDone(CallId, ToolOutcome, u64),
    /// The wait that was wished for is over.
    Woke,
    /// Somebody cancelled the turn.
    Cancel,
}

/// Wishes; the driver performs them in order and answers with an [`Input`].
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Ask the model, with the history as it stands.
    CallModel {
        /// Number of the round, from 1.
        round: u32,
        /// Number of the attempt, from 1.
        attempt: u32,
    },
    /// Close the model stream.
    DropStream,
    /// Check the work of the turn, which would end like this.
    Check(Outcome),
    /// The check is not wanted any more.
    StopCheck,
    /// Judge a call.
    Judge(ToolCall),
    /// Run a call.
    RunTool(ToolCall),
    /// Ask running tools to stop.
    StopTools,
    /// Stop what still runs, at once.
    AbortTools,
    /// Report [`Input::Woke`] after this long.
    Sleep(Duration),
    /// Do not wake any more.
    CancelSleep,
    /// Tell the front ends.
    Emit(Event),
}
