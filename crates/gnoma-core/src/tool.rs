//! What a tool is: a description for the model, facts for the guard, and one function.

use std::{path::PathBuf, sync::Arc};

mod child;
mod editor;
mod label;
mod port;

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use self::{
    child::{
        ChildControl, ChildEnd, ChildHandle, ChildLink, ChildMerge, ChildResult, ChildState,
        ChildStatus, ChildTask, Isolation, MAX_CHILD_MESSAGES, SpawnError,
    },
    editor::OpenFiles,
    label::{approval_question, split_mcp_name, tool_label},
    port::{BoxFuture, Budget, CallSpans, Parent, Question, Spawner, ToolEvent, ToolSession},
};
use crate::{
    json::RawJson,
    message::{CallId, ResultPart, ToolCall, ToolResult},
    session::{CommandEnd, PermissionAnswer, TrialEnd},
};

/// What a tool can change; decides whether it needs approval before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Reads only; calls may run side by side.
    Read,
    /// Changes files in a way that can be shown as a diff.
    Edit,
    /// May do anything.
    Execute,
}

/// An argument that names something the tool touches, so that the guard can judge without knowing the
/// tool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TouchedResource {
    /// The named argument is a path; without it the call works in the working folder.
    Path(Arc<str>),
    /// The named argument is a shell command.
    Command(Arc<str>),
    /// The named argument is a URL.
    Url(Arc<str>),
    /// The named argument says what is done with something of gnoma's own; with these values the
    /// call only reads.
    Action(Arc<str>, Arc<[Arc<str>]>),
}

impl TouchedResource {
    /// The argument that is a path.
    pub fn path(argument: impl Into<Arc<str>>) -> Self {
        Self::Path(argument.into())
    }

    /// The argument that is a shell command.
    pub fn command(argument: impl Into<Arc<str>>) -> Self {
        Self::Command(argument.into())
    }

    /// The argument that is a URL.
    pub fn url(argument: impl Into<Arc<str>>) -> Self {
        Self::Url(argument.into())
    }

    /// The argument that says what is done; with the values `looks` the call only looks.
    pub fn action<'l>(
        argument: impl Into<Arc<str>>,
        looks: impl IntoIterator<Item = &'l str>,
    ) -> Self {
        Self::Action(argument.into(), looks.into_iter().map(Arc::from).collect())
    }

    /// The argument that names it.
    #[must_use]
    pub fn argument(&self) -> &str {
        match self {
            Self::Path(argument)
            | Self::Command(argument)
            | Self::Url(argument)
            | Self::Action(argument, _) => argument,
        }
    }
}

/// What a tool is, for those who need to know. Its name says nothing about that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// Runs the shell command in its argument `command`; the project's checks run with it too.
    Shell,
    /// Puts texts of its arguments into files as they are.
    WritesFiles,
    /// Reads stored results back by handle (argument `id`), from an offset (`from`) or by `pattern`.
    ReadsResults,
    /// Asks the person a question and does nothing else, so it needs no approval.
    AsksPerson,
    /// Starts sessions and exchanges messages with them. Each call of such a session is judged
    /// separately, with no more rights than its parent has, so starting one needs no approval.
    StartsSessions,
    /// Sets the plan of the work that people see (argument `steps`) and does nothing else.
    Plans,
    /// A step that another program's agent takes on its own within its sandbox: it begins a turn,
    /// or reports what it has done. There is nothing to approve, and no model is offered it.
    AgentStep,
    /// Something that another program does itself, such as what its agent asks for. It is judged as the tool that does
    /// the same ([`Tool::judged_as`]) but never tried first, and no model is offered it.
    AgentRequest,
    /// Anything else.
    #[default]
    Other,
}

impl ToolKind {
    /// Whether it exists only for another program's agent.
    #[must_use]
    pub fn is_of_agent(self) -> bool {
        matches!(self, Self::AgentStep | Self::AgentRequest)
    }
}

/// The tool set a spec belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Also offered to models with a small window.
    Lean,
    /// Offered if the window is large enough.
    Full,
}

