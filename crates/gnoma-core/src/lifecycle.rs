//! Points in a session's life at which hooks, commands and skills run.
//!
//! The engine says where a session stands and takes an answer; who answers, and how, it does not know.
//! An answer can hold something back, make it stricter or add words. Nothing in it permits anything: a
//! call whose arguments were changed is judged like any other.

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use serde_json::Value;

use crate::{
    duration,
    error::ProviderError,
    json::RawJson,
    message::{Message, ModelRef, ToolCall},
    session::{Event, PermissionMode},
    tool::{BoxFuture, SpawnError, ToolOutcome},
};

/// A point in a session's life.
#[derive(Clone, Debug, PartialEq)]
pub enum Point {
    /// The session begins. The answer's text is sent with the first message.
    SessionStart {
        /// True if the session continues an earlier conversation.
        is_resumed: bool,
    },
    /// The session has ended.
    SessionEnd,
    /// A person has said something; a block drops it.
    Prompt {
        /// As it was written.
        text: String,
    },
    /// A call is about to be judged; a block refuses it.
    BeforeTool {
        /// The call as the model wrote it.
        call: ToolCall,
    },
    /// A call has run.
    AfterTool {
        /// The call that has run.
        call: ToolCall,
        /// The outcome of the call.
        outcome: Arc<ToolOutcome>,
        /// The run time of the call, in milliseconds.
        duration_ms: u64,
    },
    /// A person is about to be asked about a call; a block refuses it.
    PermissionAsked {
        /// The call that needs approval.
        call: ToolCall,
        /// The reason why the person is asked.
        reason: String,
    },
    /// A call was refused. Nothing is done with the answer.
    PermissionDenied {
        /// The call that was refused.
        call: ToolCall,
        /// The reason of the refusal.
        reason: String,
    },
    /// The conversation is about to be compacted; a block leaves it as it is.
    BeforeCompaction {
        /// A person asked for it; otherwise the window is full.
        is_asked: bool,
        /// The topic that the summary should dwell on.
        focus: String,
    },
    /// The conversation was compacted. Nothing is done with the answer.
    AfterCompaction {
        /// The summary that replaces the conversation.
        summary: String,
    },
    /// The model is done; a block tells it to continue.
    BeforeStop {
        /// True if the model was already told to continue in this turn.
        is_again: bool,
        /// The last words of the model.
        last_words: String,
    },
    /// A message that something waits for a person. The session ignores the answer.
    Notification {
        /// The message, in one line.
        text: String,
    },
    /// Another model was chosen. Nothing is done with the answer.
    ModelSwitched {
        /// The model; empty if gnoma chooses.
        to: String,
    },
    /// A tool is about to start a session; a block prevents that.
    ChildStart {
        /// The id of the new session; empty if it is not known yet.
        id: String,
        /// The agent that it works as, or else its name; may be empty.
        name: String,
        /// The task of the new session.
        task: String,
    },
    /// A session that a tool started has ended. Nothing is done with the answer.
    ChildStop {
        /// The id of the session; empty if it never had one.
        id: String,
        /// The agent that it works as, else what it is called; may be empty.
        name: String,
        /// The last words of the session, or the reason why there are none.
        last_words: String,
    },
}

/// The points by their names alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PointKind {
    /// A session begins: [`Point::SessionStart`].
    SessionStart,
    /// A session ends: [`Point::SessionEnd`].
    SessionEnd,
    /// A person has sent a prompt: [`Point::Prompt`].
    Prompt,
    /// A call is about to be judged: [`Point::BeforeTool`].
    BeforeTool,
    /// A call has worked: [`Point::AfterTool`].
    AfterTool,
    /// A call has failed: [`Point::AfterTool`].
    ToolFailed,
    /// A person is about to be asked: [`Point::PermissionAsked`].
    PermissionAsked,
    /// A call was denied: [`Point::PermissionDenied`].
    PermissionDenied,
    /// The conversation is about to be compacted: [`Point::BeforeCompaction`].
    BeforeCompaction,
    /// The conversation was compacted: [`Point::AfterCompaction`].
    AfterCompaction,
    /// The model is done: [`Point::BeforeStop`].
    BeforeStop,
    /// A person is notified: [`Point::Notification`].
    Notification,
    /// Another model was chosen: [`Point::ModelSwitched`].
    ModelSwitched,
    /// A tool is about to start a session: [`Point::ChildStart`].
    ChildStart,
    /// A session that a tool started has ended: [`Point::ChildStop`].
    ChildStop,
}

