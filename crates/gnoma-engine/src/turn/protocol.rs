//! The inputs of the machine, and the effects that it wants.

use std::{sync::Arc, time::Duration};

use gnoma_core::{
    Content, Event, Message, ModelRef, ProviderError, StreamEvent, ToolCall, ToolOutcome, ToolSpec,
    Usage,
    lifecycle::{PointAnswer, PreparedPrompt},
    message::CallId,
    session::{Outcome, PermissionAnswer},
};

use super::SpawningTools;
use crate::{
    compact::{CompactionSummary, SummarizedRange},
    context::Strategy,
    routing::verify::Finding,
};

/// The decision on what is done with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The call is allowed to run.
    Allow {
        /// The rule or mode that allows the call.
        reason: String,
    },
    /// The call does not run; the reason goes to the model.
    Deny {
        /// The reason why the call does not run.
        reason: String,
    },
    /// The call would fail as things are, and is not run.
    Fail {
        /// The reason for the model.
        text: String,
    },
    /// A person decides about the call.
    Ask {
        /// The reason why a person must decide.
        reason: String,
        /// The change that the call would make, as a unified diff.
        preview: Option<String>,
        /// The rule that would answer for them from now on.
        always: Option<String>,
        /// The parts of the reason that name a danger.
        dangers: Vec<String>,
    },
}

/// The steps that the work of a turn goes through before it is delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The work is delivered without any further step.
    #[default]
    Direct,
    /// The work is checked, and another arm continues if the check fails.
    Checked,
    /// The arm only looks at the files: approaches are compared first.
    Conferred,
}

/// The result of making room for a call.
#[derive(Clone, Debug)]
pub(crate) enum Room {
    /// There is room, and it is reserved: this arm is called.
    Held(CallArm),
    /// The window of the arm in charge is about to be full.
    Filled,
    /// Not for this arm; another one may have some.
    Refused(ProviderError),
    /// Not for any arm.
    Denied(ProviderError),
}

/// The arm of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallArm {
    /// Its name, as the origin of the answer.
    pub(crate) name: ModelRef,
    /// The arm has the lean tool set: of its answer only the first tool call counts, because such models write
    /// several with invented results in between.
    pub(crate) is_lean: bool,
    /// An agent of another program answers: each of its steps takes a round.
    pub(crate) is_agent: bool,
}

/// The words of hooks about a call before it was judged.
#[derive(Clone, Debug, Default)]
pub(crate) struct HookInstructions {
    /// The call with other arguments.
    pub(crate) amended: Option<ToolCall>,
    /// Additional context for the model, which receives it with the next round.
    pub(crate) context: Vec<String>,
    /// The reason why the turn ends after the calls of this answer.
    pub(crate) stop: Option<String>,
}

/// The purpose of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// A failed call is made again after it.
    Backoff,
    /// Calls that still run are aborted after it.
    Grace,
}

/// The consequence of a check of the turn's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WorkCheckOutcome {
    /// The work is delivered.
    Deliver,
    /// The turn continues with the findings, which the model receives.
    Again {
        /// The findings, as a note for the model.
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

/// The reason why the conversation was not compacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CompactionFailure {
    /// There is nothing to compact.
    NothingToShorten,
    /// No arm can be asked.
    NobodyToAsk,
    /// The arms that were asked gave no summary, for this reason.
    Failed(String),
    /// A hook forbids the compaction, for this reason.
    Blocked(String),
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

/// A command of the person's that is a turn of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StepCommand {
    /// The line above it in the conversation.
    pub(crate) line: String,
    /// The shell command to run.
    pub(crate) command: String,
    /// Name of the tool that runs commands; empty if there is none.
    pub(crate) shell: String,
    /// The time limit, in seconds.
    pub(crate) timeout_s: u64,
}

