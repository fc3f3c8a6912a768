//! The inputs of the machine, and the effects that it wants.

use std::time::Duration;

use gnoma_core::{
    Content, Event, Message, ModelRef, ProviderError, StreamEvent, ToolCall, ToolOutcome,
    lifecycle::{PointAnswer, Prepared},
    message::CallId,
    session::{Outcome, PermissionAnswer},
};

use crate::{
    compact::{Cut, Retelling},
    context::Strategy,
    routing::verify::Finding,
};

/// What is to be done with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
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
    /// It would fail as things are, and is not run.
    Fail {
        /// Why, for the model.
        text: String,
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

/// What happens to the work of a turn before it is delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// Nothing.
    #[default]
    Direct,
    /// The work is checked, and another arm continues if the check fails.
    Checked,
    /// The arm only looks at the files: approaches are compared first.
    Conferred,
}

/// Whether there is room for a call.
#[derive(Clone, Debug)]
pub(crate) enum Room {
    /// There is room, and it is reserved.
    Held,
    /// The window of the arm in charge is about to be full.
    Filled,
    /// Not for this arm; another one may have some.
    Refused(ProviderError),
    /// Not for any arm.
    Denied(ProviderError),
}

/// What a check of the turn's work leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Checked {
    /// The work is delivered.
    Deliver,
    /// The turn continues with the findings, which the model receives.
    Again {
        /// For the model.
        note: String,
    },
}

/// The project's checks that are to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checks {
    /// Name of the tool that runs commands.
    pub(crate) tool: String,
    /// The commands, in order.
    pub(crate) commands: Vec<String>,
    /// A reviewer is asked where they give no verdict.
    pub(crate) else_review: bool,
}

/// Why the conversation was not compacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotCompacted {
    /// There is nothing to compact.
    NothingToShorten,
    /// No arm can be asked.
    NobodyToAsk,
    /// Those who were asked gave no summary: why.
    Failed(String),
    /// Somebody who was asked before does not want it: why.
    Blocked(String),
}

/// What is wanted of a compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    /// What the summary should dwell on.
    pub(crate) focus: String,
    /// Also where little is won by it.
    pub(crate) whatever_it_wins: bool,
    /// How.
    pub(crate) strategy: Strategy,
    /// A person wants it.
    pub(crate) is_asked: bool,
}

/// A command of the person's that is a turn of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StepCommand {
    /// The line above it in the conversation.
    pub(crate) line: String,
    /// The command.
    pub(crate) command: String,
    /// Name of the tool that runs commands; empty if there is none.
    pub(crate) shell: String,
    /// The time limit, in seconds.
    pub(crate) timeout_s: u64,
}

