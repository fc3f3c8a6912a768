//! The inputs of the turn machine.

use std::{fmt, sync::Arc};

use gnoma_core::{
    Content, Message, Tool, ToolCall, ToolOutcome, ToolSpec, Usage,
    lifecycle::{PointAnswer, PreparedPrompt},
    message::CallId,
    session::PermissionAnswer,
};

use crate::{call::CallInput, compaction::CompactionInput, routing::verify::Finding};

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

/// Work that is a turn of its own, and that no model answers.
#[derive(Clone, Debug)]
pub(crate) enum SeparateWork {
    /// A person runs a command.
    Command(StepCommand),
    /// Steps of a task run side by side.
    SideSteps(Vec<SideCall>),
    /// The project's checks run although there was no message: the files differ from what the last turn left.
    Checks(Checks),
}

/// What a person wants of the summary that models receive in place of the beginning of the conversation.
#[derive(Clone, Debug)]
pub(crate) enum SummaryCommand {
    /// The conversation is compacted; the summary should dwell on `focus`.
    Compact { focus: String },
    /// Other words take the place of the summary.
    Edit { summary: String },
    /// The last compaction is undone.
    Undo,
}

/// Facts for a turn whose model is done.
#[derive(Clone, Debug)]
pub(crate) enum FinishInput {
    /// The approaches were compared; the note is for the model.
    Conferred { note: String },
    /// The answer of the extensions to the question whether the turn may end.
    MayStop(Box<PointAnswer>),
    /// The project's checks are to be run.
    Prove(Checks),
    /// The work was checked.
    Found(Finding),
    /// The consequence of the check of the work.
    Checked(WorkCheckOutcome),
}

/// Facts that have happened; only the driver makes them.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    /// A person said something.
    Say(Message),
    /// The messages `now` take the place of those that wait to be delivered, if those are `was` still.
    Queue { was: Vec<Vec<Content>>, now: Vec<Message> },
    /// Work of its own begins, if no turn runs.
    Run(SeparateWork),
    /// A person wants the conversation compacted, its summary changed or the compaction undone.
    Summary(SummaryCommand),
    /// A person cancelled the running work.
    Cancel,
    /// The session ends: what runs is cancelled and nothing begins any more.
    Close,
    /// Everything that belongs to the session has ended.
    Closed,
    /// These tools are on offer from now on, and some of them may start sessions.
    SetTools(Vec<Arc<ToolSpec>>, SpawningTools),
    /// The model receives this with its next call, in this turn or a later one.
    News(String),
    /// A call beside the conversation has used tokens.
    SideUsage(Usage),
    /// The message is prepared; with it the tool that runs commands.
    Prepared(Box<PreparedPrompt>, String),
    /// A fact for the call to a model.
    Call(CallInput),
    /// A fact for the compaction that is under way.
    Compaction(CompactionInput),
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
    /// A fact for a turn whose model is done.
    Finish(FinishInput),
    /// Calls that still run have had their time to stop.
    GraceOver,
}

impl From<CallInput> for Input {
    fn from(input: CallInput) -> Self {
        Self::Call(input)
    }
}

impl From<CompactionInput> for Input {
    fn from(input: CompactionInput) -> Self {
        Self::Compaction(input)
    }
}

impl From<FinishInput> for Input {
    fn from(input: FinishInput) -> Self {
        Self::Finish(input)
    }
}

/// Tools that only read, but may have a call that starts a session, which does whatever that one does.
#[derive(Clone, Default)]
pub(crate) struct SpawningTools(pub(crate) Vec<Arc<dyn Tool>>);

impl fmt::Debug for SpawningTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MayStart").field(&self.0.len()).finish()
    }
}

impl SpawningTools {
    pub(super) fn starts_session(&self, call: &ToolCall) -> bool {
        let tool = self.0.iter().find(|tool| tool.spec().name == call.name);
        tool.is_some_and(|tool| tool.start_arguments(call).is_some())
    }
}