/// A step of a task that runs side by side with others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SideCall {
    /// The call that does its work.
    pub(crate) call: ToolCall,
    /// The text above the result in the conversation.
    pub(crate) head: String,
    /// The text below it.
    pub(crate) tail: &'static str,
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
    /// Steps of a task run side by side as a turn of their own.
    RunSideSteps(Vec<SideCall>),
    /// A person wants the conversation compacted; the summary should dwell on `focus`.
    Compact { focus: String },
    /// A person has put other words in the place of the summary.
    EditSummary { summary: String },
    /// A person takes the last compaction back.
    UndoCompaction,
    /// A person cancelled the running work.
    Cancel,
    /// The session ends: what runs is cancelled and nothing begins any more.
    Close,
    /// Everything that belongs to the session has ended.
    Closed,
    /// The message is prepared; with it the tool that runs commands.
    Prepared(Box<PreparedPrompt>, String),
    /// The answer of the extensions to the question whether the turn may end.
    MayStop(Box<PointAnswer>),
    /// The model receives this with its next call, in this turn or a later one.
    News(String),
    /// These tools are on offer from now on, and some of them may start sessions.
    SetTools(Vec<Arc<ToolSpec>>, SpawningTools),
    /// A call beside the conversation has used tokens.
    SideUsage(Usage),
    /// An arm was chosen for the turn, or none can be asked.
    Routed(Result<Delivery, ProviderError>),
    /// The result of making room for a call.
    Reserved(Room),
    /// Several arms have answered at once; the answer is this one's.
    Authored(ModelRef),
    /// The model stream gave an event or failed.
    Model(Result<StreamEvent, ProviderError>),
    /// Another arm takes over from the one whose call failed.
    Moved {
        /// The arm that is given up.
        from: ModelRef,
        /// The arm that continues.
        to: ModelRef,
        /// The reason for the change, in one line.
        why: String,
    },
    /// No other arm takes over: the failure is final.
    Stayed(ProviderError),
    /// A summary of what the cut names was requested.
    CompactionBegun(SummarizedRange),
    /// The summary, or why there is none.
    Compacted(Result<CompactionSummary, CompactionFailure>),
    /// The approaches were compared; the note is for the model.
    Conferred { note: String },
    /// The project's checks are to be run.
    Prove(Checks),
    /// The checks must run although there was no message: the files differ from what the last turn left.
    ProveAgain(Checks),
    /// The work was checked.
    Found(Finding),
    /// The consequence of the check of the work.
    Checked(WorkCheckOutcome),
    /// A call was judged, after hooks have had their say.
    Judged(CallId, Verdict, Box<HookInstructions>),
    /// A person answered for a call.
    Answered(CallId, PermissionAnswer),
    /// A call has run.
    ToolEnded {
        /// The call that has run.
        call: CallId,
        /// The outcome of the call unless it is run again.
        outcome: ToolOutcome,
        /// The time that the call ran, in milliseconds.
        duration_ms: u64,
        /// The access that the sandbox seems to have stopped, if a person may let the call run outside.
        sandbox_denial: Option<String>,
        /// The reason why the turn ends after the calls of this answer.
        stop_after: Option<String>,
    },
    /// The requested wait is over.
    TimerOver(Timer),
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
        /// The last words of the model.
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
    /// Settle the call that [`Effect::CallModel`] has begun, with the usage that its provider has reported. Each call
    /// is settled once.
    Settle(Option<Usage>),
    /// Find another arm after a failure; [`Input::Moved`] or [`Input::Stayed`].
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
    /// Ask for a summary; [`Input::CompactionBegun`], [`Input::Compacted`].
    Compact(CompactionRequest),
    /// Compare the ways to go; [`Input::Conferred`].
    Confer,
    /// Say how the work of the turn is checked, which would end like this; [`Input::Found`],
    /// [`Input::Prove`] or [`Input::Checked`].
    Check(Outcome),
    /// Ask a reviewer; [`Input::Found`].
    Review,
    /// Draw the conclusion; [`Input::Checked`].
    Conclude {
        /// The finding of the check.
        finding: Finding,
        /// The turn has rounds left, so that another arm may continue it.
        may_continue: bool,
    },
    /// Stop waiting for an arm, room, a summary, a comparison or a review.
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
    /// Run a call of the model; [`Input::ToolEnded`].
    RunTool(ToolCall),
    /// Run one of the project's checks; [`Input::ToolEnded`].
    RunCheck(ToolCall),
    /// Judge no more and ask running calls to stop.
    StopTools,
    /// Stop what still runs, at once.
    AbortTools,
    /// Report [`Input::TimerOver`] after this long; `None`: not any more.
    SetTimer(Option<(Timer, Duration)>),
    /// Tell the front ends.
    Emit(Event),
}
