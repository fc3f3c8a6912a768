//! Commands and events between front ends and a session. The same types go over a socket as JSON.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};

mod answer;
mod attempt;
mod command_end;
mod context;
mod notice;
mod outcome;
mod routing;
mod step;

pub use self::{
    answer::{Inquiry, NotableChange, PermissionAnswer, Scope},
    attempt::{AttemptLimit, describe_attempt},
    command_end::{CommandEnd, TrialEnd},
    context::{ContextUse, Fullness},
    notice::NoticeLevel,
    outcome::Outcome,
    routing::Routing,
    step::{SideStep, SideWork, StepTurn},
};
use crate::{
    error::ProviderError,
    info::{Choice, SessionInfo},
    json::RawJson,
    message::{CallId, Content, Message, ModelRef, ToolCall, ToolResult},
    plan::PlanStep,
    thinking::ThinkingMode,
    usage::Usage,
};

/// Life of a session. `Idle ⇄ Active`, `Active → Cancelling → Idle`, everything `→ Closed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Waits for input.
    #[default]
    Idle,
    /// A turn is running.
    Active,
    /// A turn is being stopped.
    Cancelling,
    /// Ended; accepts no more commands.
    Closed,
}

/// Which tools need approval before they run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PermissionMode {
    /// Ask for everything.
    Default,
    /// Reading and editing run, everything else asks.
    #[serde(alias = "acceptEdits")]
    AcceptEdits,
    /// Reading runs, everything else asks.
    #[default]
    Auto,
    /// Reading runs, nothing else does.
    Plan,
    /// Nothing runs.
    Deny,
    /// Everything runs.
    Bypass,
}

impl PermissionMode {
    /// All modes, in the order they are listed to people.
    pub const ALL: [Self; 6] =
        [Self::Default, Self::AcceptEdits, Self::Auto, Self::Plan, Self::Deny, Self::Bypass];

    /// The mode's name in configuration and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "accept_edits",
            Self::Auto => "auto",
            Self::Plan => "plan",
            Self::Deny => "deny",
            Self::Bypass => "bypass",
        }
    }

    /// The mode's name as people read it.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::AcceptEdits => "accept edits",
            mode => mode.name(),
        }
    }
}

impl fmt::Display for PermissionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no permission mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown permission mode `{name}`; the modes are {}",
    PermissionMode::ALL.map(PermissionMode::name).join(", ")
)]
pub struct PermissionModeError {
    /// The name.
    pub name: String,
}

impl FromStr for PermissionMode {
    type Err = PermissionModeError;

    fn from_str(text: &str) -> Result<Self, PermissionModeError> {
        // As lenient as the configuration: `accept-edits`, `acceptEdits` and `Plan` are meant.
        let letters = |name: &str| name.replace(['-', '_', ' '], "").to_lowercase();
        let is_named = |mode: &Self| letters(mode.name()) == letters(text);
        let mode = Self::ALL.into_iter().find(is_named);
        mode.ok_or_else(|| PermissionModeError { name: text.to_owned() })
    }
}

/// What a front end may send to a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Say something. While a turn runs it is delivered at the next safe boundary.
    Send {
        /// Text and images; not empty.
        content: Vec<Content>,
    },
    /// Replace the messages that were sent while a turn runs and are not delivered yet. Nothing
    /// changes if those are no longer `was`.
    EditQueue {
        /// The contents of those that are replaced, as [`Event::Queued`] last reported them.
        was: Vec<Vec<Content>>,
        /// Their contents, the next first; empty to remove all.
        queue: Vec<Vec<Content>>,
    },
    /// Answer a permission question.
    Answer {
        /// The call that was asked about.
        call: CallId,
        /// The answer.
        answer: PermissionAnswer,
    },
    /// Change the permission mode, from the next call on.
    SetMode {
        /// The new mode.
        mode: PermissionMode,
    },
    /// Change how much models think, from the next call on; `None` leaves it to the settings of each.
    SetThinking {
        /// How much.
        thinking: Option<ThinkingMode>,
    },
    /// Use only this arm from the next turn on; `None` lets the router choose again.
    Pin {
        /// The arm.
        arm: Option<ModelRef>,
    },
    /// Say whether the last turn's work was right; the router learns from it.
    Rate {
        /// The work was right.
        good: bool,
    },
    /// Replace the conversation so far with a summary. Only between turns.
    Compact {
        /// What the summary should focus on; may be empty.
        focus: String,
    },
    /// Replace the summary with another text. Only between turns.
    EditSummary {
        /// The words.
        summary: String,
    },
    /// Undo the last compaction. Only between turns.
    UndoCompaction,
    /// Run a step of a task as a turn of its own, once no other turn runs. [`Command::Cancel`] discards a step that
    /// waits.
    RunStep(StepTurn),
    /// Tell the person's notification hooks of something.
    Notify {
        /// A sentence.
        text: String,
    },
    /// Stop the running turn and keep its work.
    Cancel,
    /// End the session; a running turn is cancelled first.
    Close,
}