impl Point {
    /// Returns the kind of the point.
    #[must_use]
    pub fn kind(&self) -> PointKind {
        match self {
            Self::SessionStart { .. } => PointKind::SessionStart,
            Self::SessionEnd => PointKind::SessionEnd,
            Self::Prompt { .. } => PointKind::Prompt,
            Self::BeforeTool { .. } => PointKind::BeforeTool,
            Self::AfterTool { outcome, .. } => match **outcome {
                ToolOutcome::Done(_) => PointKind::AfterTool,
                ToolOutcome::Failed(_) | ToolOutcome::Denied(_) | ToolOutcome::Interrupted(_) => {
                    PointKind::ToolFailed
                }
            },
            Self::PermissionAsked { .. } => PointKind::PermissionAsked,
            Self::PermissionDenied { .. } => PointKind::PermissionDenied,
            Self::BeforeCompaction { .. } => PointKind::BeforeCompaction,
            Self::AfterCompaction { .. } => PointKind::AfterCompaction,
            Self::BeforeStop { .. } => PointKind::BeforeStop,
            Self::Notification { .. } => PointKind::Notification,
            Self::ModelSwitched { .. } => PointKind::ModelSwitched,
            Self::ChildStart { .. } => PointKind::ChildStart,
            Self::ChildStop { .. } => PointKind::ChildStop,
        }
    }

    /// The call that it is about.
    #[must_use]
    pub fn tool_call(&self) -> Option<&ToolCall> {
        match self {
            Self::BeforeTool { call }
            | Self::AfterTool { call, .. }
            | Self::PermissionAsked { call, .. }
            | Self::PermissionDenied { call, .. } => Some(call),
            Self::SessionStart { .. }
            | Self::SessionEnd
            | Self::Prompt { .. }
            | Self::BeforeCompaction { .. }
            | Self::AfterCompaction { .. }
            | Self::BeforeStop { .. }
            | Self::Notification { .. }
            | Self::ModelSwitched { .. }
            | Self::ChildStart { .. }
            | Self::ChildStop { .. } => None,
        }
    }
}

/// The answer of extensions at a point. The default changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PointAnswer {
    /// The reason why the action that was about to happen does not happen. After a tool it has already happened,
    /// and the model is told the reason.
    pub block: Option<String>,
    /// Before a tool: why a person is asked even if nobody would be.
    pub ask: Option<String>,
    /// Before a tool, or before a person is asked about it: it runs with these arguments, if that is
    /// allowed.
    pub arguments: Option<RawJson>,
    /// After a tool: the model reads this instead of the tool's output.
    pub output: Option<String>,
    /// The additional texts for the model.
    pub context: Vec<String>,
    /// The reason why the turn ends after the calls of this answer.
    pub stop: Option<String>,
    /// The messages for people.
    pub notices: Vec<String>,
}

/// A part of a person's message, while it is prepared for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptPart {
    /// A piece of plain text.
    Text(String),
    /// A shell command, judged like any other; what it prints takes its place.
    Command(String),
}

/// A call that is made with a message once it is whole; what comes of it takes the place of its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptCall {
    /// The name of the tool.
    pub tool: String,
    /// The arguments of the call.
    pub arguments: Value,
    /// The place in the arguments where the words go: a JSON pointer to a text.
    pub words: &'static str,
    /// The text in front of the result of the call.
    pub done: String,
    /// The text in front of the reason why there is no result.
    pub failed: String,
}

/// The result of preparing a person's message for the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreparedPrompt {
    /// The reason why the message does not reach the model.
    pub block: Option<String>,
    /// The parts that replace the text of the message; `None` if the text stays.
    pub parts: Option<Vec<PromptPart>>,
    /// The call that is made with the parts.
    pub call: Option<PromptCall>,
    /// For the model, besides.
    pub context: Vec<String>,
    /// The turn may use only these tools, in addition to all other limits: names or globs of tools,
    /// or rules such as `bash(git *)`.
    pub tools: Option<Vec<String>>,
    /// The model that is wanted for it.
    pub model: Option<String>,
    /// The messages for people.
    pub notices: Vec<String>,
}