/// What the model and the guard are told about a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSpec {
    /// Our name, such as `fs.read`. Adapters map it to what their wire allows.
    pub name: String,
    /// For the model.
    pub description: String,
    /// JSON Schema of the arguments, sent unchanged.
    pub parameters: RawJson,
    /// What it can change.
    pub access: Access,
    /// What it touches; empty if it does not say, or touches nothing outside gnoma.
    pub touches: Arc<[TouchedResource]>,
    /// What it is.
    pub kind: ToolKind,
    /// The set it belongs to.
    pub tier: Tier,
}

/// Whether a rule such as `bash(git *)`, `fs.*` or `fs.read` is about the tool of that name.
#[must_use]
pub fn is_about(rule: &str, tool: &str) -> bool {
    let named = rule.split_once('(').map_or(rule, |(name, _)| name).trim();
    match named.strip_suffix('*') {
        Some(begin) => tool.starts_with(begin),
        None => tool == named,
    }
}

/// How a command that a tool ran ended; the engine remembers failed checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandReport {
    /// The command as it was run.
    pub command: String,
    /// Exit code; `None` when a signal or a time-out ended it.
    pub exit_code: Option<i32>,
    /// What the sandbox seems to have blocked, in one sentence; a person may run it outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walled: Option<String>,
    /// What happened to its changes, if it ran on trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<TrialEnd>,
}

impl CommandReport {
    /// Returns how the command ended, as those who watch are told.
    #[must_use]
    pub fn to_end(&self) -> CommandEnd {
        CommandEnd { exit_code: self.exit_code, trial: self.trial }
    }
}

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ToolOutcome {
    /// It worked.
    Done(ToolOutput),
    /// It failed; the text tells the model why and what to try.
    Failed(ToolOutput),
    /// It was not allowed to run.
    Denied(String),
    /// It was cancelled before it ended; its output until then.
    Interrupted(String),
}

/// What a tool returns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolOutput {
    /// For the model.
    pub parts: Vec<ResultPart>,
    /// For people: a unified diff of what changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// How the command ended, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<CommandReport>,
}

impl ToolOutput {
    /// Output that is one text.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self { parts: vec![ResultPart::Text { text: text.into() }], diff: None, report: None }
    }
}

/// The end of the result of a call that was stopped.
pub const INTERRUPTED: &str = "[interrupted before it ended]";
/// The result of a call that had not begun when the turn was stopped.
pub const NOT_RUN: &str = "[not run: the user stopped the turn before it began]";

impl ToolOutcome {
    /// Success with one text.
    pub fn success_text(text: impl Into<String>) -> Self {
        Self::Done(ToolOutput::from_text(text))
    }

    /// Failure with one text.
    pub fn failure_text(text: impl Into<String>) -> Self {
        Self::Failed(ToolOutput::from_text(text))
    }

    /// The result for the history. Texts are made non-empty: some wires refuse an empty result.
    #[must_use]
    pub fn into_result(self, call: &ToolCall) -> ToolResult {
        let (mut parts, is_error) = match self {
            Self::Done(output) => (output.parts, false),
            Self::Failed(output) => (output.parts, true),
            Self::Denied(why) => {
                (vec![ResultPart::Text { text: format!("permission denied: {why}") }], true)
            }
            Self::Interrupted(so_far) => {
                let mut text = so_far;
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(INTERRUPTED);
                (vec![ResultPart::Text { text }], true)
            }
        };
        parts.retain(|part| !matches!(part, ResultPart::Text { text } if text.is_empty()));
        if parts.is_empty() {
            parts.push(ResultPart::Text { text: "(no output)".to_owned() });
        }
        ToolResult { call_id: call.id.clone(), name: call.name.clone(), parts, is_error }
    }
}

/// A piece of output of a tool that is still running, for people to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The call it belongs to.
    pub call: CallId,
    /// New output.
    pub text: String,
}