/// What a session sends to its front ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The session exists. The first event.
    Started {
        /// The session's id.
        session: String,
        /// Folder the tools work in.
        cwd: String,
        /// Names of the tools on offer.
        tools: Vec<String>,
        /// Permission mode.
        mode: PermissionMode,
        /// Messages of the conversation that continues; 0 for a new one.
        #[serde(default)]
        messages: u64,
    },
    /// Facts about the session that front ends show; sent again when they change.
    Info(Box<SessionInfo>),
    /// The models that can be chosen, as far as they are known; sent again when more are found.
    Models {
        /// The models.
        models: Vec<Choice>,
    },
    /// The session moved to another state.
    State(SessionState),
    /// The permission mode has changed.
    ModeChanged {
        /// The new mode.
        mode: PermissionMode,
    },
    /// How much models think has changed; also sent at the beginning if it was set.
    ThinkingChanged {
        /// How much; `None`: as the settings of each have it.
        thinking: Option<ThinkingMode>,
    },
    /// The plan of the work has changed; also sent at the beginning if the conversation has one.
    PlanChanged {
        /// Its steps; empty if there is no plan any more.
        steps: Vec<PlanStep>,
    },
    /// The messages that were sent while a turn runs and are not delivered yet have changed.
    Queued {
        /// Their contents, the next first.
        queue: Vec<Vec<Content>>,
    },
    /// A model is about to be called.
    RoundStarted {
        /// Number of the round within the turn, from 1.
        round: u32,
        /// Who is called.
        arm: ModelRef,
        /// Why this one, in one line.
        why: String,
    },
    /// A turn was routed: once per turn, before its first round.
    Routed(Box<Routing>),
    /// The arm that was called failed, and another continues with the same history.
    ArmChanged {
        /// The arm that failed.
        from: ModelRef,
        /// The arm that continues.
        to: ModelRef,
        /// Why, in one line.
        why: String,
        /// Text and thinking of the broken answer were shown and no longer count.
        retracted: bool,
    },
    /// Several arms were asked the same, and one answer was chosen.
    Conferred {
        /// Who answered.
        members: Vec<ModelRef>,
        /// Who judged the answers or combined them into one; `None` if nobody did, so the first was
        /// chosen.
        chair: Option<ModelRef>,
        /// Whose answer was chosen.
        author: ModelRef,
    },
    /// A check of the turn's work begins, which may take long.
    Checking {
        /// Whose work.
        arm: ModelRef,
        /// Who or what checks: commands, or an arm.
        by: String,
    },
    /// The work of the turn was checked before it is delivered.
    Checked {
        /// Whose work.
        arm: ModelRef,
        /// Who or what checked: a command, or an arm.
        by: String,
        /// It passed.
        passed: bool,
        /// What was found, in a few lines.
        evidence: String,
    },
    /// What a model call cost.
    Cost {
        /// Who was called.
        arm: ModelRef,
        /// The call, in micro-dollars; `None` if its price is not known.
        call_micro_usd: Option<u64>,
        /// All calls of the turn whose price is known.
        turn_micro_usd: u64,
        /// All calls of the session whose price is known, since it was opened.
        session_micro_usd: u64,
        /// The provider reported no tokens: these are gnoma's own estimate. The sums include them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        estimated: bool,
    },
    /// From now on, models get a summary instead of the conversation before this point.
    Compacted {
        /// The words.
        summary: String,
        /// Messages it stands for.
        messages: usize,
    },
    /// A compaction was undone.
    Uncompacted {
        /// The summary before it, which counts again; `None` if models get everything again.
        summary: Option<String>,
        /// Messages that it stands for.
        messages: usize,
    },
    /// How full the context window is has changed.
    Context(ContextUse),
    /// More of the answer's text.
    Text {
        /// The new piece.
        text: String,
    },
    /// More of the visible reasoning.
    Thinking {
        /// The new piece.
        text: String,
    },
    /// The model has begun to write a call.
    ToolCallDrafted {
        /// The id that the call will have in its message.
        call: CallId,
        /// Name of the tool.
        name: String,
    },
    /// More of the arguments of a call that the model writes.
    ToolCallDelta {
        /// The id that the call will have in its message.
        call: CallId,
        /// JSON text, cut anywhere.
        fragment: String,
    },
    /// A message has been added to the history.
    Appended(Arc<Message>),
    /// A call waits for a person; answer with [`Command::Answer`].
    PermissionAsked {
        /// What would run.
        call: ToolCall,
        /// Why it needs approval, in one line.
        reason: String,
        /// What it would change, as a unified diff.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        preview: Option<String>,
        /// The rule that [`PermissionAnswer::Always`] would add, as people write it; `None` if a
        /// single answer must not cover later calls.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        always: Option<String>,
        /// The reason is a question of the model's, to be answered with
        /// [`PermissionAnswer::Text`]; nothing would run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inquiry: Option<Inquiry>,
        /// The running call that asks, if the question comes up in the middle of one. Then `call`
        /// has an id of its own, under which it is answered and nothing runs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        during: Option<CallId>,
        /// What the call has changed on trial, if [`PermissionAnswer::Part`] may name some of it;
        /// empty for
        /// every other question.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<String>,
        /// Of these what a person must see by name before a yes, the most important first. A yes to all
        /// keeps nothing that would always need approval and is not among them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notable: Vec<NotableChange>,
        /// The parts of the reason that say what is lost, what leaves the machine, and what is not what it seems:
        /// each is in the reason word for word, and front ends make it stand out.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        dangers: Vec<String>,
    },
    /// A call was allowed or refused.
    PermissionDecided {
        /// The call.
        call: CallId,
        /// It may run.
        allowed: bool,
        /// Which rule, mode or person decided, in one line.
        reason: String,
    },
    /// A call has started to run.
    ToolStarted {
        /// The call.
        call: ToolCall,
    },
    /// A running call has produced output.
    ToolProgress {
        /// The call.
        call: CallId,
        /// New output.
        text: String,
    },
    /// A call is over: it has run, was refused or was stopped.
    ToolEnded {
        /// The whole call, with its arguments.
        call: ToolCall,
        /// What the model will be told.
        result: ToolResult,
        /// What it changed, as a unified diff.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        diff: Option<String>,
        /// How long it ran.
        duration_ms: u64,
        /// How its command ended, if it ran one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<CommandEnd>,
    },
    /// Tokens of the round that just ended.
    Usage {
        /// This round.
        round: Usage,
        /// The turn so far.
        turn: Usage,
    },
    /// A model call failed and is tried again after a wait.
    Retrying {
        /// What failed.
        error: ProviderError,
        /// Number of the attempt that follows, from 2.
        attempt: u32,
        /// How long the wait is.
        wait_ms: u64,
        /// Text and thinking of the broken answer were shown and count no more.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        retracted: bool,
        /// What limits the attempts; older servers do not tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<AttemptLimit>,
    },
    /// No part of an answer has arrived for some time.
    Waiting {
        /// Who is waited for.
        arm: ModelRef,
        /// Since when, in milliseconds before this event.
        waited_ms: u64,
        /// When the call times out if nothing arrives, in milliseconds after its start or its last
        /// sign of life.
        limit_ms: u64,
    },
    /// The output limit cut an answer off, and the model is asked to continue. Comes before the
    /// message that was cut off.
    Continuing {
        /// How often that has happened in the turn, from 1.
        time: u32,
        /// How often at most.
        most: u32,
        /// The next message continues in mid-sentence: the texts belong together. Otherwise a call
        /// was cut off, and it starts over.
        joins: bool,
    },
    /// Something people should know.
    Notice {
        /// How loud.
        level: NoticeLevel,
        /// A sentence.
        text: String,
    },
    /// The turn is over; the session is idle again.
    TurnEnded {
        /// How the turn ended.
        outcome: Outcome,
        /// Model calls it took.
        rounds: u32,
        /// Tokens it took.
        usage: Usage,
        /// Messages that were sent while it ran and could not be delivered: they go back to the
        /// person.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        undelivered: Vec<Arc<Message>>,
        /// The answer, if the session has a form for it ([`SessionSpec::answer_schema`]) and one
        /// matched.
        ///
        /// [`SessionSpec::answer_schema`]: crate::protocol::SessionSpec::answer_schema
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<RawJson>,
    },
    /// Something that this version does not know: the host is newer than the client.
    Unknown,
}