impl PreparedPrompt {
    /// The text that the model gets: the replacement of `text`, or else `text`.
    #[must_use]
    pub fn model_text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(parts) = &self.parts else { return Cow::Borrowed(text) };
        let word = |part: &PromptPart| match part {
            PromptPart::Text(text) | PromptPart::Command(text) => text.clone(),
        };
        Cow::Owned(parts.iter().map(word).collect())
    }
}

/// A question to a model beside the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideQuestion {
    /// The instructions for the model.
    pub system: String,
    /// The text of the question.
    pub text: String,
    /// The model that is wanted: `provider/model`, the model, or a word of its name; else the one for
    /// small things, or the one that answered last.
    pub model: Option<String>,
    /// True if the model may read the project's files before it answers.
    pub may_look: bool,
    /// The time to wait for the answer.
    pub patience: Duration,
}

/// Calls models on behalf of a session's extensions: paid, guarded and limited like all its calls.
pub trait SideModel: Send + Sync {
    /// True if it can ask a model that looks at files first. A side model of a session that another session started
    /// cannot.
    fn can_look(&self) -> bool;

    /// Asks, and returns the whole answer. Dropping the future ends it.
    fn ask(&self, question: SideQuestion) -> BoxFuture<'static, Result<String, SideQuestionError>>;
}

/// A side question that has no answer.
#[derive(thiserror::Error)]
pub enum SideQuestionError {
    /// Too many side questions run already.
    #[error("too many are already running")]
    TooMany,
    /// The session has no model that can be asked.
    #[error("no model can be asked now")]
    NoModel,
    /// The session has no model of the wanted name, or it is unavailable.
    #[error("the model `{0}` is unavailable, or not one of this session's")]
    UnknownModel(String),
    /// All models that were asked failed.
    #[error("{}", join_failures(.0))]
    AllFailed(Vec<(ModelRef, ProviderError)>),
    /// The session that would look at files cannot be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The question was cancelled.
    #[error("it was cancelled")]
    Cancelled,
    /// The session that looked at files failed, for this reason.
    #[error("{0}")]
    ChildFailed(String),
    /// The session has ended.
    #[error("the session is over")]
    SessionOver,
    /// The answer took longer than this.
    #[error("no answer within {}", duration::format_duration(*.0))]
    Late(Duration),
}

crate::debug_as_display!(SideQuestionError);

fn join_failures(failures: &[(ModelRef, ProviderError)]) -> String {
    let lines = failures.iter().map(|(arm, error)| format!("{arm}: {error}"));
    lines.collect::<Vec<_>>().join("; ")
}

impl fmt::Debug for dyn SideModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SideModel")
    }
}

/// A session's extensions, as the session sees them.
pub trait Lifecycle: Send + Sync {
    /// True if an extension listens at such a point. If none does, no extension is asked and nothing is spent.
    fn has_listener(&self, kind: PointKind) -> bool;

    /// Asks everybody who listens. Dropping the future ends what it has started.
    fn run_hooks(&self, point: Point, mode: PermissionMode) -> BoxFuture<'static, PointAnswer>;

    /// Prepares what a person said. `starter`: the tool that starts sessions, where there is one. Dropping the
    /// future ends what it has started.
    fn prepare_prompt(
        &self,
        text: String,
        mode: PermissionMode,
        starter: Option<String>,
    ) -> BoxFuture<'static, PreparedPrompt>;

    /// Further limits on the tools of the running turn, from what was used in it; see
    /// [`PreparedPrompt::tools`].
    fn held_to(&self) -> Option<Arc<[String]>>;

    /// Texts that stay in the conversation when it is compacted, besides the summary.
    fn retained_texts(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the names of the skills that the running turn has used.
    fn used_skills(&self) -> Vec<String> {
        Vec::new()
    }

    /// The session continues with the earlier conversation, as models get it. Called once, before
    /// any point.
    fn on_resume(&self, _history: &[Arc<Message>]) {}

    /// Hears what happens in the session, as front ends do. Must not wait.
    fn on_event(&self, _event: &Event) {}

    /// The session lends its models. Called once, before any point.
    fn set_side_model(&self, _model: Arc<dyn SideModel>) {}

    /// The hooks with where they come from and how they ran last, a line each, for people.
    fn hooks_told(&self) -> Vec<String>;

    /// A turn has ended, and with it the limits for it.
    fn turn_ended(&self);
}

impl fmt::Debug for dyn Lifecycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lifecycle")
    }
}