/// What one call may reach beyond the workspace, as decided. The default is nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// Paths outside the workspace that the verdict was about, links resolved. A tool that is led
    /// elsewhere refuses.
    pub paths: Vec<PathBuf>,
    /// Places outside the workspace that a command names and that anybody may read, links resolved. A command that
    /// only reads finds them, without the secrets in them.
    pub readable_by_all: Vec<PathBuf>,
    /// The file or folder that the verdict on a file tool was about, links resolved. A tool that finds another one there
    /// refuses.
    pub target: Option<PathBuf>,
    /// Paths outside the workspace that may be changed too.
    pub writable: Vec<PathBuf>,
    /// A command may use the network.
    pub network: bool,
    /// A command is believed to change nothing, and the sandbox enforces that: it writes only to
    /// temporary folders.
    pub reads_only: bool,
    /// A command runs outside the sandbox. Only a person grants this, never an argument of the
    /// call.
    pub outside: bool,
    /// git writes files of the work tree, whatever their names are: a checkout that could not write some of them would
    /// leave a tree that is neither the old nor the new one.
    pub writes_tree: bool,
    /// Running the command once more does no harm and says the same.
    pub can_repeat: bool,
    /// Whether a command asks about the machine that it runs on.
    pub machine: MachineView,
    /// A command runs on trial first: in a view of the workspace that discards its changes.
    pub trial: Option<Trial>,
}

/// What a command asks about the machine, about which a sandbox would give a wrong answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum MachineView {
    /// Nothing.
    #[default]
    None,
    /// A service that is not there: the command finds nothing where it would connect, as outside.
    Absent,
    /// What the machine's processes, sockets and mounts are: it sees them and cannot act on them.
    Shown,
    /// What only a program outside answers, or what the sandbox cannot show: it runs outside, or its answer is about
    /// the sandbox.
    Outside,
}

/// The beginning of the reason why a call runs on trial. Stored sessions recognise such a call by
/// it.
pub const ON_TRIAL: &str = "it runs on trial first";

/// How the line of a result begins that says what became of changes that were made on trial.
const TRIAL_LINE: &str = "[ran on trial; ";

/// Describes the files that a command changed on trial and that were not kept, by the result of its call, as in
/// `on trial; out.txt was not kept`; `None` if there are none.
#[must_use]
pub fn unkept_trial_changes(result: &str) -> Option<String> {
    /// After the output there are a few lines about the trial, and what a command writes must not look like one.
    const MAX_LINES_AFTER_OUTPUT: usize = 4;
    let last_lines = result.trim_end().lines().rev().take(MAX_LINES_AFTER_OUTPUT);
    let told = last_lines.filter_map(|line| line.strip_prefix(TRIAL_LINE));
    let unkept =
        told.filter(|told| !told.contains(" was kept (") && !told.contains(" were kept ("));
    let names = unkept.filter_map(|told| told.rsplit_once(" (")?.1.strip_suffix(")]")).next()?;
    let verb = if names.contains(", ") { "were" } else { "was" };
    Some(format!("on trial; {names} {verb} not kept"))
}

/// What happens to the changes of a command that ran on trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// They are discarded; later commands on trial see them as long as the session lasts.
    Discard,
    /// A person decides.
    Ask,
    /// What an edit could have done without approval is kept, and a person decides about the rest.
    KeepEdits,
}

impl Grant {
    /// Both together: everything that either allows; a command that one of them limits to reading
    /// stays limited.
    #[must_use]
    pub fn union_with(mut self, other: Self) -> Self {
        self.paths.extend(other.paths);
        self.readable_by_all.extend(other.readable_by_all);
        self.target = self.target.or(other.target);
        self.writable.extend(other.writable);
        self.network |= other.network;
        self.reads_only |= other.reads_only;
        self.outside |= other.outside;
        self.writes_tree &= other.writes_tree;
        self.can_repeat &= other.can_repeat;
        self.machine = self.machine.max(other.machine);
        self.trial = self.trial.or(other.trial);
        self
    }
}