/// Facts that have happened; only the driver makes them.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    /// A person said something.
    Say(Message),
    /// The messages `now` take the place of those that wait to be delivered, if those are `was` still.
    Queue { was: Vec<Vec<Content>>, now: Vec<Message> },
    /// A person runs a command as a turn of its own.
    RunCommand(StepCommand),
    /// A person wants the conversation compacted; the summary should dwell on `focus`.
    Compact { focus: String },
    /// A person has put other words in the place of the summary.
    EditSummary { summary: String },
    /// A person takes the last compaction back.
    UndoCompaction,
    /// Somebody cancelled what runs.
    Cancel,
    /// The session ends: what runs is cancelled and nothing begins any more.
    Close,
    /// Everything that belongs to the session has ended.
    Closed,
    /// The message is prepared; with it the tool that runs commands.
    Prepared(Box<Prepared>, String),
    /// Whether the turn may end.
    MayStop(Box<PointAnswer>),
    /// A call runs with other arguments.
    Amended(ToolCall),
    /// The model receives this note with the next round.
    Noted(String),
    /// The model receives this with its next call, in this turn or a later one.
    News(String),
    /// The turn ends after the calls of this answer: why.
    StopAfter(String),
    /// An arm was chosen for the turn, or none can be asked.
    Routed(Result<Delivery, ProviderError>),
    /// Whether there is room for the call.
    Reserved(Room),
    /// The model stream gave an event or failed.
    Model(Result<StreamEvent, ProviderError>),
    /// Another arm takes over from the one whose call failed.
    Moved {
        /// Who is given up.
        from: ModelRef,
        /// The arm that continues.
        to: ModelRef,
        /// Why, in one line.
        why: String,
    },
    /// No other arm takes over: the failure is final.
    Stayed(ProviderError),
    /// A summary of what the cut names was requested.
    CompactionBegun(Cut),
    /// The summary, or why there is none.
    Compacted(Result<Retelling, NotCompacted>),
    /// The approaches were compared; the note is for the model.
    Conferred { note: String },
    /// The project's checks are to be run.
    Prove(Checks),
    /// The checks must run although there was no message: the files differ from what the last turn left.
    ProveAgain(Checks),
    /// The work was checked.
    Found(Finding),
    /// What the look at the work leads to.
    Checked(Checked),
    /// A call was judged.
    Judged(CallId, Verdict),
    /// A person answered for a call.
    Answered(CallId, PermissionAnswer),
    /// A call has run and the sandbox has stopped it; a person may let it run outside.
    Walled {
        /// The call.
        call: CallId,
        /// What becomes of it unless it is run again.
        outcome: ToolOutcome,
        /// How long it ran.
        duration_ms: u64,
        /// What the sandbox seems to have stopped.
        why: String,
    },
    /// A call is over; the time is how long it ran, in milliseconds.
    ToolDone(CallId, ToolOutcome, u64),
    /// The requested wait is over.
    Woke,
}

/// Effects; the driver performs them in order and answers with an [`Input`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    /// Prepare the message; answered by [`Input::Prepared`].
    Prepare(String),
    /// Ask whether the turn may end; [`Input::MayStop`].
    BeforeStop {
        /// The model was already asked to continue in this turn.
        is_again: bool,
        /// Its last words.
        last_words: String,
    },
    /// Choose an arm for the turn; [`Input::Routed`].
    Route,
    /// Make room for a call; [`Input::Reserved`].
    Reserve {
        /// The conversation may be compacted first if it fills the window.
        may_compact: bool,
    },
    /// Call the model with the current history; answered by [`Input::Model`].
    CallModel {
        /// Number of the round, from 1.
        round: u32,
        /// Number of the attempt, from 1.
        attempt: u32,
    },
    /// Close the model stream.
    DropStream,
    /// Find another arm after a failure; [`Input::Moved`] or [`Input::Stayed`].
    FailOver {
        /// The failure.
        error: ProviderError,
        /// Number of the attempt that failed.
        attempt: u32,
        /// Part of the answer had come.
        has_content: bool,
        /// The arm was called; else there was no room for the call.
        was_called: bool,
    },
    /// Ask for a summary; [`Input::CompactionBegun`], [`Input::Compacted`].
    Compact(Wish),
    /// Compare the ways to go; [`Input::Conferred`].
    Confer,
    /// Say how the work of the turn is checked, which would end like this; [`Input::Found`],
    /// [`Input::Prove`] or [`Input::Checked`].
    Check(Outcome),
    /// Ask a reviewer; [`Input::Found`].
    Review,
    /// Draw the conclusion; [`Input::Checked`].
    Conclude(Finding),
    /// Nobody waits any more for an arm, room, a summary, a comparison or a review.
    StopWaiting,
    /// Judge a call; [`Input::Judged`].
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
    /// Run a call of the model; [`Input::ToolDone`] or [`Input::Walled`].
    RunTool(ToolCall),
    /// Run one of the project's checks; [`Input::ToolDone`] or [`Input::Walled`].
    RunCheck(ToolCall),
    /// Judge no more and ask running calls to stop.
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