/// What a running tool receives.
#[derive(Clone, Debug)]
pub struct ToolCx {
    /// Folder that relative paths start from.
    pub cwd: Arc<PathBuf>,
    /// Folders the session works in, links resolved; the first holds `cwd`.
    pub roots: Arc<[PathBuf]>,
    /// What this call may reach besides.
    pub grant: Grant,
    /// Cancelled when the tool must stop: it kills what it started and returns.
    pub stop: CancellationToken,
    /// Where output may be shown while it is produced. Bounded; use `try_send` and never wait on it.
    pub progress: mpsc::Sender<Progress>,
    /// A large result is put aside whole and the model reads it piece by piece: the tool need not
    /// cut it to what is read at once.
    pub stores_large_results: bool,
    /// What may still be spent.
    pub budget: Budget,
    /// The session; `None` where the tool runs without one.
    pub session: Option<Arc<dyn ToolSession>>,
    /// The span of the call, as W3C Trace Context writes it, for what the tool starts; `None` without telemetry.
    pub traceparent: Option<String>,
}

impl ToolCx {
    /// Asks a person in the middle of `call`, and waits for the answer. Where nobody can answer, or the
    /// turn is stopped first, it is [`PermissionAnswer::Deny`].
    pub async fn ask_user(&self, call: &CallId, question: Question) -> PermissionAnswer {
        match &self.session {
            Some(session) => session.ask_user(call.clone(), question).await,
            None => PermissionAnswer::Deny { reason: "there is nobody to ask".to_owned() },
        }
    }

    /// Tells people something of `call`. Never waits; where too much is told at once, some is lost.
    pub fn emit_event(&self, call: &CallId, event: ToolEvent) {
        match (event, &self.session) {
            (ToolEvent::Progress(text), _) => {
                let _full = self.progress.try_send(Progress { call: call.clone(), text });
            }
            (event, Some(session)) => session.emit_event(call.clone(), event),
            (ToolEvent::Notice { .. }, None) => (),
        }
    }

    /// What may still be spent, as it stood when the call began.
    #[must_use]
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// Starts a session on behalf of `call`, and waits for the end of its first turn, with which it
    /// ends. Dropping the future, or stopping the call, ends it too. It may do whatever its parent may,
    /// so a tool that starts sessions is one of [`Access::Execute`].
    ///
    /// # Errors
    /// Nobody here can start sessions, it could not be started, or it was stopped.
    pub async fn spawn_child(
        &self,
        call: &CallId,
        child: ChildTask,
    ) -> Result<ChildResult, SpawnError> {
        let Some(session) = &self.session else { return Err(SpawnError::Unavailable) };
        let ended = session.spawn_child(call.clone(), child, ChildLink::without_watcher());
        let ended = self.stop.run_until_cancelled(ended).await;
        ended.unwrap_or(Err(SpawnError::Stopped))
    }
}

/// Something a model can call.
pub trait Tool: Send + Sync {
    /// What it is. Constant over a session.
    fn spec(&self) -> &ToolSpec;

    /// What a small model is offered of it, where that is less than what it is.
    fn lean_spec(&self) -> Option<&ToolSpec> {
        None
    }

    /// What its calls are judged as, where that is not what it is.
    fn judged_as(&self) -> &ToolSpec {
        self.spec()
    }

    /// Arguments for the tool that starts sessions ([`ToolKind::StartsSessions`]), where a call of this one is to be
    /// such a call: if there is that tool, the call is judged and run as one of it.
    fn start_arguments(&self, _call: &ToolCall) -> Option<RawJson> {
        None
    }

    /// The arguments that are judged, shown and run, where they are not those of the call: with the paths that it
    /// means. May look at folders, changes nothing.
    fn normalize_arguments(&self, _call: &ToolCall, _cx: &ToolCx) -> Option<RawJson> {
        None
    }

    /// Runs one call. Never fails outside [`ToolOutcome`]; returns soon after `cx.stop`.
    fn run(&self, call: ToolCall, cx: ToolCx) -> BoxFuture<'static, ToolOutcome>;

    /// Commands of its calls that go on in the background after the calls have ended, each told by one
    /// tool only. A process that would end by itself waits for them.
    fn background_jobs(&self) -> usize {
        0
    }

    /// Returns the change that the call would make, as a unified diff, for the permission prompt. Changes nothing.
    ///
    /// # Errors
    /// The call would fail as things are, so that no person needs to be asked about it.
    fn preview(&self, _call: &ToolCall, _cx: &ToolCx) -> Result<Option<String>, PreviewError> {
        Ok(None)
    }
}

/// A call that would fail as things are; the reason in words for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PreviewError(pub String);
